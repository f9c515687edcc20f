"""The best of n figures, and how far off the best of as many further ones may be.

best_of([10.4, 10.1, 11.0, 10.2, 10.9], "lower")      # best 10.1, bound 10.9
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from seatrial.statistics.sample_sizes import CONFIDENCE
from seatrial.units import Better


class BestOfN(NamedTuple):
    """The best of ``n`` figures. With 95 % the best of n further ones is no worse than ``bound``;
    None for fewer than three figures, which allow no such bound."""

    n: int
    best: float
    bound: float | None


def best_of(values: Sequence[float], better: Better) -> BestOfN:
    """Return the best figure and its bound, whatever the distribution. Raises ValueError if there
    is no figure.

    All orders of two samples of n are equally likely, so the best of the second is worse than the
    k-th best of the first with the probability C(2n - k, n) / C(2n, n) (Gumbel and von Schelling
    1950).
    """
    ordered = sorted(values, reverse=better == "higher")
    if not ordered:
        raise ValueError("no figure has no best one")
    n = len(ordered)
    every = math.comb(2 * n, n)
    worse = (math.comb(2 * n - k, n) / every for k in range(1, n + 1))
    rank = next((k for k, p in enumerate(worse, 1) if p <= 1 - CONFIDENCE + 1e-12), None)
    return BestOfN(n, ordered[0], None if rank is None else ordered[rank - 1])
