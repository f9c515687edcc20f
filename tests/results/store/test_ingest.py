from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial.errors import StoreError
from seatrial.journal.encoding import encode
from seatrial.journal.events import (
    EVENT_KINDS,
    AlertRaised,
    BuildEnded,
    BuildStarted,
    Event,
    MetricRecorded,
    NodeAdmitted,
    NodeDown,
    NodeExcluded,
    NodeUp,
    RunCreated,
    RunEvent,
    RunJudged,
    ScriptEnded,
)
from seatrial.model import codes
from seatrial.results.store import ingest, queries
from seatrial.results.store.ingest import Synced, sync, synced
from seatrial.results.store.location import Location
from seatrial.results.store.opening import open_memory, open_store, reopen_empty
from seatrial.results.store.schema import Store
from seatrial.results.store.tables import VERSION, Filters
from seatrial.results.store.upserts import fold
from tests.journals import without_checksums

from .trials import NOON, SECOND, TrialMaker, a_case, a_trial

EVENTS = 27  # of a_trial
# The tables, and which of their columns are the ids of rows of which table.
TABLES = {
    "tests": {0: "tests"},
    "cases": {0: "cases", 1: "trials", 3: "tests"},
    "runs": {0: "runs", 1: "trials", 2: "cases", 3: "tests"},
    "events": {0: "runs"},
    "trial_events": {0: "trials"},
    "metric_names": {0: "metric_names"},
    "metrics": {0: "runs", 1: "metric_names"},
    "builds": {0: "trials"},
    "gaps": {0: "trials"},
}
OF_JOURNAL = (
    "tag, state, state_time, started, last, damaged, ingested, events, runs, cases, planned"
)


def content(store: Store) -> dict[str, list[Any]]:
    """All that a store knows, less what depends on the journal's file; ids count from 0."""
    ids = {
        name: {
            row: rank
            for rank, (row,) in enumerate(store.rows(f"SELECT id FROM {name} ORDER BY id"))
        }
        for name in ("trials", "tests", "cases", "runs", "metric_names")
    }

    def known(row: tuple[Any, ...], links: dict[int, str]) -> list[Any]:
        return [
            ids[links[column]].get(value) if column in links else value
            for column, value in enumerate(row)
        ]

    found = {
        name: [known(row, links) for row in store.rows(f"SELECT * FROM {name} ORDER BY 1, 2, 3")]
        for name, links in TABLES.items()
    }
    return found | {"trials": store.rows(f"SELECT {OF_JOURNAL} FROM trials ORDER BY tag")}


def number_of_events(store: Store) -> int:
    sql = "SELECT (SELECT count(*) FROM events) + (SELECT count(*) FROM trial_events)"
    return int(store.rows(sql)[0][0])


def of_memory(trials: Path) -> dict[str, list[Any]]:
    with open_memory() as store:
        sync(store, trials)
        return content(store)


@contextlib.contextmanager
def another_user() -> Iterator[None]:
    """Be a user whose rights count: root becomes nobody."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


@contextlib.contextmanager
def powerless(folder: Path) -> Iterator[None]:
    """The folder and its files may not be written: not even by root, who becomes nobody."""
    for path in [folder, *folder.iterdir()]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        with another_user():
            yield
    finally:
        for path in [folder, *folder.iterdir()]:
            path.chmod(0o755 if path.is_dir() else 0o644)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user may enter, unlike pytest's own."""
    path = Path(tempfile.mkdtemp(prefix="seatrial-store-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


# ---- what is kept -------------------------------------------------------------------------


def test_a_run_is_kept_with_all_its_facts(tmp_path: Path, location: Location) -> None:
    a_trial(tmp_path)
    with synced(location, tmp_path) as store:
        run = queries.run(store, "aaaa2222")
        assert (run.trial, run.machine, run.test, run.app) == (
            *("nightly", "frontier", "stream", "stream-app"),
        )
        assert run.case_name == "stream{touch=all,threads=2}@gcc"
        assert (run.verdict, run.exit_code, run.job_id) == ("wrong answer", 3, "4711")
        assert (run.nodes, run.seq, run.elapsed) == ("n001", 2, 1.0)
        assert run.why == "verify[0]: \x1b[31mSolution\x07 was not found"
        assert run.path.endswith("runs/stream/aaaa2222nightly")
        case = queries.case_of(store, run)
        assert case.parameters == {"touch": "all", "threads": 2}
        assert (case.nodes, case.tasks, case.threads, case.walltime) == (1, 2, 2, 300.0)
        builds = store.rows("SELECT key, path, ended - started, value, text FROM builds")
        assert builds == [("b1", "/builds/b1", SECOND, 1, "no compiler")]


def test_events_come_back_as_they_were_written(tmp_path: Path, location: Location) -> None:
    trial = TrialMaker(tmp_path, "one", [a_case(1)])
    trial.run(trial.cases[0], "r1", figures={"triad": 1.5})
    written = list(trial.events)
    trial.write()
    with synced(location, tmp_path) as store:
        found = queries.events_of(store, queries.run(store, "r1"))
    assert [(e.time, e.event) for e in found] == [(e.time, e.name) for e in written]
    assert [(e.event, e.value) for e in found if e.value is not None] == [
        ("submit_end", 0),
        ("binary_execute_end", 0),
        ("job_end", 0),
        ("metric", 1.5),
        ("check_end", 0),
    ]
    by_name = {event.event: event for event in found}
    assert by_name["job_queued"].detail == "4711"
    assert by_name["binary_execute_start"].detail == "n001"
    assert by_name["metric"].detail == "triad"


def test_the_nodes_of_what_nodes_do_are_kept(tmp_path: Path, location: Location) -> None:
    trial = TrialMaker(tmp_path, "one", [a_case(1)])
    for kind in (NodeDown, NodeUp, NodeExcluded, NodeAdmitted):
        trial.event(kind, nodes="n[1-3]", reason="why")
    trial.write()
    with synced(location, tmp_path) as store:
        rows = store.rows("SELECT detail, text FROM trial_events WHERE number >= 360")
    assert rows == [("n[1-3]", "why")] * 4


def test_every_kind_of_event_is_kept_by_its_name(tmp_path: Path, location: Location) -> None:
    trial = TrialMaker(tmp_path, "all", [a_case(1)])
    of_runs = [name for name, kind in EVENT_KINDS.items() if issubclass(kind, RunEvent)]
    others = [name for name in EVENT_KINDS if name not in of_runs]
    for name in [*EVENT_KINDS, "of_the_future"]:
        trial.line(name, run_id="r1", case=trial.cases[0].id)
    trial.write()
    with synced(location, tmp_path) as store:
        found = queries.events_of(store, queries.run(store, "r1"))
        rows = store.rows("SELECT number, detail FROM trial_events ORDER BY seq")
    assert [event.event for event in found] == [*of_runs, "of_the_future"]
    assert [queries.event_name(*row) for row in rows] == others


def test_late_and_double_events_do_not_change_what_a_run_is(tmp_path: Path) -> None:
    trial = TrialMaker(tmp_path / "a", "same", [a_case(1)])
    trial.run(trial.cases[0], "r1", codes.FAILED, figures={"triad": 1.5})
    events = list(trial.events)
    trial.write()
    other = TrialMaker(tmp_path / "b", "same", [a_case(1)])
    moved = str(trial.folder.run("stream", "r1"))
    other.events = [*reversed(events), *events[3:6], events[8]]
    other.write()

    def facts(folder: Path) -> list[Any]:
        with synced(folder / "store.sqlite", folder) as store:
            run = queries.run(store, "r1")
            assert run.path == moved
            times = [(e.time, e.event) for e in queries.events_of(store, run)]
            return [run, queries.metrics_of(store, run), times]

    assert facts(tmp_path / "b") == facts(tmp_path / "a")


def test_an_older_word_does_not_undo_a_newer_one(tmp_path: Path, location: Location) -> None:
    trial = TrialMaker(tmp_path, "late", [a_case(1)])
    trial.run(trial.cases[0], "r1")
    of = {"run_id": "r1", "case": trial.cases[0].id, "time": NOON}
    trial.event(RunJudged, code=codes.FAILED.number, reason="old", **of)
    trial.event(ScriptEnded, exit_code=77, **of)
    trial.write()
    with synced(location, tmp_path) as store:
        run = queries.run(store, "r1")
    assert (run.verdict, run.why, run.exit_code, run.elapsed) == ("pass", "", 0, 1.0)
    assert run.created == NOON + SECOND  # by its own event


def test_a_case_that_the_trial_does_not_list_is_made(tmp_path: Path, location: Location) -> None:
    trial = TrialMaker(tmp_path, "odd", [a_case(1)])
    trial.run(a_case(9, test="unlisted"), "r9")
    trial.write()
    with synced(location, tmp_path) as store:
        run = queries.run(store, "r9")
        assert (run.test, run.case) == ("unlisted", a_case(9).id)
        assert queries.case_of(store, run).nodes is None


@pytest.mark.parametrize(
    "value", [10**30, -(10**400), 1.5, "nan", "word", None], ids=lambda value: str(value)[:9]
)
def test_odd_values_of_a_job_break_nothing(tmp_path: Path, location: Location, value: Any) -> None:
    trial = TrialMaker(tmp_path, "odd", [a_case(1)])
    of = {"run_id": "r1", "case": trial.cases[0].id}
    for name in ("metric", "binary_execute_end", "check_end"):
        trial.line(name, value=value, alias="\ufdd0\x00", **of)
    trial.write()
    with synced(location, tmp_path) as store:
        run = queries.run(store, "r1")
        metrics = [metric.value for metric in queries.metrics_of(store, run)]
        assert run.verdict == "check error"
        assert metrics == ([float(value)] if value in (10**30, 1.5) else [])
        assert len(queries.events_of(store, run)) == 3


def test_nul_in_names_stops_no_collection(tmp_path: Path, location: Location) -> None:
    """PostgreSQL holds none: both keep another character, and find what they kept."""
    trial = TrialMaker(tmp_path, "odd", [a_case(1)])
    of = {"run_id": "r\0", "case": "c\0", "test": "t\0", "app": "a\0"}
    build = {"key": "b\0", "path": "/builds/\0"}
    started: tuple[type[Event], dict[str, Any]] = (BuildStarted, {})
    for kind, more, (of_build, result) in (  # each in a read of its own
        (RunCreated, {}, started),
        (MetricRecorded, {"metric": "m\0", "value": 0}, started),
        (RunJudged, {"verdict": "m\0", "code": 0}, (BuildEnded, {"code": 0})),
    ):
        trial.event(kind, **more, **of)
        trial.event(of_build, **build, **result)
        trial.write()
        synced(location, tmp_path).close()
    with synced(location, tmp_path) as store:
        (run,) = queries.runs(store, Filters())
        assert (run.run_id, run.case, run.verdict) == ("r\ufffd", "c\ufffd", "pass")
        assert [metric.value for metric in queries.metrics_of(store, run)] == [0.0]
        assert len(queries.events_of(store, run)) == 3
        assert store.rows("SELECT key FROM builds") == [("b\ufffd",)]
        assert store.rows("SELECT damaged, events, runs FROM trials") == [(0, 6, 1)]


def test_damaged_lines_are_counted(tmp_path: Path, location: Location) -> None:
    trial = a_trial(tmp_path)
    good = without_checksums(trial.folder.journal)
    bad = [b"{", b"[]", b'{"time":-1,"event":"x"}', b'{"time":1e30,"event":"x"}', b"\xff\xfe"]
    bad += [b'{"time":99999999999999999999,"event":"x"}', b'{"time":1,"event":"\\ud800"}']
    trial.folder.journal.write_bytes(b"\n".join([*bad, b"", good]))
    with synced(location, tmp_path) as store:
        assert queries.trials(store)[0].damaged == len(bad)
        assert queries.count_runs(store, Filters()) == 3


# ---- incremental --------------------------------------------------------------------------


def test_only_what_is_new_is_read(tmp_path: Path, location: Location) -> None:
    trial = a_trial(tmp_path)
    with open_store(location) as store:
        assert sync(store, tmp_path) == Synced(1, EVENTS)
        before = content(store)
        assert sync(store, tmp_path) == Synced(0, 0)
        assert content(store) == before
        trial.event(AlertRaised, text="hot")
        trial.write()
        assert sync(store, tmp_path) == Synced(1, 1)
        assert content(store) == of_memory(tmp_path)


def _stream() -> bytes:
    """A journal of two runs interleaved, with damage, a repetition, and a torn end."""
    with tempfile.TemporaryDirectory() as folder:
        trial = a_trial(Path(folder))
        lines = without_checksums(trial.folder.journal).split(b"\n")
    lines[5:9] = [lines[7], lines[5], b"garbage \xff", lines[8], lines[6], b"", lines[5]]
    return b"\n".join(lines) + b'{"time": 12, "eve'


STREAM = _stream()


@settings(max_examples=15, deadline=None)
@given(
    cuts=st.lists(st.integers(0, len(STREAM)), max_size=8).map(sorted),
    at_once=st.integers(1, 2000),
    fold_at_once=st.integers(1, 2000),
)
def test_any_split_of_the_bytes_gives_the_same_store(
    cuts: list[int], at_once: int, fold_at_once: int
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        trial = TrialMaker(folder, "split", [a_case(1), a_case(2), a_case(3, test="hpl")])
        trial.folder.journal.write_bytes(STREAM)
        whole = of_memory(folder)
        trial.folder.journal.write_bytes(b"")
        done = 0
        with pytest.MonkeyPatch.context() as patch, open_store(folder / "store.sqlite") as store:
            patch.setattr(ingest, "READ_OF_TRIAL", at_once)
            patch.setattr(ingest, "FOLD_AT_ONCE", fold_at_once)
            for cut in [*cuts, len(STREAM)]:
                with trial.folder.journal.open("ab") as file:
                    file.write(STREAM[done:cut])
                done = cut
                sync(store, folder)
            assert content(store) == whole
    assert len(whole["runs"]) == 3
    assert whole["trials"][0][5] == 1  # the damaged line


def test_a_crash_in_the_middle_loses_and_doubles_nothing(
    tmp_path: Path, location: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_trial(tmp_path)
    monkeypatch.setattr(ingest, "READ_OF_TRIAL", 1000)
    calls = iter(range(1000))

    def failing(*given: Any) -> None:
        fold(*given)
        if next(calls) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(ingest, "fold", failing)
    with open_store(location) as store:
        with pytest.raises(KeyboardInterrupt):
            sync(store, tmp_path)
        some = number_of_events(store)
        assert 0 < some < EVENTS
        sync(store, tmp_path)
        assert content(store) == of_memory(tmp_path)


def test_two_at_once_double_nothing(
    tmp_path: Path, location: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(8):
        a_trial(tmp_path, f"t{number}")
    monkeypatch.setattr(ingest, "READ_OF_TRIAL", 700)
    open_store(location).close()
    errors: list[BaseException] = []

    def work() -> None:
        try:
            synced(location, tmp_path).close()
        except BaseException as error:
            errors.append(error)

    workers = [threading.Thread(target=work) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not errors
    with open_store(location) as store:
        assert store.rows("SELECT count(*), count(DISTINCT trial) FROM runs") == [(24, 8)]
        assert number_of_events(store) == 8 * EVENTS


@pytest.mark.parametrize("how", ["read by another", "replaced", "cut", "gone"])
def test_a_journal_may_change_between_two_transactions(
    tmp_path: Path, location: Location, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    journal = a_trial(tmp_path).folder.journal
    data = journal.read_bytes()
    monkeypatch.setattr(ingest, "READ_OF_TRIAL", 1000)
    changed: list[bool] = []

    def changing(*_: object) -> None:
        if not changed:
            changed.append(True)
            if how == "read by another":
                synced(location, tmp_path).close()
            elif how == "replaced":
                other = journal.with_name("other")
                other.write_bytes(data.replace(b"aaaa1111", b"cccc1111"))
                other.replace(journal)
            elif how == "cut":
                journal.write_bytes(data[: data.index(b"\n") + 1])
            else:
                journal.rename(journal.with_name("aside"))

    with open_store(location) as store:
        sync(store, tmp_path, changing)
        assert changed
        if how == "gone":
            assert 0 < number_of_events(store) < EVENTS
            journal.with_name("aside").rename(journal)
            sync(store, tmp_path)
        assert content(store) == of_memory(tmp_path)


@pytest.mark.parametrize("how", ["shrunk", "replaced", "rewritten"])
def test_a_journal_that_is_another_is_read_from_its_beginning(
    tmp_path: Path, location: Location, how: str
) -> None:
    trial = a_trial(tmp_path)
    journal = trial.folder.journal
    data = without_checksums(journal)
    journal.write_bytes(data)
    with open_store(location) as store:
        sync(store, tmp_path)
        if how == "shrunk":
            with journal.open("r+b") as file:
                file.truncate(data.index(b"\n", len(data) // 2) + 1)
        elif how == "replaced":
            other = journal.with_name("other")
            other.write_bytes(data[: data.index(b"\n") + 1] + data)
            other.replace(journal)
        else:
            journal.write_bytes(data.replace(b"aaaa1111", b"cccc1111") + data[-200:])
        sync(store, tmp_path)
        assert content(store) == of_memory(tmp_path)


def test_a_copy_with_another_middle_is_read_from_its_beginning(
    tmp_path: Path, location: Location
) -> None:
    trial = TrialMaker(tmp_path, "long", [a_case(1)])
    for number in range(200):
        trial.event(AlertRaised, text=f"number {number:03}")
    trial.write()
    journal = trial.folder.journal
    data = without_checksums(journal)
    journal.write_bytes(data)
    with open_store(location) as store:
        sync(store, tmp_path)
        other = journal.with_name("other")
        other.write_bytes(data.replace(b"number 100", b"NUMBER 100"))
        other.replace(journal)
        assert sync(store, tmp_path) == Synced(1, 200)
        assert store.rows("SELECT count(*) FROM trial_events WHERE text = 'NUMBER 100'") == [(1,)]


def test_a_trial_made_anew_under_its_tag_replaces_the_old_one(
    tmp_path: Path, location: Location
) -> None:
    old = TrialMaker(tmp_path, "again", [a_case(1)])
    with open_store(location) as store:
        sync(store, tmp_path)
        assert queries.trials(store)[0].cases == 1  # known before its journal is there
        shutil.rmtree(old.folder.path)
        new = TrialMaker(tmp_path, "again", [a_case(1), a_case(2)], created=NOON + SECOND)
        new.start()
        new.write()
        sync(store, tmp_path)
        (found,) = queries.trials(store)
        assert (found.cases, found.created) == (2, NOON + SECOND)


def test_a_trial_whose_folder_is_gone_stays_until_a_rebuild(tmp_path: Path) -> None:
    gone, stays = a_trial(tmp_path, "gone"), a_trial(tmp_path, "stays")
    path = tmp_path / "store.sqlite"
    synced(path, tmp_path).close()
    shutil.rmtree(gone.folder.path)
    with synced(path, tmp_path) as store:
        assert {row.tag for row in queries.trials(store)} == {"gone", "stays"}
    with reopen_empty(path) as store:
        sync(store, tmp_path)
        assert [row.tag for row in queries.trials(store)] == [stays.tag]


def test_trials_that_were_moved_are_the_same_trials(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    a_trial(tmp_path / "here")
    synced(tmp_path / "here" / "store.sqlite", tmp_path / "here").close()
    (tmp_path / "here").rename(tmp_path / "there")
    with synced(tmp_path / "there" / "store.sqlite", tmp_path / "there") as store:
        (row,) = queries.trials(store)
        assert row.path == str(tmp_path / "there" / "nightly")
        assert queries.count_runs(store, Filters()) == 3


def test_one_bad_trial_does_not_hide_the_others(tmp_path: Path, location: Location) -> None:
    bad = a_trial(tmp_path, "bad")
    a_trial(tmp_path, "good")
    (bad.folder.path / "trial.json").write_text("{")
    (tmp_path / ".making-x").mkdir()
    (tmp_path / "no-trial").mkdir()
    with synced(location, tmp_path) as store:
        assert [row.tag for row in queries.trials(store)] == ["good"]
        (notice,) = store.notices
    assert "bad/trial.json" in notice


def test_a_record_is_read_again_when_it_changed_and_not_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial = a_trial(tmp_path)
    record = trial.folder.path / "trial.json"
    good = record.read_bytes()
    looked: list[Path] = []
    read = ingest.record_of

    def look(path: Path) -> Any:
        looked.append(path)
        return read(path)

    monkeypatch.setattr(ingest, "record_of", look)
    with synced(tmp_path / "store.sqlite", tmp_path) as store:
        looked.clear()
        for content, said, times in ((good, 0, 1), (b"garbage", 1, 3), (good, 0, 1)):
            record.write_bytes(content)
            looked.clear()
            for _ in range(3):
                store.notices.clear()
                sync(store, tmp_path)
                assert len(store.notices) == said
            assert len(looked) == times


# ---- the file -----------------------------------------------------------------------------


@pytest.mark.parametrize("version", [0, VERSION - 1])
def test_a_store_of_an_older_version_is_rebuilt_with_a_notice(tmp_path: Path, version: int) -> None:
    a_trial(tmp_path)
    path = tmp_path / "store.sqlite"
    synced(path, tmp_path).close()
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute(f"PRAGMA user_version = {version}")
        database.execute("DROP TABLE runs")
        database.commit()
    with synced(path, tmp_path) as store:
        (notice,) = store.notices
        assert f"version {version}" in notice
        assert content(store) == of_memory(tmp_path)
    with synced(path, tmp_path) as store:
        assert store.notices == []


def test_a_local_store_has_a_write_ahead_log_and_a_network_one_has_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def mode(kind: str) -> str:
        monkeypatch.setattr("seatrial.results.store.opening.file_system", lambda path: kind)
        with open_store(tmp_path / "store.sqlite") as store:
            return str(store.rows("PRAGMA journal_mode")[0][0])

    assert [mode("ext4"), mode("nfs4"), mode("lustre"), mode("xfs")] == [
        *("wal", "truncate", "truncate", "wal"),
    ]


def test_what_cannot_be_written_can_still_be_read(open_folder: Path) -> None:
    trial = a_trial(open_folder)
    path = open_folder / "store.sqlite"
    synced(path, open_folder).close()
    with powerless(open_folder), synced(path, open_folder) as store:
        assert not store.writable
        assert store.notices == []
        assert queries.count_runs(store, Filters()) == 3
    trial.event(AlertRaised, text="hot")
    trial.write()
    with powerless(open_folder), synced(path, open_folder) as store:
        (notice,) = store.notices
        assert "1 trial is newer" in notice
        assert queries.count_runs(store, Filters()) == 3


def test_where_no_store_can_be_made_one_in_memory_serves(open_folder: Path) -> None:
    a_trial(open_folder)
    path = open_folder / "store.sqlite"
    with powerless(open_folder), synced(path, open_folder) as store:
        (notice,) = store.notices
        assert str(path) in notice and "--store" in notice
        assert queries.count_runs(store, Filters()) == 3
    assert not path.exists()


def test_a_locked_store_is_named_with_the_remedy(tmp_path: Path) -> None:
    a_trial(tmp_path)
    path = tmp_path / "store.sqlite"
    open_store(path).close()
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with open_store(path, wait_s=0.05) as store, pytest.raises(StoreError) as raised:
            sync(store, tmp_path)
    assert str(path) in str(raised.value)
    assert "locked" in str(raised.value) and "--store" in str(raised.value)


def test_a_file_that_is_no_database_is_told_and_rebuilt_aside(tmp_path: Path) -> None:
    a_trial(tmp_path)
    path = tmp_path / "store.sqlite"
    path.write_text("no database, but many words " * 100)
    with pytest.raises(StoreError, match="seatrial store rebuild"):
        open_store(path)
    with reopen_empty(path) as store:
        sync(store, tmp_path)
        assert queries.count_runs(store, Filters()) == 3
        assert "store.sqlite.damaged" in store.notices[0]
    assert path.with_name("store.sqlite.damaged").read_text().startswith("no database")


def test_a_damaged_store_is_told_and_can_be_rebuilt(tmp_path: Path) -> None:
    a_trial(tmp_path)
    path = tmp_path / "store.sqlite"
    synced(path, tmp_path).close()
    data = bytearray(path.read_bytes())
    data[4096:] = b"\xff" * (len(data) - 4096)
    path.write_bytes(bytes(data))
    with pytest.raises(StoreError, match="seatrial store rebuild"), open_store(path) as store:
        queries.trials(store)
    with reopen_empty(path) as store:
        sync(store, tmp_path)
        assert queries.count_runs(store, Filters()) == 3


def test_another_programs_database_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE mine (x)")
    before = path.read_bytes()
    for opening in (open_store, reopen_empty):
        with pytest.raises(StoreError, match="another program"):
            opening(path)
    assert path.read_bytes() == before


def test_a_journal_line_longer_than_a_block_is_read(
    tmp_path: Path, location: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingest, "READ_OF_TRIAL", 64)
    trial = TrialMaker(tmp_path, "long", [a_case(1)])
    line = encode(AlertRaised(time=NOON, text="x" * 5000))
    trial.folder.journal.write_bytes(line + b"\n" + line + b"\n")
    with open_store(location) as store:
        assert sync(store, tmp_path) == Synced(1, 2)
