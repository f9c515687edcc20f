"""Intervals by the last allocation alone."""

from __future__ import annotations

import math

import numpy as np
import pytest

from seatrial.judge.statistics.sequential import AllocationNoise
from seatrial.lazy import Floats


def allocations(
    rng: np.random.Generator, own: float, noise: float, settings: int = 12
) -> list[Floats]:
    """Three allocations of equal settings: 1, 4 and 8 rounds."""
    return [
        rng.normal(0, 0.05)
        + rng.normal(0, own, (settings, 1))
        + rng.normal(0, noise, (settings, rounds))
        + rng.normal(0, 0.02, rounds)
        for rounds in (1, 4, 8)
    ]


@pytest.mark.parametrize(("own", "noise"), [(0.0, 0.02), (0.01, 0.01), (0.01, 0.002)])
def test_an_end_misses_the_truth_as_often_as_it_says(own: float, noise: float) -> None:
    """Settings that are faster in one allocation than in another one are no proof."""
    rng = np.random.default_rng(1)
    missed, trials = 0, 200
    for _ in range(trials):
        blocks = allocations(rng, own, noise)
        found = AllocationNoise.of(blocks)
        assert found is not None
        missed += found.contrast(blocks[-1][0] - blocks[-1][1], 0.05).high < 0
    assert 0.005 * trials <= missed <= 0.085 * trials


def test_both_parts_of_the_noise_are_found() -> None:
    rng = np.random.default_rng(2)
    found = AllocationNoise.of(allocations(rng, 0.03, 0.005, settings=200))
    assert found is not None
    assert math.sqrt(found.of_run) == pytest.approx(0.005, rel=0.15)
    assert math.sqrt(found.of_allocation) == pytest.approx(0.03, rel=0.15)
    none = AllocationNoise.of(allocations(rng, 0.0, 0.02, settings=200))
    assert none is not None
    assert math.sqrt(none.of_allocation) < 0.005


def test_more_rounds_and_a_greater_error_make_it_narrower() -> None:
    found = AllocationNoise.of(allocations(np.random.default_rng(3), 0.0, 0.02))
    assert found is not None
    wide = found.contrast(np.full(4, 0.1), 0.01)
    assert wide.centre == pytest.approx(0.1)
    assert wide.low < wide.centre < wide.high
    for narrow in (found.contrast(np.full(8, 0.1), 0.01), found.contrast(np.full(4, 0.1), 0.05)):
        assert wide.low < narrow.low < narrow.high < wide.high


def test_one_wild_run_moves_it_little() -> None:
    found = AllocationNoise.of(allocations(np.random.default_rng(4), 0.0, 0.01))
    assert found is not None
    calm, wild = np.zeros(8), np.array([5.0, *[0.0] * 7])
    assert abs(found.contrast(wild, 0.05).centre - found.contrast(calm, 0.05).centre) < 0.006


def test_settings_that_two_allocations_do_not_share_tell_nothing() -> None:
    blocks = allocations(np.random.default_rng(5), 0.0, 0.01)
    assert AllocationNoise.of(blocks[:2]) is None  # one round, then four
    blocks[1][:6] = np.nan
    blocks[2][6:] = np.nan
    assert AllocationNoise.of(blocks) is None
    assert AllocationNoise.of([]) is None


def test_gaps_are_left_out() -> None:
    blocks = allocations(np.random.default_rng(6), 0.0, 0.01)
    blocks[1][3, 2] = blocks[2][5, 0] = np.nan
    blocks[2][7] = np.nan
    found = AllocationNoise.of(blocks)
    assert found is not None
    assert math.sqrt(found.of_run) == pytest.approx(0.01, rel=0.4)
