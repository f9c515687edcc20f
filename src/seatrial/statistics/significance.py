"""What chance explains: tests, quantiles and intervals, by SciPy.

mann_whitney([5.1, 5.2, 5.0, 5.1], [5.6, 5.5, 5.7, 5.6])     # 0.029
student_quantile(0.975, 11)                                 # 2.201
wilson(19, 20)                                              # (0.764, 0.991)

No other module imports SciPy, and this one does only in its functions: ``scipy.stats`` takes one
to two seconds. ``scipy.special`` takes a third of a second and has the distributions alone, as
functions of arrays; ``scipy.stats`` computes with these.

A *deviate* is the normal deviate that is as rare as a result, one-sided. At most ``MAX_DEVIATE`` is
told: no float holds a smaller chance.
"""

import math
import sys
from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import NamedTuple

from seatrial.arrays import Floats
from seatrial.lazy import np
from seatrial.statistics.sample_sizes import CONFIDENCE, least_p

MAX_DEVIATE = 37.0
FALSE = 0.05  # share of the differences told that may be false
SAME = 1e-9  # share by which figures differ that were equal before arithmetic
EXACT = 400  # largest product of the sizes for which Mann-Whitney's distribution is exact


# ---- distributions ------------------------------------------------------------------------


def student_quantile(share: float, freedom: float) -> float:
    """Return the t that this share of Student's distribution lies below."""
    from scipy import special

    return float(special.stdtrit(freedom, share))


def two_sided(student: float, freedom: float) -> float:
    """Return the two-sided p-value of a Student's t above 0."""
    from scipy import special

    return 2 * float(special.stdtr(freedom, -student))


def normal_deviate(student: float, freedom: float) -> float:
    """Return the deviate of a Student's t above 0."""
    from scipy import special

    return _deviate(float(special.stdtr(freedom, -student)))


def _deviate(chance: float) -> float:
    from scipy import special

    return min(MAX_DEVIATE, -float(special.ndtri(chance)))


# ---- ranks --------------------------------------------------------------------------------


def mann_whitney(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Return the two-sided p-value of the rank-sum test of Mann and Whitney (1947).

    It is exact for few figures without ties. Otherwise it is the normal approximation, corrected
    for ties and continuity (Lehmann 1975), but no less than the least exact one. None if a side has
    fewer than two figures or all figures are equal.
    """
    m, n = len(first), len(second)
    levels = len({*first, *second})
    if m < 2 or n < 2 or levels == 1:
        return None
    from scipy import stats

    if m * n <= EXACT and levels == m + n:
        return float(stats.mannwhitneyu(first, second, method="exact").pvalue)
    p = float(stats.mannwhitneyu(first, second, method="asymptotic").pvalue)
    return max(least_p(m, n), p)


def ranks(figures: Floats) -> Floats:
    """Return the ranks of figures from 1, the mean of them for equal ones; shape (n,)."""
    from scipy import stats

    found: Floats = stats.rankdata(figures)
    return found


def beside_rise(figures: Floats) -> tuple[Floats, int]:
    """Return what is left of figures beside the best fit that never falls (isotonic regression,
    Barlow and others 1972), shape (n,), and the number of its levels."""
    from scipy import optimize

    fit = optimize.isotonic_regression(figures)
    return figures - fit.x, len(fit.weights)


def rank_sum_deviate(figures: Floats, first: int) -> float:
    """Return the deviate of the rank sum of the ``first`` figures beside that of the others; 0 if
    all are equal. ``figures``: shape (n,).

    It is Mann-Whitney's approximation: the variance of the sum is that of the ranks, ties included
    (Lehmann 1975). ``scipy.stats.mannwhitneyu`` gives the same in ten times the time, and a history
    asks thousands of times.
    """
    count = len(figures)
    away = ranks(figures) - (count + 1) / 2
    squares = float(away @ away)
    if squares == 0:
        return 0.0
    of_sum = squares * first * (count - first) / (count * (count - 1))
    return abs(float(away[:first].sum())) / math.sqrt(of_sum)


# ---- counts -------------------------------------------------------------------------------


@lru_cache(maxsize=16384)
def fisher_deviate(high: int, count: int, other_high: int, other: int) -> float:
    """Return the deviate of Fisher's exact test (1935), one-sided.

    The test gives the chance that ``high`` or more of ``count`` figures are high, if ``high`` and
    ``other_high`` of all ``count`` + ``other`` are. A chance above 0.5 counts as 0.5.
    """
    from scipy import stats

    chance = stats.hypergeom.sf(high - 1, count + other, high + other_high, count)
    return _deviate(min(float(chance), 0.5))


def wilson(met: int, of: int) -> tuple[float, float]:
    """Return the 95 % interval of a share (Wilson 1927), which holds also for none and all."""
    if not of:
        return 0.0, 1.0
    from scipy import stats

    told = stats.binomtest(met, of).proportion_ci(CONFIDENCE, method="wilson")
    return float(told.low), float(told.high)


def least_rate(failed: int, runs: int) -> float:
    """Return the least rate of failures at which so many or more of the runs fail with 5 %: the
    lower end of a one-sided interval (Clopper and Pearson 1934)."""
    from scipy import stats

    told = stats.binomtest(failed, runs, alternative="greater").proportion_ci(CONFIDENCE)
    return float(told.low)


def clean_runs_needed(failed: int, runs: int) -> int:
    """Return how many runs in a row without a failure show with 95 % that failures are rarer than
    before, when ``failed`` of ``runs`` failed.

    It is ln 0.05 / ln(1 - p), with p the least rate of failures before. Raises ValueError unless
    0 < failed <= runs.
    """
    if not 0 < failed <= runs:
        raise ValueError(f"{failed} of {runs} runs: there is nothing to cure")
    rate = least_rate(failed, runs)
    return 1 if rate >= CONFIDENCE else math.ceil(math.log(1 - CONFIDENCE) / math.log1p(-rate))


# ---- means and spreads --------------------------------------------------------------------


class SampleMoments(NamedTuple):
    """The means, variances of a figure and sizes of samples, arrays of one shape or numbers."""

    mean: Floats
    variance: Floats
    size: int


def welch(first: SampleMoments, second: SampleMoments) -> Floats:
    """Return the two-sided p-values of Welch's test (1947), of variances above 0; never 0."""
    from scipy import stats

    told = stats.ttest_ind_from_stats(
        *(first.mean, np.sqrt(first.variance), first.size),
        *(second.mean, np.sqrt(second.variance), second.size),
        equal_var=False,
    )
    found: Floats = np.maximum(told.pvalue, sys.float_info.min)
    return found


def brown_forsythe(first: Floats, second: Floats) -> float | None:
    """Return the two-sided p-value of the test of Brown and Forsythe (1974) for equal spread. None
    if all distances from the medians are equal."""
    away = [np.abs(side - np.median(side)) for side in (first, second)]
    if all(np.ptp(side) <= SAME * float(side.max()) for side in away):
        alike = math.isclose(float(away[0].mean()), float(away[1].mean()), rel_tol=SAME)
        return None if alike else sys.float_info.min
    from scipy import stats

    return float(stats.levene(first, second, center="median").pvalue)


# ---- many tests ---------------------------------------------------------------------------


def confirmed(ps: Collection[float], tested: int) -> set[int]:
    """Return the indices of the p-values that stand at a false discovery rate of ``FALSE``.

    The procedure is that of Benjamini and Hochberg (1995). If nothing differs, it names a
    difference with that probability. ``tested``: how many were tested; those without a p-value
    count as equal.
    """
    if not ps:
        return set()
    from scipy import stats

    padded = np.concatenate([[*ps], np.ones(tested - len(ps))])
    adjusted = stats.false_discovery_control(padded)[: len(ps)]
    return set(np.flatnonzero(adjusted <= FALSE).tolist())
