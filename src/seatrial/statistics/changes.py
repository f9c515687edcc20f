"""Find where the level of a series changed, in two tiers.

find([100, 101, 99, ..., 90, 91, 89])     # [LevelChange(index=60, before=100.1, after=90.2, ...)]

*Confirmed* changes may raise an alarm. Two methods propose them:

1. the pieces of the best L1 fit (``segments``) at a price of 2 ln(n) sigma for each piece; sigma is
   estimated from the differences of figures three apart;
2. in each of these pieces, the split with the largest Wilcoxon rank sum: the L1 fit misses changes
   of figures that fall into two modes.

A proposed change is kept if each side has three points, the levels differ by the least effect and
by many standard errors, and chance rarely puts these figures in such an order (``rank_tests``). The
standard error is inflated by (1 + r) / (1 - r), where r is the correlation of neighbours: an
autocorrelated series drifts without a cause. The test of the order keeps out three successive
figures that fell into the same of two modes. A kept change is moved to its likely place
(``step_location``).

*Suspect* changes may be noise: Student's t at p < 0.001, the best of all splits of each piece
between confirmed changes. One point is enough, so they appear early and often vanish again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from msgspec import Struct

from seatrial.lazy import np
from seatrial.statistics import rank_tests, step_location
from seatrial.statistics.arrays import Floats, Indices
from seatrial.statistics.segments import starts
from seatrial.statistics.spread import MAD_TO_SIGMA

Tier = Literal["suspect", "confirmed"]

MIN_RELATIVE_CHANGE = 0.01
MIN_POINTS = 8  # of a series; fewer cannot tell noise from change
SHORTEST = 3  # points on each side of a confirmed change
PRICE = 2.0  # of a piece of the L1 fit, in ln(n) sigma
LAG = 3  # sigma comes from figures so far apart: neighbours may be correlated
MIN_STRENGTH = 3.5  # standard errors of a confirmed change
BEST_SPLIT = 2.5  # times ln(n): the square of the normal deviate required of the best split
SUSPECTED = 3.29  # standard errors: p = 0.001, two-sided
CLIP = 3.0  # robust deviations from the median of its piece; farther figures are winsorised
MEAN_TO_SIGMA = 1.2533  # sqrt(pi / 2): mean absolute to standard deviation of normal figures
QUARTER = 1.1503  # standard deviations beyond which a quarter of normal figures are
MAX_CORRELATION = 0.9  # of neighbours; a higher estimate is replaced by this


class LevelChange(Struct, frozen=True):
    """A change of level at ``index``, which counts in the values as given.

    ``before`` and ``after`` are the levels up to the neighbouring confirmed changes: means of the
    figures, winsorised at three robust deviations from their median. ``time`` is that of the point
    at ``index``. ``strength`` is the normal deviate that is as rare as the difference.
    """

    index: int
    before: float
    after: float
    tier: Tier
    time: float | None = None
    strength: float = 0.0

    @property
    def ratio(self) -> float | None:
        """Return after / before; None if a level is 0 or the signs differ."""
        return self.after / self.before if self.before * self.after > 0 else None


class SeriesAnalysis(Struct, frozen=True):
    """The changes of a series of ``count`` finite figures.

    ``left_out``: indices of figures that are not finite. ``noise``: the robust standard deviation
    within the pieces. ``why``: the reason why nothing can be concluded, or "". ``limit``: which
    changes a series so short cannot show, however large they are, or "".
    """

    changes: list[LevelChange]
    count: int
    left_out: list[int]
    noise: float
    why: str = ""
    limit: str = ""

    @property
    def few(self) -> bool:
        """Return whether there are too few figures to find any change."""
        return self.count < MIN_POINTS


def find(values: Sequence[float], times: Sequence[float] | None = None) -> list[LevelChange]:
    """Return the changes of level of a series in order of time.

    ``analyse`` also returns the reason if there are none.
    """
    return analyse(values, times).changes


def analyse(
    values: Sequence[float],
    times: Sequence[float] | None = None,
    least: float = MIN_RELATIVE_CHANGE,
) -> SeriesAnalysis:
    """Return the changes of level of a series, and which figures could not be used.

    ``times`` (any unit) gives the order of the figures; without it they are in order. ``least`` is
    the least effect, as a share of the level before. Raises ValueError if the numbers of times and
    figures differ or a time is not finite.
    """
    given = np.asarray(values, dtype=float).reshape(-1)
    usable, left_out = _in_order(given, times)
    series = given[usable]
    if reason := _unfit(series):
        return SeriesAnalysis([], len(series), left_out, 0.0, reason)
    power = int(np.frexp(np.abs(series).max())[1])
    series = np.ldexp(series, -power)  # exact; now no square of a figure overflows
    confirmed = _confirmed(series, least)
    pieces = _pieces(series, confirmed)
    tiers: list[tuple[_Step, Tier]] = [(step, "confirmed") for step in _steps(series, confirmed)]
    suspects = [_suspect(series, start, end, least) for start, end in pieces]
    tiers += [(step, "suspect") for step in suspects if step]
    changes = []
    for step, tier in sorted(tiers):
        index = int(usable[step.at])
        before, after = math.ldexp(step.before, power), math.ldexp(step.after, power)
        time = None if times is None else float(times[index])
        changes.append(LevelChange(index, before, after, tier, time, step.strength))
    noise = _deviation(np.concatenate([_off(series[start:end]) for start, end in pieces]))
    limit = _limit(len(series))
    return SeriesAnalysis(changes, len(series), left_out, math.ldexp(noise, power), limit=limit)


def latest(course: SeriesAnalysis, values: Sequence[float]) -> list[float]:
    """Return the finite figures since the last confirmed change, from which to learn a reference.

    ``values`` are those that the course was found in, in order of time.
    """
    since = max((c.index for c in course.changes if c.tier == "confirmed"), default=0)
    return [value for value in values[since:] if math.isfinite(value)]


# ---- the series ---------------------------------------------------------------------------


def _in_order(given: Floats, times: Sequence[float] | None) -> tuple[Indices, list[int]]:
    """Return the indices of the finite figures in order of time, and those of the others."""
    order = np.arange(len(given))
    if times is not None:
        if len(times) != len(given):
            raise ValueError(f"{len(given)} figures have {len(times)} times; give one for each")
        at = np.asarray(times, dtype=float)
        if not np.isfinite(at).all():
            raise ValueError("a time is not a finite number")
        order = np.argsort(at, kind="stable")
    finite = np.isfinite(given)
    return order[finite[order]], np.flatnonzero(~finite).tolist()


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
    enough = (n for n in sides if rank_tests.fisher(n, n, 0, count - n) >= least_deviate(count))
    if (first := next(enough, None)) is None:
        return f"of {count} figures no change can be confirmed, however large: repeat the run"
    if first > SHORTEST:
        return f"of {count} figures a change is confirmed with {first} or more on either side only"
    return ""


def _pieces(series: Floats, changes: Sequence[int]) -> list[tuple[int, int]]:
    """Return start and end of each piece between changes."""
    return list(zip([0, *changes], [*changes, len(series)], strict=True))


def _deviation(off: Floats) -> float:
    """Return a robust standard deviation: from the median distance, or the mean one if that is 0.

    ``off``: distances from a centre, shape (n,).
    """
    away = np.abs(off)
    return MAD_TO_SIGMA * float(np.median(away)) or MEAN_TO_SIGMA * float(away.mean())


def _width(off: Floats) -> float:
    """Return a robust standard deviation that also sees a second mode of a quarter of the figures.

    The median distance alone may miss such a mode. ``off``: distances from a centre, shape (n,).
    """
    place = 3 * (len(off) - 1) // 4
    return max(_deviation(off), float(np.partition(np.abs(off), place)[place]) / QUARTER)


def _off(piece: Floats) -> Floats:
    """Return the distances of figures from their median."""
    off: Floats = piece - np.median(piece)
    return off


# ---- steps --------------------------------------------------------------------------------


class _Step(NamedTuple):
    """A possible change before index ``at``, and the levels ``before`` and ``after`` it.

    ``strength`` and ``order`` are normal deviates: of the difference, and of the order of figures.
    """

    at: int
    before: float
    after: float
    strength: float
    order: float

    def small(self, least: float) -> bool:
        return abs(self.after - self.before) < least * abs(self.before)

    def weight(self, count: int) -> float:
        """Return the weight of the evidence; below 1 it may be chance in so many figures."""
        return min(self.strength / MIN_STRENGTH, self.order / least_deviate(count))


def least_deviate(count: int) -> float:
    """Return the normal deviate that the best split of so many figures rarely exceeds by chance."""
    return math.sqrt(BEST_SPLIT * math.log(count))


class _Sides(NamedTuple):
    """The figures before and after a split.

    ``left`` and ``right``: distances from the ``medians`` of their sides, winsorised. ``before``
    and ``after``: the levels. ``variance``: of one figure, inflated for the correlation of
    neighbours, so that it may be used as if figures were independent (0 if all are equal).
    """

    medians: tuple[float, float]
    left: Floats
    right: Floats
    before: float
    after: float
    variance: float


def _sides(series: Floats, start: int, at: int, end: int) -> _Sides:
    """Return the figures in [start, at) and in [at, end) as the two sides of a split."""
    medians = float(np.median(series[start:at])), float(np.median(series[at:end]))
    off = np.concatenate([series[start:at] - medians[0], series[at:end] - medians[1]])
    bound = CLIP * _width(off)
    clipped = np.clip(off, -bound, bound)
    left, right = clipped[: at - start], clipped[at - start :]
    means = float(left.mean()), float(right.mean())
    before, after = medians[0] + means[0], medians[1] + means[1]
    first, last = left - means[0], right - means[1]
    squares = float(first @ first + last @ last)
    if squares <= 1e-20 * before * before:
        return _Sides(medians, left, right, before, after, 0.0)
    r = min(max(neighbour_correlation(first, last), 0.0), MAX_CORRELATION)
    variance = squares / max(end - start - 2, 1) * (1 + r) / (1 - r)
    return _Sides(medians, left, right, before, after, variance)


def neighbour_correlation(before: Floats, after: Floats) -> float:
    """Return the lag-1 autocorrelation of two samples, each given as deviations from its own mean.

    Both have the same autocorrelation. Subtracting a mean lowers its estimate r by about (1 + 3 r)
    over the size of the sample (Kendall 1954; Marriott and Pope 1954). Two means are subtracted
    here, so twice that, over both sizes, is added. The result may lie outside [-1, 1].
    """
    squares = float(before @ before + after @ after)
    r = float(before[1:] @ before[:-1] + after[1:] @ after[:-1]) / squares
    return r + 2 * (1 + 3 * r) / (len(before) + len(after))


def _step(series: Floats, start: int, at: int, end: int) -> _Step:
    """Return the step of the level from [start, at) to [at, end)."""
    sides = _sides(series, start, at, end)
    before, after = sides.before, sides.after
    if before == after:
        return _Step(at, before, after, 0.0, 0.0)
    rare = rank_tests.deviate(series[start:end], at - start, (before + after) / 2)
    error = math.sqrt(sides.variance * (1 / (at - start) + 1 / (end - at)))
    if not error:  # no variance, or less than a float can hold
        return _Step(at, before, after, math.inf, rare)
    return _Step(at, before, after, normal(abs(after - before) / error, end - start - 2), rare)


def normal(student: float, freedom: int) -> float:
    """Return the normal deviate that is about as rare as a Student's t (Wallace 1959)."""
    scale = (8 * freedom + 1) / (8 * freedom + 3)
    return scale * math.sqrt(freedom * math.log1p(student * student / freedom))


def _steps(series: Floats, changes: Sequence[int]) -> list[_Step]:
    """Return the step at each change, between its neighbours."""
    marks = [0, *changes, len(series)]
    return [_step(series, *marks[i : i + 3]) for i in range(len(changes))]


# ---- confirmed ----------------------------------------------------------------------------


def _confirmed(series: Floats, least: float) -> list[int]:
    """Return the indices of the confirmed changes."""
    sigma = _width(series[LAG:] - series[:-LAG]) / math.sqrt(2)
    proposed = starts(series, PRICE * math.log(len(series)) * sigma, SHORTEST)[1:]
    solid = _pruned(series, proposed, least)
    if splits := _splits(series, solid, least):
        solid = _pruned(series, sorted([*solid, *splits]), least)
    return _placed(series, solid, least)


def _placed(series: Floats, changes: list[int], least: float) -> list[int]:
    """Move each change to its likely place if it is still confirmed there."""
    marks = [0, *changes, len(series)]
    for i in range(1, len(marks) - 1):
        start, at, end = marks[i - 1 : i + 2]
        sides = _sides(series, start, at, end)
        if not sides.variance:
            continue
        clipped = np.concatenate([sides.left + sides.medians[0], sides.right + sides.medians[1]])
        moved = start + step_location.likely(clipped, sides.variance, SHORTEST)
        step = _step(series, start, moved, end)
        if step.weight(len(series)) >= 1 and not step.small(least):
            marks[i] = moved
    return marks[1:-1]


def _pruned(series: Floats, changes: list[int], least: float) -> list[int]:
    """Remove changes that are too small or too weak, the weakest first.

    After each removal its neighbours are judged anew, with longer pieces.
    """
    count = len(series)
    steps = _steps(series, changes)
    while failing := [s for s in steps if s.weight(count) < 1 or s.small(least)]:
        worst = steps.index(min(failing, key=lambda step: step.weight(count)))
        del steps[worst]
        marks = [0, *(step.at for step in steps), count]
        for i in range(max(0, worst - 1), min(worst + 1, len(steps))):
            steps[i] = _step(series, *marks[i : i + 3])
    return [step.at for step in steps]


def _splits(series: Floats, changes: list[int], least: float) -> list[int]:
    """Return further changes in the pieces: the best split by ranks if it is strong enough.

    The two halves of such a split are searched in the same way.
    """
    found = []
    pieces = _pieces(series, changes)
    while pieces:
        start, end = pieces.pop()
        if end - start < 2 * SHORTEST:
            continue
        at = start + _best_by_ranks(series[start:end])
        step = _step(series, start, at, end)
        if step.weight(len(series)) >= 1 and not step.small(least):
            found.append(at)
            pieces += [(start, at), (at, end)]
    return found


def _best_by_ranks(piece: Floats) -> int:
    """Return the index of the split with the largest standardised rank sum (Wilcoxon 1945)."""
    count = len(piece)
    ranks = np.empty(count)
    ranks[np.argsort(piece, kind="stable")] = np.arange(count) - (count - 1) / 2
    first = np.arange(SHORTEST, count - SHORTEST + 1)
    sums = np.abs(np.cumsum(ranks)[first - 1])
    return int(first[(sums / np.sqrt(first * (count - first))).argmax()])


# ---- suspect ------------------------------------------------------------------------------


def _suspect(series: Floats, start: int, end: int, least: float) -> _Step | None:
    """Return the best split of the piece [start, end) by Student's t if p < 0.001, else None."""
    piece = series[start:end]
    count = len(piece)
    if count < MIN_POINTS:
        return None
    middle = float(np.median(piece))
    bound = 2 * CLIP * _deviation(piece - middle)
    clipped = np.clip(piece - middle, -bound, bound)
    sums, squares = np.cumsum(clipped)[:-1], float(clipped @ clipped)
    first = np.arange(1, count)
    rest = float(clipped.sum()) - sums
    within = squares - sums**2 / first - rest**2 / (count - first)
    gap = sums / first - rest / (count - first)
    error = np.sqrt(np.maximum(within, 1e-30) / (count - 2) * (1 / first + 1 / (count - first)))
    student = np.abs(gap) / error
    at = int(student.argmax())
    step = _step(series, start, start + at + 1, end)
    weak = normal(float(student[at]), count - 2) < SUSPECTED
    return None if weak or step.small(least) else step
