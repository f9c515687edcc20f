from __future__ import annotations

import pytest

from seatrial.judge.statistics.significance import hides, step


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], 1.0),
        ([5700.0, 5800.0], 1.0),
        ([2.0, 2.5, 3.0], 0.1),
        ([1e308, 0.25], 0.01),
        ([1e-7], 1e-7),
        ([5e-324], 5e-324),
    ],
)
def test_the_step_is_the_last_place_of_any_figure(values: list[float], expected: float) -> None:
    assert step(values) == pytest.approx(expected)


def test_one_step_may_be_rounding_alone() -> None:
    assert hides([2.0] * 4, [3.0] * 4, 1.0) == 1.0
    assert hides([2.0, 2.0, 3.0], [3.0] * 3, 1.0) == 1.0
    assert hides([2.1, 2.1], [2.2, 2.2], 2.2 - 2.1) == 0.1


def test_more_than_a_step_or_noise_that_shows_is_no_rounding() -> None:
    assert hides([2.0] * 4, [4.0] * 4, 2.0) is None
    assert hides([1.0, 2.0, 3.0], [2.0, 3.0, 4.0], 1.0) is None
    assert hides([2.00, 2.01], [2.12, 2.13], 0.12) is None
