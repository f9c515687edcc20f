"""The slope of a line through figures, of which some may be far off.

    theil_sen(hops, latencies)            # Slope(slope=0.053, low=0.049, high=0.057)

The estimate is the median of the slopes of all pairs of figures (Theil 1950; Sen 1968). Where
figures are in strata (cases of one test), only pairs of one stratum count.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from seatrial.lazy import np, statistics

MAX_FIGURES = 1000  # that are used; evenly chosen of more
CONFIDENCE = 0.95


class Slope(NamedTuple):
    """A slope with its interval of 95 % (Sen 1968, by the variance of Kendall's tau with ties)."""

    slope: float
    low: float
    high: float


def theil_sen(
    x: Sequence[float], y: Sequence[float], strata: Sequence[int] | None = None
) -> Slope | None:
    """Return the slope of ``y`` over ``x``; None if no two figures of a stratum differ in ``x``."""
    thin = slice(None, None, max(1, math.ceil(len(x) / MAX_FIGURES)))
    xs, ys = np.asarray(x, dtype=float)[thin], np.asarray(y, dtype=float)[thin]
    groups = np.zeros(len(xs), dtype=int) if strata is None else np.asarray(strata)[thin]
    i, j = np.triu_indices(len(xs), 1)
    apart = (xs[i] != xs[j]) & (groups[i] == groups[j])
    slopes = np.sort((ys[j] - ys[i])[apart] / (xs[j] - xs[i])[apart])
    if not len(slopes):
        return None
    variance = sum(_variance(xs[groups == one].tolist()) for one in np.unique(groups))
    reach = statistics.NormalDist().inv_cdf((1 + CONFIDENCE) / 2) * math.sqrt(variance)
    low = max(0, math.floor((len(slopes) - reach) / 2))
    high = min(len(slopes) - 1, math.ceil((len(slopes) + reach) / 2))
    return Slope(float(np.median(slopes)), float(slopes[low]), float(slopes[high]))


def _variance(x: Sequence[float]) -> float:
    """Return the variance of the concordant less the discordant pairs, with ties in ``x``."""
    n, counts = len(x), np.unique(x, return_counts=True)[1].tolist()
    ties = sum(t * (t - 1) * (2 * t + 5) for t in counts)
    return float(n * (n - 1) * (2 * n + 5) - ties) / 18
