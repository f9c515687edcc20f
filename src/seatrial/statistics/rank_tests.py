"""How rare an order of figures is: whether chance alone puts the low ones before the high ones.

deviate(figures, 3, 105.0)      # 4.1: of such figures, hardly ever are the first three the lowest

Two tests, neither of which asks how the figures are spread. Fisher's exact one counts who is on
which side of the middle: it knows that few figures prove little, however far apart they are.
Wilcoxon's rank sum sees a shift within two modes, of which the middle cuts neither. The better one
counts.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

MAX_DEVIATE = 37.0  # the normal deviate of the least probability that is a number


def deviate(figures: Array, first: int, middle: float) -> float:
    """How rare it is, as a normal deviate, that so many of the ``first`` figures are below the
    ``middle`` and of the others above, or the other way about."""
    above = figures > middle
    high = [int(above[:first].sum()), int(above[first:].sum())]
    sizes = [first, len(figures) - first]
    if high[0] * sizes[1] > high[1] * sizes[0]:
        high, sizes = high[::-1], sizes[::-1]
    best = fisher(sizes[1], sizes[1], 0, sizes[0])  # that of all low ones first
    ranks = min(wilcoxon(figures, first), best)
    return max(fisher(high[1], sizes[1], high[0], sizes[0]), ranks)


def fisher(high: int, count: int, other_high: int, other: int) -> float:
    """The normal deviate of ``high`` or more of ``count`` figures, where of all of these and
    ``other`` ones so many are high (Fisher's exact test, one-sided)."""
    drawn, total = high + other_high, count + other
    chance, step = 0.0, _ways(drawn, high) + _ways(total - drawn, count - high)
    share = math.exp(step - _ways(total, count))
    for more in range(high, min(count, drawn) + 1):
        chance += share
        share *= (drawn - more) * (count - more)
        share /= (more + 1) * (total - drawn - count + more + 1)
        if share < 1e-9 * chance:
            break
    return -NormalDist().inv_cdf(min(chance, 0.5)) if chance > 1e-300 else MAX_DEVIATE


def _ways(count: int, chosen: int) -> float:
    """The logarithm of the number of ways to choose."""
    return math.lgamma(count + 1) - math.lgamma(chosen + 1) - math.lgamma(count - chosen + 1)


def wilcoxon(figures: Array, first: int) -> float:
    """The normal deviate of the rank sum of the ``first`` figures, as of many; equal ones as they
    come."""
    import numpy as np

    total = len(figures)
    ranks = np.empty(total)
    ranks[np.argsort(figures, kind="stable")] = np.arange(1, total + 1)
    away = abs(float(ranks[:first].sum()) - first * (total + 1) / 2)
    return away / math.sqrt(first * (total - first) * (total + 1) / 12)
