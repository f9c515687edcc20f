"""The success rate of a test over time: by trial and day, by the runs that count."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from seatrial.model import codes
from tests.cli.test_query_common import ask

from .figures import TRIAD, Measuring, bound

DAY = 86_400 * 10**9


@pytest.fixture
def trials(tmp_path: Path) -> Path:
    """On the first day 3 of 4 runs pass that count, on the second both; another trial has 1 of 1.
    Other runs do not count."""
    cases = [bound(1, size=1), bound(2, size=2), bound(3, test="other")]
    one = Measuring(tmp_path, "long", cases)
    for case, verdict in (
        *((cases[0], codes.PASS), (cases[0], codes.PASS), (cases[1], codes.PASS)),
        *((cases[1], codes.PERFORMANCE), (cases[1], codes.CANCELLED), (cases[1], codes.KNOWN)),
    ):
        one.measure(case, verdict=verdict)
    one.now += DAY
    for case in cases:
        one.measure(case)
    one.done()
    second = Measuring(tmp_path, "short", cases[:1])
    second.measure(cases[0])
    second.done()
    return tmp_path


def test_rates_by_trial_and_day(trials: Path) -> None:
    found = json.loads(ask(trials, "history", "success_rate", "--format", "json").out)
    assert [series["test"] for series in found] == ["other", "stream"]
    points = {(p["trial"], p["time"][:10]): p for p in found[1]["points"]}
    told = [(trial, p["passed"], p["counted"]) for (trial, _), p in sorted(points.items())]
    assert told == [("long", 3, 4), ("long", 2, 2), ("short", 1, 1)]
    first = points[min(points)]
    assert first["value"] == 0.75
    assert (first["low"], first["high"]) == pytest.approx((0.3006, 0.9544), abs=1e-3)
    (case,) = json.loads(
        ask(trials, "history", "success_rate", "--case", "size=2", "--format", "json").out
    )
    assert [(p["passed"], p["counted"]) for p in case["points"]] == [(1, 2), (1, 1)]


def test_it_is_printed(trials: Path) -> None:
    out = " ".join(ask(trials, "history", "success_rate", "-k", "stream").out.split())
    assert "success_rate of stream on" in out and "long 3 4 75.0 % 30.1..95.4 %" in out
    text = ask(trials, "history", "success_rate", "--format", "csv", "--trial", "short").out
    (row,) = csv.DictReader(io.StringIO(text))
    assert (row["test"], row["passed"], row["counted"], row["value"]) == ("stream", "1", "1", "1.0")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--check"], "--check: changes of success_rate are not judged"),
        (["-k", "none"], "no run that counts matches"),
        (["--stage", "full"], "no run that counts matches"),
    ],
)
def test_what_cannot_be_told(trials: Path, words: list[str], told: str) -> None:
    answer = ask(trials, "history", "success_rate", *words)
    assert (answer.code, told in answer.err) == (2, True)


def test_a_metric_of_that_name_is_shown_instead(tmp_path: Path) -> None:
    trial = Measuring(tmp_path, "t", [bound(1)])
    trial.series(trial.cases[0], ("success_rate", *TRIAD[1:]), [5.0, 6.0])
    trial.done()
    assert "MB/s, higher is better, 2 figures" in ask(tmp_path, "history", "success_rate").out
