from __future__ import annotations

import math
import random
from statistics import fmean, variance

import pytest

from seatrial.judge.statistics.significance import student_p, unshuffled


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
    assert student_p(one, other) == pytest.approx(2 * tail(t, 6), rel=0.01)  # freedom: 5.99
    assert student_p([10, 10.1], [10.1, 10]) == 1.0
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


@pytest.mark.parametrize(
    ("one", "other", "least"),
    [
        ([2.0] * 4, [3.0] * 4, 1e-3),  # to a whole: a standard deviation of 0.29 is hidden
        ([2.00] * 4, [3.01] * 4, 1e-15),
        ([0.1 + 0.2] * 8, [0.4] * 8, 0.0),
        ([1e300] * 4, [2e300] * 4, 0.0),
        ([5e-324] * 4, [1e300] * 4, 0.0),
    ],
)
def test_no_sample_is_without_noise(one: list[float], other: list[float], least: float) -> None:
    p = student_p(one, other)
    assert p is not None and least < p < 0.05


def hopping(rng: random.Random, count: int) -> list[tuple[list[float], list[float]]]:
    """Rows that do not differ; each figure is in one of two modes."""
    levels = (rng.gauss(100, 0.3), rng.gauss(90, 0.3))
    return [
        ([rng.choice(levels) for _ in range(4)], [rng.choice(levels) for _ in range(4)])
        for _ in range(count)
    ]


def test_what_shuffling_other_rows_gives_does_not_stand() -> None:
    rng = random.Random(5)
    apart = ([100.1, 100.2, 99.9, 100.0], [90.1, 90.2, 89.9, 90.0])
    rows = [apart, *hopping(rng, 100)]
    assert unshuffled(rows, [0], least=0.02) == set()
    assert unshuffled(rows[:1], [0], least=0.02) == {0}
    quiet = [[rng.gauss(100, 0.3) for _ in range(8)] for _ in range(100)]
    assert unshuffled([apart, *((row[:4], row[4:]) for row in quiet)], [0], least=0.02) == {0}


def test_many_rows_that_differ_stand_beside_others_that_hop() -> None:
    rng = random.Random(6)
    worse = [
        ([rng.gauss(100, 0.3) for _ in range(5)], [rng.gauss(95, 0.3) for _ in range(5)])
        for _ in range(10)
    ]
    rows = [*worse, *hopping(rng, 11)]
    assert unshuffled(rows, range(10), least=0.02) == set(range(10))


def test_what_cannot_be_shuffled_stands_as_it_was_told() -> None:
    assert unshuffled([([1.0, -1.0], [2.0, 2.0])], [0], least=0.02) == {0}
    assert unshuffled([], [], least=0.02) == set()
