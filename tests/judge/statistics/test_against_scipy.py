"""Our statistics give what SciPy's give."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy
from numpy.typing import NDArray

from seatrial.judge.statistics import changes, outliers, significance, spread, two_samples
from seatrial.judge.statistics import changes as step_evidence
from seatrial.judge.statistics import significance as multiple_testing
from seatrial.judge.statistics import spread as modes

Array = NDArray[np.float64]


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
    low, high = two_samples.interval(first.tolist(), second.tolist())
    assert (low, high) == pytest.approx((told.low, told.high), rel=0.01)


def test_welchs_p_is_the_exact_one() -> None:
    rng = np.random.default_rng(10)
    for m, n in [(2, 2), (4, 4), (5, 9), (20, 30)]:
        for effect in (0.0, 0.02, 0.1):
            logs = rng.normal(3, 0.02, m), rng.normal(3 + effect, 0.03, n)
            exact = scipy.stats.ttest_ind(*logs, equal_var=False).pvalue
            ours = multiple_testing.student_p(np.exp(logs[0]).tolist(), np.exp(logs[1]).tolist())
            assert ours == pytest.approx(exact, rel=1e-6)


def test_fishers_deviate_is_the_hypergeometric_distributions() -> None:
    rng = np.random.default_rng(5)
    for _ in range(200):
        count, other = rng.integers(1, 80, 2).tolist()
        high, other_high = int(rng.integers(0, count + 1)), int(rng.integers(0, other + 1))
        chance = scipy.stats.hypergeom.sf(high - 1, count + other, high + other_high, count)
        expected = scipy.stats.norm.isf(min(chance, 0.5))
        assert significance.fisher_deviate(high, count, other_high, other) == pytest.approx(
            expected, abs=1e-12
        )


def test_ranks_are_scipys() -> None:
    figures = np.random.default_rng(6).normal(5, 1, 300).round(1)
    assert significance.ranks(figures).tolist() == scipy.stats.rankdata(figures).tolist()


def test_the_chance_of_bad_runs_is_the_poisson_binomials() -> None:
    risks = np.random.default_rng(11).random(40) / 3
    for hits in range(1, 41):
        expected = scipy.stats.poisson_binom.sf(hits - 1, risks)
        assert outliers._tail(risks, hits) == pytest.approx(expected, rel=1e-9, abs=1e-14)


def test_the_bound_of_a_span_is_never_below_its_chance() -> None:
    runs = np.repeat(np.arange(1.0, 60.0), 5)
    hits = np.ceil(runs * np.tile([0.2, 0.4, 0.6, 0.8, 1.0], 59))
    bounds = np.exp(outliers._chances(runs, hits, 0.15))
    exact = scipy.stats.binom.sf(hits - 1, runs, 0.15)
    assert (bounds >= exact * (1 - 1e-12)).all()
    assert (bounds[hits > 0.15 * runs] < 1).all()  # and it says something


def test_a_node_is_defective_beyond_the_quantile_of_half_a_node() -> None:
    for count in (5, 200, 6000):
        quantile = scipy.stats.norm.isf(outliers.FALSE_NODES / count)
        assert outliers._bound(count) == pytest.approx(quantile * (1 + outliers.SMALL / count))


def test_the_spread_is_the_same() -> None:
    figures = np.random.default_rng(12).lognormal(5, 0.1, 41).tolist()
    told = spread.spread(figures)
    assert told.cv == pytest.approx(scipy.stats.variation(figures, ddof=1))
    assert told.mad == pytest.approx(scipy.stats.median_abs_deviation(figures))
    assert pytest.approx(scipy.stats.norm.ppf(0.75), rel=1e-4) == 1 / spread.MAD_TO_SIGMA


def test_constants_are_those_of_the_normal_distribution() -> None:
    assert pytest.approx(math.sqrt(math.pi / 2), rel=1e-4) == step_evidence.MEAN_TO_SIGMA
    assert pytest.approx(scipy.stats.norm.ppf(0.875), rel=1e-4) == step_evidence.QUARTER
    assert pytest.approx(scipy.stats.norm.isf(0.0005), rel=1e-3) == changes.SUSPECTED


def test_the_density_is_that_of_a_gaussian_kernel() -> None:
    rng = np.random.default_rng(13)
    sample: Array = np.sort(np.concatenate([rng.normal(5.4, 0.05, 200), rng.normal(6, 0.1, 100)]))
    width = 0.04
    edges, density = modes.density_of(sample, width)
    middles = (edges[:-1] + edges[1:]) / 2
    exact = scipy.stats.gaussian_kde(sample, width / sample.std(ddof=1))(middles)
    assert np.abs(density - exact).max() < 0.01 * exact.max()


@pytest.mark.parametrize("levels", [3, 20, 10_000])
def test_the_rank_sum_is_mann_whitneys_with_ties(levels: int) -> None:
    rng = np.random.default_rng(levels)
    for first, second in [(3, 3), (5, 40), (100, 30)]:
        figures = rng.integers(0, levels, first + second).astype(float)
        figures[0] = levels  # not all are equal
        told = scipy.stats.mannwhitneyu(
            figures[:first], figures[first:], method="asymptotic", use_continuity=False
        )
        expected = scipy.stats.norm.isf(told.pvalue / 2)
        assert significance.rank_sum_deviate(figures, first) == pytest.approx(expected)
