"""How sure it is that the level of a series changed at a place.

step = step_at(series, start=0, at=60, end=120)
step.holds(120)              # whether it is confirmed in a series of 120 figures

The levels must differ by the least effect and by many standard errors, and chance must rarely put
the figures in such an order.

The noise is what is left beside the best fit that only rises, or only falls, as the step does
(isotonic regression, Barlow and others 1972). So no change in one direction is taken for noise: a
slow drift or many small steps do not hide themselves, however quiet the series is. An
autocorrelated series strays without a cause: its variance is inflated by (1 + r) / (1 - r), where r
is the correlation of neighbours, and it has so many fewer degrees of freedom. The test of the order
keeps out three successive figures that fell into the same of two modes.
"""

import math
from typing import NamedTuple

from seatrial.arrays import Floats
from seatrial.lazy import np
from seatrial.statistics.significance import (
    beside_rise,
    fisher_deviate,
    normal_deviate,
    rank_sum_deviate,
    ranks,
)
from seatrial.statistics.spread import MAD_TO_SIGMA

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


class StepEvidence(NamedTuple):
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
