from __future__ import annotations

import math
import random
from statistics import fmean, variance

import pytest

from seatrial.judge.chance import confirmed, student_p


def test_of_many_differences_few_are_false() -> None:
    ps = [0.001, 0.04, 0.013, 0.03]
    assert confirmed(ps, 4) == {0, 1, 2, 3}
    assert confirmed(ps, 8) == {0}
    assert confirmed([0.04], 1) == {0} and confirmed([0.04], 2) == set()
    assert confirmed([], 10) == set()


def tail(t: float, freedom: int) -> float:
    """The upper tail of Student's distribution, by the integral of its density."""
    scale = math.gamma((freedom + 1) / 2) / math.sqrt(freedom * math.pi) / math.gamma(freedom / 2)
    step = 0.002
    points = (t + (i + 0.5) * step for i in range(50_000))
    total = math.fsum((1 + x * x / freedom) ** (-(freedom + 1) / 2) for x in points)
    return float(step * scale * total)


def test_welchs_test_on_logarithms() -> None:
    one, other = [10, 10.1, 9.9, 10.2], [10.5, 10.7, 10.4, 10.6]
    logs = [[math.log(value) for value in values] for values in (one, other)]
    error = math.sqrt(sum(variance(values) for values in logs) / 4)
    t = abs(fmean(logs[0]) - fmean(logs[1])) / error
    assert student_p(one, other) == pytest.approx(2 * tail(t, 5), rel=0.1)  # freedom: 5.99 cut
    assert student_p([10, 10.1], [10.1, 10]) == 1.0
    assert student_p([10, 10], [11, 11]) == 0.0
    assert student_p([10], [11, 12]) is None
    assert student_p([10, 0], [11, 12]) is None
    assert student_p([10, -1], [11, 12]) is None


def test_it_is_as_rare_as_it_says() -> None:
    rng = random.Random(4)
    ps = [
        student_p(*([rng.lognormvariate(3, 0.02) for _ in range(5)] for _ in range(2)))
        for _ in range(2000)
    ]
    assert sum(p is not None and p < 0.05 for p in ps) == pytest.approx(100, abs=30)
