"""Test whether chance alone puts the low figures of a series before the high ones.

deviate(figures, 3, 105.0)      # 4.1: by chance the first three are hardly ever the lowest

Two tests, both free of assumptions about the distribution; the stronger result counts. Fisher's
exact test (Fisher 1935) counts the figures on each side of the middle: few figures prove little,
however far apart they are. Wilcoxon's rank sum (Wilcoxon 1945; Mann and Whitney 1947) also sees a
shift within two modes if the middle lies between these.
"""

import math

from seatrial.arrays import Floats
from seatrial.lazy import np, statistics

MAX_DEVIATE = 37.0  # of the least probability that a float holds


def deviate(figures: Floats, first: int, middle: float) -> float:
    """Return how rare the order of figures is, as a normal deviate.

    ``figures``: shape (n,). The ``first`` of them are compared with the others: by how many of each
    are above ``middle``, and by their ranks.
    """
    above = figures > middle
    high = [int(above[:first].sum()), int(above[first:].sum())]
    sizes = [first, len(figures) - first]
    if high[0] * sizes[1] > high[1] * sizes[0]:
        high, sizes = high[::-1], sizes[::-1]
    rarest = fisher(sizes[1], sizes[1], 0, sizes[0])  # all low figures on one side
    ranks = min(wilcoxon(figures, first), rarest)
    return max(fisher(high[1], sizes[1], high[0], sizes[0]), ranks)


def fisher(high: int, count: int, other_high: int, other: int) -> float:
    """Return the normal deviate of Fisher's exact test, one-sided.

    The test gives the chance that ``high`` or more of ``count`` figures are high, if ``high`` and
    ``other_high`` of all ``count`` + ``other`` are. A chance above 0.5 counts as 0.5.
    """
    drawn, total = high + other_high, count + other
    chance, step = 0.0, log_choices(drawn, high) + log_choices(total - drawn, count - high)
    share = math.exp(step - log_choices(total, count))
    for more in range(high, min(count, drawn) + 1):
        chance += share
        share *= (drawn - more) * (count - more)
        share /= (more + 1) * (total - drawn - count + more + 1)
        if share < 1e-9 * chance:
            break
    return -statistics.NormalDist().inv_cdf(min(chance, 0.5)) if chance > 1e-300 else MAX_DEVIATE


def log_choices(count: int, chosen: int) -> float:
    """Return the logarithm of the binomial coefficient."""
    return math.lgamma(count + 1) - math.lgamma(chosen + 1) - math.lgamma(count - chosen + 1)


def wilcoxon(figures: Floats, first: int) -> float:
    """Return the normal deviate of the rank sum of the ``first`` figures, by its approximation.

    ``figures``: shape (n,). Equal ones are ranked in the order given.
    """
    total = len(figures)
    ranks = _ranks(figures)
    away = abs(float(ranks[:first].sum()) - first * (total + 1) / 2)
    return away / math.sqrt(first * (total - first) * (total + 1) / 12)


def best_split(figures: Floats, shortest: int) -> int:
    """Return the split of a series whose rank sum is the least likely by chance.

    ``figures``: shape (n,). At least ``shortest`` figures are on each side.
    """
    total = len(figures)
    first = np.arange(shortest, total - shortest + 1)
    away = np.abs(np.cumsum(_ranks(figures) - (total + 1) / 2)[first - 1])
    return int(first[(away / np.sqrt(first * (total - first))).argmax()])


def _ranks(figures: Floats) -> Floats:
    """Return the ranks of figures from 1, equal ones in the order given; shape (n,)."""
    ranks = np.empty(len(figures))
    ranks[np.argsort(figures, kind="stable")] = np.arange(1, len(figures) + 1)
    return ranks
