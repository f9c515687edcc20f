"""Which side varies more, case by case."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.test_query_common import ask

from .figures import TRIAD, Measuring, bound, steady


def sides(folder: Path) -> None:
    """Four cases: three times the spread, a third of it, the same, and too few runs."""
    cases = [bound(i, size=i) for i in range(4)]
    spreads = {"a": (0.01, 0.03, 0.01), "b": (0.03, 0.01, 0.01)}
    for tag, levels in spreads.items():
        trial = Measuring(folder, tag, cases)
        for case, spread in zip(cases, levels, strict=False):
            level = 100.0 if tag == "a" else 140.0
            trial.series(case, TRIAD, steady(level, 20, spread, seed=int(case.parameters["size"])))
        trial.series(cases[3], TRIAD, [10.0, 11.0, 12.0])
        trial.done()


def test_each_case_has_its_verdict(tmp_path: Path) -> None:
    sides(tmp_path)
    words = ("compare", "a", "b", "--spread", "--metric", "triad")
    (found,) = json.loads(ask(tmp_path, *words, "--format", "json").out)
    rows = {row["case"]: row for row in found["rows"]}
    assert {name: row["verdict"] for name, row in rows.items()} == {
        "stream{size=0}": "less steady",
        "stream{size=1}": "steadier",
        "stream{size=2}": "unclear",
        "stream{size=3}": "not compared",
    }
    wide = rows["stream{size=0}"]
    assert wide["first"] == pytest.approx(0.01, rel=0.6) and 1.5 < wide["ratio"] < 6
    assert wide["low"] < wide["ratio"] < wide["high"] and wide["p"] < 0.01
    assert "--repeat 20" in rows["stream{size=3}"]["why"]
    answer = ask(tmp_path, *words)
    assert answer.code == 0
    assert "1 less steady, 1 steadier, 1 unclear, 1 not compared" in answer.out


def test_a_metric_that_is_not_there(tmp_path: Path) -> None:
    sides(tmp_path)
    answer = ask(tmp_path, "compare", "a", "b", "--spread", "--metric", "odd")
    assert (
        answer.code == 2 and "no such metric on both sides; there are elapsed, triad" in answer.err
    )
