from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial.judge.statistics.significance import enough, least_p
from seatrial.judge.statistics.two_samples import _side, compare, interval

BEFORE, AFTER = [5.1, 5.2, 5.0, 5.15], [5.6, 5.5, 5.7, 5.65]


def test_the_direction_decides_what_is_worse() -> None:
    told = compare(BEFORE, AFTER, "lower")
    assert told.verdict == "worse"
    assert told.ratio == pytest.approx(5.625 / 5.125)
    assert told.low is not None and told.high is not None
    assert told.ratio is not None
    assert 1 < told.low < told.ratio < told.high
    assert told.p == pytest.approx(2 / 70)
    assert compare(BEFORE, AFTER, "higher").verdict == "better"
    assert compare(AFTER, BEFORE, "lower").verdict == "better"


def test_same_needs_an_interval_within_the_least_effect() -> None:
    quiet = [100.0, 100.1, 99.9, 100.05, 99.95]
    assert compare(quiet, [x * 1.001 for x in quiet], "higher").verdict == "same"
    noisy = [100.0, 110.0, 90.0, 105.0, 95.0]
    told = compare(noisy, noisy, "higher")
    assert told.verdict == "unclear"
    assert told.reason == "no change was found; one of less than 16 % could not be seen"
    assert told.unseen == pytest.approx(0.158, abs=0.001) and told.hides(0.02)
    assert told.needed > 100 and not told.hides(0.2)


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        ([], [], "no finite figure of either side"),
        ([1.0], [math.nan], "no finite figure of the second side"),
        ([1.0], [2.0], "one figure has no spread"),
        ([1.0, 1.1], [2.0, 2.1], "2 and 2 figures can show no difference"),
        ([1.0, 1.01, 1.02], [1.08, 1.09, 1.1], "3 and 3 figures can show no difference under 10 %"),
        ([1.0, 1.01, 1.02], [1.0, 1.2, 1.3], "no change was found; one of less than 39 %"),
        ([1.0, 1.01, 1.02], [1.02, 1.15, 1.17, 1.18], "3 and 4 figures whose ranges meet"),
        ([0.0] * 4, [1.0] * 4, "a ratio is of figures above 0"),
        ([0.0] * 4, [0.0] * 4, "a ratio is of figures above 0"),
        ([-1.0] * 4, [-2.0] * 4, "a ratio is of figures above 0"),
        ([100.0] * 5, [100.5, 101.6, 101.7, 102.5, 102.6], "under the least effect"),
        ([2.0] * 5, [3.0] * 5, "figures rounded to steps of 1 may differ so though equal"),
        ([5.0] * 2, [5.0] * 2, "2 and 2 figures that agree may do so by chance: it takes 2 and 8"),
        ([5.0] * 3, [5.0] * 4, "3 and 4 figures that agree may do so by chance: it takes 3 and 5"),
    ],
)
def test_what_cannot_be_concluded_is_told(
    first: list[float], second: list[float], said: str
) -> None:
    told = compare(first, second, "higher")
    assert told.verdict == "unclear"
    assert said in told.reason


@pytest.mark.parametrize(("before", "after"), [(1e200, 1e-200), (1e-200, 1e200), (1.7e308,) * 2])
@pytest.mark.parametrize("count", [1, 4])
def test_medians_whose_ratio_no_number_holds_are_not_compared(
    before: float, after: float, count: int
) -> None:
    told = compare([before] * 2 * count, [after] * 2 * count, "higher")
    assert (told.verdict, told.ratio, told.gain("higher")) == ("unclear", None, None)
    assert "no ratio that a number can hold" in told.reason


def test_one_figure_has_no_p_value() -> None:
    assert compare([1.0], [2.0], "higher").p is None


def test_equal_medians_of_equal_figures_are_the_same() -> None:
    told = compare([5.0] * 4, [5.0] * 4, "higher")
    assert (told.verdict, told.ratio, told.p) == ("same", 1.0, None)


def test_both_directions_are_alike_at_the_threshold() -> None:
    """0.93 is 7 % less than 1, though 1 - 0.93 is less than 0.07 as numbers go; 1 is 7.5 % more."""
    for percent, noise in product(range(1, 60), (0.0, 0.01)):
        shape = [1 + noise * i for i in (-1, -0.5, -0.3, 0, 0.3, 0.5, 1)]
        base = [100.0] * 7
        up, down = (
            compare(base, [(100 + sign * percent) * x for x in shape], "higher", percent / 100)
            for sign in (1, -1)
        )
        if noise:
            assert (up.verdict, down.verdict) == ("better", "worse"), percent
        else:
            assert up.verdict == "same" and down.verdict != "same", percent


def test_the_interval_covers_the_truth_and_noise_is_not_told() -> None:
    rng = np.random.default_rng(6)
    pairs = [rng.normal(100, 3, (2, 12)).tolist() for _ in range(300)]
    told = [compare(first, second, "higher") for first, second in pairs]
    assert sum(c.low is not None and c.low <= 1 <= (c.high or 0) for c in told) >= 0.92 * 300
    assert sum(c.verdict in ("better", "worse") for c in told) <= 0.07 * 300


def test_the_same_samples_give_the_same_interval() -> None:
    assert interval(BEFORE, AFTER) == interval(BEFORE[::-1], AFTER)


@pytest.mark.parametrize("n", [3, 4, 5, 8])
def test_the_word_is_the_same_in_both_directions(n: int) -> None:
    rng = np.random.default_rng(n)
    turned = {"better": "worse", "worse": "better"}
    for effect, noise in product((0.0, 0.02, 0.1, 0.11), (0.001, 0.02, 0.05)):
        shift = np.array([[0.0], [effect]])
        first, second = np.exp(shift + rng.normal(0, noise, (2, n))).tolist()
        one, other = compare(first, second, "lower"), compare(second, first, "lower")
        assert turned.get(one.verdict, one.verdict) == other.verdict
        assert (one.reason, one.needed) == (other.reason, other.needed)
        assert one.low == pytest.approx(1 / (other.high or 0))


def test_how_many_figures_it_takes_is_told() -> None:
    for first in range(2, 6):
        assert least_p(first, enough(first)) < 0.05 <= least_p(first, enough(first) - 1)
    why = compare([1, 1.01], [2, 2.01, 2.02], "lower").reason
    assert why.endswith("it takes 2 and 8, or 4 on either side")


@pytest.mark.parametrize("second", [[1.8, 1.82, 1.85], [1.8, 1.82, 1.85, 1.86]])
def test_three_figures_show_a_large_difference(second: list[float]) -> None:
    told = compare([1.0, 1.01, 1.02], second, "lower")
    assert (told.verdict, told.reason) == ("worse", f"of 3 and {len(second)} runs")
    assert compare(second, [1.0, 1.01, 1.02], "lower").verdict == "better"


@pytest.mark.parametrize("noise", [0.01, 0.05, 0.2])
@pytest.mark.parametrize("shape", ["normal", "skewed", "two modes"])
def test_three_equal_figures_are_rarely_told_apart(noise: float, shape: str) -> None:
    """Of equal sides 5 % at most are told to differ, in noise of any shape."""
    rng = np.random.default_rng(3)
    draws: dict[str, Any] = {
        "normal": rng.normal(0, 1, (400, 2, 3)),
        "skewed": rng.exponential(1, (400, 2, 3)),
        "two modes": rng.integers(0, 2, (400, 2, 3)) * 5 + rng.normal(0, 0.3, (400, 2, 3)),
    }
    pairs = np.exp(noise * draws[shape]).tolist()
    told = [compare(first, second, "higher").told for first, second in pairs]
    assert sum(told) <= 0.05 * len(told)


def test_equal_zeros_hide_nothing_and_others_do() -> None:
    assert not compare([0.0] * 4, [0.0] * 4, "lower").hides(0.02)
    assert compare([0.0] * 4, [1.0] * 4, "lower").hides(0.02)
    assert compare([2.0] * 5, [3.0] * 5, "lower").hides(0.4)


figures = st.lists(st.floats(width=64), max_size=12)


@settings(max_examples=80, deadline=None)
@given(figures, figures)
def test_any_samples_are_survived(first: list[float], second: list[float]) -> None:
    told = compare(first, second, "lower")
    assert told.p is None or 0 < told.p <= 1
    assert (told.verdict == "unclear") == bool(told.reason)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 9, 40])
def test_middle_places_of_resamples_are_as_if_all_were_drawn(count: int) -> None:
    """Without the figures that are not in the middle: against resamples drawn one by one."""
    rng = np.random.default_rng(7)
    resamples = np.sort(rng.integers(0, count, (100_000, count)), axis=1)
    all_drawn = resamples[:, [(count - 1) // 2, count // 2]].T
    ours = np.concatenate([_side.__wrapped__(count, side) for side in range(25)], axis=1)
    assert (ours[0] <= ours[1]).all() and ours.min() >= 0 and ours.max() < count
    for both in ((ours[0] == ours[1]), (all_drawn[0] == all_drawn[1])):
        assert both.mean() == pytest.approx((all_drawn[0] == all_drawn[1]).mean(), abs=0.01)
    for one, other in zip(ours, all_drawn, strict=True):
        assert one.mean() == pytest.approx(other.mean(), abs=0.01 * count)
        assert one.std() == pytest.approx(other.std(), abs=0.01 * count)
