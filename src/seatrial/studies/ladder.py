"""Several versions, one after the other: how many times as good each is, and all of them together.

    for one in ladder([v0, v1, v2]):
        [step.times for step in one.steps], one.product.times     # [1.6, 1.4], 2.24

The product of the steps is the ratio of the last side to the first, so its interval is that ratio's
own: what was measured in between cancels out.
"""

from collections.abc import Callable
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace

from seatrial.structs import copied
from seatrial.studies.comparison import Comparison, ComparisonRow, State


class LadderStep(Struct, frozen=True, kw_only=True):
    """From one side to a later one: how many times as good it is (above 1: better, also where lower
    is better), with its 95 % interval; None where it cannot be told, with the reason."""

    first: str
    second: str
    times: float | None = None
    low: float | None = None
    high: float | None = None
    verdict: State = "missing"
    why: str = ""


class Ladder(Struct, frozen=True, kw_only=True):
    """One metric of one case over all sides: the ``medians`` and numbers of runs of each side, the
    steps between them, and their product."""

    case: str
    metric: str
    unit: str
    better: str
    medians: list[float | None]
    n: list[int]
    steps: list[LadderStep]
    product: LadderStep


def ladders(count: int, compared: Callable[[int, int], Comparison]) -> list[Ladder]:
    """Return a ladder for each row of the first of ``count`` sides with the last. ``compared``
    compares two sides by their places; it raises UsageError where they share nothing."""
    steps = [compared(i, j) for i, j in pairwise(range(count))]
    whole = compared(0, count - 1)
    by_key = [{(row.case, row.metric): row for row in step.rows} for step in steps]
    found = []
    for row in whole.rows:
        rows = [rows.get((row.case, row.metric)) for rows in by_key]
        first = rows[0].first if rows[0] else row.first
        samples = [first, *(each.second if each else None for each in rows)]
        found.append(
            copied(
                Ladder,
                row,
                medians=[sample.median if sample else None for sample in samples],
                n=[sample.n if sample else 0 for sample in samples],
                steps=[_step(step, each) for step, each in zip(steps, rows, strict=True)],
                product=_step(whole, row),
            )
        )
    return found


def _step(compared: Comparison, row: ComparisonRow | None) -> LadderStep:
    step = LadderStep(first=compared.first, second=compared.second)
    if row is None:
        return replace(step, why="one side has no such case or metric")
    times, low, high = row.ratio, row.low, row.high
    if row.better == "lower":
        times, low, high = (1 / end if end else None for end in (times, high, low))
    return replace(step, times=times, low=low, high=high, verdict=row.verdict, why=row.why)
