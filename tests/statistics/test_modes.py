from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial.statistics.modes import find

LATENCIES = np.array([5.46, 6.09, 6.74])


@pytest.mark.parametrize("count", [120, 1000, 20_000])
def test_latency_by_core_pair_has_three_modes(count: int) -> None:
    rng = np.random.default_rng(count)
    member = rng.choice(3, count, p=[0.5, 0.3, 0.2])
    found = find((LATENCIES[member] + rng.normal(0, 0.08, count)).tolist())
    assert [mode.centre for mode in found.modes] == pytest.approx(LATENCIES, abs=0.05)
    assert [mode.share for mode in found.modes] == pytest.approx([0.5, 0.3, 0.2], abs=0.1)


def test_modes_without_noise() -> None:
    found = find([5.46, 6.09, 6.74] * 20)
    assert [(mode.centre, mode.count) for mode in found.modes] == [(x, 20) for x in LATENCIES]
    assert all(mode.deviation == pytest.approx(0, abs=1e-12) for mode in found.modes)


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
        len(find(SHAPES[shape](rng, n)).modes) > 1 for n in (20, 40, 120, 500) for _ in range(25)
    )
    assert several <= 5


def test_far_figures_are_outlying_and_no_mode() -> None:
    rng = np.random.default_rng(1)
    found = find([*rng.normal(100, 1, 400), 300.0, 310.0, 5.0])
    assert len(found.modes) == 1
    assert found.modes[0].high < 110
    assert sorted(found.outlying) == [5.0, 300.0, 310.0]


def test_too_few_are_told_as_they_are() -> None:
    assert find([]).why == "there is no finite figure"
    assert find([math.nan]).left_out == 1
    found = find([1.0, 5.0, 1.0])
    assert "of 3 figures modes cannot be told apart" in found.why
    assert [mode.count for mode in found.modes] == [3]
    assert find([2.0]).modes[0].deviation is None


@settings(max_examples=80, deadline=None)
@given(st.lists(st.floats(width=64), max_size=80))
def test_any_sample_is_survived(values: list[float]) -> None:
    found = find(values)
    assert found.count == sum(map(math.isfinite, values))
    assert sum(m.count for m in found.modes) + len(found.outlying) == found.count
    assert [m.centre for m in found.modes] == sorted(m.centre for m in found.modes)
