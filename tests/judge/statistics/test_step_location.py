from __future__ import annotations

import numpy as np
import pytest

from seatrial.judge.statistics.changes import likely


def test_a_plain_step_is_where_it_is() -> None:
    rng = np.random.default_rng(1)
    figures = np.r_[rng.normal(100, 1, 41), rng.normal(90, 1, 20)]
    assert likely(figures, 1.0, 3) == 41
    assert likely(figures[::-1], 1.0, 3) == 20
    assert likely(1e-9 * figures, 1e-18, 3) == 41
    assert likely(figures, 5e-324, 3) == 41  # all other places are impossible


def test_where_nothing_tells_it_is_the_middle() -> None:
    figures = np.random.default_rng(2).normal(100, 1, 101)
    assert likely(figures, 1e6, 3) == pytest.approx(50, abs=1)
    assert likely(figures[:6], 1.0, 3) == 3


def test_it_errs_less_than_the_likeliest_place() -> None:
    rng = np.random.default_rng(3)
    off: list[tuple[int, int]] = []
    for _ in range(300):
        at = int(rng.integers(30, 91))
        figures = rng.normal(0, 1, 120)
        figures[at:] += 0.7
        first = np.arange(3, 118)
        sums = np.cumsum(figures - figures.mean())[first - 1]
        likeliest = int(first[(sums**2 / (first * (120 - first))).argmax()])
        off.append((abs(likely(figures, 1.0, 3) - at), abs(likeliest - at)))
    errors = np.array(off).mean(axis=0)
    assert errors[0] < 0.9 * errors[1]
