"""A site's store in PostgreSQL: who may do what, several collectors, a server that goes away."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from seatrial.errors import StoreError
from seatrial.journal.encoding import encode
from seatrial.journal.events import AlertRaised, BuildEnded, MetricRecorded, RunCreated, RunJudged
from seatrial.results.store import ingest, queries
from seatrial.results.store.ingest import Synced, sync, synced
from seatrial.results.store.opening import create, open_store, reopen_empty
from seatrial.results.store.tables import VERSION, Filters
from seatrial.results.store.upserts import LONGEST_TEXT, fold
from tests.waiting import LONG_S

from .conftest import NEEDS_POSTGRES
from .postgres import VIEWER, WRITER, PostgresServer
from .test_ingest import EVENTS, content, number_of_events, of_memory
from .trials import TrialMaker, a_case, a_trial

pytestmark = NEEDS_POSTGRES

FORK = multiprocessing.get_context("fork")


@pytest.fixture(scope="module")
def fragile() -> Iterator[PostgresServer]:
    """A server that a test may kill."""
    with PostgresServer() as server:
        yield server


def collect(url: str, trials: Path) -> None:
    """What a collector does, as a process of its own. Small blocks, so that others come between."""
    ingest.READ_OF_TRIAL = 700
    synced(url, trials).close()


# ---- several collectors -------------------------------------------------------------------


def test_collectors_at_once_double_and_lose_nothing(tmp_path: Path, postgres_url: str) -> None:
    for number in range(6):
        a_trial(tmp_path, f"t{number}")
    collectors = [FORK.Process(target=collect, args=(postgres_url, tmp_path)) for _ in range(3)]
    for each in collectors:
        each.start()
    for each in collectors:
        each.join(LONG_S)
        assert each.exitcode == 0
    with open_store(postgres_url) as store:
        assert store.rows("SELECT count(*), count(DISTINCT id) FROM runs") == [(18, 18)]
        assert number_of_events(store) == 6 * EVENTS
        assert content(store)["trials"] == of_memory(tmp_path)["trials"]
        assert sync(store, tmp_path) == Synced(0, 0)


def test_collectors_of_several_machines_may_have_the_same_folders(
    tmp_path: Path, postgres_url: str
) -> None:
    """The same path on two machines is two trials, whose collectors take turns."""
    for machine in ("frost", "ember", "frost"):
        a_trial(tmp_path, "nightly", machine=machine)
        with synced(postgres_url, tmp_path) as store:
            found = {row.machine: row.runs for row in queries.trials(store)}
            assert found[machine] == 3
        (tmp_path / "nightly").rename(tmp_path / f".{machine}")
        if machine == "ember":
            (tmp_path / ".frost").rename(tmp_path / "frost-once")
            (tmp_path / "frost-once").rename(tmp_path / ".gone")
    assert set(found) == {"frost", "ember"}


def test_a_trial_that_is_seen_at_another_path_is_the_same(
    tmp_path: Path, postgres_url: str
) -> None:
    (tmp_path / "here").mkdir()
    trial = a_trial(tmp_path / "here")
    synced(postgres_url, tmp_path / "here").close()
    (tmp_path / "here").rename(tmp_path / "there")
    with (tmp_path / "there" / "nightly" / "journal.jsonl").open("ab") as file:
        file.write(encode(trial.event(AlertRaised)) + b"\n")
    with synced(postgres_url, tmp_path / "there") as store:
        (row,) = queries.trials(store)
        assert row.path == str(tmp_path / "there" / "nightly")
        assert number_of_events(store) == EVENTS + 1


def test_who_waits_too_long_for_a_trial_says_so(tmp_path: Path, postgres_url: str) -> None:
    a_trial(tmp_path)
    with open_store(postgres_url) as one, one.writing() as writer:
        writer.lock("nightly")
        with (
            open_store(postgres_url, wait_s=0.1) as other,
            pytest.raises(StoreError, match="locked by another collector") as raised,
        ):
            sync(other, tmp_path)
    assert other.place in str(raised.value)


# ---- a server that goes away --------------------------------------------------------------


def test_a_server_killed_half_way_loses_and_doubles_nothing(
    tmp_path: Path, fragile: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = fragile.database()
    a_trial(tmp_path)
    monkeypatch.setattr(ingest, "READ_OF_TRIAL", 1000)
    blocks = iter(range(1000))

    def killing(*given: Any) -> None:
        fold(*given)
        if next(blocks) == 3:
            fragile.kill()

    monkeypatch.setattr(ingest, "fold", killing)
    with open_store(url) as store:
        with pytest.raises(StoreError, match="cannot be reached") as raised:
            sync(store, tmp_path)
        assert str(raised.value).startswith(f"{store.place}: ")
        for use in (lambda: queries.trials(store), lambda: sync(store, tmp_path)):
            with pytest.raises(StoreError, match=r"cannot be reached.*see that its server runs"):
                use()
        fragile.start()
        assert 0 <= number_of_events(store) < EVENTS
        sync(store, tmp_path)
        assert content(store) == of_memory(tmp_path)


def test_a_server_that_came_back_unnoticed_is_not_noticed(
    tmp_path: Path, fragile: PostgresServer
) -> None:
    """What it had not on disk is read again."""
    trial = a_trial(tmp_path)
    with synced(fragile.database(), tmp_path) as store:
        fragile.kill()
        fragile.start()
        assert queries.count_runs(store, Filters()) in (0, 3)
        trial.event(AlertRaised, text="hot")
        trial.write()
        fragile.kill()
        fragile.start()
        assert sync(store, tmp_path).trials == 1
        assert content(store) == of_memory(tmp_path)
        fragile.kill()
        fragile.start()
        with store.reading():
            assert queries.count_runs(store, Filters()) in (0, 3)


def test_a_server_that_goes_away_within_a_reading_ends_it(
    tmp_path: Path, fragile: PostgresServer
) -> None:
    with open_store(fragile.database()) as store:
        with pytest.raises(StoreError, match="cannot be reached"), store.reading():
            assert queries.trials(store) == []
            fragile.kill()
            fragile.start()
            queries.trials(store)
        assert queries.trials(store) == []


# ---- roles --------------------------------------------------------------------------------


def test_a_viewer_reads_what_is_stored_and_writes_nothing(
    tmp_path: Path, postgres: PostgresServer, postgres_url: str
) -> None:
    trial = a_trial(tmp_path)
    synced(postgres_url, tmp_path).close()
    with synced(postgres.viewer(postgres_url), tmp_path) as store:
        assert (store.writable, store.notices) == (False, [])
        assert queries.count_runs(store, Filters()) == 3
        with pytest.raises(StoreError, match=f"{VIEWER} may read it"), store.writing():
            pass
        for statement in ("DELETE FROM runs", "DROP TABLE runs", "CREATE TABLE x (y INT)"):
            with pytest.raises(StoreError, match=r"may not|cannot be used"):
                store.rows(statement)
    with pytest.raises(StoreError, match="connect as its writer"):
        reopen_empty(postgres.viewer(postgres_url))
    trial.event(AlertRaised, text="hot")
    trial.write()
    with synced(postgres.viewer(postgres_url), tmp_path) as store:
        assert "1 trial is newer" in store.notices[0]
    with synced(postgres.viewer(postgres_url), tmp_path / "none") as store:
        assert store.notices == []
        assert queries.count_runs(store, Filters()) == 3


def test_a_viewer_can_read_after_the_tables_were_made_anew(
    tmp_path: Path, postgres: PostgresServer, postgres_url: str
) -> None:
    a_trial(tmp_path)
    with reopen_empty(postgres_url) as store:
        sync(store, tmp_path)
    with open_store(postgres.viewer(postgres_url)) as store:
        assert queries.count_runs(store, Filters()) == 3


def test_members_of_the_writer_collect_and_leave_the_tables_to_it(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    url = postgres.database()
    postgres.sql("DROP ROLE IF EXISTS ana", f"CREATE ROLE ana LOGIN IN ROLE {WRITER}")
    a_trial(tmp_path)
    with reopen_empty(url.replace(f"//{WRITER}@", "//ana@")) as store:
        assert sync(store, tmp_path) == Synced(1, EVENTS)
    with open_store(url) as store:
        owners = "SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname = 'seatrial'"
        assert store.rows(owners) == [(WRITER,)]
        assert store.writable


def test_creating_again_adds_what_is_missing(tmp_path: Path, postgres: PostgresServer) -> None:
    url = postgres.database()
    postgres.sql("DROP ROLE IF EXISTS second", "CREATE ROLE second LOGIN")
    second = url.replace(f"//{WRITER}@", "//second@")
    a_trial(tmp_path)
    synced(url, tmp_path).close()
    with pytest.raises(StoreError, match="second may not"):
        open_store(second)
    assert create(postgres.admin(url), WRITER, ["second"]) == "was there"
    with open_store(second) as store:
        assert queries.count_runs(store, Filters()) == 3


def test_what_cannot_be_created_is_refused_with_the_remedy(postgres: PostgresServer) -> None:
    url = postgres.database()
    with pytest.raises(StoreError, match="no role nobody_here; first: CREATE ROLE"):
        create(postgres.admin(url), WRITER, ["nobody_here"])
    with pytest.raises(StoreError, match=f"GRANT {WRITER} TO {VIEWER}"):
        create(postgres.admin(url), VIEWER)
    bare = postgres.admin(postgres.database(made=False))
    with pytest.raises(StoreError, match=r"has no store in it.*seatrial store create"):
        open_store(bare)
    postgres.sql("CREATE SCHEMA seatrial", "CREATE TABLE seatrial.mine (x INT)", url=bare)
    with pytest.raises(StoreError, match="of another program"):
        create(bare, WRITER)
    postgres.sql("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0")
    with pytest.raises(StoreError, match="keeps text as LATIN1"):
        create(postgres.url("latin"), WRITER)


# ---- versions -----------------------------------------------------------------------------


def test_an_older_store_is_rebuilt_by_its_writer_alone(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    url = postgres.database()
    a_trial(tmp_path)
    synced(url, tmp_path).close()
    postgres.sql(
        f"UPDATE seatrial.about SET version = {VERSION - 1}",
        "DROP TABLE seatrial.gaps",
        url=postgres.admin(url),
    )
    with pytest.raises(StoreError, match="ask who collects into it"):
        open_store(postgres.viewer(url))
    with synced(url, tmp_path) as store:
        assert f"was of version {VERSION - 1}" in store.notices[0]
        assert content(store) == of_memory(tmp_path)
    with open_store(postgres.viewer(url)) as store:
        assert queries.count_runs(store, Filters()) == 3


def test_a_newer_store_is_refused_even_under_way(tmp_path: Path, postgres: PostgresServer) -> None:
    url = postgres.database()
    a_trial(tmp_path)
    with open_store(url) as store:
        newer = f"UPDATE seatrial.about SET version = {VERSION + 1}"
        postgres.sql(newer, url=postgres.admin(url))
        with pytest.raises(StoreError, match=r"newer Seatrial.*upgrade"):
            sync(store, tmp_path)
    for opening in (open_store, reopen_empty):
        with pytest.raises(StoreError, match=r"newer Seatrial.*upgrade"):
            opening(url)


# ---- what is kept, and what is said -------------------------------------------------------


def test_names_and_texts_of_any_length_are_kept(tmp_path: Path, postgres_url: str) -> None:
    trial = TrialMaker(tmp_path, "long", [a_case(1)], tags=tuple(f"tag{n}" for n in range(2000)))
    of = {"app": "ä" * 9000, "test": "€" * 9000, "case": "𝄞" * 9000, "run_id": "𝄞" * 9000}
    trial.event(RunCreated, path="/" * 9000, **of)
    trial.event(
        MetricRecorded, metric="𝄞" * 9000, unit="€" * 9000, value=1.5, better="ä" * 90, **of
    )
    trial.event(RunJudged, code=1, reason="a\tb\\c\r\nd\0e\\N" * 9000, **of)
    trial.event(BuildEnded, key="k" * 9000, code=1)
    trial.event(AlertRaised, kind="\0\\.\n", text="\\.\n")
    trial.write()
    with synced(postgres_url, tmp_path) as store:
        (run,) = queries.runs(store, Filters())
        assert (run.run_id, run.why[:12]) == ("𝄞" * 200, "a\tb\\c\r\nd\ufffde\\N")
        assert len(run.why) == LONGEST_TEXT
        assert queries.metrics_of(store, run)[0].value == 1.5
        alert = store.rows("SELECT detail, text FROM trial_events ORDER BY seq DESC LIMIT 1")
        assert alert == [("\ufffd\\.\n", "\\.\n")]


def test_a_password_is_never_shown(postgres: PostgresServer, capfd: Any) -> None:
    folder = postgres.folder
    for url in (
        f"postgresql://ana:s3cret@/none?host={folder}",
        f"postgresql://ana@/none?host={folder}&password=s3cret",
        "postgresql://ana:s3cret@127.0.0.1:1/none",
        "postgresql://ana:a/s3cret@127.0.0.1/none",
        "postgresql://ana:a?s3cret@127.0.0.1/none",
        "postgresql://ana:a%zzs3cret@127.0.0.1/none",
        "postgresql://ana:s3cret",
        "mysql://ana:s3cret@db/none",
    ):
        with pytest.raises(StoreError) as raised:
            open_store(url)
        assert "s3cret" not in str(raised.value)
        assert str(raised.value).startswith(("postgresql://", "mysql://ana@db/none"))
    assert "s3cret" not in "".join(capfd.readouterr())
