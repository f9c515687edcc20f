from __future__ import annotations

import math
from itertools import combinations
from statistics import NormalDist

import numpy as np
import pytest

from seatrial.statistics.rank_tests import MAX_DEVIATE, deviate, fisher, wilcoxon


def chance(deviation: float) -> float:
    return NormalDist().cdf(-deviation)


def test_few_figures_prove_little_however_far_apart() -> None:
    assert chance(deviate(np.array([1.0, 1, 1, 900, 900, 900]), 3, 450)) == pytest.approx(1 / 20)
    long = np.r_[np.arange(60.0), [900, 901, 902]]
    assert chance(deviate(long, 60, 450)) == pytest.approx(1 / math.comb(63, 3))
    assert chance(deviate(long[::-1].copy(), 3, 450)) == pytest.approx(1 / math.comb(63, 3))


@pytest.mark.parametrize(("high", "count", "other_high", "other"), [(4, 5, 3, 9), (2, 6, 1, 4)])
def test_fisher_counts_all_ways(high: int, count: int, other_high: int, other: int) -> None:
    figures = [1] * (high + other_high) + [0] * (count + other - high - other_high)
    ways = [sum(figures[i] for i in drawn) for drawn in combinations(range(len(figures)), count)]
    expected = sum(way >= high for way in ways) / len(ways)
    found = fisher(high, count, other_high, other)
    assert found == pytest.approx(-NormalDist().inv_cdf(min(expected, 0.5)))


def test_what_no_number_can_say_is_the_most() -> None:
    assert fisher(2000, 2000, 0, 2000) == MAX_DEVIATE


def test_a_shift_within_two_modes_is_seen() -> None:
    """The middle cuts neither mode; the ranks within them tell."""
    rng = np.random.default_rng(5)
    noise = rng.choice((100.0, 110.0), 80) + rng.normal(0, 0.5, 80)
    noise[40:] += 3
    middle = float(np.median(noise[:40]) + np.median(noise[40:])) / 2
    assert wilcoxon(noise, 40) > 3
    assert deviate(noise, 40, middle) >= wilcoxon(noise, 40)
    assert wilcoxon(rng.permutation(noise), 40) < 3
