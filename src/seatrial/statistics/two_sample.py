"""Compare two samples by the ratio of their medians, with a confidence interval.

compare([5.1, 5.2, 5.0, 5.1], [5.6, 5.5, 5.7, 5.6], "lower")     # ratio 1.09, verdict "worse"

The interval is a percentile bootstrap (Efron 1979), and where a side has fewer than five figures
Welch's on logarithms (few_figures.py). The verdict is "better" or "worse" if the
interval lies on one side of 1, the ratio differs from 1 by the least effect, the test of Mann and
Whitney (1947) gives p < 0.05, and rounding does not explain the difference. The test needs four
figures on each side, or three and five: fewer cannot give p < 0.05. The verdict is "same" if there
are as many and the whole interval is within the least effect of 1. Otherwise it is "unclear".
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

from msgspec import Struct

from seatrial.arrays import Floats, Ints
from seatrial.lazy import np, statistics
from seatrial.statistics.few_figures import are_few, ratio_interval
from seatrial.statistics.rounding import hides
from seatrial.statistics.sample_sizes import CONFIDENCE, REPEATS, enough, least_p, twice
from seatrial.statistics.significance import mann_whitney
from seatrial.units import Better

Verdict = Literal["better", "worse", "same", "unclear"]

MIN_RELATIVE_CHANGE = 0.01
RESAMPLES = 4000
ALMOST = 1 + 1e-9  # tolerance: 1 - 0.93 is less than 0.07 in the last bit
MAX_RATIO = 1e300  # a ratio; means of several such ratios do not overflow
SEED = 20260101
MANY = 2  # in RESAMPLES: with a larger product of the sizes hardly any two resamples are alike


class RatioEstimate(Struct, frozen=True, kw_only=True):
    """The comparison of the finite figures of two samples.

    ``ratio``: of the second median to the first. ``low`` and ``high``: its 95 % interval. ``p``: of
    Mann-Whitney's test. Each is None if not defined. ``why``: the reason of an unclear verdict, or
    "". ``needed``: how many figures of each side may decide an unclear verdict that is due to their
    number; 0 where it is due to something else.
    """

    verdict: Verdict = "unclear"
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    why: str = ""
    needed: int = 0

    def gain(self, better: Better) -> float | None:
        """Return the logarithm of how many times better the second side is, a key to sort by.

        Twice and half as good are equally far from 0.
        """
        if self.ratio is None:
            return None
        return (1 if better == "higher" else -1) * math.log(self.ratio)


def compare(
    first: Sequence[float],
    second: Sequence[float],
    better: Better,
    least: float = MIN_RELATIVE_CHANGE,
) -> RatioEstimate:
    """Compare two samples of one metric.

    ``least`` is the least effect that matters, as a share: 0.01 for 1 %.
    """
    one, other = _finite(first), _finite(second)
    if not one or not other:
        side = "the second side" if one else "the first side" if other else "either side"
        return RatioEstimate(why=f"there is no finite figure of {side}")
    before, after = statistics.median(one), statistics.median(other)
    p = mann_whitney(one, other)
    if before <= 0 or after <= 0:
        why = f"medians of {before:g} and {after:g}: a ratio is of figures above 0"
        return RatioEstimate(why=why, p=p)
    ratio = after / before
    if not 1 / MAX_RATIO < ratio < MAX_RATIO:
        why = f"medians of {before:g} and {after:g} have no ratio that a number can hold"
        return RatioEstimate(why=why, p=p)
    if min(len(one), len(other)) < 2:
        why = "one figure has no spread: repeat the run"
        return RatioEstimate(why=why, ratio=ratio, needed=REPEATS)
    low, high = interval(one, other)
    verdict, why, needed = _verdict(ratio, low, high, p, better, least, (len(one), len(other)))
    if verdict in ("better", "worse") and (step := hides(one, other, abs(after - before))):
        verdict, why = "unclear", f"figures rounded to steps of {step:g} may differ so though equal"
    return RatioEstimate(
        verdict=verdict, why=why, ratio=ratio, low=low, high=high, p=p, needed=needed
    )


def _finite(values: Sequence[float]) -> list[float]:
    return [float(value) for value in values if math.isfinite(value)]


def _verdict(
    ratio: float,
    low: float,
    high: float,
    p: float | None,
    better: Better,
    least: float,
    sizes: tuple[int, int],
) -> tuple[Verdict, str, int]:
    """Return the verdict, and if it is unclear the reason, and the number of figures needed."""
    both = f"{sizes[0]} and {sizes[1]} figures"
    needed, more = "", 0
    if least_p(*sizes) >= 1 - CONFIDENCE:
        more = REPEATS
        needed = f"it takes {sizes[0]} and {enough(sizes[0])}, or 4 on either side"
    if 1 - least <= low * ALMOST and high <= (1 + least) * ALMOST:
        if not needed:
            return "same", "", 0
        reason = f"{both} that agree may do so by chance: {needed}"
    elif low <= 1 <= high:
        reason = "the interval takes in 0 %: no change"
    elif abs(ratio - 1) * ALMOST < least:
        reason = f"the difference is under the least effect of {100 * least:g} %"
    elif needed:
        reason = f"{both} can show no difference, whatever they are: {needed}"
    elif p is None or p >= 1 - CONFIDENCE:
        more = twice(min(sizes))
        reason = f"Mann-Whitney's test gives p = {p:.2g}"
    else:
        return "better" if (ratio > 1) == (better == "higher") else "worse", "", 0
    return "unclear", reason, more


# ---- the bootstrap ------------------------------------------------------------------------


def interval(first: Sequence[float], second: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % interval of the ratio of medians, second to first; of samples of one figure
    without a width.

    Its ends may be infinite if a resample's median is 0. Raises ValueError for an empty sample.
    """
    if not first or not second:
        raise ValueError("an empty sample has no median")
    if min(len(first), len(second)) > 1 and are_few((first, second)):
        return ratio_interval([second], [first], CONFIDENCE)
    below, above, often = _drawn(len(first), len(second))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratios = _middles(second, above) / _middles(first, below)
    ratios[np.isnan(ratios)] = 1.0
    outside = round((1 - CONFIDENCE) / 2 * RESAMPLES)
    ends = (outside, RESAMPLES - 1 - outside)
    if often is None:
        ratios.sort()
        return float(ratios[ends[0]]), float(ratios[ends[1]])
    order = ratios.argsort()
    low, high = order[often[order].cumsum().searchsorted(ends, side="right")]
    return float(ratios[low]), float(ratios[high])


def resampled_medians(values: Sequence[float], side: int) -> Floats:
    """Return the medians of RESAMPLES bootstrap resamples, shape (RESAMPLES,).

    ``side``: the number of the sample among those of one ratio, which are drawn independently.
    """
    return _middles(values, _side(len(values), side))


def _middles(values: Sequence[float], places: Ints) -> Floats:
    """Return the medians of resamples, shape (n,).

    ``places``: of the two middle figures of each resample among the ordered values, shape (2, n).
    """
    middles = np.array(sorted(values), dtype=float)[places] / 2
    result: Floats = middles[0] + middles[1]
    return result


@lru_cache(maxsize=256)
def _drawn(first: int, second: int) -> "tuple[Ints, Ints, Ints | None]":
    """Return resamples of two samples of these sizes, as places of their middle figures.

    For each side an array of shape (2, n): the places of the two middle figures among the ordered
    values (twice the same if the size is odd). The third array, shape (n,), tells how often each
    was drawn; None means once. The median of a resample of ordered values is at the median of its
    places, so places are drawn once for all samples of a size. Small samples have few medians.
    """
    below, above = _side(first, 0), _side(second, 1)
    if first * second > MANY * RESAMPLES:
        return below, above, None
    few, often = np.unique(np.concatenate((below, above)), axis=1, return_counts=True)
    if 2 * len(often) > RESAMPLES:
        return below, above, None
    return few[:2], few[2:], often


@lru_cache(maxsize=256)
def _side(count: int, side: int) -> Ints:
    """Return the places of the two middle figures in resamples of one side, shape (2, n).

    A place is a uniform share of the ordered figures. The k-th least of n shares follows
    Beta(k, n + 1 - k); the next divides the remaining interval by Beta(1, n - k) (David and
    Nagaraja 2003). So the middle ones are drawn without the others.
    """
    rng = np.random.default_rng([SEED, count, side])
    kth = (count + 1) // 2
    low = rng.beta(kth, count + 1 - kth, RESAMPLES)
    high = low if count % 2 else low + (1 - low) * rng.beta(1, count - kth, RESAMPLES)
    places: Ints = np.minimum(np.array([low, high]) * count, count - 1).astype(np.int64)
    return places
