"""The cells of a scaling series: what one setting measured, and how much faster one is.

cells = cells_of(cases, "threads", "triad", names_of(cases, "threads"))
speeds(cells[0], cells[1], "higher")          # ratio, and the ends of its interval
"""

import math
from collections.abc import Sequence
from statistics import median

from msgspec import UNSET, Struct

from seatrial.grouping import grouped
from seatrial.judge.promises import Beside
from seatrial.judge.statistics import two_samples
from seatrial.results.panels import MAX_NAMED, metrics_of
from seatrial.results.promises import promised_of
from seatrial.results.store.by_case import (
    CaseRuns,
    Kind,
    causes,
    differing,
    excluded_of,
    figures_of,
    unlike,
)
from seatrial.units import NO_DIRECTION, Better, listed, number_or_size, unfit_of


class Cell(Struct, frozen=True, kw_only=True, rename={"reason": "why"}):
    """One setting of a series."""

    x: float
    #: of figures; 0 without a right answer, and ``reason`` tells the cause
    n: int
    excluded: dict[str, int] = {}
    median: float | None = None
    #: over the base of its line, with the ends of its interval
    speedup: float | None = None
    low: float | None = None
    high: float | None = None
    ideal: float | None = None
    efficiency: float | None = None
    gain: float | None = None
    reason: str = ""
    values: list[float] = []
    #: what was promised of the median
    promised: Beside = UNSET


NO_FIGURE = "no such figure"
PLAIN = ("toolchain", "machine", "trial", "stage")  # their values tell what they are


def line_name(member: CaseRuns, by: Sequence[str]) -> str:
    """Return the name of a case's line: ``gcc, ranks=2``."""
    values = ((name, member.attribute(name) or "none") for name in by)
    return ", ".join(value if name in PLAIN else f"{name}={value}" for name, value in values)


def by_line(members: Sequence[CaseRuns], by: Sequence[str]) -> dict[str, list[CaseRuns]]:
    """Return the cases of each line, by its name."""
    return grouped(members, lambda member: line_name(member, by))


def names_of(members: Sequence[CaseRuns], x: str) -> list[str]:
    """Return the values of x as they are named, if one is a word, a size with its unit, or a number
    that is not above 0, so that nothing grows with it; numbers and sizes by their value, words as
    they come. Else an empty list."""
    texts = list(dict.fromkeys(one.attribute(x) for one in members))
    if all(number_or_size(text) > 0 and not text[-1:].isalpha() for text in texts):
        return []
    return sorted(texts, key=number_or_size) if are_numbers(texts) else texts


def are_numbers(texts: Sequence[str]) -> bool:
    """Return whether all values have an order: numbers, and sizes with their unit."""
    return not any(math.isnan(number_or_size(text)) for text in texts)


def cells_of(
    members: Sequence[CaseRuns], x: str, metric: str, names: Sequence[str] = ()
) -> list[Cell]:
    """Return a cell for each value of x, the least first; where the values have ``names`` the x of
    a cell is the place of its name among them."""

    def at(member: CaseRuns) -> float:
        text = member.attribute(x)
        return float(names.index(text)) if names else number_or_size(text)

    groups = grouped(members, at)
    return [_cell(each, groups[each], metric) for each in sorted(groups)]


def usable(cells: Sequence[Cell]) -> list[Cell]:
    """Return the cells that can be compared."""
    return [cell for cell in cells if cell.median is not None and cell.median > 0]


def _cell(x: float, members: Sequence[CaseRuns], metric: str) -> Cell:
    excluded = excluded_of(members)
    if names := differing(members):
        return Cell(x=x, n=0, reason=f"several cases, which differ in {names}")
    values = figures_in(members, metric)
    if not values:
        right = sum(len(member.runs) for member in members)
        reason = causes(excluded) or (NO_FIGURE if right else "not run")
        return Cell(x=x, n=0, excluded=excluded, reason=reason)
    if odd := unfit_of(values):
        return Cell(x=x, n=0, excluded=excluded, reason=odd)
    middle = median(values)
    return Cell(
        x=x,
        n=len(values),
        excluded=excluded,
        median=middle,
        reason="" if middle > 0 else f"{middle:g} is not above 0",
        values=values,
        promised=promised_of(members, next(iter(kinds_of(members, metric))), middle),
    )


def figures_in(members: Sequence[CaseRuns], metric: str) -> list[float]:
    """Return the figures of cases in a metric, whatever its unit and direction."""
    return figures_of(members, kinds_of(members, metric))


def kinds_of(members: Sequence[CaseRuns], metric: str) -> dict[Kind, None]:
    """Return the metric with each unit and direction that cases have of it, in their order."""
    return dict.fromkeys(kind for one in members for kind in one.values if kind[0] == metric)


def metric_in(
    members: Sequence[CaseRuns], metric: str, undirected: str = ""
) -> tuple[str, str, str]:
    """Return the unit and the direction that cases have of a metric, and why they cannot be
    compared; "" if they can. ``undirected`` says what follows from a metric without a direction:
    ``so it has no speed-up``; "": nothing does."""
    kinds = kinds_of(members, metric)
    unit, direction = next(((kind[1], kind[2]) for kind in kinds), ("", ""))
    if differ := unlike(kinds):
        return unit, direction, f"{differ}; nothing is compared"
    if undirected and direction == NO_DIRECTION:
        return unit, direction, f"it has no direction (better: none), {undirected}"
    return unit, direction, ""


def nothing_measured(members: Sequence[CaseRuns], metric: str) -> str:
    """Return why no case has a figure of a metric."""
    known = metrics_of(members)
    if odd := unfit_of(figures_in(members, metric)):
        return f"no figure of {metric} can be judged; {odd}"
    if metric in known or not known:
        return f"no run gave a right answer with {metric}; see `seatrial runs`"
    return f"--metric {metric}: no run has it; there are {listed(known, MAX_NAMED)}"


def speeds(
    first: Cell, second: Cell, better: Better, weak: bool
) -> tuple[float, float | None, float | None]:
    """How many times faster the second cell is, and the ends of that ratio's interval."""
    scale = second.x / first.x if weak and better == "lower" else 1.0
    pair = (first, second) if better == "higher" else (second, first)
    before, after = (cell.median or math.nan for cell in pair)
    if min(first.n, second.n) < 2:
        return scale * after / before, None, None
    low, high = two_samples.interval(pair[0].values, pair[1].values)
    ratio = after / before
    if not (two_samples.is_known(ratio, low) and two_samples.is_known(ratio, high)):
        return scale * ratio, None, None
    return scale * ratio, scale * low, scale * high
