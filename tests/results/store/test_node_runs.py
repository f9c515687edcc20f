"""Runs and their nodes as arrays, the metrics of tests, in both databases."""

from __future__ import annotations

from pathlib import Path

from seatrial.journal.events import JobStarted
from seatrial.results.store.ingest import sync, synced
from seatrial.results.store.location import Location
from seatrial.results.store.nodes import (
    NO_TIME,
    cases_of,
    figures_of,
    metric_kinds,
    metrics_by_test,
    runs_of_trial,
    versions_of,
)
from seatrial.results.store.opening import open_store

from .trials import TrialMaker, a_case


def test_runs_are_read_with_their_spans_of_nodes(tmp_path: Path, location: Location) -> None:
    trial = TrialMaker(tmp_path, "t", [a_case(1), a_case(2, test="hpl")])
    trial.run(trial.cases[0], "r1", figures={"triad": 7.5})
    of = {"run_id": "r2", "case": trial.cases[1].id, "test": "hpl"}
    trial.event(JobStarted, nodes="n[001-002,004]", **of)
    trial.write()
    with synced(location, tmp_path) as store:
        ((row, ended, seconds),) = store.rows(
            "SELECT id, script_ended, elapsed FROM runs WHERE run_id = 'r1'"
        )
        found = runs_of_trial(store, 1)
        cases = {case.row: case.test for case in cases_of(store, 1)}
        (kind,) = metric_kinds(store, "triad")
        runs, kinds, values = figures_of(store, [kind], 1)
        assert metrics_by_test(store, [1])["stream"] == ["triad"]
        assert metrics_by_test(store, []) == metrics_by_test(store, [2]) == {}
    place = found.row.tolist().index(row)
    elapsed = found.elapsed[place]
    assert (cases[found.case[place]], found.code[place]) == ("stream", 0)
    assert elapsed == round(seconds * 1e9)
    assert found.created[place] < found.time[place] == ended - elapsed
    other = 1 - place
    assert found.created[other] == found.time[other]
    assert found.elapsed[other] == NO_TIME
    here = found.run == found.row[other]
    spans = zip(found.first[here].tolist(), found.last[here].tolist(), strict=True)
    assert sorted(spans) == [(0, 1), (3, 3)]
    assert (runs.tolist(), kinds.tolist(), values.tolist()) == ([row], [kind], [7.5])


def test_a_trial_without_runs_has_empty_arrays(tmp_path: Path, location: Location) -> None:
    TrialMaker(tmp_path, "t", [a_case(1)]).write()
    with synced(location, tmp_path) as store:
        assert [len(column) for column in runs_of_trial(store, 1)] == 10 * [0]


def test_a_version_changes_with_the_journal(tmp_path: Path, location: Location) -> None:
    trial = TrialMaker(tmp_path, "t", [a_case(1)])
    versions: list[tuple[int, ...]] = []
    for number in range(2):
        trial.run(trial.cases[0], f"r{number}")
        trial.write()
        with open_store(location) as store:
            for _ in range(2):
                sync(store, tmp_path)
                versions += versions_of(store, "frontier").values()
    assert versions[0] == versions[1] != versions[2] == versions[3]
