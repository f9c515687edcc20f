"""A series with constant resources: ranks times threads are the same, the ideal is flat.

found = judged(cells, "higher")
found.best, found.plateau, found.drops

Nothing is added from one x to the next, so there is neither a speed-up to expect nor a knee. What
counts is which x is best, which others are as good, and where the speed drops.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from seatrial.store.by_case import CaseRuns
from seatrial.studies.scaling_cells import Cell, speeds, usable
from seatrial.units import Better

PLATEAU = 0.05  # of the best speed that a setting on the plateau may miss
MIN_DROP = 0.05  # of the speed before, from which a drop is told


class SpeedDrop(Struct, frozen=True):
    """From x ``before`` to the next one, ``after``, the speed drops by ``per_cent`` of what it was;
    ``low`` and ``high`` are the ends of its 95 % interval, None of single runs. ``until`` is the x
    behind ``after`` if the speed drops from there to ``after``, too: a dip of ``after`` alone."""

    before: float
    after: float
    per_cent: float
    low: float | None = None
    high: float | None = None
    until: float | None = None

    def told(self, x: str, named: Callable[[float], str] = "{:g}".format) -> str:
        """Return the drop in words. ``named`` gives the name of a value of x."""
        after = named(self.after)
        said = f"drops by {self.per_cent:.1f} % from {x} {named(self.before)} to {after}"
        known = self.low is not None and self.high is not None
        within = f"95 %: {self.low:.1f} to {self.high:.1f} %" if known else "of single runs: repeat"
        again = "" if self.until is None else f", at {after} alone: {named(self.until)} is faster"
        return f"{said} ({within}){again}"


class ConstantSeries(NamedTuple):
    """The cells with their speed over that of the ``best`` x, whose interval is theirs; the x about
    it that are as good; the drops, by x."""

    best: float
    cells: list[Cell]
    plateau: list[float]
    drops: list[SpeedDrop]


def are_constant(cases: Sequence[CaseRuns]) -> bool:
    """Return whether cases share the same cores out to tasks and threads in several ways. Their
    nodes may be unknown, if they are of all."""
    shapes = {(one.nodes, one.tasks, one.threads) for one in cases}
    if any(None in shape[1:] for shape in shapes):
        return False
    cores = {(nodes, (tasks or 0) * (threads or 0)) for nodes, tasks, threads in shapes}
    return len(cores) == 1 and len({tasks for _, tasks, _ in shapes}) > 1


def judged(cells: Sequence[Cell], better: Better, ordered: bool = True) -> ConstantSeries:
    """Return the series of cells in the order of x, at least one of which can be compared. Where x
    are not ``ordered`` (words), there is no drop from one to the next."""
    known = usable(cells)
    sign = 1 if better == "higher" else -1
    best = max(known, key=lambda cell: sign * (cell.median or 0))
    related = [_related(cell, best, better) for cell in cells]
    if not ordered:
        return ConstantSeries(best.x, related, _all_as_good(related), [])
    return ConstantSeries(best.x, related, _plateau(related, best.x), drops_of(known, better))


def drops_of(cells: Sequence[Cell], better: Better) -> list[SpeedDrop]:
    """Return the drops from one cell to the next. All can be compared, and are in the order of
    x."""
    drops = []
    for before, cell, behind in zip(cells, cells[1:], [*cells[2:], None], strict=False):
        if (drop := _drop(before, cell, better)) is None:
            continue
        is_dip = behind is not None and _drop(behind, cell, better) is not None
        drops.append(replace(drop, until=behind.x) if behind and is_dip else drop)
    return drops


def _related(cell: Cell, best: Cell, better: Better) -> Cell:
    if not usable([cell]):
        return replace(cell, ideal=1.0)
    if cell.x == best.x:
        return replace(cell, ideal=1.0, speedup=1.0, efficiency=1.0)
    speedup, low, high = speeds(best, cell, better, False)
    return replace(cell, ideal=1.0, speedup=speedup, low=low, high=high, efficiency=speedup)


def _plateau(cells: Sequence[Cell], best: float) -> list[float]:
    """Return the x about the best one, without a gap, that are within 5 % of it or cannot be told
    from it."""
    known = [cell for cell in cells if cell.speedup is not None]
    at = next(i for i, cell in enumerate(known) if cell.x == best)
    first = last = at
    while first > 0 and _as_good(known[first - 1]):
        first -= 1
    while last + 1 < len(known) and _as_good(known[last + 1]):
        last += 1
    return [cell.x for cell in known[first : last + 1]]


def _all_as_good(cells: Sequence[Cell]) -> list[float]:
    return [cell.x for cell in cells if cell.speedup is not None and _as_good(cell)]


def _as_good(cell: Cell) -> bool:
    return (cell.speedup or 0) >= 1 - PLATEAU or (cell.high is not None and cell.high >= 1)


def _drop(one: Cell, other: Cell, better: Better) -> SpeedDrop | None:
    """Return the drop from a cell to one beside it, None if there is none beyond the noise."""
    ratio, low, high = speeds(one, other, better, False)
    if ratio > 1 - MIN_DROP or (high is not None and high >= 1):
        return None
    if low is None or high is None or not math.isfinite(low):
        return SpeedDrop(one.x, other.x, 100 * (1 - ratio))
    return SpeedDrop(one.x, other.x, 100 * (1 - ratio), 100 * (1 - high), 100 * (1 - low))
