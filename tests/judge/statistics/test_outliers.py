from __future__ import annotations

import random

import pytest

from seatrial.judge.statistics.outliers import RunSample, classify, spans


def test_the_classes() -> None:
    source = random.Random(1)
    times = [source.gauss(600, 5) * (1.3 if i % 5 == 0 else 1) for i in range(100)]
    some = [
        *(RunSample(str(i), time, limit=900.0) for i, time in enumerate(times)),
        RunSample("late", 899.0, limit=900.0),
        RunSample("early", 20.0, limit=900.0),
        RunSample("broken", 310.0, cause="binary_failed", limit=900.0),
        RunSample("lost", None, cause="node_failed"),
    ]
    told = classify(some)
    kinds = {one.run: one.kind for one in told.outliers}
    assert kinds["late"] == "walltime"
    assert kinds["early"] == "short"
    assert kinds["broken"] == kinds["lost"] == "failed"
    assert [run for run, kind in kinds.items() if kind == "slow"] == [str(5 * i) for i in range(20)]


def test_few_runs_are_told() -> None:
    told = classify([RunSample("a", 1.0), RunSample("b", 100.0)])
    assert told.outliers == []
    assert "2 runs are complete" in told.reason
    assert classify([]).median is None


def test_equal_times_have_an_outlier_only_if_it_is_far() -> None:
    some = [RunSample(str(i), 100.0) for i in range(20)] + [
        RunSample("slow", 150.0),
        RunSample("fine", 101.0),
    ]
    assert [o.run for o in classify(some).outliers] == ["slow"]


def test_a_bad_hour_is_a_span() -> None:
    source = random.Random(2)
    timed = [(float(i), source.random() < 0.02) for i in range(1000)]
    assert spans(timed) == []
    timed[400:430] = [(at, bad or source.random() < 0.5) for at, bad in timed[400:430]]
    (span,) = spans(timed)
    assert 395 <= span.first <= 405
    assert 425 <= span.last <= 435
    assert span.bad > 5 * span.expected


def test_chance_makes_no_span() -> None:
    source = random.Random(3)
    found = sum(
        bool(spans([(float(i), source.random() < 0.05) for i in range(300)])) for _ in range(100)
    )
    assert found <= 3
    assert spans([]) == []
    assert spans([(0.0, True), (1.0, True)]) == []


@pytest.mark.parametrize(
    ("times", "slow"),
    [
        ([10.0] * 5 + [100.0], 1),
        ([10.0] * 4 + [1000.0], 1),
        ([10.0] * 20 + [100.0] * 4, 4),
        ([3600.0] * 40 + [7200.0] * 8, 8),
        ([20.0] * 33 + [40.0] * 7, 7),
        ([0.3] * 9 + [0.9], 1),
        ([5.0] * 30 + [4.0] * 3 + [6.0] * 3, 0),
    ],
)
def test_slow_runs_among_equal_ones_are_found(times: list[float], slow: int) -> None:
    told = classify([RunSample(str(i), time) for i, time in enumerate(times)])
    assert [one.kind for one in told.outliers] == ["slow"] * slow


def test_times_rounded_to_seconds_have_no_outlier() -> None:
    source = random.Random(4)
    for middle in (5, 20):
        for _ in range(50):
            some = [RunSample(str(i), float(round(source.gauss(middle, 0.3)))) for i in range(40)]
            assert classify(some).outliers == []
