"""The eight times of a run: the same names and values in the store and in what comes of it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from seatrial.journal.trial import RunLife
from seatrial.results.store import export, queries
from seatrial.results.store.ingest import synced
from seatrial.results.store.location import Location
from seatrial.results.store.tables import RUN_TIMES, RunRow

from .trials import SECOND, TrialMaker, a_case


def test_every_time_is_kept_by_its_name(tmp_path: Path, location: Location) -> None:
    trial = TrialMaker(tmp_path, "timed", [a_case(1)])
    times = trial.timed_run(trial.cases[0], "r1")
    trial.end()
    assert tuple(times) == RUN_TIMES
    with synced(location, tmp_path) as store:
        run = queries.run(store, "r1")
        record = export.trial_record(store, queries.trial(store, "timed"))
    assert {name: getattr(run, name) for name in RUN_TIMES} == times
    (exported,) = record["runs"]
    for name, time in times.items():
        shown = datetime.strptime(exported[name], "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)
        assert shown.timestamp() * SECOND == time


def test_a_run_that_waits_has_the_first_times_alone(tmp_path: Path, location: Location) -> None:
    trial = TrialMaker(tmp_path, "timed", [a_case(1)])
    times = trial.timed_run(trial.cases[0], "r1")
    del trial.events[3:]
    trial.write()
    with synced(location, tmp_path) as store:
        run = queries.run(store, "r1")
    known = {name: times[name] for name in RUN_TIMES[:3]}
    assert {name: getattr(run, name) for name in RUN_TIMES} == dict.fromkeys(RUN_TIMES) | known


def test_the_names_are_those_of_the_life_of_a_run() -> None:
    assert [name for name in RunLife.__struct_fields__ if name in RUN_TIMES] == list(RUN_TIMES)
    assert [name for name in RunRow.__struct_fields__ if name in RUN_TIMES] == list(RUN_TIMES)
