"""Compare two samples by the ratio of their medians, with a confidence interval.

compare([5.1, 5.2, 5.0, 5.1], [5.6, 5.5, 5.7, 5.6], "lower")     # ratio 1.09, verdict "worse"

The interval is a percentile bootstrap (Efron 1979), and where a side has fewer than five figures
Welch's on logarithms (few_figures.py). The verdict is "better" or "worse" if the
interval lies on one side of 1, the ratio differs from 1 by the least effect, the test of Mann and
Whitney (1947) gives p < 0.05, and rounding does not explain the difference. The test needs four
figures on each side, or three and five: fewer cannot give p < 0.05. Of three and three, or three
and four, a difference is told where it is 10 % or more, no figure of a side is within the range of
the other, and Welch's test gives p < 0.05. The verdict is "same" if there are enough for the test
of ranks and the whole interval is within the least effect of 1. Otherwise it is "unclear".

This is the rule by which ``compare``, ``ratio``, ``best`` and ``tune`` tell a difference.
"""

import math
import statistics
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from seatrial.judge.statistics.significance import (
    CONFIDENCE,
    FEW_EFFECT,
    LEAST_FEW,
    NORMAL,
    REPEATS,
    brown_forsythe,
    enough,
    hides,
    least_p,
    mann_whitney,
    student_p,
    student_quantile,
    to_see,
    twice,
)
from seatrial.judge.statistics.spread import MAD_TO_SIGMA
from seatrial.lazy import Floats, Ints, np
from seatrial.units import Better

Verdict = Literal["better", "worse", "same", "unclear"]

MIN_RELATIVE_CHANGE = 0.02
RESAMPLES = 4000
ALMOST = 1 + 1e-9  # tolerance: 1 - 0.93 is less than 0.07 in the last bit
MAX_FACTOR = 1000.0  # between a ratio and an end of its interval: a wider one says nothing
MAX_RATIO = 1e300  # a ratio; means of several such ratios do not overflow
SEED = 20260101
MANY = 2  # in RESAMPLES: with a larger product of the sizes hardly any two resamples are alike


class RatioEstimate(Struct, frozen=True, kw_only=True, rename={"reason": "why"}):
    """The comparison of the finite figures of two samples.

    ``ratio``: of the second median to the first. ``low`` and ``high``: its 95 % interval. ``p``: of
    Mann-Whitney's test. Each is None if not defined. ``reason`` of an unclear verdict, or
    of how few figures another one is. ``unseen``: a change of less than this share could not have
    been seen (half the width of the interval). ``needed``: how many figures of each side may decide
    an unclear verdict that is due to their number or noise; 0 where it is due to something else.
    """

    verdict: Verdict = "unclear"
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    reason: str = ""
    needed: int = 0
    unseen: float = math.inf

    def hides(self, least: float) -> bool:
        """Return whether the verdict is unclear and a change by the least effect may be there."""
        return self.verdict == "unclear" and self.unseen > least * ALMOST

    @property
    def told(self) -> bool:
        """Whether a difference is told."""
        return self.verdict in ("better", "worse")

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

    ``least`` is the least effect that matters, as a share: 0.02 for 2 %.
    """
    one, other = _finite(first), _finite(second)
    if not one or not other:
        return RatioEstimate(reason=f"there is no finite figure of {_side_without(one, other)}")
    estimate = _ratio_of_medians(one, other)
    ratio, p = estimate.ratio, estimate.p
    if ratio is None:
        return estimate
    if min(len(one), len(other)) < 2:
        reason = "one figure has no spread: repeat the run"
        return RatioEstimate(reason=reason, ratio=ratio, needed=REPEATS)
    low, high = interval(one, other)
    unseen = math.sqrt(high / low) - 1 if low > 0 and math.isfinite(high) else math.inf
    found = RatioEstimate(ratio=ratio, low=low, high=high, p=p, unseen=unseen)
    found = _unless_rounded(_verdict(found, one, other, better, least), one, other)
    if not (is_known(ratio, low) and is_known(ratio, high)):
        return replace(found, low=None, high=None)
    return found


def _side_without(one: list[float], other: list[float]) -> str:
    """Return which of two sides has no figures, of which one at least has none."""
    if not one and not other:
        return "either side"
    return "the second side" if one else "the first side"


def _ratio_of_medians(one: list[float], other: list[float]) -> RatioEstimate:
    """Return the ratio of the medians, or why there is none; and the p-value of ranks."""
    before, after = statistics.median(one), statistics.median(other)
    p = mann_whitney(one, other)
    if before <= 0 or after <= 0:
        reason = f"medians of {before:g} and {after:g}: a ratio is of figures above 0"
        unseen = 0.0 if len({*one, *other}) == 1 else math.inf
        return RatioEstimate(reason=reason, p=p, unseen=unseen)
    if not 1 / MAX_RATIO < after / before < MAX_RATIO:
        reason = f"medians of {before:g} and {after:g} have no ratio that a number can hold"
        return RatioEstimate(reason=reason, p=p)
    return RatioEstimate(ratio=after / before, p=p)


def _unless_rounded(found: RatioEstimate, one: list[float], other: list[float]) -> RatioEstimate:
    """Return an estimate as unclear where rounding may make the difference that it tells."""
    before, after = statistics.median(one), statistics.median(other)
    step = hides(one, other, abs(after - before)) if found.told else 0.0
    if not step:
        return found
    reason = f"figures rounded to steps of {step:g} may differ so though equal"
    unseen = max(found.unseen, step / before)
    return replace(found, verdict="unclear", reason=reason, unseen=unseen)


def is_known(ratio: float, end: float) -> bool:
    """Return whether the end of a ratio's interval says anything: whether it is within a factor of
    ``MAX_FACTOR`` of the ratio."""
    return end > 0 and math.isfinite(end) and 1 / MAX_FACTOR <= end / ratio <= MAX_FACTOR


def _finite(values: Sequence[float]) -> list[float]:
    return [float(value) for value in values if math.isfinite(value)]


def _verdict(
    found: RatioEstimate, one: list[float], other: list[float], better: Better, least: float
) -> RatioEstimate:
    """Return the estimate with its verdict; if it is unclear with the reason, and the number of
    figures needed."""
    assert found.ratio is not None and found.low is not None and found.high is not None
    sizes = (len(one), len(other))
    both = f"{sizes[0]} and {sizes[1]} figures"
    few = least_p(*sizes) >= 1 - CONFIDENCE
    takes = f"it takes {sizes[0]} and {enough(sizes[0])}, or 4 on either side" if few else ""
    low, high = found.low, found.high
    off = (max(found.ratio, 1 / found.ratio) - 1) * ALMOST  # the same in both directions
    if low * (1 + least) * ALMOST >= 1 and high <= (1 + least) * ALMOST:
        if not few:
            return replace(found, verdict="same")
        reason = f"{both} that agree may do so by chance: {takes}"
        return replace(found, reason=reason, needed=REPEATS)
    if low <= 1 <= high or off < least:
        return _no_change(found, low, high, sizes, few, least)
    if few and (reason := _why_not_of_few(one, other, off)):
        return replace(found, reason=f"{both} {reason}: {takes}", needed=REPEATS)
    if not few and (found.p is None or found.p >= 1 - CONFIDENCE):
        reason = f"Mann-Whitney's test gives p = {found.p:.2g}"
        return replace(found, reason=reason, needed=twice(min(sizes)))
    is_better = (found.ratio > 1) == (better == "higher")
    of = f"of {sizes[0]} and {sizes[1]} runs" if few else ""
    return replace(found, verdict="better" if is_better else "worse", reason=of)


def _no_change(
    found: RatioEstimate,
    low: float,
    high: float,
    sizes: tuple[int, int],
    few: bool,
    least: float,
) -> RatioEstimate:
    """Return the estimate of a difference that is none, or too small to matter."""
    reason = f"no change was found; one of less than {_share(found.unseen)} could not be seen"
    if low > 1 or high < 1:
        reason = f"the difference is under the least effect of {100 * least:g} %"
    needed = REPEATS if few else 0
    if found.unseen > least * ALMOST:
        freedom = sum(sizes) - 2
        quantile = student_quantile((1 + CONFIDENCE) / 2, freedom) if few else NORMAL
        needed = max(needed, to_see(least, found.unseen, min(sizes), quantile))
    return replace(found, reason=reason, needed=needed)


def _why_not_of_few(one: list[float], other: list[float], off: float) -> str:
    """Return why figures that are too few for Mann and Whitney's test show no difference; "" if
    they do, as each of three or more is beyond all of the other side, by Welch's test, too."""
    if min(len(one), len(other)) < LEAST_FEW:
        return "can show no difference, whatever they are"
    if not (max(one) < min(other) or max(other) < min(one)):
        return "whose ranges meet show no difference"
    if off < FEW_EFFECT:
        return f"can show no difference under {100 * FEW_EFFECT:g} %"
    p = student_p(one, other)
    return "" if p is not None and p < 1 - CONFIDENCE else "vary too much to show a difference"


def _share(share: float) -> str:
    """Return a share in per cent, with two digits."""
    return f"{100 * share:.2g} %" if share < 1 else f"{100 * share:.0f} %"


# ---- the bootstrap ------------------------------------------------------------------------


def interval(first: Sequence[float], second: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % interval of the ratio of medians, second to first; of samples of one figure
    without a width.

    Its ends may be infinite if a resample's median is 0. Raises ValueError for an empty sample.
    """
    if not first or not second:
        raise ValueError("an empty sample has no median")
    if (
        sorted(first) > sorted(second) and min(*first, *second) > 0
    ):  # the resamples are the same in both directions
        low, high = interval(second, first)
        return (1 / high if high else math.inf), (1 / low if low else math.inf)
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


# ---- few figures ---------------------------------------------------------------------------------
#
# Intervals of ratios of samples that are too few for a bootstrap.
#
# low, high = ratio_interval([[5.6, 5.5, 5.7]], [[5.1, 5.2, 5.0]], 0.95) # 1.04, 1.16
#
# A bootstrap of three or four figures holds the truth in 89 to 93 of 100 cases where it should in
# 95. Welch's interval (1947) on logarithms takes them for normal, and so the figures for log-
# normal, and allows for sides that differ in spread. Of log-normal figures a ratio of geometric
# means is one of medians. ``python -m pytest tests/results/test_ratios.py`` measures how often
# both hold the truth.


FEW = 5  # figures of a side: from here on a bootstrap holds the truth often enough

Samples = Sequence[Sequence[float]]


def are_few(samples: Samples) -> bool:
    """Return whether a sample has too few figures for a bootstrap, and all have logarithms."""
    return min(map(len, samples)) < FEW and min(map(min, samples)) > 0


def ratio_interval(above: Samples, below: Samples, confidence: float) -> tuple[float, float]:
    """Return the ends of the interval of a ratio: of the medians of samples ``above`` to those
    ``below`` it, each of two figures above 0 or more. Degrees of freedom are those of Satterthwaite
    (1946). It holds the ratio of the medians in any case."""
    middle = at = error = shares = 0.0
    for sign, samples in ((1, above), (-1, below)):
        for sample in samples:
            logs = [math.log(figure) for figure in sample]
            part = statistics.variance(logs) / len(logs)
            error += part
            shares += part * part / (len(logs) - 1)
            middle += sign * statistics.fmean(logs)
            at += sign * math.log(statistics.median(sample))
    reach = 0.0
    if shares:
        freedom = error * error / shares
        reach = student_quantile((1 + confidence) / 2, freedom) * math.sqrt(error)
    return _power(min(middle - reach, at)), _power(max(middle + reach, at))


def _power(logarithm: float) -> float:
    return math.exp(logarithm) if logarithm < 700 else math.inf


# ---- ratio of ratios -----------------------------------------------------------------------------
#
# How a ratio of medians changes from one pair of samples to another.
#
# change = ratio_of_ratios(native_64, compat_64, native_1024, compat_1024) change.ratio,
# change.low, change.high # 1.41, 1.33, 1.5


class RatioChange(Struct, frozen=True):
    """The later ratio over the earlier one, with the ends of its 95 % interval (None where a sample
    has one figure)."""

    ratio: float
    low: float | None = None
    high: float | None = None


def ratio_of_ratios(
    first: Sequence[float], second: Sequence[float], third: Sequence[float], fourth: Sequence[float]
) -> RatioChange:
    """Return the ratio of medians fourth to third over that of second to first.

    The interval is a percentile bootstrap (Efron 1979) in which each sample is drawn by itself. It
    is a little wide: with 5 or 10 figures of each sample it holds the truth in 97 to 98 %. Where a
    sample has fewer it is Welch's on logarithms (few_figures.py).
    Raises ValueError for an empty sample, or a median that is not above 0.
    """
    samples = (first, second, third, fourth)
    if not all(samples):
        raise ValueError("an empty sample has no median")
    middles = [statistics.median(values) for values in samples]
    if min(middles) <= 0:
        raise ValueError(f"medians of {middles}: a ratio is of figures above 0")
    ratio = middles[3] / middles[2] / (middles[1] / middles[0])
    if min(map(len, samples)) < 2:
        return RatioChange(ratio)
    if are_few(samples):
        return RatioChange(ratio, *ratio_interval([fourth, first], [third, second], CONFIDENCE))
    a, b, c, d = (resampled_medians(values, side) for side, values in enumerate(samples))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratios = np.sort(d / c / (b / a))
    outside = round((1 - CONFIDENCE) / 2 * len(ratios))
    return RatioChange(ratio, float(ratios[outside]), float(ratios[-1 - outside]))


# ---- spread ratio --------------------------------------------------------------------------------
#
# Compare how much two samples vary: the ratio of their robust deviations.
#
# compare_spread(before, after) # ratio 3.0 (1.9..4.6), p 2e-05
#
# The deviations are shares of the medians, so samples of different levels can be compared.


LEAST = 5  # figures of a side: fewer tell nothing of a spread
RECOMMENDED = 20
RATIO_RESAMPLES = 2000
RATIO_SEED = 20260101


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
    rng = np.random.default_rng([RATIO_SEED, len(first), len(second)])
    drawn = [
        _deviations(side[rng.integers(0, len(side), (RATIO_RESAMPLES, len(side)))]) for side in logs
    ]
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
    deviations: Floats = MAD_TO_SIGMA * np.median(np.abs(samples - middles), axis=1)
    return deviations
