"""Recalled runs are shown by that word, and are among the failures of no page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from seatrial.model.codes import FAILED, RECALLED
from seatrial.results.store import queries
from seatrial.results.store.ingest import synced
from seatrial.show.web.pages import trials as trial_facts
from tests.programs import until
from tests.results.store import version_0_1
from tests.results.store.trials import TrialMaker, a_case
from tests.results.store.version_0_1 import trial_of_0_1

from .served import Served

RUNS = 6


def a_trial(trials: Path) -> TrialMaker:
    trial = TrialMaker(trials, "t", [a_case(1)])
    trial.start()
    trial.run(trial.cases[0], "passed1", figures={"triad": 1.0})
    trial.run(trial.cases[0], "failed1", FAILED, why="exit code 3, not 0")
    for number in range(4):
        again = number < 3
        trial.recalled_run(trial.cases[0], f"recalled{number}", again, as_0_1=number == 2)
    trial.end(passed=False)
    return trial


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    trials = tmp_path_factory.mktemp("site") / "trials"
    trials.mkdir()
    a_trial(trials)
    trial_of_0_1(trials)
    with Served(trials) as opened:
        until(lambda: opened.json("/runs")["total"] == RUNS + 13, "the journals to be read")
        yield opened


def test_failures_are_without_them(served: Served) -> None:
    found = served.json("/failures")
    assert found["found"] == 2
    assert {one["verdict"] for one in found["failures"]} == {"failed", "wrong answer"}
    assert served.get("/failures.csv")[1].count("recalled") == 0
    assert served.json("/failures", verdict="recalled")["found"] == 0


def test_runs_are_counted_beside_those_that_run_again(served: Served) -> None:
    counts = {one["state"]: one["runs"] for one in served.json("/runs", trial="t")["counts"]}
    assert counts == {"passed": 1, "running": 0, "waiting": 0, "failed": 1, "again": 4, "known": 0}
    found = served.json("/runs", trial="t", verdict="recalled")
    assert found["found"] == 4
    assert {run["code"] for run in found["runs"]} == {RECALLED.number}
    assert "recalled" not in {
        run["verdict"] for run in served.json("/runs", state="failed")["runs"]
    }


@pytest.mark.parametrize("tag", ["t", version_0_1.TAG])
def test_a_trial_says_nothing_failed_of_it(served: Served, tag: str) -> None:
    found: list[Any] = []

    def read() -> bool:
        found[:] = [served.json(f"/trials/{tag}")]
        return any(test["verdicts"].keys() - {"pass"} for test in found[0]["tests"])

    until(read, "the trial's journal to be read")
    (page,) = found
    recalled, failed = (4, "failed") if tag == "t" else (2, "wrong answer")
    assert [cause["name"] for cause in page["causes"]] == [failed]
    assert page["again"] == recalled
    assert sum(test["verdicts"].get("recalled", 0) for test in page["tests"]) == recalled
    assert page["trial"]["failed"] == 1


def test_the_store_alone_says_so_too(tmp_path: Path) -> None:
    a_trial(tmp_path)
    with synced(tmp_path / "s.sqlite", tmp_path) as store:
        (test,) = trial_facts.tests_of_store(store, queries.trial(store, "t"))
    assert (test.accepted, test.verdicts) == (1, {"recalled": 4, "failed": 1, "pass": 1})


def test_a_run_has_the_colour_of_what_does_not_count(served: Served) -> None:
    for run in ("recalled0", "recalled2", "recalled3"):
        found = served.json(f"/runs/t/{run}")
        assert (found["verdict"], found["state"]) == ("recalled", "again")
        assert '<span class="verdict again" title="45:' in served.get(f"/runs/t/{run}")[1]


def test_the_plot_of_elapsed_times_does_not_miss_them(served: Served) -> None:
    until(lambda: served.json("/trials/t/elapsed")["ready"], "the plot")
    found = served.json("/trials/t/elapsed")
    assert sorted(found["run"]) == ["failed1", "passed1"]
    assert found["left_out"] == 0


def test_a_machine_has_no_run_of_them_on_its_nodes(served: Served) -> None:
    found = served.json("/machines/frontier", trial="t")
    (node,) = [row for row in found["rows"] if row["name"] == "n001"]
    assert (node["runs"], node["failed"]) == (2, 1)
