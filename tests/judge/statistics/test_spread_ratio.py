"""The ratio of the spread of two samples."""

from __future__ import annotations

import random

import numpy as np
import pytest

from seatrial.judge.statistics.significance import brown_forsythe
from seatrial.judge.statistics.two_samples import compare_spread


def sample(rng: random.Random, deviation: float, n: int, level: float = 100.0) -> list[float]:
    return [level * (1 + rng.gauss(0, deviation)) for _ in range(n)]


def test_a_ratio_is_within_its_interval() -> None:
    rng = random.Random(1)
    found = compare_spread(sample(rng, 0.01, 60), sample(rng, 0.03, 60, level=5.0))
    assert found.first == pytest.approx(0.01, rel=0.3)
    assert found.ratio is not None and found.low is not None and found.high is not None
    assert found.low < found.ratio < found.high and 2 < found.ratio < 4.5
    assert found.p is not None and found.p < 1e-4


def told(deviation: float, count: int = 4000) -> float:
    """The share of pairs of samples of 20 that are told to differ: 1 % against a deviation."""
    rng = np.random.default_rng(4)
    found = 0
    for _ in range(count):
        pair = [np.log1p(each * rng.standard_normal(20)) for each in (0.01, deviation)]
        p = brown_forsythe(pair[0], pair[1])
        found += p is not None and p < 0.05
    return found / count


def test_recall_and_false_differences() -> None:
    assert told(0.03, 500) >= 0.9
    assert told(0.01) <= 0.05


def test_what_has_no_ratio() -> None:
    equal = compare_spread([5.0] * 6, [5.0] * 6)
    assert (equal.ratio, equal.p) == (None, None)
    found = compare_spread([5.0] * 6, [5.0, 5.1, 4.9, 5.2, 4.8, 5.0])
    assert found.ratio is None and found.p is not None and found.p < 0.05
    for bad in ([1.0] * 4, [1.0, 2.0, 3.0, 4.0, -1.0]):
        with pytest.raises(ValueError, match="5 figures above 0"):
            compare_spread(bad, [1.0] * 9)
