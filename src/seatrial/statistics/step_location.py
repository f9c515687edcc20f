"""Locate a step: the median of all places, weighted by the likelihood of the figures at each.

    likely(figures, variance, shortest=3)      # 41: the level changes from figures[41] on

The likeliest place of a small step is often far off, because many places are nearly as likely. The
median has the least expected absolute error, and is the same place if the step is clear.
"""

from __future__ import annotations

from seatrial.arrays import Floats
from seatrial.lazy import np


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
