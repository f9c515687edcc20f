"""What is particular to a store in a file: its version, another file in its place, threads."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from seatrial import cli
from seatrial.errors import SeatrialError, StoreError
from seatrial.journal.events import OutputQuiet
from seatrial.results.store import opening as sqlite_file
from seatrial.results.store import queries
from seatrial.results.store.ingest import sync, synced
from seatrial.results.store.location import Location
from seatrial.results.store.opening import open_memory, open_store, reopen_empty
from seatrial.results.store.tables import METRICS, VERSION, Filters, Metric, read

from .test_ingest import another_user, open_folder, powerless  # noqa: F401
from .trials import a_trial


def test_a_store_of_a_newer_version_is_left_as_it_is(tmp_path: Path) -> None:
    a_trial(tmp_path)
    path = tmp_path / "store.sqlite"
    synced(path, tmp_path).close()
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA journal_mode = delete")
        database.execute(f"PRAGMA user_version = {VERSION + 1}")
    before = path.read_bytes()
    for opening in (open_store, reopen_empty):
        with pytest.raises(StoreError, match=r"newer Seatrial.*upgrade.*--store") as raised:
            opening(path)
        assert str(raised.value).startswith(f"{path}: is of version {VERSION + 1}")
    assert path.read_bytes() == before


def test_a_newer_store_that_cannot_be_written_is_refused_too(open_folder: Path) -> None:  # noqa: F811
    path = open_folder / "store.sqlite"
    open_store(path).close()
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute(f"PRAGMA user_version = {VERSION + 1}")
    with powerless(open_folder), pytest.raises(StoreError, match="newer Seatrial"):
        open_store(path)


def test_a_store_that_a_newer_program_took_over_is_told(tmp_path: Path) -> None:
    a_trial(tmp_path)
    path = tmp_path / "store.sqlite"
    with synced(path, tmp_path) as store:
        with contextlib.closing(sqlite3.connect(path)) as database:
            database.execute("DROP TABLE runs")
            database.execute(f"PRAGMA user_version = {VERSION + 1}")
            database.commit()
        with pytest.raises(StoreError, match="newer Seatrial"):
            queries.runs(store, Filters())


def test_a_file_that_goes_away_and_returns_is_followed(tmp_path: Path) -> None:
    trials = tmp_path / "trials"
    trials.mkdir()
    a_trial(trials)
    path = tmp_path / "stores" / "store.sqlite"
    path.parent.mkdir()
    with synced(path, trials) as store:
        path.parent.rename(tmp_path / "aside")
        for _ in range(2):
            with pytest.raises(StoreError, match=r"is gone; put it back, or name another"):
                queries.trials(store)
        (tmp_path / "aside").rename(path.parent)
        assert queries.count_runs(store, Filters()) == 3
        path.unlink()
        assert queries.count_runs(store, Filters()) == 0  # a new one, to be filled
        sync(store, trials)
        assert queries.count_runs(store, Filters()) == 3


def test_what_is_read_as_it_was_is_read_again_when_it_changed(open_folder: Path) -> None:  # noqa: F811
    trial = a_trial(open_folder)
    path = open_folder / "store.sqlite"
    synced(path, open_folder).close()
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with powerless(open_folder):
        store = open_store(path)
        assert len(queries.events_of(store, queries.run(store, "aaaa1111"))) == 11
    trial.event(OutputQuiet, seconds=60, run_id="aaaa1111nightly", case=trial.cases[0].id)
    trial.write()
    synced(path, open_folder).close()
    with powerless(open_folder), store:
        assert len(queries.events_of(store, queries.run(store, "aaaa1111"))) == 12


def test_threads_take_turns_with_one_store(tmp_path: Path, location: Location) -> None:
    for number in range(4):
        a_trial(tmp_path, f"t{number}")
    errors: list[BaseException] = []
    with open_store(location) as store:

        def work() -> None:
            try:
                for _ in range(5):
                    sync(store, tmp_path)
                    with store.reading():
                        listed = queries.runs(store, Filters())
                        assert queries.count_runs(store, Filters()) == len(listed)
            except BaseException as error:
                errors.append(error)

        workers = [threading.Thread(target=work) for _ in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert not errors
        assert queries.count_runs(store, Filters()) == 12


def test_a_reading_sees_one_moment(tmp_path: Path, location: Location) -> None:
    a_trial(tmp_path, "one")
    with synced(location, tmp_path) as store, open_store(location) as other:
        with store.reading():
            assert queries.count_runs(store, Filters()) == 3
            a_trial(tmp_path, "two")
            sync(other, tmp_path)
            assert queries.count_runs(other, Filters()) == 6
            with store.reading():
                assert queries.count_runs(store, Filters()) == 3
            assert len(queries.runs(store, Filters())) == 3
        assert queries.count_runs(store, Filters()) == 6


def test_a_store_in_memory_reads_and_writes(tmp_path: Path) -> None:
    a_trial(tmp_path)
    with open_memory() as store:
        sync(store, tmp_path)
        shutil.rmtree(tmp_path / "nightly")
        with store.reading():
            assert queries.count_runs(store, Filters()) == 3
        assert store.size() == 0


@pytest.mark.parametrize("number", [0, 1, 299, 300, 301, 700])
def test_any_number_of_rows_is_inserted(number: int) -> None:
    figures = [Metric(run, 1, run / 7) for run in range(number)]
    with open_memory() as store:
        with store.writing() as writer:
            writer.insert(METRICS, iter(figures))
        assert read(store, Metric, "metrics", "FROM metrics ORDER BY run") == figures


def test_who_writes_for_long_lets_others_in(monkeypatch: pytest.MonkeyPatch) -> None:
    now, slept = [100.0], []

    def sleep(seconds: float) -> None:
        slept.append(round(seconds, 3))
        now[0] += seconds

    clock = SimpleNamespace(monotonic=lambda: now[0], sleep=sleep)
    with open_memory() as store:
        monkeypatch.setattr(sqlite_file, "time", clock)

        def write(hold: float, before: float = 0.0) -> None:
            now[0] += before
            with store.writing():
                now[0] += hold

        write(0.2, before=1.0)
        write(0.2)
        assert slept == []
        write(0.2)  # after 0.4 s in all
        assert slept == [sqlite_file.PAUSE_S]
        write(0.2)
        write(0.2, before=sqlite_file.PAUSE_S / 2)  # some of the pause has passed
        assert slept == [sqlite_file.PAUSE_S, sqlite_file.PAUSE_S / 2]
        for _ in range(5):
            write(0.9, before=2 * sqlite_file.PAUSE_S)
        assert len(slept) == 2


@contextlib.contextmanager
def colleague(path: Path, mode: int) -> Iterator[None]:
    """Somebody who may write in the folder of a file, and has these rights on the file itself."""
    path.parent.chmod(0o777)
    for file in path.parent.glob("store.sqlite*"):
        file.chmod(mode)
    try:
        with another_user():
            yield
    finally:
        for file in path.parent.glob("store.sqlite*"):
            file.chmod(0o644)


@pytest.mark.parametrize("written_meanwhile", [False, True], ids=["at rest", "open by its owner"])
def test_a_colleague_who_reads_leaves_no_files(
    open_folder: Path,  # noqa: F811
    written_meanwhile: bool,
) -> None:
    """In a folder that both may write, files of a colleague would keep the owner from writing."""
    path = open_folder / "store.sqlite"
    a_trial(open_folder)
    owner = synced(path, open_folder)
    if not written_meanwhile:
        owner.close()
    before = sorted(open_folder.iterdir())
    with colleague(path, 0o444), open_store(path) as store:
        assert not store.writable
        assert written_meanwhile or queries.runs(store, Filters())
    assert sorted(open_folder.iterdir()) == before
    if not written_meanwhile:
        owner = open_store(path)
    with owner as store, store.writing():
        pass


def test_a_store_that_one_may_not_read_is_replaced_in_memory(open_folder: Path) -> None:  # noqa: F811
    path = open_folder / "store.sqlite"
    open_store(path).close()
    with colleague(path, 0o000), open_store(path) as store:
        assert store.place == ":memory:"
        assert store.notices


def test_a_bad_byte_in_the_schema_is_damage_that_a_rebuild_mends(tmp_path: Path) -> None:
    a_trial(tmp_path)
    path = tmp_path / "store.sqlite"
    synced(path, tmp_path).close()
    whole = path.read_bytes()
    for place in range(whole.index(b"CREATE TABLE"), whole.rindex(b"CREATE ") + 200, 211):
        path.write_bytes(whole[:place] + b"\xfe" + whole[place + 1 :])
        try:
            synced(path, tmp_path).close()
        except StoreError as error:
            assert f"{path}: " in str(error)
            assert "store rebuild" in str(error)
        with reopen_empty(path) as store:
            assert sync(store, tmp_path).trials == 1
        for aside in tmp_path.glob("store.sqlite*"):
            aside.unlink()


def test_an_error_of_sqlite_that_is_no_text_is_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "store.sqlite"
    open_store(path).close()

    def broken(*_: object, **more: object) -> None:
        raise UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")

    with monkeypatch.context() as patch:
        patch.setattr(sqlite3, "connect", broken)
        with pytest.raises(StoreError, match=r"is damaged; run `seatrial store rebuild`"):
            open_store(path)
        assert sqlite_file.is_damaged(path, 0)


@pytest.mark.parametrize("damaged", [True, False])
def test_values_that_nobody_writes_are_damage_where_the_file_is_damaged(
    tmp_path: Path, damaged: bool
) -> None:
    """Pages of zeros in the middle give rows that fit nothing. A fault of our own stays one."""
    path = tmp_path / "store.sqlite"
    a_trial(tmp_path)
    synced(path, tmp_path).close()
    store = open_store(path)
    if damaged:
        whole = bytearray(path.read_bytes())
        whole[8192 : len(whole) // 2] = bytes(len(whole) // 2 - 8192)
        path.write_bytes(whole)
    expected, text = (StoreError, "is damaged; run") if damaged else (KeyError, "45x")
    with pytest.raises(expected, match=text), store:
        raise KeyError("45x")


@pytest.mark.parametrize(
    ("column", "change"),
    [
        ("why", "UPDATE runs SET why = NULL"),
        ("nodes", "UPDATE runs SET nodes = NULL"),
        ("", "DELETE FROM tests"),
        ("", "DELETE FROM cases"),
    ],
)
def test_what_a_damaged_schema_allowed_is_damage(tmp_path: Path, column: str, change: str) -> None:
    """Nothing where there is always something, and rows without those that they belong to."""
    a_trial(tmp_path)
    path = tmp_path / "store.sqlite"
    synced(path, tmp_path).close()
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        if column:
            declared = f"{column} TEXT NOT NULL"
            found = connection.execute("SELECT sql FROM sqlite_master WHERE name = 'runs'")
            (sql,) = found.fetchone()
            assert declared in sql
            connection.execute(
                "UPDATE sqlite_master SET sql = ? WHERE name = 'runs'",
                (sql.replace(declared, f"{column} TEXT         "),),
            )
        connection.commit()
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute(change)
        connection.commit()
    tag = next(tmp_path.glob("*/trial.json")).parent.name
    told = []
    for words in ("runs", "runs --format json", f"export {tag} --format junit", "trials"):
        line = ["--trials", str(tmp_path), *words.split()]
        error = CliRunner().invoke(cli.seatrial, line, standalone_mode=False).exception
        assert error is None or isinstance(error, SeatrialError), (words, repr(error))
        told.append("damaged" in str(error))
    assert any(told)
    assert sqlite_file.is_damaged(path, 0)
