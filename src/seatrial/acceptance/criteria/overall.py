"""What several criteria say together, in the words of every heading, page, table and report.

found = overall(results)
found.state                  # "met with waivers"
found.short                  # "met, 1 waived"
found.words                  # "met, 1 waived: slowdown -180 % (at most 10 % loss)"
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from seatrial.acceptance.criteria.result import Result, State

OverallState = State | Literal["met with waivers", "awaited", "no criteria"]


class Overall(Struct, frozen=True):
    """The state of several criteria together; ``waived`` names those that a waiver was needed for,
    with what was found and asked."""

    state: OverallState
    waived: list[str]

    @property
    def short(self) -> str:
        """The state, and how many criteria were waived."""
        if not self.waived or self.state == "waived":
            return self.state
        state = "met" if self.state == "met with waivers" else self.state
        return f"{state}, {len(self.waived)} waived"

    @property
    def words(self) -> str:
        """The state, and which criteria were waived."""
        return f"{self.short}: {'; '.join(self.waived)}" if self.waived else self.short


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
    return Overall("met with waivers" if state == "met" and waived else state, waived)


def waived_words(one: Result, component: str = "") -> str:
    """Return a waived criterion with what was found and asked: ``slowdown -180 % (at most 10 %
    loss)``."""
    of = f" of {component}" if component else ""
    found = one.shown or "without a value"
    return f"{one.label}{of} {found} ({one.bound or 'no bound'})"
