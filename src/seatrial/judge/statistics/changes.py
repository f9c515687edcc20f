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

from seatrial.judge.statistics.significance import (
    beside_rise,
    fisher_deviate,
    normal_deviate,
    rank_sum_deviate,
    ranks,
)
from seatrial.judge.statistics.spread import MAD_TO_SIGMA
from seatrial.lazy import Bools, Floats, Indices, np

# ---- segments ------------------------------------------------------------------------------------
#
# Fit a piecewise constant function to a series in the L1 norm, at a price for each piece.
#
# starts(values, penalty=14.4 * sigma, shortest=3) # [0, 60]: two pieces, the second from 60 on
#
# The cost of a piece is the sum of its figures' distances from their median. PELT with an L1 cost
# (Killick, Fearnhead and Eckley 2012) and the L1 Potts functional (Storath, Weinmann and Unser
# 2014) have the same optimum. The median of a piece can be chosen among the values, so the least
# cost of each prefix is kept for every level that occurs: one row of numbers a point, O(n^2),
# exact.


MAX_LEVELS = 1000  # with more different values, levels are so many quantiles of these


def starts(values: Floats, penalty: float, shortest: int = 1) -> list[int]:
    """Return the indices at which the pieces of the best fit begin; the first is 0.

    ``values``: finite, shape (n,). ``penalty``: the price of a piece, in their unit. Each piece has
    at least ``shortest`` points.
    """
    count = len(values)
    if count < 2 * shortest:
        return [0]
    levels = np.unique(values)
    if len(levels) > MAX_LEVELS:
        levels = np.quantile(levels, np.linspace(0, 1, MAX_LEVELS))
    return _back(*_forward(values, levels, penalty, shortest), shortest)


def _forward(
    values: Floats, levels: Floats, penalty: float, shortest: int
) -> tuple[Bools, list[int]]:
    """Return, for each prefix, where its last piece had best begun, and the best level of it.

    The first is an array of shape (n + 1, levels): True if a last piece on that level had best
    begun ``shortest`` points before the end of the prefix. The second has n + 1 indices of levels.
    """
    count = len(values)
    away = np.abs(values[:shortest, None] - levels)  # a ring buffer of the latest points
    entered = np.zeros((count + 1, len(levels)), dtype=bool)
    cost = np.full(len(levels), np.inf)
    enter = np.empty_like(cost)
    window = away.sum(axis=0)
    best = [np.inf] * (count + 1)
    best[0] = -penalty
    level = [0] * (count + 1)
    for end in range(shortest, count + 1):
        latest = away[(end - 1) % shortest]
        if end > shortest:
            oldest = latest.copy()
            np.abs(np.subtract(values[end - 1], levels, out=latest), out=latest)
            window += latest
            window -= oldest
        np.add(window, best[end - shortest] + penalty, out=enter)
        np.add(cost, latest, out=cost)
        np.less(enter, cost, out=entered[end])
        np.minimum(cost, enter, out=cost)
        level[end] = cheapest = int(cost.argmin())
        best[end] = float(cost[cheapest])
    return entered, level


def _back(entered: Bools, level: list[int], shortest: int) -> list[int]:
    """Return the beginnings of the pieces, traced back from the end."""
    beginnings: list[int] = []
    end = len(level) - 1
    while end > 0:
        at = end - int(entered[end::-1, level[end]].argmax())
        end = at - shortest
        beginnings.append(end)
    return beginnings[::-1]


# ---- step evidence -------------------------------------------------------------------------------
#
# How sure it is that the level of a series changed at a place.
#
#     step = step_at(series, start=0, at=60, end=120)
#     step.holds(120)              # whether it is confirmed in a series of 120 figures
#
# The levels must differ by the least effect and by many standard errors, and chance must rarely
# put the figures in such an order.
#
# The noise is what is left beside the best fit that only rises, or only falls, as the step does
# (isotonic regression, Barlow and others 1972). So no change in one direction is taken for noise:
# a slow drift or many small steps do not hide themselves, however quiet the series is. An
# autocorrelated series strays without a cause: its variance is inflated by (1 + r) / (1 - r),
# where r is the correlation of neighbours, and it has so many fewer degrees of freedom. The test
# of the order keeps out three successive figures that fell into the same of two modes.


MIN_RELATIVE_CHANGE = 0.01
SHORTEST = 3  # points on each side of a confirmed change
MIN_STRENGTH = 3.5  # standard errors of a confirmed change
BEST_SPLIT = 2.5  # times ln(n): the square of the normal deviate required of the best split
WITH_TIES = 8  # figures of each side of a rank test if some are equal
CLIP = 3.0  # robust deviations from the median of its piece; farther figures are winsorised
MEAN_TO_SIGMA = 1.2533  # sqrt(pi / 2): mean absolute to standard deviation of normal figures
QUARTER = 1.1503  # standard deviations beyond which a quarter of normal figures are
FEWEST = 5.0  # degrees of freedom that count: few figures do not tell r well
TINY = 1e-20  # share of a squared level that no figure resolves
MAX_CORRELATION = 0.97  # of neighbours; a higher estimate is replaced by this


def deviation(off: Floats) -> float:
    """Return a robust standard deviation: from the median distance, or the mean one if that is 0.

    ``off``: distances from a centre, shape (n,).
    """
    away = np.abs(off)
    return MAD_TO_SIGMA * float(np.median(away)) or MEAN_TO_SIGMA * float(away.mean())


def width(off: Floats) -> float:
    """Return a robust standard deviation that also sees a second mode of a quarter of the figures.

    The median distance alone may miss such a mode. ``off``: distances from a centre, shape (n,).
    """
    place = 3 * (len(off) - 1) // 4
    return max(deviation(off), float(np.partition(np.abs(off), place)[place]) / QUARTER)


class StepEvidence(Struct, frozen=True):
    """A possible change before index ``at``, and the levels ``before`` and ``after`` it.

    ``strength`` and ``order`` are normal deviates: of the difference, and of the order of figures.
    ``figures`` are those of both sides, winsorised, the ``first`` so many before it. ``variance``
    is that of one of them, inflated for the correlation of neighbours, so that it may be used as if
    figures were independent (0 if nothing is left beside the change).
    """

    at: int
    before: float
    after: float
    strength: float
    order: float
    figures: Floats
    first: int
    variance: float

    @property
    def small(self) -> bool:
        return abs(self.after - self.before) < MIN_RELATIVE_CHANGE * abs(self.before)

    @property
    def rises(self) -> bool:
        return self.after > self.before

    def line_likelier(self) -> float:
        """Return the logarithm of how many times likelier a line through the figures is than the
        step, in normal noise."""
        sides = self.figures[: self.first], self.figures[self.first :]
        of_step = sum(float(np.square(side - side.mean()).sum()) for side in sides)
        times = np.arange(len(self.figures)) - (len(self.figures) - 1) / 2
        away = self.figures - self.figures.mean()
        of_line = float(away @ away) - float(times @ away) ** 2 / float(times @ times)
        least = TINY * max(self.before**2, self.after**2, 1e-300)
        return len(self.figures) / 2 * math.log(max(of_step, least) / max(of_line, least))

    def weight(self, count: int) -> float:
        """Return the weight of the evidence; below 1 it may be chance in so many figures."""
        return min(self.strength / MIN_STRENGTH, self.order / least_deviate(count))

    def holds(self, count: int) -> bool:
        """Return whether the change is confirmed in so many figures."""
        return self.weight(count) >= 1 and not self.small


def least_deviate(count: int) -> float:
    """Return the normal deviate that the best split of so many figures rarely exceeds by chance."""
    return math.sqrt(BEST_SPLIT * math.log(count))


def step_at(series: Floats, start: int, at: int, end: int) -> StepEvidence:
    """Return the step of the level from [start, at) to [at, end)."""
    medians = float(np.median(series[start:at])), float(np.median(series[at:end]))
    off = np.concatenate([series[start:at] - medians[0], series[at:end] - medians[1]])
    bound = CLIP * width(off)
    figures = np.clip(off, -bound, bound)
    left, right = figures[: at - start], figures[at - start :]
    means = float(left.mean()), float(right.mean())
    before, after = medians[0] + means[0], medians[1] + means[1]
    left += medians[0]
    right += medians[1]
    variance, inflated = _variance(figures if after > before else -figures, before)
    if before == after:
        return StepEvidence(at, before, after, 0.0, 0.0, figures, at - start, variance)
    rare = _order(series[start:end], at - start, (before + after) / 2)
    error = math.sqrt(variance * (1 / (at - start) + 1 / (end - at)))
    strength = math.inf  # of no variance, or less than a float can hold
    if error:
        freedom = max((end - start) / inflated - 2, FEWEST)
        strength = normal_deviate(abs(after - before) / error, freedom)
    return StepEvidence(at, before, after, strength, rare, figures, at - start, variance)


def _variance(figures: Floats, level: float) -> tuple[float, float]:
    """Return the variance of a figure by what is left beside a rise of any shape, and by how much
    it is inflated."""
    left, levels = beside_rise(figures)
    squares = float(left @ left)
    if squares <= TINY * level * level:
        return 0.0, 1.0
    r = min(max(neighbour_correlation(left, levels), 0.0), MAX_CORRELATION)
    inflated = (1 + r) / (1 - r)
    return squares / max(len(left) - levels, 1) * inflated, inflated


def neighbour_correlation(left: Floats, levels: int) -> float:
    """Return the lag-1 autocorrelation of what is ``left`` beside a fit of so many ``levels``.

    The fit lowers the plain estimate r by about 0.7 (1 + 2 r) for each level, over the number of
    figures, which is added. (One mean lowers it by 1 + 3 r: Kendall 1954; Marriott and Pope 1954.
    That of an isotonic fit is by simulation.) The result may lie outside [-1, 1].
    """
    r = float(left[1:] @ left[:-1]) / float(left @ left)
    return r + 0.7 * (1 + 2 * r) * levels / len(left)


def _order(figures: Floats, first: int, middle: float) -> float:
    """Return how rare the order of figures is, as a normal deviate.

    ``figures``: shape (n,). The ``first`` of them are compared with the others: by how many of each
    are above ``middle``, and by their ranks; the stronger result counts. Few figures prove little,
    however far apart they are. Ranks also tell of a shift within two modes if the middle lies
    between these; of equal figures they need ``WITH_TIES`` on each side, or the normal
    approximation tells too much.
    """
    above = figures > middle
    high = [int(above[:first].sum()), int(above[first:].sum())]
    sizes = [first, len(figures) - first]
    if high[0] * sizes[1] > high[1] * sizes[0]:
        high, sizes = high[::-1], sizes[::-1]
    rarest = fisher_deviate(sizes[1], sizes[1], 0, sizes[0])  # all low figures on one side
    by_counts = fisher_deviate(high[1], sizes[1], high[0], sizes[0])
    if min(sizes) < WITH_TIES and len(np.unique(figures)) < len(figures):
        return by_counts
    return max(by_counts, min(rank_sum_deviate(figures, first), rarest))


def best_split(figures: Floats, shortest: int) -> int:
    """Return the split of a series whose rank sum is the least likely by chance.

    ``figures``: shape (n,). At least ``shortest`` figures are on each side.
    """
    total = len(figures)
    first = np.arange(shortest, total - shortest + 1)
    away = np.abs(np.cumsum(ranks(figures) - (total + 1) / 2)[first - 1])
    return int(first[(away / np.sqrt(first * (total - first))).argmax()])


# ---- changes -------------------------------------------------------------------------------------


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


class SeriesAnalysis(Struct, frozen=True, rename={"reason": "why"}):
    """The changes of a series of ``count`` finite figures.

    ``noise``: the robust standard deviation beside the changes. ``reason``: why nothing can
    be concluded, or "". ``limit``: which changes a series so short cannot show, however large they
    are, or "".
    """

    changes: list[LevelChange]
    count: int
    noise: float
    reason: str = ""
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
    changes = [_drift(steps[run.start : run.stop], marks[run.start]) for run in drifts]
    alone = {*range(len(steps))}.difference(*drifts)
    changes += [_told(steps[i], "confirmed") for i in alone]
    off = []
    drifting = set[int]().union(*(range(run.start, run.stop + 1) for run in drifts))
    for number, (start, end) in enumerate(pairwise(marks)):
        if number not in drifting:
            off.append(series[start:end] - np.median(series[start:end]))
            if suspect := _suspect(series, start, end):
                changes.append(_told(suspect, "suspect"))
    for run in drifts:
        apart = np.diff(series[marks[run.start] : marks[run.stop + 1]])
        off.append((apart - np.median(apart)) / math.sqrt(2))
    return SeriesAnalysis(
        sorted((_as_given(one, usable, power) for one in changes), key=lambda one: one.index),
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
    splits = []
    pieces = list(pairwise([0, *changes, len(series)]))
    while pieces:
        start, end = pieces.pop()
        if end - start < 2 * SHORTEST:
            continue
        at = start + best_split(series[start:end], SHORTEST)
        if step_at(series, start, at, end).holds(len(series)):
            splits.append(at)
            pieces += [(start, at), (at, end)]
    return splits


def _drifts(steps: Sequence[StepEvidence]) -> list[range]:
    """Return the runs of steps in one direction that are drifts, as ranges of their numbers."""
    drifts: list[range] = []
    for i, step in enumerate(steps):
        near = [*steps[max(0, i - 1) : i], *steps[i + 1 : i + 2]]
        several = any(other.rises == step.rises for other in near)
        least = LINE_FOR_SEVERAL if several else LINE_FOR_ONE
        if step.line_likelier() < least * math.log(len(step.figures)):
            continue
        if drifts and drifts[-1].stop == i and steps[i - 1].rises == step.rises:
            drifts[-1] = range(drifts[-1].start, i + 1)
        else:
            drifts.append(range(i, i + 1))
    return drifts


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
