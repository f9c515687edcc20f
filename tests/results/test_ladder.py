"""Several versions one after the other: steps and their product."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.test_query_common import ask

from .figures import TIME, TRIAD, Kind, Measuring, bound, steady


def versions(folder: Path, levels: dict[str, float | None], kind: Kind = TIME) -> None:
    case = bound(1, "qla")
    for tag, level in levels.items():
        trial = Measuring(folder, tag, [case])
        if level is None:
            trial.measure(case, {("other", "s", "lower"): 1.0})
        else:
            trial.series(case, kind, [level / 100 * value for value in steady(100, 8, 0.003)])
        trial.done()


def test_steps_of_qla_and_their_product(tmp_path: Path) -> None:
    """Times 1.6 and 1.4 as fast: 2.24 in all, also where lower is better."""
    versions(tmp_path, {"v0": 224.0, "v1": 140.0, "v2": 100.0})
    answer = ask(tmp_path, "compare", "v0", "v1", "v2", "--ladder", "--format", "json")
    (found,) = json.loads(answer.out)
    assert answer.code == 0 and (found["case"], found["metric"]) == ("qla", "time")
    assert [step["times"] for step in found["steps"]] == pytest.approx([1.6, 1.4])
    product = found["product"]
    assert product["times"] == pytest.approx(2.24)
    assert product["low"] < 2.24 < product["high"] < 2.27
    assert (product["first"], product["second"]) == ("v0", "v2")
    assert {step["verdict"] for step in found["steps"]} == {"better"}
    out = ask(tmp_path, "compare", "v0", "v1", "v2", "--ladder").out
    assert [word for word in out.split() if word.startswith("x")] == ["x1.6", "x1.4", "x2.24"]


def test_a_rate_and_a_step_back(tmp_path: Path) -> None:
    versions(tmp_path, {"v0": 100.0, "v1": 50.0, "v2": 100.0}, TRIAD)
    (found,) = json.loads(
        ask(tmp_path, "compare", *["v0", "v1", "v2", "--ladder", "--format", "json"]).out
    )
    assert [step["times"] for step in found["steps"]] == pytest.approx([0.5, 2.0])
    assert [step["verdict"] for step in found["steps"]] == ["worse", "better"]
    assert found["product"]["times"] == pytest.approx(1.0)


def test_a_version_without_the_figure_leaves_the_product(tmp_path: Path) -> None:
    versions(tmp_path, {"v0": 200.0, "v1": None, "v2": 100.0})
    words = ["v0", "v1", "v2", "--ladder", "--metric", "time", "--format", "json"]
    (found,) = json.loads(ask(tmp_path, "compare", *words).out)
    assert [step["times"] for step in found["steps"]] == [None, None]
    assert found["product"]["times"] == pytest.approx(2.0) and found["medians"][1] is None


def test_s3d_is_6_per_cent_less(tmp_path: Path) -> None:
    """176.2 to 165.7 s: by the medians 6.0 % less time."""
    versions(tmp_path, {"before": 176.2, "after": 165.7})
    answer = ask(tmp_path, "compare", "before", "after", "--format", "json")
    (row,) = json.loads(answer.out)["comparisons"][0]["rows"]
    assert (row["verdict"], round(row["better_by"], 1)) == ("better", 6.0)


def test_one_question_at_a_time(tmp_path: Path) -> None:
    versions(tmp_path, {"a": 1.0, "b": 1.0})
    answer = ask(tmp_path, "compare", "a", "b", "--ladder", "--spread")
    assert answer.code == 2 and "give one of them" in answer.err
