from __future__ import annotations

import math

import pytest

from seatrial.judge.statistics.spread import spread

QUIET = [100.1, 99.8, 100.0, 100.2, 99.9, 100.05, 99.95, 100.0]


def test_the_row_of_a_variability_table() -> None:
    told = spread([2.0, 4.0, 6.0, 8.0])
    assert (told.n, told.mean, told.median, told.mad, told.low, told.high) == (4, 5, 5, 2, 2, 8)
    assert told.deviation == pytest.approx(2.582, abs=1e-3)
    assert told.cv == pytest.approx(0.5164, abs=1e-4)


def test_what_is_excluded_is_told_with_its_rule() -> None:
    told = spread([*QUIET, 61.2, math.nan], deviations=5)
    assert told.n == 8
    assert [(one.index, one.rule.split(" (")[0]) for one in told.excluded] == [
        (8, "farther than 5 robust deviations"),
        (9, "not a finite number"),
    ]
    assert spread([*QUIET, 61.2]).n == 9
    assert spread([1.0, 1.0, 9.0], deviations=5).n == 3  # too few to say what is far
    assert spread([5.0] * 7 + [9.0], deviations=5).n == 8, "most are equal: no deviation to go by"


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([], "no figure to judge"),
        ([math.inf], "no figure to judge"),
        ([7.0], "one figure has no spread"),
        ([0.0, 0.0], "the mean is 0"),
        ([-1.0, -2.0], "the mean is -1.5"),
    ],
)
def test_what_cannot_be_had_is_none(values: list[float], said: str) -> None:
    told = spread(values)
    assert told.cv is None
    assert said in told.reason
