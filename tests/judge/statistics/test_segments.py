from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from seatrial.judge.statistics import changes
from seatrial.judge.statistics.changes import starts

Array = NDArray[np.float64]


def cost(series: Array, pieces: list[int], penalty: float) -> float:
    ends = [*pieces[1:], len(series)]
    parts = [series[a:b] for a, b in zip(pieces, ends, strict=True)]
    return sum(float(np.abs(p - np.median(p)).sum()) + penalty for p in parts) - penalty


def least_cost(series: Array, penalty: float, shortest: int) -> float:
    best = [-penalty] + [np.inf] * len(series)
    for end in range(shortest, len(series) + 1):
        for start in range(end - shortest + 1):
            part = series[start:end]
            away = float(np.abs(part - np.median(part)).sum())
            best[end] = min(best[end], best[start] + penalty + away)
    return float(best[-1])


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(-20, 20), min_size=1, max_size=24),
    st.floats(0.5, 20),
    st.integers(1, 4),
)
def test_the_fit_is_the_best_there_is(values: list[int], penalty: float, shortest: int) -> None:
    series = np.array(values, dtype=float)
    pieces = starts(series, penalty, shortest)
    lengths = np.diff([*pieces, len(series)])
    assert pieces[0] == 0
    if len(series) < 2 * shortest:
        assert pieces == [0]
        return
    assert (lengths >= shortest).all()
    assert abs(cost(series, pieces, penalty) - least_cost(series, penalty, shortest)) < 1e-6


def test_of_a_long_series_the_levels_are_rounded() -> None:
    rng = np.random.default_rng(1)
    series = rng.normal(100, 1, 3 * changes.MAX_LEVELS)
    series[2000:] += 2
    pieces = starts(series, 25.0, 3)
    assert len(pieces) == 2
    assert abs(pieces[1] - 2000) <= 3
