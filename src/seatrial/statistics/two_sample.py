"""Before and after, or one side and another: the ratio of medians, with an interval.

compare([5.1, 5.2, 5.0, 5.1], [5.6, 5.5, 5.7, 5.6], "lower")     # ratio 1.09, verdict "worse"

The interval is the percentile bootstrap's of the ratio of medians. "better" and "worse" are said
where the interval lies on one side of 1, the ratio differs from 1 by the least effect, and
Mann-Whitney's test gives p < 0.05: so never of fewer than four figures a side, or three and five,
which cannot give that whatever they are; nor where rounding may be all that lies between the sides.
"same" is said of no fewer, where the whole interval is within the least effect of 1; else it is
"unclear".
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from functools import lru_cache
from statistics import NormalDist, median
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from seatrial.statistics.rounding import hides
from seatrial.units import Better

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Numbers = NDArray[np.int64]

Verdict = Literal["better", "worse", "same", "unclear"]

MIN_RELATIVE_CHANGE = 0.01
RESAMPLES = 4000
CONFIDENCE = 0.95
ALMOST = 1 + 1e-9  # what is written as 0.93 is 7 % less than 1, though not to the last bit
MAX_RATIO = 1e300  # a ratio: means of several are numbers, too
SEED = 20260101
MANY = 2  # products of the sizes, in resamples, of which hardly any are alike
EXACT = 400  # product of the two sizes up to which Mann-Whitney's distribution is computed exactly


class RatioEstimate(Struct, frozen=True, kw_only=True):
    """Two samples: ``ratio`` of the second median to the first, its interval from ``low`` to
    ``high``, Mann-Whitney's ``p``; each None where it cannot be had. ``left_out`` counts figures
    that are not finite. ``why`` explains an unclear verdict."""

    verdict: Verdict
    first: int
    second: int
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    left_out: int = 0
    why: str = ""

    def gain(self, better: Better) -> float | None:
        """The logarithm of how many times better the second is, by which to sort: 2 and 1/2 are
        equally far from 0."""
        if self.ratio is None:
            return None
        return (1 if better == "higher" else -1) * math.log(self.ratio)


def compare(
    first: Sequence[float],
    second: Sequence[float],
    better: Better,
    least: float = MIN_RELATIVE_CHANGE,
) -> RatioEstimate:
    """Compare two samples of one metric. ``least`` is the least effect that matters."""
    one, other = _finite(first), _finite(second)
    left_out = len(first) + len(second) - len(one) - len(other)

    def told(verdict: Verdict, why: str = "", **figures: float | None) -> RatioEstimate:
        return RatioEstimate(
            verdict=verdict,
            first=len(one),
            second=len(other),
            left_out=left_out,
            why=why,
            ratio=figures.get("ratio"),
            low=figures.get("low"),
            high=figures.get("high"),
            p=figures.get("p"),
        )

    if not one or not other:
        side = "the second side" if one else "the first side" if other else "either side"
        return told("unclear", f"there is no finite figure of {side}")
    before, after = median(one), median(other)
    p = mann_whitney(one, other)
    if before <= 0 or after <= 0:
        why = f"medians of {before:g} and {after:g}: a ratio is of figures above 0"
        return told("unclear", why, p=p)
    ratio = after / before
    if not 1 / MAX_RATIO < ratio < MAX_RATIO:
        why = f"medians of {before:g} and {after:g} have no ratio that a number can hold"
        return told("unclear", why, p=p)
    if min(len(one), len(other)) < 2:
        why = "one figure has no spread: repeat the run"
        return told("unclear", why, ratio=ratio)
    low, high = interval(one, other)
    verdict, why = _verdict(ratio, low, high, p, better, least, (len(one), len(other)))
    if verdict in ("better", "worse") and (step := hides(one, other, abs(after - before))):
        verdict, why = "unclear", f"figures rounded to steps of {step:g} may differ so though equal"
    return told(verdict, why, ratio=ratio, low=low, high=high, p=p)


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
) -> tuple[Verdict, str]:
    few = least_p(*sizes) >= 1 - CONFIDENCE
    takes = f"it takes {sizes[0]} and {enough(sizes[0])}, or 4 on either side" if few else ""
    if 1 - least <= low * ALMOST and high <= (1 + least) * ALMOST:
        if few:
            return (
                "unclear",
                f"{sizes[0]} and {sizes[1]} figures that agree may do so by chance: {takes}",
            )
        return "same", ""
    apart = low > 1 or high < 1
    if apart and abs(ratio - 1) * ALMOST >= least:
        if few:
            why = f"{sizes[0]} and {sizes[1]} figures can show no difference, whatever they are"
            return "unclear", f"{why}: {takes}"
        if p is not None and p < 1 - CONFIDENCE:
            return "better" if (ratio > 1) == (better == "higher") else "worse", ""
        return "unclear", f"Mann-Whitney's test gives p = {p:.2g}"
    if apart:
        return "unclear", f"the difference is under the least effect of {100 * least:g} %"
    return "unclear", "the interval takes in 0 %: no change"


# ---- the bootstrap ------------------------------------------------------------------------


def interval(first: Sequence[float], second: Sequence[float]) -> tuple[float, float]:
    """The bootstrap's interval of the ratio of medians, second to first. Of medians that may be 0
    the ends may be infinite. Raises ValueError for an empty sample."""
    import numpy as np

    if not first or not second:
        raise ValueError("an empty sample has no median")
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


def _middles(values: Sequence[float], places: Numbers) -> Array:
    """The medians of resamples, by the places of their middle figures among the ordered ones."""
    import numpy as np

    middles = np.array(sorted(values), dtype=float)[places] / 2
    result: Array = middles[0] + middles[1]
    return result


@lru_cache(maxsize=256)
def _drawn(first: int, second: int) -> tuple[Numbers, Numbers, Numbers | None]:
    """Resamples of two samples of these sizes: the places of the two middle figures of each (two
    rows; one place twice where the size is odd), and how often they were drawn (None: each once).
    In ordered figures, the median of a resample is at the median of its places: they are drawn once
    for all samples of one size, and few figures have few medians."""
    import numpy as np

    below, above = _side(first, 0), _side(second, 1)
    if first * second > MANY * RESAMPLES:
        return below, above, None
    few, often = np.unique(np.concatenate((below, above)), axis=1, return_counts=True)
    if 2 * len(often) > RESAMPLES:
        return below, above, None
    return few[:2], few[2:], often


@lru_cache(maxsize=256)
def _side(count: int, side: int) -> Numbers:
    """The places of the two middle figures in resamples of one side. A place is drawn as a share of
    the ordered figures, evenly; the k-th least of n such shares is Beta(k, n + 1 - k), and the next
    lies above it by Beta(1, n - k) of what is left (David and Nagaraja 2003): so the middle ones
    are drawn without the others."""
    import numpy as np

    rng = np.random.default_rng([SEED, count, side])
    kth = (count + 1) // 2
    low = rng.beta(kth, count + 1 - kth, RESAMPLES)
    high = low if count % 2 else low + (1 - low) * rng.beta(1, count - kth, RESAMPLES)
    places: Numbers = np.minimum(np.array([low, high]) * count, count - 1).astype(np.int64)
    return places


# ---- Mann-Whitney -------------------------------------------------------------------------


def mann_whitney(first: Sequence[float], second: Sequence[float]) -> float | None:
    """The two-sided p-value that two samples are of one distribution: exact for few figures without
    ties, else by the normal approximation with the correction for ties. None of fewer than two
    figures a side, and where all are equal."""
    m, n = len(first), len(second)
    if m < 2 or n < 2:
        return None
    if m * n <= EXACT and len({*first, *second}) == m + n:
        ordered = sorted(second)
        u = sum(bisect_left(ordered, value) for value in first)
        ways = _ways(min(m, n), max(m, n))
        return min(1.0, 2 * sum(ways[: min(u, m * n - u) + 1]) / math.comb(m + n, m))
    return _by_ranks(first, second)


def _by_ranks(first: Sequence[float], second: Sequence[float]) -> float | None:
    """The p-value by the normal approximation."""
    import numpy as np

    m, n = len(first), len(second)
    both = np.concatenate([np.asarray(first, dtype=float), np.asarray(second, dtype=float)])
    levels, place, counts = np.unique(both, return_inverse=True, return_counts=True)
    if len(levels) == 1:
        return None
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[place]
    u = float(ranks[:m].sum()) - m * (m + 1) / 2
    u = min(u, m * n - u)
    total = m + n
    ties = float((counts**3 - counts).sum()) / (total * (total - 1))
    deviation = math.sqrt(m * n / 12 * (total + 1 - ties))
    z = max(0.0, m * n / 2 - u - 0.5) / deviation
    return max(least_p(m, n), min(1.0, 2 * NormalDist().cdf(-z)))


def least_p(m: int, n: int) -> float:
    """The least p-value that Mann-Whitney's test can give for samples of these sizes."""
    return min(1.0, 2 / math.comb(m + n, m))


def enough(first: int) -> int:
    """How many figures a second sample needs, so that Mann-Whitney's test can show a difference
    from ``first`` ones, two or more."""
    return next(n for n in range(2, 40) if least_p(first, n) < 1 - CONFIDENCE)


@lru_cache(maxsize=256)
def _ways(m: int, n: int) -> list[int]:
    """In how many orders of m and n figures each value of U comes about: the coefficients of the
    Gaussian binomial."""
    ways = [1] + [0] * (m * n)
    for i in range(1, m + 1):
        for u in range(m * n, n + i - 1, -1):
            ways[u] -= ways[u - n - i]
        for u in range(i, m * n + 1):
            ways[u] += ways[u - i]
    return ways


# ---- many ---------------------------------------------------------------------------------


def corrected(ps: Sequence[float]) -> list[float]:
    """Holm's correction of p-values for their number, in the order given."""
    order = sorted(range(len(ps)), key=ps.__getitem__)
    result = [0.0] * len(ps)
    highest = 0.0
    for place, index in enumerate(order):
        highest = max(highest, min(1.0, ps[index] * (len(ps) - place)))
        result[index] = highest
    return result


def geometric_mean(ratios: Iterable[float]) -> float:
    """Of ratios; the plain mean of these would depend on which side was divided by which. Raises
    ValueError where there is none, or one is not a finite number above 0."""
    logarithms = []
    for ratio in ratios:
        if not (math.isfinite(ratio) and ratio > 0):
            raise ValueError(f"{ratio:g} is no ratio: a geometric mean is of numbers above 0")
        logarithms.append(math.log(ratio))
    if not logarithms:
        raise ValueError("there is no ratio to take the mean of")
    return math.exp(math.fsum(logarithms) / len(logarithms))
