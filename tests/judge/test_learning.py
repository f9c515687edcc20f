from __future__ import annotations

import math
import random
from statistics import fmean, median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.judge.learning import learn


def test_the_worse_side_alone_is_bounded() -> None:
    assert learn([100.0, 100.1, 99.9], "higher") == (100.0, -0.02, None)
    assert learn([100.0, 100.1, 99.9], "lower") == (100.0, None, 0.02)


def test_one_sample_gives_ten_percent() -> None:
    assert learn([250.0], "lower") == (250.0, None, 0.1)


@pytest.mark.parametrize(
    ("samples", "tolerance"),
    [
        ([99.0, 101.0], 3.5 * 2 / 1.128 / 100),
        ([98.0, 100.0, 102.0], 3.5 * 4 / 1.693 / 100),
        ([98.0, 100.0, 100.0, 102.0], 3.5 * 4 / 2.059 / 100),
        ([90.0, 99.0, 100.0, 101.0, 102.0], 3.5 * 1.4826 * 1.206 * 1 / 100),
        ([100.0] * 6 + [110.0] * 4, 3.5 * 1.2533 * 4 / 100),  # a coarse clock: MAD is 0
    ],
)
def test_the_formula(samples: list[float], tolerance: float) -> None:
    value, lower, upper = learn(samples, "higher")
    assert (value, upper) == (100.0, None)
    assert lower == pytest.approx(-tolerance, abs=1.01e-4)


def test_nearly_the_whole_value_is_the_most_that_is_allowed() -> None:
    value, lower, _ = learn([84.0, 116.0], "higher")
    assert value == 100
    assert lower == pytest.approx(-3.5 * 32 / 1.128 / 100, abs=1.01e-4)
    assert learn([-84.0, -116.0], "higher")[:2] == (-value, lower), "of a negative figure, too"
    with pytest.raises(ValueError, match="scatter too much"):
        learn([83.0, 117.0], "higher")


def test_an_outlier_moves_nothing() -> None:
    quiet = [100 + 0.01 * i for i in range(20)]
    assert learn(quiet, "higher")[1] == -0.02
    assert learn([*quiet, 5.0], "higher")[1] == -0.02


@pytest.mark.parametrize("count", range(2, 13))
def test_three_and_a_half_deviations_whatever_the_number_of_samples(count: int) -> None:
    source = random.Random(count)
    learned = [
        learn([source.gauss(1000, 20) for _ in range(count)], "lower")[2] for _ in range(3000)
    ]
    # 3.5 * 20 / 1000; the least of 2 % lifts the mean of the smallest counts a little
    assert fmean(x for x in learned if x) == pytest.approx(0.07, rel=0.12 if count < 4 else 0.05)


@pytest.mark.parametrize(
    ("samples", "said"),
    [
        ([], "one figure or more"),
        ([1.0, math.nan], "1 of 2 figures: not a finite number"),
        ([1.0, math.inf], "1 of 2 figures: not a finite number"),
        ([1e308] * 2, "2 of 2 figures: beyond 1e.150"),
        ([0.0], "median of the figures is 0"),
        ([1.0, 1000.0], "2 figures scatter too much"),
        ([80.0, 120.0], "they would allow 124 %"),
    ],
)
def test_nothing_to_learn_from(samples: list[float], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        learn(samples, "higher")


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=30))
def test_a_learned_reference_is_a_valid_one_or_a_value_error(samples: list[float]) -> None:
    try:
        value, lower, upper = learn(samples, "higher")
    except ValueError:
        return
    assert upper is None
    assert lower is not None
    assert -1 < lower <= -0.02
    assert math.isclose(value, median(samples), rel_tol=1e-5)
