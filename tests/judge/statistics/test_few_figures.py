"""Intervals of ratios of few figures, beside SciPy's of Welch's test."""

from __future__ import annotations

import math
import random
from statistics import median

import numpy as np
import pytest
import scipy
from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial.judge.statistics.two_samples import are_few, ratio_interval


@pytest.mark.parametrize(("m", "n"), [(3, 3), (3, 4), (4, 4), (4, 12)])
def test_it_is_welchs_on_logarithms(m: int, n: int) -> None:
    rng = random.Random(m * n)
    for _ in range(20):
        one = [10 * math.exp(rng.gauss(0, 0.03)) for _ in range(m)]
        other = [14 * math.exp(rng.gauss(0, 0.05)) for _ in range(n)]
        exact = scipy.stats.ttest_ind(
            np.log(other), np.log(one), equal_var=False
        ).confidence_interval()
        low, high = (math.log(end) for end in ratio_interval([other], [one], 0.95))
        width = exact.high - exact.low
        assert low == pytest.approx(exact.low, abs=0.03 * width)
        assert high == pytest.approx(exact.high, abs=0.03 * width)


few = st.lists(st.floats(1e-3, 1e3), min_size=2, max_size=4)


@settings(max_examples=60, deadline=None)
@given(few, st.lists(st.floats(1e-3, 1e3), min_size=2, max_size=40))
def test_it_holds_the_ratio_of_medians(one: list[float], other: list[float]) -> None:
    low, high = ratio_interval([other], [one], 0.95)
    assert low * (1 - 1e-9) <= median(other) / median(one) <= high * (1 + 1e-9)
    again = ratio_interval([one], [other], 0.95)
    assert (1 / again[1], 1 / again[0]) == pytest.approx((low, high))


def test_figures_without_spread_have_no_width_and_those_without_logarithms_are_refused() -> None:
    assert ratio_interval([[6.0] * 3], [[3.0] * 3], 0.95) == pytest.approx((2.0, 2.0))
    assert ratio_interval([[1e300, 1e-300]], [[1.0, 1.0]], 0.95)[1] == math.inf
    assert are_few([[1.0] * 4, [1.0] * 9]) and not are_few([[1.0] * 5] * 2)
    assert not are_few([[1.0, 0.0], [1.0, 2.0]])
