"""What several criteria say together, in the words of every heading, page, table and report.

found = overall(results)
found.state                  # "met with waivers"
found.short                  # "met, 1 waived"
found.words                  # "met, 1 waived: slowdown -180 % (at most 10 % loss)"

Runs that people excluded and failures that are known are said, too: "met, 1 by excluded runs, 2
known failures: pass rate 66.67 % with them (at least 100 %)".
"""

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from seatrial.acceptance.criteria.result import Result, State, show_value
from seatrial.units import count

OverallState = State | Literal["met with waivers", "awaited", "no criteria"]


class Overall(Struct, frozen=True):
    """The state of several criteria together; ``waived`` names those that a waiver was needed for,
    with what was found and asked, ``by_exclusion`` those that are met or waived only because both
    sides excluded runs. ``known`` is the number of known failures, which no criterion counts."""

    state: OverallState
    waived: list[str]
    by_exclusion: list[str] = []
    known: int = 0

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
        """The state, and which criteria were waived or are met by excluded runs."""
        named = [*self.waived, *self.by_exclusion]
        return f"{self.short}: {'; '.join(named)}" if named else self.short


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
    )


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
