"""Bands of a network: planted levels, nulls, an odd pair, and figures of papers."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from seatrial.judge.statistics.bands import Band, Pair, expected_mean, judge, median_interval

LEVELS = ["router", "chassis", "system"]


DELAYS = (50, 100, 200)


def repeated(
    seed: int, delays: tuple[int, int, int], disturbed: float, slow: float = 0.0
) -> list[Pair]:
    """Return the pairs of eight nodes by 11 repetitions, of which a share is disturbed: by 200 us
    in the mean. The pair n2-n6 is slower."""
    rng = np.random.default_rng(seed)
    found = []
    for a, b in combinations(range(8), 2):
        height = 0 if a // 2 == b // 2 else 1 if a // 4 == b // 4 else 2
        hit = rng.random(11) < disturbed
        us = 11 + delays[height] + np.abs(rng.normal(0, 1, 11)) + hit * rng.exponential(200, 11)
        us += slow * ((a, b) == (2, 6))
        interval = median_interval(sorted(us.tolist()))
        figure = float(np.median(us))
        found.append(Pair(f"n{a}", f"n{b}", LEVELS[height], (1, 2, 4)[height], figure, interval))
    return found


def network(seed: int, ratios: tuple[float, ...], node_noise: float = 0.0) -> list[Pair]:
    """Return the pairs of eight nodes, two a router, four a chassis."""
    rng = np.random.default_rng(seed)
    nodes = rng.normal(0, node_noise, 8)
    found = []
    for a, b in combinations(range(8), 2):
        height = 0 if a // 2 == b // 2 else 1 if a // 4 == b // 4 else 2
        value = 50 * ratios[height] * np.exp(nodes[a] + nodes[b] + rng.normal(0, 0.03))
        found.append(Pair(f"n{a}", f"n{b}", LEVELS[height], (1, 2, 4)[height], float(value)))
    return found


def test_planted_levels_are_told_in_order_with_ratio_and_hop() -> None:
    right = 0
    for seed in range(25):
        found = judge(network(seed, (1, 2, 4)), LEVELS, "lower")
        assert [band.level for band in found.bands] == LEVELS
        assert [step.ratio for step in found.steps] == pytest.approx([2, 2], rel=0.1)
        assert found.hop is not None and found.hop.low <= found.hop.cost <= found.hop.high
        assert found.hop.cost == pytest.approx(50, rel=0.15)
        right += all(step.proven for step in found.steps) and not found.odd
    assert right >= 24


@pytest.mark.parametrize("node_noise", [0.0, 0.1])
def test_without_levels_no_band_is_claimed(node_noise: float) -> None:
    claimed = odd = 0
    for seed in range(150):
        found = judge(network(seed, (1, 1, 1), node_noise), LEVELS, "lower")
        claimed += any(step.proven for step in found.steps)
        odd += bool(found.odd)
    assert claimed <= 12
    assert odd <= 8


def test_one_odd_pair_is_named_and_no_other() -> None:
    for better, factor in (("lower", 2.5), ("higher", 0.4)):
        pairs = network(3, (1, 2, 4) if better == "lower" else (4, 2, 1))
        worse = pairs[7]._replace(value=pairs[7].value * factor)
        found = judge([*pairs[:7], worse, *pairs[8:]], LEVELS, better)  # type: ignore[arg-type]
        assert [(one.first, one.second) for one in found.odd] == [(worse.first, worse.second)]


@pytest.mark.parametrize("disturbed", [0.02, 0.2, 0.4])
def test_disturbed_repetitions_name_no_pair(disturbed: float) -> None:
    right = nulls = 0
    for seed in range(50):
        pairs = repeated(seed, DELAYS, disturbed, slow=300)
        odd = judge(pairs, LEVELS, "lower").odd
        right += [(one.first, one.second) for one in odd] == [("n2", "n6")]
        nulls += not judge(repeated(seed, (0, 0, 0), disturbed), LEVELS, "lower").odd
    assert right >= 49
    assert nulls >= 48


def test_pairs_without_intervals_are_judged_by_their_figures() -> None:
    pairs = [one._replace(interval=None) for one in repeated(3, DELAYS, 0.02, slow=300)]
    odd = judge(pairs, LEVELS, "lower").odd
    assert [(one.first, one.second) for one in odd] == [("n2", "n6")]


def test_a_small_level_whose_pairs_differ_more_than_those_of_others() -> None:
    pairs = repeated(1, DELAYS, 0.0)
    apart = [11, 0, -7, 4]  # us, of the four pairs of a router
    small = [one for one in pairs if one.level == "router"]
    for one, us in zip(small, apart, strict=True):
        at = pairs.index(one)
        low, high = one.interval or (0, 0)
        pairs[at] = one._replace(value=one.value + us, interval=(low + us, high + us))
    assert judge(pairs, LEVELS, "lower").odd == []


def test_mean_of_the_three_modes_of_franklin() -> None:
    assert expected_mean([5.46, 6.09, 6.74], [1, 6, 9]) == pytest.approx(6.42, abs=0.005)


def test_interval_of_a_median() -> None:
    assert median_interval([1, 2, 3, 4, 5]) is None
    assert median_interval([1, 2, 3, 4, 5, 6]) == (1, 6)
    assert median_interval(list(range(1, 26))) == (8, 18)


def test_few_pairs_are_told_without_a_test() -> None:
    pairs = [Pair("a", "b", "router", 1, 1.61), Pair("a", "c", "system", 2, 1.58)]
    found = judge(pairs, LEVELS, "lower")
    assert found.bands[0] == Band("router", 1, 1.61, None, None, 1)
    assert [step.p for step in found.steps] == [None]
    assert found.hop is None
