"""Stores and journals that are not as they should be: each is a clear page, never a traceback."""

from __future__ import annotations

import contextlib
import json
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from seatrial.model import codes
from seatrial.results.store.ingest import synced
from seatrial.results.store.tables import VERSION
from tests.journals import without_checksums
from tests.programs import Workplace, until
from tests.results.store.conftest import NEEDS_POSTGRES
from tests.results.store.postgres import PostgresServer, shared_server
from tests.results.store.trials import a_trial

from .lists import STREAMS, make_site, weekly
from .served import Served

QUICKLY = {"show.web.server_state.WAIT_S": 0.3}
PAGES = ("/", "/runs", "/failures", "/runs/weekly/broken1", "/runs.json")


@pytest.fixture
def trials(tmp_path: Path) -> Path:
    make_site(tmp_path / "trials")
    return tmp_path / "trials"


def total(served: Served) -> int:
    return int(served.json("/runs")["total"])


@contextlib.contextmanager
def changed(store: Path) -> Iterator[sqlite3.Connection]:
    """The store's file, opened by another program."""
    with contextlib.closing(sqlite3.connect(store, isolation_level=None)) as connection:
        yield connection


def assert_each_page_says(served: Served, status: int, said: str) -> None:
    for page in PAGES:
        got, text = served.get(page)
        assert got == status, f"{page}: {got} {text[:500]}"
        assert said in text, f"{page}: {text[:500]}"
        assert "Traceback" not in text


# ---- stores -----------------------------------------------------------------------------------


def put_in_its_place(store: Path, other: Path) -> None:
    """What another program does to a store that is open."""
    for ending in ("-wal", "-shm"):
        store.with_name(store.name + ending).unlink(missing_ok=True)
    other.replace(store)


def assert_refused(trials: Path, said: str, code: int = 2) -> None:
    """A server that is started over it does not begin, as any other command."""
    for words in (["serve", "--port", "0"], ["trials"]):
        done = Workplace(trials.parent).seatrial("--trials", str(trials), *words)
        assert (done.code, said in done.err) == (code, True), done


def test_a_store_of_a_newer_version_is_refused_with_the_remedy(trials: Path) -> None:
    newer = trials.parent / "newer.sqlite"
    synced(newer, trials).close()
    with changed(newer) as connection:
        connection.execute(f"PRAGMA user_version = {VERSION + 1}")
    with Served(trials) as opened:
        until(lambda: total(opened) == STREAMS + 8, "the journals to be read")
        put_in_its_place(trials / "store.sqlite", newer)
        until(lambda: opened.get("/runs.json")[0] == 503, "it to be seen")
        assert_each_page_says(opened, 503, "made by a newer Seatrial")
        assert_each_page_says(opened, 503, "--store")
        assert opened.get("/runs")[1].count("made by a newer Seatrial") == 1
    assert_refused(trials, "made by a newer Seatrial", 3)


def test_a_store_of_an_older_version_is_made_anew(trials: Path) -> None:
    synced(trials / "store.sqlite", trials).close()
    with changed(trials / "store.sqlite") as connection:
        connection.execute(f"PRAGMA user_version = {VERSION - 1}")
        connection.execute("DELETE FROM runs")
    with Served(trials) as opened:
        until(lambda: total(opened) == STREAMS + 8, "the journals to be read")
        assert "rebuilt from the journals" in opened.get("/runs")[1]


def test_a_file_that_is_no_store_says_what_to_do(trials: Path) -> None:
    odd = trials.parent / "odd.sqlite"
    odd.write_bytes(b"not a database at all\n" * 100)
    with Served(trials) as opened:
        until(lambda: total(opened) == STREAMS + 8, "the journals to be read")
        put_in_its_place(trials / "store.sqlite", odd)
        until(lambda: opened.get("/runs.json")[0] == 503, "it to be seen")
        assert_each_page_says(opened, 503, "seatrial store rebuild")
    assert_refused(trials, "seatrial store rebuild", 3)


def test_a_damaged_file_says_what_to_do(trials: Path) -> None:
    (trials / "store.sqlite").write_bytes(b"SQLite format 3\0" * 300)
    assert_refused(trials, "is no store; name another with --store")


def test_a_store_that_is_removed_is_filled_again(trials: Path) -> None:
    with Served(trials) as opened:
        until(lambda: total(opened) == STREAMS + 8, "the journals to be read")
        for file in trials.glob("store.sqlite*"):
            file.unlink()
        until(lambda: opened.get("/runs.json")[0] == 200 and total(opened) == STREAMS + 8, "it")


def test_a_store_that_another_writes_is_read_meanwhile(trials: Path) -> None:
    """What is new comes when the other is done; until then pages say that they may be old."""
    with Served(trials, constants=QUICKLY) as opened:
        until(lambda: total(opened) == STREAMS + 8, "the journals to be read")
        with changed(trials / "store.sqlite") as connection:
            connection.execute("BEGIN IMMEDIATE")
            weekly(trials.parent / "more").folder.path.rename(trials / "weekly-too")
            until(lambda: "is locked by another process" in opened.get("/runs")[1], "the notice")
            assert total(opened) == STREAMS + 8
            connection.execute("ROLLBACK")
        until(lambda: total(opened) > STREAMS + 8, "what is new")
        until(lambda: "is locked" not in opened.get("/runs")[1], "the notice to go")


def test_a_store_that_another_keeps_to_itself_is_a_clear_page(trials: Path) -> None:
    synced(trials / "store.sqlite", trials).close()
    with changed(trials / "store.sqlite") as connection:
        connection.execute("PRAGMA journal_mode = delete")
        connection.execute("BEGIN EXCLUSIVE")
        with Served(trials, constants=QUICKLY) as opened:
            for page in PAGES[:2]:
                status, text = opened.get(page)
                assert (status, "is locked by another process" in text) == (503, True), text
            connection.execute("ROLLBACK")
            until(lambda: opened.get("/runs")[0] == 200, "its release")


@NEEDS_POSTGRES
def test_a_database_goes_away_and_returns(trials: Path) -> None:
    with PostgresServer() as postgres:
        url = postgres.database()
        with Served(trials, store=url, constants=QUICKLY) as opened:
            until(lambda: total(opened) == STREAMS + 8, "the journals to be read", 90)
            found = opened.json("/runs")
            postgres.kill()
            for page in PAGES:  # what was made a moment ago may be given once more
                text = _failing(opened, page)
                assert "Traceback" not in text
                assert "postgresql://" in text
            postgres.start()
            until(lambda: opened.get("/runs")[0] == 200, "its return")
            until(lambda: opened.json("/runs") == found, "all that was there")


def _failing(served: Served, page: str) -> str:
    """What a page says once it cannot be made."""
    until(lambda: served.get(page)[0] == 503, "the absence to be seen")
    return served.get(page)[1]


@NEEDS_POSTGRES
def test_lists_are_the_same_in_either_database(trials: Path, tmp_path: Path) -> None:
    from urllib.parse import parse_qsl

    from seatrial.show.web.page import PageQuery
    from seatrial.show.web.pages import runs
    from seatrial.show.web.render import as_json
    from seatrial.show.web.server_state import ServerState

    pages: list[tuple[Any, dict[str, str], str]] = [
        (runs.runs, {}, query)
        for query in (
            *("", "state=failed", "match=io", "tag=node&rehearsed=1", "trial=weekly&limit=4"),
            *("sort=longest", "sort=shortest&limit=5", "verdict=lost", "since=2026-11-21T13:00"),
        )
    ]
    pages += [(runs.failures, {}, query) for query in ("", "match=hpl", "since=2026-11-21T13:00")]
    of = {"trial": "weekly", "run_id": "slow1"}
    pages += [(runs.run, of, ""), (runs.run, {**of, "run_id": "broken1"}, "find=line")]
    sites = [
        ServerState(trials, place) for place in (tmp_path / "s.sqlite", shared_server().database())
    ]
    for site in sites:
        synced(site.place, trials).close()
    for page, path, query in pages:
        asked = PageQuery(path, parse_qsl(query), "/page")
        answers = []
        for site in sites:
            found = page(site, asked)
            if path:
                found = {**found, "now": 0}
            answers.append(as_json(found))
        assert answers[0] == answers[1], query
    for site in sites:
        site.forget()


# ---- journals and folders -----------------------------------------------------------------------


def test_a_journal_damaged_in_the_middle_shows_its_gap(tmp_path: Path) -> None:
    maker = weekly(tmp_path / "trials")
    lines = without_checksums(maker.folder.journal).splitlines(keepends=True)
    lines[20:23] = [b"\0\xff garbage\n", b'{"time": "noon"}\n', b"<script>\n"]
    maker.folder.journal.write_bytes(b"".join(lines))
    with Served(tmp_path / "trials") as opened:
        until(lambda: total(opened) > STREAMS, "the journal to be read")
        for page in ("/runs?trial=weekly", "/failures?trial=weekly", "/runs/weekly/slow1"):
            _, text = opened.get(page)
            assert "cannot be read; what they told is missing here" in text
            assert "lines 21 to 23" in text
        gaps = opened.json("/runs", trial="weekly")["gaps"]
        assert [gap["lines"] for gap in gaps] == [3]
        assert opened.json("/runs")["gaps"] == []


def test_a_folder_that_is_deleted_under_a_page_leaves_what_is_known(trials: Path) -> None:
    with Served(trials) as opened:
        until(lambda: total(opened) == STREAMS + 8, "the journals to be read")
        assert opened.json("/runs/weekly/broken1")["launcher"] == "none"
        shutil.rmtree(trials / "weekly")
        found = opened.json("/runs/weekly/broken1", find="x")
        assert found["verdict"] == codes.FAILED.name
        assert {output["absent"] for output in found["outputs"]} == {"is gone with its directory"}
        assert found["launcher"] == ""
        assert found["scripts"] == [
            {"title": "job.sh", "text": "", "note": "is gone with its directory"}
        ]
        assert opened.get("/runs/weekly/broken1?find=x")[0] == 200
        assert opened.json("/failures")["failures"][0]["output"].endswith("its directory")
        assert total(opened) == STREAMS + 8


def test_a_record_that_cannot_be_read_leaves_the_rest(trials: Path) -> None:
    with Served(trials) as opened:
        until(lambda: total(opened) == STREAMS + 8, "the journals to be read")
        record = trials / "weekly" / "trial.json"
        contents = (b"", b"{", b"[]" * 1000, b"\xff", b"{}", None)
        for number, content in enumerate(contents):
            record.unlink()
            if content is not None:
                record.write_bytes(content)
            found = opened.json("/runs/weekly/slow1", find=number)  # an address not asked before
            assert found["launcher"] == ""
            assert found["metrics"][0]["expected"] is None
            assert opened.get(f"/runs/weekly/slow1?find={number}")[0] == 200
        assert opened.get("/runs")[0] == 200


def test_a_record_whose_groups_are_no_nodes_is_told_on_the_page(tmp_path: Path) -> None:
    trials = tmp_path / "trials"
    a_trial(trials, "odd")
    path = trials / "odd" / "trial.json"
    record = json.loads(path.read_text())
    record["machine"]["groups"] = {"rack": "n["}
    path.write_text(json.dumps(record))
    with Served(trials) as served:
        served.until_read()
        status, text = served.get("/trials/odd")
        assert status == 200
        assert "is not a node set" in text
