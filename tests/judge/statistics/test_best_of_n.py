"""The best of n figures and the bound of the best of n further ones."""

from __future__ import annotations

import random

import pytest

from seatrial.judge.statistics.spread import best_of


def test_the_bound_is_the_figure_of_a_rank() -> None:
    times = [10.4, 10.1, 11.0, 10.2, 10.9]
    assert best_of(times, "lower") == (5, 10.1, 10.9)
    assert best_of(times, "higher") == (5, 11.0, 10.2)
    assert best_of([3.0, 2.0, 1.0], "lower") == (3, 1.0, 3.0)


@pytest.mark.parametrize("values", [[1.0], [1.0, 2.0]])
def test_one_or_two_figures_have_no_bound(values: list[float]) -> None:
    assert best_of(values, "lower") == (len(values), 1.0, None)


def test_no_figure_has_no_best() -> None:
    with pytest.raises(ValueError, match="no best"):
        best_of([], "lower")


@pytest.mark.parametrize("n", [3, 5, 10])
def test_the_best_of_further_figures_keeps_to_the_bound(n: int) -> None:
    """In skewed noise, at least 95 % of 4,000 pairs, less three standard errors."""
    rng = random.Random(n)
    kept = 0
    for _ in range(4000):
        first, second = ([rng.expovariate(1) for _ in range(n)] for _ in range(2))
        bound = best_of(first, "lower").bound
        assert bound is not None
        kept += min(second) <= bound
    assert kept / 4000 >= 0.95 - 3 * (0.05 * 0.95 / 4000) ** 0.5
