"""What several criteria say together, in the words of every heading, page, table and report.

found = overall(results)
found.state                  # "met with waivers"
found.short                  # "met, 1 waived"
found.words                  # "met, 1 waived: slowdown -180 % (at most 10 % loss)"
                             # "not met: clause 5.1, pass rate 82.1 %, by cm4 (at least 90 %)"

Runs that people excluded and failures that are known are said, too: "met, 1 by excluded runs, 2
known failures: pass rate 66.67 % with them (at least 100 %)".
"""

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from seatrial.acceptance.criteria.result import Result, State, show_value
from seatrial.units import count

MAX_NAMED = 4  # criteria, in one sentence
OverallState = State | Literal["met with waivers", "awaited", "no criteria"]


class Overall(Struct, frozen=True):
    """The state of several criteria together; ``waived`` names those that a waiver was needed for,
    with what was found and asked, ``by_exclusion`` those that are met or waived only because both
    sides excluded runs. ``known`` is the number of known failures, which no criterion counts.
    ``missed`` names what is not met."""

    state: OverallState
    waived: list[str]
    by_exclusion: list[str] = []
    known: int = 0
    missed: list[str] = []

    @property
    def short(self) -> str:
        """The state, and how many criteria were waived or are met by excluded runs."""
        parts: list[str] = ["met" if self.state == "met with waivers" else self.state]
        if self.waived and self.state != "waived":
            parts.append(f"{len(self.waived)} waived")
        if self.by_exclusion:
            parts.append(f"{len(self.by_exclusion)} by excluded runs")
        if self.known:
            parts.append(count(self.known, "known failure"))
        return ", ".join(parts)

    @property
    def words(self) -> str:
        """The state, and which criteria are not met, were waived or are met by excluded runs."""
        named = [*self.waived, *self.by_exclusion]
        short = self.short
        if self.missed:
            short = short.removeprefix(self.state).removeprefix(", ")
        rest = f"{short}: {'; '.join(named)}" if named else short
        missed = f"{self.state}: {'; '.join(first_of(self.missed))}" if self.missed else ""
        return "; ".join(filter(None, (missed, rest)))


def overall(results: Sequence[Sequence[Result]]) -> Overall:
    """Return what the criteria say together: not met if one is not, else undecided if one is, else
    met; waived if all are, "no criteria" if there is none."""
    firsts = [each[0] for each in results if each]
    if all(one.criterion == "every_test" and one.state == "met" for one in firsts):
        return Overall("no criteria", [])
    states = {one.state for one in firsts}
    waived = [waived_words(one) for one in firsts if one.state == "waived"]
    order: tuple[State, ...] = ("not met", "undecided", "met", "waived")
    state: OverallState = next((each for each in order if each in states), "no criteria")
    return Overall(
        "met with waivers" if state == "met" and waived else state,
        waived,
        [words for one in firsts if (words := exclusion_words(one))],
        max((known_failures(one) for one in firsts), default=0),
        [missed_words(one) for one in firsts if one.state == "not met"],
    )


def first_of(words: Sequence[str], most: int = MAX_NAMED) -> list[str]:
    """Return so many of the words at most, and how many more there are."""
    more = len(words) - most
    return [*words[:most], f"and {more} more"] if more > 0 else list(words)


def missed_words(one: Result, component: str = "") -> str:
    """Return a criterion that is not met, or undecided, by its clause, with what was found and
    asked: ``clause 5.1, pass rate of stability 82.1 %, by cm4 (at least 90 %)``."""
    clause = f"clause {one.clause}, " if one.clause else ""
    worst = f", by {one.numbers['worst']}" if one.shown and one.numbers.get("worst") else ""
    of = f" of {component}" if component else ""
    found = one.shown or "without a value"
    return f"{clause}{one.label}{of} {found}{worst} ({one.bound or 'no bound'})"


def known_failures(one: Result) -> int:
    """Return how many known failures a criterion on runs left out."""
    return int(one.numbers.get("known", 0))


def exclusion_words(one: Result, component: str = "") -> str:
    """Return a criterion that is met only because both sides excluded runs, with what was found
    with them, and asked: ``pass rate 66.67 % with them (at least 100 %)``; "" for others."""
    other = one.with_excluded
    if other is None or one.state not in ("met", "waived") or other.state == one.state:
        return ""
    of = f" of {component}" if component else ""
    found = show_value(one.criterion, other.value, one.unit) or "without a value"
    return f"{one.label}{of} {found} with them ({one.bound or 'no bound'})"


def waived_words(one: Result, component: str = "") -> str:
    """Return a waived criterion with what was found and asked: ``slowdown -180 % (at most 10 %
    loss)``."""
    of = f" of {component}" if component else ""
    found = one.shown or "without a value"
    return f"{one.label}{of} {found} ({one.bound or 'no bound'})"
