"""Compare how much two samples vary: the ratio of their robust deviations.

compare_spread(before, after)      # ratio 3.0 (1.9..4.6), p 2e-05

The deviations are shares of the medians, so samples of different levels can be compared.
"""

from collections.abc import Sequence
from typing import NamedTuple

from seatrial.arrays import Floats
from seatrial.lazy import np
from seatrial.statistics.sample_sizes import CONFIDENCE
from seatrial.statistics.significance import brown_forsythe
from seatrial.statistics.spread import MAD_TO_SIGMA

LEAST = 5  # figures of a side: fewer tell nothing of a spread
RECOMMENDED = 20
RESAMPLES = 2000
SEED = 20260101


class SpreadRatio(NamedTuple):
    """The robust deviations of two samples of figures above 0, as shares of their medians, and the
    ratio of the second to the first, with its 95 % bootstrap interval; None if the first is 0.
    ``p``: of the test of Brown and Forsythe (1974), None if no figure varies."""

    first: float
    second: float
    ratio: float | None
    low: float | None
    high: float | None
    p: float | None


def compare_spread(first: Sequence[float], second: Sequence[float]) -> SpreadRatio:
    """Compare samples of ``LEAST`` figures above 0 or more. Raises ValueError for others."""
    if min(len(first), len(second)) < LEAST or min(*first, *second) <= 0:
        raise ValueError(f"a spread is of {LEAST} figures above 0 or more")
    logs = [np.log(np.array(side, dtype=float)) for side in (first, second)]
    one, other = (float(_deviations(side[None, :])[0]) for side in logs)
    if one == 0 or other == 0:
        return SpreadRatio(one, other, None, None, None, brown_forsythe(*logs))
    rng = np.random.default_rng([SEED, len(first), len(second)])
    drawn = [_deviations(side[rng.integers(0, len(side), (RESAMPLES, len(side)))]) for side in logs]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = drawn[1] / drawn[0]
    ratios[np.isnan(ratios)] = 1.0
    ends = np.quantile(ratios, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2], method="nearest")
    return SpreadRatio(
        one, other, other / one, float(ends[0]), float(ends[1]), brown_forsythe(*logs)
    )


def _deviations(samples: Floats) -> Floats:
    """Return the scaled median absolute deviation of each row."""
    middles = np.median(samples, axis=1)[:, None]
    found: Floats = MAD_TO_SIGMA * np.median(np.abs(samples - middles), axis=1)
    return found
