"""What chance explains: tests, quantiles and intervals, by SciPy.

mann_whitney([5.1, 5.2, 5.0, 5.1], [5.6, 5.5, 5.7, 5.6])     # 0.029
student_quantile(0.975, 11)                                 # 2.201
wilson(19, 20)                                              # (0.764, 0.991)

No other module imports SciPy, and this one does only in its functions: ``scipy.stats`` takes one
to two seconds. ``scipy.special`` takes a third of a second and has the distributions alone, as
functions of arrays; ``scipy.stats`` computes with these. A history does without ``scipy.stats``:
of its ranks and of Fisher's test it asks thousands of times, and calls there take three times as
long.

A *deviate* is the normal deviate that is as rare as a result, one-sided. At most ``MAX_DEVIATE`` is
told: no float holds a smaller chance.
"""

import math
import sys
from collections.abc import Collection, Sequence
from decimal import Decimal
from functools import lru_cache
from itertools import combinations

from msgspec import Struct

from seatrial.lazy import Bools, Floats, Ints, np

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
    _, level, counts = np.unique(figures, return_inverse=True, return_counts=True)
    ranked: Floats = (np.cumsum(counts) - (counts - 1) / 2)[level]
    return ranked


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
    all_high = high + other_high
    highs = np.arange(high, min(count, all_high) + 1)
    ways = _log_choices(all_high, highs) + _log_choices(count + other - all_high, count - highs)
    chance = float(np.exp(ways - _log_choices(count + other, count)).sum())
    return _deviate(min(chance, 0.5))


def _log_choices(among: int, chosen: "Ints | int") -> Floats:
    """Return the logarithm of the number of ways to choose so many."""
    from scipy import special

    logarithm: Floats = -np.log1p(among) - special.betaln(among - chosen + 1, chosen + 1)
    return logarithm


def wilson(met: int, of: int) -> tuple[float, float]:
    """Return the 95 % interval of a share (Wilson 1927), which holds also for none and all."""
    if not of:
        return 0.0, 1.0
    from scipy import stats

    interval = stats.binomtest(met, of).proportion_ci(CONFIDENCE, method="wilson")
    return float(interval.low), float(interval.high)


def least_rate(failed: int, runs: int) -> float:
    """Return the least rate of failures at which so many or more of the runs fail with 5 %: the
    lower end of a one-sided interval (Clopper and Pearson 1934)."""
    from scipy import stats

    interval = stats.binomtest(failed, runs, alternative="greater").proportion_ci(CONFIDENCE)
    return float(interval.low)


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


class _SampleMoments(Struct, frozen=True):
    """The means, variances of a figure and sizes of samples, arrays of one shape or numbers."""

    mean: Floats
    variance: Floats
    size: int


def welch(first: _SampleMoments, second: _SampleMoments) -> Floats:
    """Return the two-sided p-values of Welch's test (1947), of variances above 0; never 0."""
    from scipy import stats

    result = stats.ttest_ind_from_stats(
        *(first.mean, np.sqrt(first.variance), first.size),
        *(second.mean, np.sqrt(second.variance), second.size),
        equal_var=False,
    )
    p: Floats = np.maximum(result.pvalue, sys.float_info.min)
    return p


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


# ---- rounding ------------------------------------------------------------------------------------
#
# Find the step to which figures are rounded: a benchmark prints 1.5 to 2.5 as 2.
#
#     step([2.0, 3.0])        # 1.0
#     step([2.25, 3.5])       # 0.01
#     hides([2.0] * 4, [3.0] * 4, apart=1.0)      # 1.0: both may have been 2.5


_ALMOST = 1 + 1e-9


def step(values: Sequence[float]) -> float:
    """Return the last decimal place that any of these finite figures has, at most 1.

    Whether the zeros at the end of a whole number were measured is unknown.
    """
    places = [Decimal(repr(float(value))).normalize().as_tuple().exponent for value in values]
    return float(f"1e{min([0, *map(int, places)])}")


def hides(first: Sequence[float], second: Sequence[float], apart: float) -> float | None:
    """Return the rounding step of two samples if it may explain their difference, else None.

    It may if their medians are ``apart`` by one step or less, and the figures of neither sample
    spread over more than a step, as they would with noise of that size.
    """
    size = step([*first, *second])
    widest = max(max(values) - min(values) for values in (first, second))
    return size if max(apart, widest) <= size * _ALMOST else None


# ---- multiple testing ----------------------------------------------------------------------------
#
# Control false differences among many rows: at 95 % confidence, five in a hundred come by chance.
#
# kept = confirmed([student_p(*row) for row in rows], len(rows)) # of significance.py kept =
# unshuffled(rows, kept, least=0.02) # of these, those that shuffled rows rarely show


SHUFFLES = 500  # of a row; all possible ones if these are fewer
AT_ONCE = 32  # rows; BLAS starts threads for more, which costs more than it gains
SEED = 20260101

Samples = tuple[Sequence[float], Sequence[float]]


def student_p(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Return the two-sided p-value of Welch's test (1947) on the logarithms of two samples.

    Unlike that of a rank test, it can be small for few figures. The variance of a figure is at
    least what rounding hides: a twelfth of the squared step (Sheppard 1898). None if a side has
    fewer than two figures or a figure is not above 0.
    """
    samples = (first, second)
    if not _usable(samples):
        return None
    return _p(samples)


def _usable(samples: Samples) -> bool:
    return min(map(len, samples)) >= 2 and min(map(min, samples)) > 0


def _p(samples: Samples) -> float:
    """Return the p-value of Welch's test."""
    as_given = np.arange(sum(map(len, samples)))[None, :] < len(samples[0])
    return float(_welch(np.array([[*samples[0], *samples[1]]], dtype=float), as_given)[0][0, 0])


def _welch(figures: Floats, deals: Bools) -> tuple[Floats, Floats]:
    """Return Welch's test of each row for each deal of its figures to the two sides.

    ``figures``: of both samples, shape (rows, n). ``deals``: shape (deals, n), True for the first
    side. Returns two arrays of shape (rows, deals): the p-value, and the absolute difference of the
    mean logarithms.
    """
    steps = np.array([[step(row)] for row in figures.tolist()])
    with np.errstate(over="ignore"):
        hidden = np.clip(steps / figures, np.finfo(float).eps, 1) ** 2 / 12
    logs = np.log(figures)
    logs -= logs.mean(axis=1)[:, None]
    sides = []
    for those in (deals.T, ~deals.T):
        side = those.astype(float)
        size = int(those[:, 0].sum())
        mean = logs @ side / size
        variance = (np.square(logs) @ side - size * mean**2) / (size - 1)
        sides.append(_SampleMoments(mean, np.maximum(variance, hidden @ side / size), size))
    return welch(*sides), np.abs(sides[0].mean - sides[1].mean)


def unshuffled(rows: Sequence[Samples], told: Collection[int], least: float) -> set[int]:
    """Return which of the differences ``told`` (indices of ``rows``) stand in noise of any shape.

    Figures that fall into two modes look clearly different if each side has one mode. So the
    figures of every other row are dealt to its sides anew. The mean number of those rows that then
    differ as clearly, and by the ``least`` effect, estimates how many are false (Storey and
    Tibshirani 2003). The clearest of ``told`` stand, as many as keep the false share below
    ``FALSE``.
    """
    clear = {index: _p(rows[index]) for index in told if _usable(rows[index])}
    order = sorted(clear, key=clear.__getitem__)
    places = {index: place for place, index in enumerate(order)}
    bounds = np.array([clear[index] for index in order]) * (1 + 1e-9)
    by_chance = np.zeros(len(order))  # other rows expected to differ as clearly as each in order
    shapes: dict[tuple[int, int], list[int]] = {}
    for index, (first, second) in enumerate(rows):
        shapes.setdefault((len(first), len(second)), []).append(index)
    for sizes, alike in shapes.items():
        figures = np.array([[*rows[index][0], *rows[index][1]] for index in alike], dtype=float)
        able = np.flatnonzero(_may_differ(figures, sizes, least))
        for at in range(0, len(able), AT_ONCE):
            some = able[at : at + AT_ONCE]
            beyond = _beyond(figures[some], _deals(*sizes), bounds, least)
            for number, shares in zip(some.tolist(), beyond, strict=True):
                shares[places.get(alike[number], len(order)) :] = 0.0
            by_chance += beyond.sum(axis=0)
    counts = np.arange(1, len(order) + 1)
    stand = max(counts[by_chance <= FALSE * counts + 1e-9].tolist(), default=0)
    return {*order[:stand]} | ({*told} - {*order})


def _may_differ(figures: Floats, sizes: tuple[int, int], least: float) -> Bools:
    """Return which rows some deal makes differ by the least effect; all figures must be above 0.

    ``figures``: shape (rows, n). Returns shape (rows,).
    """
    usable: Bools = figures.min(axis=1) > 0
    if min(sizes) < 2:
        return np.zeros_like(usable)
    logs = np.sort(np.log(np.where(usable[:, None], figures, 1.0)), axis=1)
    widest = [logs[:, n:].mean(axis=1) - logs[:, :n].mean(axis=1) for n in sizes]
    able: Bools = usable & (np.maximum(*widest) >= math.log1p(least))
    return able


def _beyond(figures: Floats, deals: Bools, bounds: Floats, least: float) -> Floats:
    """Return the share of the deals in which each row differs by the least effect and each bound.

    ``bounds``: p-values, shape (b,). Returns shape (rows, b).
    """
    ps, off = _welch(figures, deals)
    ps[off < math.log1p(least)] = 1.0
    ps.sort(axis=1)
    numbers = [np.searchsorted(row, bounds, side="right") for row in ps]
    shares: Floats = np.array(numbers) / ps.shape[1]
    return shares


@lru_cache(maxsize=64)
def _deals(first: int, second: int) -> Bools:
    """Return ways to deal figures to two sides: shape (deals, n), True for the first side."""
    total = first + second
    if math.comb(total, first) > SHUFFLES:
        rng = np.random.default_rng([SEED, first, second])
        places = rng.random((SHUFFLES, total)).argsort(axis=1)[:, :first]
    else:
        places = np.array(list(combinations(range(total), first)))
    deals = np.zeros((len(places), total), dtype=bool)
    np.put_along_axis(deals, places, True, axis=1)
    return deals


# ---- sample sizes --------------------------------------------------------------------------------
#
# How many figures a comparison of two samples takes.
#
# enough(3) # 5: of three figures and four, Mann-Whitney's test cannot give p < 0.05


CONFIDENCE = 0.95
NORMAL = 1.96  # quantile of a normal interval of that confidence
MANY_FIGURES = 1000  # figures of each side: more are not asked for
REPEATS = 5  # figures of each side that are recommended: four can show a difference, if none fails
LEAST_FEW = 3  # figures of each side, that may show a difference of FEW_EFFECT
FEW_EFFECT = 0.10


def least_p(m: int, n: int) -> float:
    """Return the least p-value that Mann-Whitney's test can give for samples of these sizes."""
    return min(1.0, 2 / math.comb(m + n, m))


def enough(first: int) -> int:
    """Return how many figures a second sample needs to show a difference from ``first`` ones.

    With fewer, Mann-Whitney's test cannot give p < 0.05. ``first`` is two or more.
    """
    return next(n for n in range(2, 40) if least_p(first, n) < 1 - CONFIDENCE)


def remedy(needed: int) -> str:
    """Return what to do where so many figures of each side are needed; 0: more do not help."""
    if not needed:
        return "more runs do not help"
    if needed >= MANY_FIGURES:
        return f"more than {MANY_FIGURES} runs of each would be needed: lessen the noise"
    return f"run each with --repeat {needed}"


def twice(figures: int) -> int:
    """Return how many figures of each side to try where so many did not decide."""
    return max(REPEATS, 2 * figures)


def to_see(least: float, unseen: float, figures: int, quantile: float = NORMAL) -> int:
    """Return how many figures of each side may show a change by the share ``least``, where so many
    show none of less than ``unseen``: the width of an interval goes with the square root. It is
    that of Student's t (its ``quantile``) where they are few. At most ``MANY`` are told."""
    if not math.isfinite(unseen):
        return MANY_FIGURES
    factor = (math.log1p(unseen) / math.log1p(least) * NORMAL / quantile) ** 2
    return min(MANY_FIGURES, max(REPEATS, math.ceil(figures * factor)))
