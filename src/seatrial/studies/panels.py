"""Which cases belong into one table: those that differ in the chosen parameters alone.

follow = along(cases, ["threads"], chosen=["threads"])     # ["size"], which is zipped with threads
panels(cases, {"threads", *follow})                        # lists of cases
"""

from collections.abc import Collection, Sequence

from msgspec import Struct

from seatrial.store.by_case import CaseRuns
from seatrial.suite.case_names import case_name
from seatrial.units import Better

APART = ("toolchain", "machine", "stage")  # in one table only where they are chosen


class CasesTable(Struct, frozen=True, kw_only=True):
    """A table of one case: its metric, the parameters ``along`` that follow the chosen ones, and
    ``why`` nothing can be told, "" where something can."""

    case: str
    metric: str
    unit: str
    better: Better
    along: list[str] = []
    why: str = ""


class TableOverX(CasesTable, frozen=True, kw_only=True):
    """A table of one case over ``x``. Where x are words, or hold 0, they have ``names``, and an x
    is the place of its name. ``weak``: the work grows with x."""

    x: str
    weak: bool
    names: list[str] = []

    def named(self, x: float) -> str:
        """Return an x as people write it."""
        return self.names[int(x)] if self.names else f"{x:g}"


def along(cases: Sequence[CaseRuns], axes: Sequence[str], chosen: Collection[str]) -> list[str]:
    """Return the parameters besides the ``chosen`` that are one to one with one of the axes: zipped
    with it, or what it follows from."""
    names = dict.fromkeys(name for one in cases for name in one.parameters)
    return [
        name
        for name in names
        if name not in chosen and any(one_to_one(cases, name, axis) for axis in axes)
    ]


def one_to_one(cases: Sequence[CaseRuns], name: str, axis: str) -> bool:
    pairs = {(one.parameters.get(name, ""), one.attribute(axis)) for one in cases}
    values, xs = ({pair[i] for pair in pairs} for i in (0, 1))
    return len(pairs) == len(values) == len(xs) > 1


def panels(cases: Sequence[CaseRuns], left_out: Collection[str]) -> list[list[CaseRuns]]:
    """Return the cases of a test in groups, which share all that is not ``left_out``."""
    groups: dict[tuple[str, ...], list[CaseRuns]] = {}
    for one in cases:
        bound = sorted(f"{n}={v}" for n, v in one.parameters.items() if n not in left_out)
        fixed = [name for name in APART if name not in left_out]
        key = (one.test, *(one.attribute(name) for name in fixed), *bound)
        groups.setdefault(key, []).append(one)
    return list(groups.values())


def title(panel: Sequence[CaseRuns], left_out: Collection[str], every: Sequence[CaseRuns]) -> str:
    """Return the name of a table: what its cases share, without what is ``left_out``; with the
    machine where the cases of all tables (``every``) are of several."""
    one, machine = panel[0], panel[0].attribute("machine")
    bound = {name: value for name, value in one.parameters.items() if name not in left_out}
    chain, stage = (
        "" if name in left_out else one.attribute(name) for name in ("toolchain", "stage")
    )
    several = "machine" not in left_out and len({case.attribute("machine") for case in every}) > 1
    named = case_name(one.test, bound, chain, "", stage)
    return f"{named} on {machine}" if several else named


def varying(cases: Sequence[CaseRuns]) -> list[str]:
    """Return the parameters that have two values or more, and such attributes behind them."""
    names = dict.fromkeys(name for one in cases for name in one.parameters)
    return [name for name in (*names, *APART) if len({one.attribute(name) for one in cases}) > 1]
