"""Our statistics give what SciPy's give."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest
import scipy
from numpy.typing import NDArray

from seatrial.statistics import (
    changes,
    defective_nodes,
    modes,
    multiple_testing,
    rank_tests,
    sample_sizes,
    scan_statistic,
    spread,
    suspects,
    two_sample,
)
from seatrial.statistics.proportion import wilson
from seatrial.statistics.student import normal_deviate

Array = NDArray[np.float64]


def test_mann_whitney_of_few_figures_without_ties_is_exact() -> None:
    rng = np.random.default_rng(1)
    for m in range(2, 12):
        for n in range(2, 12):
            first, second = rng.normal(0, 1, m), rng.normal(0.8, 1, n)
            expected = scipy.stats.mannwhitneyu(first, second, method="exact").pvalue
            ours = two_sample.mann_whitney(first.tolist(), second.tolist())
            assert ours == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("levels", [3, 10, 1000])
def test_mann_whitney_with_ties_is_corrected_for_them_and_for_continuity(levels: int) -> None:
    rng = np.random.default_rng(levels)
    for m, n in [(4, 5), (6, 6), (8, 20), (30, 40)]:
        for shift in (0, levels // 4):
            first = rng.integers(0, levels, m).astype(float)
            second = rng.integers(0, levels, n).astype(float) + shift
            first[0] = second[0]  # one tie at least, so that it is never exact
            expected = scipy.stats.mannwhitneyu(first, second, method="asymptotic").pvalue
            ours = two_sample.mann_whitney(first.tolist(), second.tolist())
            assert ours == pytest.approx(max(expected, sample_sizes.least_p(m, n)), rel=1e-12)


def test_mann_whitney_of_many_figures_is_approximated() -> None:
    rng = np.random.default_rng(2)
    first, second = rng.normal(0, 1, 60), rng.normal(0.3, 1, 70)
    expected = scipy.stats.mannwhitneyu(first, second, method="asymptotic").pvalue
    assert two_sample.mann_whitney(first.tolist(), second.tolist()) == pytest.approx(expected)


def test_the_distribution_of_u_is_that_of_all_orders() -> None:
    for m, n in [(2, 2), (3, 7), (9, 5)]:
        low, high = list(range(m)), [m + 0.5 + i for i in range(n)]
        least = scipy.stats.mannwhitneyu(low, high, method="exact").pvalue
        assert sample_sizes.least_p(m, n) == pytest.approx(least)


def test_the_interval_of_a_ratio_is_the_percentile_bootstraps() -> None:
    rng = np.random.default_rng(3)
    first, second = rng.gamma(50, 2, 25), rng.gamma(50, 2.1, 18)
    told = scipy.stats.bootstrap(
        (second, first),
        lambda a, b, axis: np.median(a, axis=axis) / np.median(b, axis=axis),
        method="percentile",
        n_resamples=20_000,
        rng=np.random.default_rng(4),
    ).confidence_interval
    low, high = two_sample.interval(first.tolist(), second.tolist())
    assert (low, high) == pytest.approx((told.low, told.high), rel=0.01)


def test_differences_stand_as_by_benjamini_and_hochberg() -> None:
    rng = np.random.default_rng(6)
    for size in (1, 2, 20, 200):
        for more in (0, 15):  # rows that were tested and have no p
            ps = rng.random(size) ** 4
            padded = np.concatenate([ps, np.ones(more)])
            expected = (
                scipy.stats.false_discovery_control(padded, method="bh")[:size]
                <= multiple_testing.FALSE
            )
            assert multiple_testing.confirmed(ps.tolist(), size + more) == set(
                np.flatnonzero(expected)
            )


def test_fishers_exact_test_is_one_sided() -> None:
    rng = np.random.default_rng(8)
    for _ in range(200):
        count, other = rng.integers(1, 80, 2).tolist()
        high, other_high = int(rng.integers(0, count + 1)), int(rng.integers(0, other + 1))
        table = [[high, count - high], [other_high, other - other_high]]
        p = scipy.stats.fisher_exact(table, alternative="greater").pvalue
        expected = scipy.stats.norm.isf(min(p, 0.5))
        assert rank_tests.fisher(high, count, other_high, other) == pytest.approx(
            expected, abs=1e-7
        )


def test_the_rank_sum_is_wilcoxons() -> None:
    rng = np.random.default_rng(9)
    for first, second in [(3, 3), (5, 40), (100, 30)]:
        figures = rng.normal(0, 1, first + second)
        expected = abs(scipy.stats.ranksums(figures[:first], figures[first:]).statistic)
        assert rank_tests.wilcoxon(figures, first) == pytest.approx(expected)


@pytest.mark.parametrize("freedom", [2, 3, 6, 20, 118])
def test_a_students_t_becomes_the_normal_deviate_that_is_as_rare(freedom: int) -> None:
    """Wallace's approximation errs less the more degrees of freedom there are."""
    for t in (0.1, 0.5, 1.0, 2.0, 3.3, 5.0, 8.0):
        expected = scipy.stats.norm.isf(scipy.stats.t.sf(t, freedom))
        assert normal_deviate(t, freedom) == pytest.approx(expected, rel=0.05 / freedom)


def test_welchs_p_lies_by_the_exact_one() -> None:
    """Degrees of freedom are cut to whole ones and Wallace's approximation is used, so the normal
    deviates agree to a few per cent; never does ours claim much more."""
    rng = np.random.default_rng(10)
    for m, n in [(4, 4), (5, 9), (20, 30)]:
        for effect in (0.0, 0.02, 0.1):
            logs = rng.normal(3, 0.02, m), rng.normal(3 + effect, 0.03, n)
            exact = scipy.stats.ttest_ind(*logs, equal_var=False).pvalue
            ours = multiple_testing.student_p(np.exp(logs[0]).tolist(), np.exp(logs[1]).tolist())
            assert ours is not None
            deviates = [NormalDist().inv_cdf(1 - max(p, 1e-15) / 2) for p in (ours, exact)]
            assert deviates[0] == pytest.approx(deviates[1], rel=0.08, abs=1e-6)
            assert deviates[0] <= deviates[1] * 1.01


def test_the_chance_of_bad_runs_is_the_poisson_binomials() -> None:
    risks = np.random.default_rng(11).random(40) / 3
    for hits in range(1, 41):
        expected = scipy.stats.poisson_binom.sf(hits - 1, risks)
        assert suspects._tail(risks, hits) == pytest.approx(expected, rel=1e-9, abs=1e-14)


def test_the_bound_of_a_span_is_never_below_its_chance() -> None:
    runs = np.repeat(np.arange(1.0, 60.0), 5)
    hits = np.ceil(runs * np.tile([0.2, 0.4, 0.6, 0.8, 1.0], 59))
    bounds = np.exp(scan_statistic._chances(runs, hits, 0.15))
    exact = scipy.stats.binom.sf(hits - 1, runs, 0.15)
    assert (bounds >= exact * (1 - 1e-12)).all()
    assert (bounds[hits > 0.15 * runs] < 1).all()  # and it says something


def test_a_node_is_defective_beyond_the_quantile_of_half_a_node() -> None:
    for count in (5, 200, 6000):
        quantile = scipy.stats.norm.isf(defective_nodes.FALSE_NODES / count)
        assert defective_nodes._bound(count) == pytest.approx(
            quantile * (1 + defective_nodes.SMALL / count)
        )


def test_the_spread_is_the_same() -> None:
    figures = np.random.default_rng(12).lognormal(5, 0.1, 41).tolist()
    told = spread.spread(figures)
    assert told.cv == pytest.approx(scipy.stats.variation(figures, ddof=1))
    assert told.mad == pytest.approx(scipy.stats.median_abs_deviation(figures))
    assert pytest.approx(scipy.stats.norm.ppf(0.75), rel=1e-4) == 1 / spread.MAD_TO_SIGMA


def test_constants_are_those_of_the_normal_distribution() -> None:
    assert pytest.approx(math.sqrt(math.pi / 2), rel=1e-4) == changes.MEAN_TO_SIGMA
    assert pytest.approx(scipy.stats.norm.ppf(0.875), rel=1e-4) == changes.QUARTER
    assert pytest.approx(scipy.stats.norm.isf(0.0005), rel=1e-3) == changes.SUSPECTED


def test_the_density_is_that_of_a_gaussian_kernel() -> None:
    rng = np.random.default_rng(13)
    sample: Array = np.sort(np.concatenate([rng.normal(5.4, 0.05, 200), rng.normal(6, 0.1, 100)]))
    width = 0.04
    edges, density = modes.density_of(sample, width)
    middles = (edges[:-1] + edges[1:]) / 2
    exact = scipy.stats.gaussian_kde(sample, width / sample.std(ddof=1))(middles)
    assert np.abs(density - exact).max() < 0.01 * exact.max()


def test_a_share_has_wilsons_interval() -> None:
    for met, of in [(0, 7), (3, 7), (7, 7), (12, 100)]:
        told = scipy.stats.binomtest(met, of).proportion_ci(0.95, method="wilson")
        assert wilson(met, of) == pytest.approx((told.low, told.high), abs=1e-4)
