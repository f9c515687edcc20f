"""What chance explains, beside counts of all ways, tables, and many samples without an effect."""

from __future__ import annotations

import math
from itertools import combinations
from statistics import NormalDist

import numpy as np
import pytest

from seatrial.judge.statistics.significance import (
    MAX_DEVIATE,
    brown_forsythe,
    clean_runs_needed,
    confirmed,
    fisher_deviate,
    least_p,
    least_rate,
    mann_whitney,
    normal_deviate,
    rank_sum_deviate,
    ranks,
    student_quantile,
    two_sided,
    wilson,
)


def chance(deviation: float) -> float:
    return NormalDist().cdf(-deviation)


# ---- Student's t ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("share", "freedom", "table"),
    [(0.95, 1, 6.314), (0.975, 3, 3.182), (0.95, 11, 1.796), (0.975, 30, 2.042)],
)
def test_quantiles_are_those_of_tables(share: float, freedom: float, table: float) -> None:
    assert student_quantile(share, freedom) == pytest.approx(table, abs=6e-4)
    assert student_quantile(1 - share, freedom) == pytest.approx(-table, abs=6e-4)


def test_the_deviate_of_a_quantile_is_that_of_its_share() -> None:
    for freedom in (1, 3, 118):
        for share in (0.6, 0.975, 1 - 1e-9):
            t = student_quantile(share, freedom)
            expected = NormalDist().inv_cdf(share)
            assert normal_deviate(t, freedom) == pytest.approx(expected, rel=1e-6)
            assert two_sided(t, freedom) == pytest.approx(2 * (1 - share), rel=1e-5)


def test_what_no_number_can_say_is_the_most() -> None:
    assert normal_deviate(1e9, 400) == MAX_DEVIATE
    assert normal_deviate(math.inf, 5) == MAX_DEVIATE
    assert fisher_deviate(2000, 2000, 0, 2000) == MAX_DEVIATE


# ---- ranks ----------------------------------------------------------------------------------


def all_ways(first: list[float], second: list[float]) -> float:
    """How often the rank sum is as far from its mean, of all ways to deal the figures."""
    both = np.array(first + second)
    rank = [float((both < one).sum() + (1 + (both == one).sum()) / 2) for one in both]
    middle = len(first) * (len(both) + 1) / 2
    far = abs(sum(rank[: len(first)]) - middle) - 1e-9
    ways = [abs(sum(drawn) - middle) >= far for drawn in combinations(rank, len(first))]
    return sum(ways) / len(ways)


@pytest.mark.parametrize(("m", "n"), [(2, 3), (3, 5), (4, 4), (5, 6)])
def test_mann_whitney_counts_all_ways_of_few_figures(m: int, n: int) -> None:
    rng = np.random.default_rng(m)
    for shift in (0.0, 1.0, 9.0):
        first, second = rng.normal(0, 1, m).tolist(), rng.normal(shift, 1, n).tolist()
        assert mann_whitney(first, second) == pytest.approx(all_ways(first, second))
    assert mann_whitney(first, second) == pytest.approx(least_p(m, n))


def test_ties_do_not_make_few_figures_sure() -> None:
    assert mann_whitney([0.0] * 3, [1.0] * 3) == pytest.approx(0.1)
    assert mann_whitney([1.0], [2.0, 3.0, 4.0]) is None
    assert mann_whitney([1.0, 1.0], [1.0, 1.0]) is None


def test_equal_figures_have_the_mean_of_their_ranks() -> None:
    assert ranks(np.array([3.0, 1, 3, 2])).tolist() == [3.5, 1, 3.5, 2]


ROUNDED = {
    "continuous": lambda rng: rng.normal(0.43, 0.004, 60),
    "two values": lambda rng: rng.choice([0.43, 0.44], 60),
    "rounded": lambda rng: rng.normal(0.43, 0.004, 60).round(2),
    "four to one": lambda rng: rng.choice([0.43, 0.44], 60, p=[0.8, 0.2]),
    "rounded to a tenth of the noise": lambda rng: rng.normal(0.43, 0.04, 60).round(2),
}


@pytest.mark.parametrize("figures", ROUNDED.values(), ids=ROUNDED)
def test_of_figures_that_do_not_change_five_in_a_hundred_are_beyond_1_96(figures: object) -> None:
    """Equal figures were ranked in the order given: 85 to 100 in a hundred were beyond it."""
    assert callable(figures)
    rng = np.random.default_rng(7)
    series = [figures(rng) for _ in range(500)]
    beyond = [rank_sum_deviate(one, 30) > 1.96 for one in series]
    assert 0.025 <= sum(beyond) / len(beyond) <= 0.085  # three standard errors or so
    ps = [mann_whitney(one[:30].tolist(), one[30:].tolist()) for one in series]
    assert 0.02 <= sum(p is not None and p < 0.05 for p in ps) / len(ps) <= 0.085


def test_a_shift_within_two_modes_is_seen() -> None:
    """A middle of all cuts neither mode; the ranks within them tell."""
    rng = np.random.default_rng(5)
    modes = rng.choice((100.0, 110.0), 80) + rng.normal(0, 0.5, 80)
    modes[40:] += 3
    assert rank_sum_deviate(modes, 40) > 3
    assert rank_sum_deviate(rng.permutation(modes), 40) < 3


def test_figures_that_are_all_equal_have_no_order() -> None:
    assert rank_sum_deviate(np.ones(12), 4) == 0.0


# ---- counts ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("high", "count", "other_high", "other"), [(4, 5, 3, 9), (2, 6, 1, 4)])
def test_fisher_counts_all_ways(high: int, count: int, other_high: int, other: int) -> None:
    figures = [1] * (high + other_high) + [0] * (count + other - high - other_high)
    ways = [sum(figures[i] for i in drawn) for drawn in combinations(range(len(figures)), count)]
    expected = min(sum(way >= high for way in ways) / len(ways), 0.5)
    assert chance(fisher_deviate(high, count, other_high, other)) == pytest.approx(expected)
    assert chance(fisher_deviate(60, 60, 0, 3)) == pytest.approx(1 / math.comb(63, 3))


def at_least(hits: int, of: int, rate: float) -> float:
    return sum(math.comb(of, k) * rate**k * (1 - rate) ** (of - k) for k in range(hits, of + 1))


@pytest.mark.parametrize(("failed", "runs"), [(1, 1), (1, 20), (3, 60), (20, 20), (7, 300)])
def test_at_the_least_rate_as_many_fail_with_five_per_cent(failed: int, runs: int) -> None:
    assert at_least(failed, runs, least_rate(failed, runs)) == pytest.approx(0.05)


def test_clean_runs_that_are_needed() -> None:
    assert clean_runs_needed(1, 1) == 59  # a rate of 5 % or more
    assert clean_runs_needed(20, 20) == 2
    rate, needed = least_rate(3, 60), clean_runs_needed(3, 60)
    assert (1 - rate) ** needed <= 0.05 < (1 - rate) ** (needed - 1)


@pytest.mark.parametrize(("failed", "runs"), [(0, 5), (6, 5)])
def test_what_needs_no_cure(failed: int, runs: int) -> None:
    with pytest.raises(ValueError, match="nothing to cure"):
        clean_runs_needed(failed, runs)


def test_the_ends_of_a_share_are_rates_that_fit_it_barely() -> None:
    """Wilson's ends are the rates from which the share is 1.96 standard deviations off."""
    for met, of in [(0, 7), (3, 7), (7, 7), (19, 20), (12, 100)]:
        for rate in wilson(met, of):
            if 1e-9 < rate < 1 - 1e-9:
                off = abs(met / of - rate) / math.sqrt(rate * (1 - rate) / of)
                assert off == pytest.approx(1.959964, abs=1e-5)
    assert wilson(0, 0) == (0.0, 1.0)
    assert wilson(0, 7)[0] == 0.0 and wilson(7, 7)[1] == 1.0


# ---- spreads, many tests --------------------------------------------------------------------


def test_spreads_that_are_alike_but_for_arithmetic_do_not_differ() -> None:
    one = np.log([0.3, 0.1, 0.3, 0.1, 0.1, 0.3])
    assert brown_forsythe(one, one + 0.7) is None
    assert brown_forsythe(one, 2 * one) == pytest.approx(0.0)


def test_of_many_differences_few_are_false() -> None:
    ps = [0.001, 0.04, 0.013, 0.03]
    assert confirmed(ps, 4) == {0, 1, 2, 3}
    assert confirmed(ps, 8) == {0}
    assert confirmed([0.04], 1) == {0} and confirmed([0.04], 2) == set()
    assert confirmed([], 10) == set()
    assert confirmed([0.001, 0.2], 1000) == set()
