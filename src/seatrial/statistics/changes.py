"""Find where the level of a series changed, in two tiers.

find([100, 101, 99, ..., 90, 91, 89])     # [LevelChange(index=60, before=100.1, after=90.2, ...)]

*Confirmed* changes may raise an alarm. Two methods propose them:

1. the pieces of the best L1 fit (``segments``) at a price of 2 ln(n) sigma for each piece; sigma is
   estimated from the differences of figures three apart;
2. in each of these pieces, the split with the largest Wilcoxon rank sum: the L1 fit misses changes
   of figures that fall into two modes.

A proposed change is kept if it is more than chance and noise (``step_evidence``), and moved to its
likely place (``step_location``). Steps in one direction that follow each other, and that a line
explains as well, are told as one *drift* from their first level to their last.

*Suspect* changes may be noise: Student's t at p < 0.001, the best of all splits of each piece
between confirmed changes. One point is enough, so they appear early and often vanish again.
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Literal

from msgspec import Struct

from seatrial.arrays import Floats, Indices
from seatrial.lazy import np
from seatrial.statistics.segments import starts
from seatrial.statistics.significance import fisher_deviate, normal_deviate
from seatrial.statistics.step_evidence import (
    CLIP,
    SHORTEST,
    StepEvidence,
    best_split,
    deviation,
    least_deviate,
    step_at,
    width,
)

Tier = Literal["suspect", "confirmed"]

MIN_POINTS = 8  # of a series; fewer cannot tell noise from change
PRICE = 2.0  # of a piece of the L1 fit, in ln(n) sigma
LAG = 3  # sigma comes from figures so far apart: neighbours may be correlated
SUSPECTED = 3.29  # standard errors: p = 0.001, two-sided
# The logarithm of how many times likelier a line must be than a step, in ln(n). Of steps that
# follow each other in one direction each costs 1.5 (Zhang and Siegmund 2007), a slope 0.5.
LINE_FOR_ONE = 1.0
LINE_FOR_SEVERAL = -1.0


class LevelChange(Struct, frozen=True):
    """A change of level, which is a step at ``index`` or a drift from there ``until`` another
    figure (None for a step). Both count in the values as given.

    ``before`` and ``after`` are the levels up to the neighbouring confirmed changes, of a drift the
    first and the last level: means of the figures, winsorised at three robust deviations from their
    median. ``strength`` is the normal deviate that is as rare as the difference.
    """

    index: int
    before: float
    after: float
    tier: Tier
    strength: float = 0.0
    until: int | None = None

    @property
    def settled(self) -> int:
        """Return the index of the first figure on the level after it."""
        return self.index if self.until is None else self.until

    @property
    def ratio(self) -> float | None:
        """Return after / before; None if a level is 0 or the signs differ."""
        return self.after / self.before if self.before * self.after > 0 else None


class SeriesAnalysis(Struct, frozen=True):
    """The changes of a series of ``count`` finite figures.

    ``noise``: the robust standard deviation beside the changes. ``why``: the reason why nothing can
    be concluded, or "". ``limit``: which changes a series so short cannot show, however large they
    are, or "".
    """

    changes: list[LevelChange]
    count: int
    noise: float
    why: str = ""
    limit: str = ""

    @property
    def few(self) -> bool:
        """Return whether there are too few figures to find any change."""
        return self.count < MIN_POINTS


def find(values: Sequence[float]) -> list[LevelChange]:
    """Return the changes of level of a series. ``analyse`` also returns the reason if there are
    none."""
    return analyse(values).changes


def analyse(values: Sequence[float]) -> SeriesAnalysis:
    """Return the changes of level of a series in order of time, and its noise.

    Figures that are not finite are left out.
    """
    given = np.asarray(values, dtype=float).reshape(-1)
    usable = np.flatnonzero(np.isfinite(given))
    series = given[usable]
    if reason := _unfit(series):
        return SeriesAnalysis([], len(series), 0.0, reason)
    power = int(np.frexp(np.abs(series).max())[1])
    series = np.ldexp(series, -power)  # exact; now no square of a figure overflows
    confirmed = _confirmed(series)
    marks, steps = [0, *confirmed, len(series)], _steps(series, confirmed)
    drifts = _drifts(steps)
    found = [_drift(steps[run.start : run.stop], marks[run.start]) for run in drifts]
    alone = {*range(len(steps))} - {i for run in drifts for i in run}
    found += [_told(steps[i], "confirmed") for i in alone]
    off = []
    for number, (start, end) in enumerate(pairwise(marks)):
        if not any(run.start <= number <= run.stop for run in drifts):
            off.append(series[start:end] - np.median(series[start:end]))
            if suspect := _suspect(series, start, end):
                found.append(_told(suspect, "suspect"))
    for run in drifts:
        drifting = series[marks[run.start] : marks[run.stop + 1]]
        apart = np.diff(drifting)
        off.append((apart - np.median(apart)) / math.sqrt(2))
    return SeriesAnalysis(
        sorted((_as_given(one, usable, power) for one in found), key=lambda one: one.index),
        len(series),
        noise=math.ldexp(deviation(np.concatenate(off)), power),
        limit=_limit(len(series)),
    )


def _told(step: StepEvidence, tier: Tier) -> LevelChange:
    return LevelChange(step.at, step.before, step.after, tier, step.strength)


def _drift(steps: Sequence[StepEvidence], start: int) -> LevelChange:
    """Return the drift that steps are which follow each other."""
    strength = max(step.strength for step in steps)
    levels = steps[0].before, steps[-1].after
    return LevelChange(start, *levels, "confirmed", strength, until=steps[-1].at)


def _as_given(change: LevelChange, usable: Indices, power: int) -> LevelChange:
    """Return a change that counts in the values as given, and is of their size."""
    return LevelChange(
        int(usable[change.index]),
        math.ldexp(change.before, power),
        math.ldexp(change.after, power),
        change.tier,
        change.strength,
        None if change.until is None else int(usable[change.until]),
    )


# ---- the series ---------------------------------------------------------------------------


def _unfit(series: Floats) -> str:
    """Return why no change can be looked for in a series, or ""."""
    count = len(series)
    if not count:
        return "there is no finite figure"
    if count < MIN_POINTS:
        figures = "one figure has" if count == 1 else f"{count} figures have"
        return f"{figures} no history: changes are looked for in {MIN_POINTS} or more"
    if series.min() == series.max():
        return f"all {count} figures are equal: there is no change, and no noise to judge one by"
    return ""


@lru_cache(maxsize=1024)
def _limit(count: int) -> str:
    """Return which changes the test of the order can never confirm in so many figures, or ""."""
    sides = range(SHORTEST, count // 2 + 1)
    enough = (n for n in sides if fisher_deviate(n, n, 0, count - n) >= least_deviate(count))
    if (first := next(enough, None)) is None:
        return f"of {count} figures no change can be confirmed, however large: repeat the run"
    if first > SHORTEST:
        return f"of {count} figures a change is confirmed with {first} or more on either side only"
    return ""


# ---- steps --------------------------------------------------------------------------------


def _steps(series: Floats, changes: Sequence[int]) -> list[StepEvidence]:
    """Return the step at each change, between its neighbours."""
    marks = [0, *changes, len(series)]
    return [step_at(series, *marks[i : i + 3]) for i in range(len(changes))]


# ---- confirmed ----------------------------------------------------------------------------


def _confirmed(series: Floats) -> list[int]:
    """Return the indices of the confirmed changes."""
    sigma = width(series[LAG:] - series[:-LAG]) / math.sqrt(2)
    proposed = starts(series, PRICE * math.log(len(series)) * sigma, SHORTEST)[1:]
    solid = _pruned(series, proposed)
    if splits := _splits(series, solid):
        solid = _pruned(series, sorted([*solid, *splits]))
    return _placed(series, solid)


def _placed(series: Floats, changes: list[int]) -> list[int]:
    """Move each change to its likely place if it is still confirmed there."""
    marks = [0, *changes, len(series)]
    for i in range(1, len(marks) - 1):
        start, at, end = marks[i - 1 : i + 2]
        step = step_at(series, start, at, end)
        if step.variance:
            moved = start + likely(step.figures, step.variance, SHORTEST)
            if step_at(series, start, moved, end).holds(len(series)):
                marks[i] = moved
    return marks[1:-1]


def _pruned(series: Floats, changes: list[int]) -> list[int]:
    """Remove changes that are too small or too weak, the weakest first.

    After each removal its neighbours are judged anew, with longer pieces.
    """
    count = len(series)
    steps = _steps(series, changes)
    while failing := [i for i, step in enumerate(steps) if not step.holds(count)]:
        worst = min(failing, key=lambda i: steps[i].weight(count))
        del steps[worst]
        marks = [0, *(step.at for step in steps), count]
        for i in range(max(0, worst - 1), min(worst + 1, len(steps))):
            steps[i] = step_at(series, *marks[i : i + 3])
    return [step.at for step in steps]


def _splits(series: Floats, changes: list[int]) -> list[int]:
    """Return further changes in the pieces: the best split by ranks if it is strong enough.

    The two halves of such a split are searched in the same way.
    """
    found = []
    pieces = list(pairwise([0, *changes, len(series)]))
    while pieces:
        start, end = pieces.pop()
        if end - start < 2 * SHORTEST:
            continue
        at = start + best_split(series[start:end], SHORTEST)
        if step_at(series, start, at, end).holds(len(series)):
            found.append(at)
            pieces += [(start, at), (at, end)]
    return found


def _drifts(steps: Sequence[StepEvidence]) -> list[range]:
    """Return the runs of steps in one direction that are drifts, as ranges of their numbers."""
    found: list[range] = []
    for i, step in enumerate(steps):
        near = [*steps[max(0, i - 1) : i], *steps[i + 1 : i + 2]]
        several = any(other.rises == step.rises for other in near)
        least = LINE_FOR_SEVERAL if several else LINE_FOR_ONE
        if step.line_likelier() < least * math.log(len(step.figures)):
            continue
        if found and found[-1].stop == i and steps[i - 1].rises == step.rises:
            found[-1] = range(found[-1].start, i + 1)
        else:
            found.append(range(i, i + 1))
    return found


# ---- suspect ------------------------------------------------------------------------------


def _suspect(series: Floats, start: int, end: int) -> StepEvidence | None:
    """Return the best split of the piece [start, end) by Student's t if p < 0.001, else None."""
    piece = series[start:end]
    count = len(piece)
    if count < MIN_POINTS:
        return None
    middle = float(np.median(piece))
    bound = 2 * CLIP * deviation(piece - middle)
    clipped = np.clip(piece - middle, -bound, bound)
    sums, squares = np.cumsum(clipped)[:-1], float(clipped @ clipped)
    first = np.arange(1, count)
    rest = float(clipped.sum()) - sums
    within = squares - sums**2 / first - rest**2 / (count - first)
    gap = sums / first - rest / (count - first)
    error = np.sqrt(np.maximum(within, 1e-30) / (count - 2) * (1 / first + 1 / (count - first)))
    student = np.abs(gap) / error
    at = int(student.argmax())
    step = step_at(series, start, start + at + 1, end)
    weak = normal_deviate(float(student[at]), count - 2) < SUSPECTED
    return None if weak or step.small else step


def likely(figures: Floats, variance: float, shortest: int) -> int:
    """Return the median place of a step between any two levels, in normal noise.

    ``figures``: shape (n,), n >= 2 ``shortest``; winsorise outliers before calling. ``variance`` of
    the noise: above 0. At least ``shortest`` figures are on each side. The likelihood is profiled
    over both levels, with an even prior over the places.
    """
    count = len(figures)
    first = np.arange(shortest, count - shortest + 1)
    sums = np.cumsum(figures - figures.mean())[first - 1]
    squares = sums * sums * (count / (first * (count - first)))
    with np.errstate(over="ignore", under="ignore"):  # far less likely places weigh nothing
        weights = np.cumsum(np.exp((squares - squares.max()) / (2 * variance)))
    return int(first[weights.searchsorted(weights[-1] / 2)])
