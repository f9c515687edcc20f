"""Trials and stores of version 0.1 are read, and what they call cancelled may be recalled."""

from __future__ import annotations

from pathlib import Path

from seatrial.execute.trial_folder import TrialFolder
from seatrial.journal.journal import read
from seatrial.model.codes import RECALLED
from seatrial.results.status import status
from seatrial.results.store import export, queries
from seatrial.results.store.ingest import synced
from seatrial.results.store.location import Location
from seatrial.results.store.tables import RUN_TIMES, Filters, RunCounts

from . import version_0_1
from .trials import SECOND
from .version_0_1 import START, store_of_0_1, trial_of_0_1

COUNTS = RunCounts(waiting=0, running=0, passed=10, failed=1, again=2)


def test_its_runs_are_read(tmp_path: Path, location: Location) -> None:
    trial_of_0_1(tmp_path)
    with synced(location, tmp_path) as store:
        (trial,) = queries.trials(store)
        assert queries.counts(store, Filters()) == COUNTS
        first = queries.run(store, "owkcai6c5b2z")
        recalled = queries.runs(store, Filters(verdicts=["recalled"]))
    assert (trial.state, trial.passed, trial.failed, trial.damaged) == ("ended", 10, 1, 0)
    assert {name: (getattr(first, name) - START) / SECOND for name in RUN_TIMES} == {
        "created": 0,
        "submitted": 0,
        "queued": 1,
        "job_started": 10,
        "script_started": 1,
        "script_ended": 121,
        "job_ended": 130,
        "judged": 130,
    }
    assert sorted(run.run_id for run in recalled) == sorted(version_0_1.RECALLED)
    assert {(run.code, run.job_started, run.nodes) for run in recalled} == {
        (RECALLED.number, None, "")
    }


def test_its_exported_runs_say_recalled(tmp_path: Path, location: Location) -> None:
    trial_of_0_1(tmp_path)
    with synced(location, tmp_path) as store:
        record = export.trial_record(store, queries.trial(store, version_0_1.TAG))
        text = "".join(export.junit(store, queries.trial(store, version_0_1.TAG)))
    verdicts = [run["verdict"] for run in record["runs"]]
    assert {name: verdicts.count(name) for name in set(verdicts)} == {
        "pass": 10,
        "wrong answer": 1,
        "recalled": 2,
    }
    assert 'tests="13" failures="1" errors="0" skipped="2"' in text


def test_its_criteria_count_recalled_runs_apart(tmp_path: Path) -> None:
    folder = TrialFolder(trial_of_0_1(tmp_path))
    found = status(folder.record(), folder.cases(), list(read(folder.journal)), START)
    (rate, *_), _ = found.criteria
    assert {part.test: part.verdicts for part in found.parts} == {
        "bad": {"pass": 4, "wrong answer": 1, "recalled": 2},
        "work": {"pass": 6},
    }
    assert (rate.n, rate.numbers["passed"], rate.numbers["ended"]) == (11, 10, 11)
    assert (rate.numbers["recalled"], rate.numbers["cancelled"]) == (2, 0)


def test_its_store_of_version_10_is_rebuilt(tmp_path: Path) -> None:
    trials, path = tmp_path / "trials", tmp_path / "store.sqlite"
    trials.mkdir()
    trial_of_0_1(trials)
    store_of_0_1(path)
    with synced(path, trials) as store:
        (notice,) = store.notices
        assert "version 10" in notice
        assert queries.counts(store, Filters()) == COUNTS
        assert {run.verdict for run in queries.runs(store, Filters(states=["again"]))} == {
            RECALLED.name
        }
    with synced(path, trials) as store:
        assert store.notices == []
