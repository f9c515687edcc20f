from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial.judge.statistics.spread import find

LATENCIES = np.array([5.46, 6.09, 6.74])


@pytest.mark.parametrize("count", [120, 1000, 20_000])
def test_latency_by_core_pair_has_three_modes(count: int) -> None:
    rng = np.random.default_rng(count)
    member = rng.choice(3, count, p=[0.5, 0.3, 0.2])
    found = find((LATENCIES[member] + rng.normal(0, 0.08, count)).tolist())
    assert [mode.centre for mode in found] == pytest.approx(LATENCIES, abs=0.05)
    assert [mode.share for mode in found] == pytest.approx([0.5, 0.3, 0.2], abs=0.1)


def test_modes_without_noise() -> None:
    found = find([5.46, 6.09, 6.74] * 20)
    assert [(mode.centre, mode.count) for mode in found] == [(x, 20) for x in LATENCIES]
    assert all(mode.deviation == pytest.approx(0, abs=1e-12) for mode in found)


SHAPES = {
    "normal": lambda rng, n: rng.normal(100, 2, n),
    "skewed": lambda rng, n: rng.gamma(2, 1, n),
    "log-normal": lambda rng, n: np.exp(rng.normal(0, 0.5, n)),
    "flat": lambda rng, n: rng.random(n),
    "heavy": lambda rng, n: rng.standard_t(3, n),
    "coarse clock": lambda rng, n: np.round(rng.normal(50, 2, n)),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_one_mode_of_any_shape_stays_one(shape: str) -> None:
    rng = np.random.default_rng(8)
    several = sum(
        len(find(SHAPES[shape](rng, n))) > 1 for n in (20, 40, 120, 500) for _ in range(25)
    )
    assert several <= 5


def test_far_figures_are_outlying_and_no_mode() -> None:
    rng = np.random.default_rng(1)
    found = find([*rng.normal(100, 1, 400), 300.0, 310.0, 5.0])
    (mode,) = found
    assert mode.high < 110
    assert mode.count == 400


def test_too_few_are_one_mode() -> None:
    assert find([]) == find([math.nan]) == []
    assert [mode.count for mode in find([1.0, 5.0, 1.0])] == [3]
    assert find([2.0])[0].deviation is None


@settings(max_examples=80, deadline=None)
@given(st.lists(st.floats(width=64), max_size=80))
def test_any_sample_is_survived(values: list[float]) -> None:
    found = find(values)
    assert sum(m.count for m in found) <= sum(map(math.isfinite, values))
    assert [m.centre for m in found] == sorted(m.centre for m in found)
