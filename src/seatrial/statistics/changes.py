"""Find where the level of a series changed, in two tiers.

find([100, 101, 99, ..., 90, 91, 89])     # [LevelChange(index=60, before=100.1, after=90.2, ...)]

*Confirmed* changes may raise an alarm. Two methods propose them:

1. the pieces of the best L1 fit (``segments``) at a price of 2 ln(n) sigma for each piece; sigma is
   estimated from the differences of figures three apart;
2. in each of these pieces, the split with the largest Wilcoxon rank sum: the L1 fit misses changes
   of figures that fall into two modes.

A proposed change is kept if each side has three points, the levels differ by the least effect and
by many standard errors, and chance rarely puts these figures in such an order (``_order``). The
standard error is inflated by (1 + r) / (1 - r), where r is the correlation of neighbours: an
autocorrelated series drifts without a cause. The test of the order keeps out three successive
figures that fell into the same of two modes. A kept change is moved to its likely place
(``step_location``).

*Suspect* changes may be noise: Student's t at p < 0.001, the best of all splits of each piece
between confirmed changes. One point is enough, so they appear early and often vanish again.
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Literal, NamedTuple

from msgspec import Struct

from seatrial.arrays import Floats
from seatrial.lazy import np
from seatrial.statistics.segments import starts
from seatrial.statistics.significance import (
    fisher_deviate,
    normal_deviate,
    rank_sum_deviate,
    ranks,
)
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
    figures, winsorised at three robust deviations from their median. ``strength`` is the normal
    deviate that is as rare as the difference.
    """

    index: int
    before: float
    after: float
    tier: Tier
    strength: float = 0.0

    @property
    def ratio(self) -> float | None:
        """Return after / before; None if a level is 0 or the signs differ."""
        return self.after / self.before if self.before * self.after > 0 else None


class SeriesAnalysis(Struct, frozen=True):
    """The changes of a series of ``count`` finite figures.

    ``noise``: the robust standard deviation within the pieces. ``why``: the reason why nothing can
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
    pieces = list(pairwise([0, *confirmed, len(series)]))
    tiers: list[tuple[_Step, Tier]] = [(step, "confirmed") for step in _steps(series, confirmed)]
    suspects = [_suspect(series, start, end) for start, end in pieces]
    tiers += [(step, "suspect") for step in suspects if step]
    found = []
    for step, tier in sorted(tiers, key=lambda one: one[0].at):
        before, after = math.ldexp(step.before, power), math.ldexp(step.after, power)
        found.append(LevelChange(int(usable[step.at]), before, after, tier, step.strength))
    off = [series[start:end] - np.median(series[start:end]) for start, end in pieces]
    noise = math.ldexp(_deviation(np.concatenate(off)), power)
    return SeriesAnalysis(found, len(series), noise, limit=_limit(len(series)))


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


# ---- steps --------------------------------------------------------------------------------


class _Step(NamedTuple):
    """A possible change before index ``at``, and the levels ``before`` and ``after`` it.

    ``strength`` and ``order`` are normal deviates: of the difference, and of the order of figures.
    ``figures`` are those of both sides, winsorised. ``variance`` is that of one of them, inflated
    for the correlation of neighbours, so that it may be used as if figures were independent (0 if
    all on each side are equal).
    """

    at: int
    before: float
    after: float
    strength: float
    order: float
    figures: Floats
    variance: float

    @property
    def small(self) -> bool:
        return abs(self.after - self.before) < MIN_RELATIVE_CHANGE * abs(self.before)

    def weight(self, count: int) -> float:
        """Return the weight of the evidence; below 1 it may be chance in so many figures."""
        return min(self.strength / MIN_STRENGTH, self.order / least_deviate(count))

    def holds(self, count: int) -> bool:
        """Return whether the change is confirmed in so many figures."""
        return self.weight(count) >= 1 and not self.small


def least_deviate(count: int) -> float:
    """Return the normal deviate that the best split of so many figures rarely exceeds by chance."""
    return math.sqrt(BEST_SPLIT * math.log(count))


def _step(series: Floats, start: int, at: int, end: int) -> _Step:
    """Return the step of the level from [start, at) to [at, end)."""
    medians = float(np.median(series[start:at])), float(np.median(series[at:end]))
    off = np.concatenate([series[start:at] - medians[0], series[at:end] - medians[1]])
    bound = CLIP * _width(off)
    figures = np.clip(off, -bound, bound)
    left, right = figures[: at - start], figures[at - start :]
    means = float(left.mean()), float(right.mean())
    before, after = medians[0] + means[0], medians[1] + means[1]
    variance = _variance(left - means[0], right - means[1], before)
    left += medians[0]
    right += medians[1]
    if before == after:
        return _Step(at, before, after, 0.0, 0.0, figures, variance)
    rare = _order(series[start:end], at - start, (before + after) / 2)
    error = math.sqrt(variance * (1 / (at - start) + 1 / (end - at)))
    strength = math.inf  # of no variance, or less than a float can hold
    if error:
        strength = normal_deviate(abs(after - before) / error, end - start - 2)
    return _Step(at, before, after, strength, rare, figures, variance)


def _variance(before: Floats, after: Floats, level: float) -> float:
    """Return the variance of a figure by the deviations of two samples from their own means."""
    squares = float(before @ before + after @ after)
    if squares <= 1e-20 * level * level:
        return 0.0
    r = min(max(neighbour_correlation(before, after), 0.0), MAX_CORRELATION)
    return squares / max(len(before) + len(after) - 2, 1) * (1 + r) / (1 - r)


def neighbour_correlation(before: Floats, after: Floats) -> float:
    """Return the lag-1 autocorrelation of two samples, each given as deviations from its own mean.

    Both have the same autocorrelation. Subtracting a mean lowers its estimate r by about (1 + 3 r)
    over the size of the sample (Kendall 1954; Marriott and Pope 1954). Two means are subtracted
    here, so twice that, over both sizes, is added. The result may lie outside [-1, 1].
    """
    squares = float(before @ before + after @ after)
    r = float(before[1:] @ before[:-1] + after[1:] @ after[:-1]) / squares
    return r + 2 * (1 + 3 * r) / (len(before) + len(after))


def _steps(series: Floats, changes: Sequence[int]) -> list[_Step]:
    """Return the step at each change, between its neighbours."""
    marks = [0, *changes, len(series)]
    return [_step(series, *marks[i : i + 3]) for i in range(len(changes))]


# ---- confirmed ----------------------------------------------------------------------------


def _confirmed(series: Floats) -> list[int]:
    """Return the indices of the confirmed changes."""
    sigma = _width(series[LAG:] - series[:-LAG]) / math.sqrt(2)
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
        step = _step(series, start, at, end)
        if step.variance:
            moved = start + likely(step.figures, step.variance, SHORTEST)
            if _step(series, start, moved, end).holds(len(series)):
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
            steps[i] = _step(series, *marks[i : i + 3])
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
        at = start + _best_split(series[start:end], SHORTEST)
        if _step(series, start, at, end).holds(len(series)):
            found.append(at)
            pieces += [(start, at), (at, end)]
    return found


# ---- the order of figures ------------------------------------------------------------------


def _order(figures: Floats, first: int, middle: float) -> float:
    """Return how rare the order of figures is, as a normal deviate.

    ``figures``: shape (n,). The ``first`` of them are compared with the others: by how many of each
    are above ``middle``, and by their ranks; the stronger result counts. Few figures prove little,
    however far apart they are. Ranks also tell of a shift within two modes if the middle lies
    between these.
    """
    above = figures > middle
    high = [int(above[:first].sum()), int(above[first:].sum())]
    sizes = [first, len(figures) - first]
    if high[0] * sizes[1] > high[1] * sizes[0]:
        high, sizes = high[::-1], sizes[::-1]
    rarest = fisher_deviate(sizes[1], sizes[1], 0, sizes[0])  # all low figures on one side
    by_ranks = min(rank_sum_deviate(figures, first), rarest)
    return max(fisher_deviate(high[1], sizes[1], high[0], sizes[0]), by_ranks)


def _best_split(figures: Floats, shortest: int) -> int:
    """Return the split of a series whose rank sum is the least likely by chance.

    ``figures``: shape (n,). At least ``shortest`` figures are on each side.
    """
    total = len(figures)
    first = np.arange(shortest, total - shortest + 1)
    away = np.abs(np.cumsum(ranks(figures) - (total + 1) / 2)[first - 1])
    return int(first[(away / np.sqrt(first * (total - first))).argmax()])


# ---- suspect ------------------------------------------------------------------------------


def _suspect(series: Floats, start: int, end: int) -> _Step | None:
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
