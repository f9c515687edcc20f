"""The best piecewise constant fit costs as little as the one that ruptures' PELT finds."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from seatrial.judge.statistics.changes import starts

Array = NDArray[np.float64]


def cost(series: Array, pieces: list[int], penalty: float) -> float:
    ends = [*pieces[1:], len(series)]
    parts = [series[a:b] for a, b in zip(pieces, ends, strict=True)]
    away = sum(float(np.abs(part - np.median(part)).sum()) for part in parts)
    return away + penalty * (len(pieces) - 1)


def theirs(series: Array, penalty: float, shortest: int) -> list[int]:
    import ruptures  # takes a second, which not each process of a parallel run needs to spend

    search = ruptures.Pelt(model="l1", min_size=shortest, jump=1).fit(series)
    return [0, *search.predict(penalty)[:-1]]


def stepped(rng: np.random.Generator) -> Array:
    """A series of 30 to 70 figures with up to four steps, in noise of one of three kinds."""
    count = int(rng.integers(30, 70))
    series = np.zeros(count)
    for at in rng.integers(3, count - 3, int(rng.integers(0, 5))):
        series[at:] += rng.normal(0, 3)
    kind = rng.integers(3)
    noise = rng.normal(0, 1, count)
    if kind == 1:
        noise = rng.standard_t(2, count)
    elif kind == 2:
        noise = np.where(rng.random(count) < 0.3, 2.0, 0.0) + rng.normal(0, 0.1, count)
    return np.asarray(series + noise, dtype=float)


@pytest.mark.parametrize("seed", range(10))
def test_the_fit_costs_as_little(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(4):
        series, penalty = stepped(rng), float(rng.uniform(1, 15))
        shortest = int(rng.integers(2, 6))
        ours = starts(series, penalty, shortest)
        known = theirs(series, penalty, shortest)
        # Several fits may be equally good: a figure between two levels is as far from both.
        assert cost(series, ours, penalty) == pytest.approx(cost(series, known, penalty))
        assert min(np.diff([*ours, len(series)])) >= shortest
