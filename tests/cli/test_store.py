"""A site's store through the real command line: made, filled by one role, read by another."""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path

import pytest

from seatrial.errors import with_extra
from seatrial.journal.events import AlertRaised
from seatrial.model import codes
from tests.journals import without_checksums
from tests.results.store.conftest import NEEDS_POSTGRES, postgres  # noqa: F401
from tests.results.store.postgres import VIEWER, WRITER, PostgresServer
from tests.results.store.trials import TrialMaker, a_case, a_trial

from .test_query_common import Answer, ask


@pytest.fixture(autouse=True)
def _of_this_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


def two_trials(folder: Path) -> None:
    """With enough runs that every judgement has something to say."""
    for tag in ("before", "after"):
        cases = [a_case(1, repeat=6), a_case(2, repeat=6)]
        trial = TrialMaker(folder, tag, cases)
        trial.start()
        for number in range(12):
            figures = {"triad": 100.0 + number + (10 if tag == "after" else 0)}
            verdict = codes.FAILED if number == 7 else codes.PASS
            trial.run(cases[number % 2], f"{tag}{number:04}", verdict, figures=figures)
        trial.end()


@pytest.fixture
def site(postgres: PostgresServer, tmp_path: Path) -> tuple[Path, str]:  # noqa: F811
    """A folder with two trials, and the writer's URL of a store that has them."""
    url = postgres.database(made=False)
    words = ["--writer", WRITER, "--viewer", VIEWER]
    made = ask(tmp_path, "store", "create", postgres.admin(url), *words)
    assert (made.code, made.err) == (0, "")
    assert "made; collect into it" in made.out
    two_trials(tmp_path)
    updated = ask(tmp_path, "--store", url, "store", "update")
    assert updated.code == 0, updated.err
    assert updated.out.endswith(": 244 new events of 2 trials\n")
    return tmp_path, url


@NEEDS_POSTGRES
def test_every_command_that_asks_works_for_a_viewer_without_the_files(
    site: tuple[Path, str],
    postgres: PostgresServer,  # noqa: F811
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    trials, url = site
    nowhere = tmp_path_factory.mktemp("nothing") / "trials"
    shutil.move(trials / "before", nowhere.parent / "before")
    shutil.move(trials / "after", nowhere.parent / "after")

    def looked(*words: str) -> Answer:
        return ask(nowhere, "--store", postgres.viewer(url), *words)

    for words in (
        ("trials",),
        ("runs",),
        ("runs", "--trial", "after", "--failed", "--format", "json"),
        ("show", "after0003"),
        ("show", "after/after0003", "--scripts"),
        ("export", "after", "--format", "junit"),
        ("export", "after", "--format", "json"),
        ("history", "triad"),
        ("variability", "after"),
        ("suspects",),
        ("compare", "before", "after"),
        ("store", "info"),
        ("store", "path"),
    ):
        answer = looked(*words)
        assert "Traceback" not in answer.err
        assert answer.code in (0, 1), (words, answer)
        assert answer.out
    for words in (("store", "update"), ("store", "rebuild")):
        refused = ask(nowhere.parent, "--store", postgres.viewer(url), *words)
        assert (refused.code, refused.out) == (3, "")
        assert "connect as its writer" in refused.err


@NEEDS_POSTGRES
def test_a_site_s_store_is_named_by_the_environment_and_never_with_its_password(
    site: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    trials, url = site
    monkeypatch.setenv("SEATRIAL_STORE", url.replace(f"{WRITER}@", f"{WRITER}:s3cret@"))
    found = ask(trials, "store", "info")
    assert found.code == 0, found.err
    assert "PostgreSQL 1" in found.out and f"as writer {WRITER}" in found.out
    assert "24  runs" in found.out
    rebuilt = ask(trials, "store", "rebuild")
    assert ": 2 trials, 244 events in " in rebuilt.out
    path = ask(trials, "store", "path")
    monkeypatch.setenv("SEATRIAL_STORE", f"postgresql://{WRITER}:s3cret@127.0.0.1:1/none")
    away = ask(trials, "runs")
    assert away.code == 3
    assert "cannot be reached; see that its server runs" in away.err
    said = "".join(answer.out + answer.err for answer in (found, rebuilt, path, away))
    assert "s3cret" not in said


def test_what_is_no_store_is_refused(tmp_path: Path) -> None:
    a_trial(tmp_path)
    for url, named in (
        ("mysql://x:s3cret@db/runs", "mysql://x@db/runs: is no store"),
        ("postgresql://[broken/runs", "postgresql://[broken/runs: cannot be read"),
    ):
        answer = ask(tmp_path, "--store", url, "runs")
        assert answer.code == 2
        assert named in answer.err and "postgresql://USER@HOST" in answer.err
        assert "s3cret" not in answer.err
    answer = ask(tmp_path, "store", "create", "sqlite.db")
    assert answer.code == 2
    assert answer.err.startswith("seatrial: sqlite.db: is no store; name a file, or postgresql://")


def test_a_file_of_somebody_s_is_left_alone(tmp_path: Path) -> None:
    a_trial(tmp_path)
    foreign = tmp_path / "foreign.txt"
    foreign.write_text("a thesis, not a store\n" * 100)
    before = foreign.read_bytes()
    for words in (("store", "rebuild"), ("store", "update"), ("trials",)):
        answer = ask(tmp_path, "--store", str(foreign), *words)
        assert answer.code == 2
        assert answer.err.startswith(f"seatrial: {foreign}: is no store; name another with --store")
    assert foreign.read_bytes() == before
    assert not foreign.with_name("foreign.txt.damaged").exists()


def test_the_latest_trial_is_the_one_that_was_made_last(tmp_path: Path) -> None:
    a_trial(tmp_path, "zebra")
    TrialMaker(tmp_path, "ant", [a_case(1)], created=1795330800 * 10**9).write()
    for words in (("resume", "other"), ("sink", "other"), ("report", "other")):
        answer = ask(tmp_path, *words)
        assert answer.code == 2
        assert "no trial 'other' here; the latest is ant" in answer.err


def test_a_trial_whose_record_was_overwritten_is_named_each_time(tmp_path: Path) -> None:
    trial = a_trial(tmp_path)
    record = trial.folder.path / "trial.json"
    assert ask(tmp_path, "trials").err == ""
    record.write_text("garbage")
    for words in (("trials",), ("runs",), ("store", "rebuild"), ("trials",)):
        answer = ask(tmp_path, *words)
        assert f"{record}: is not a trial's record" in answer.err, words


def test_without_psycopg_the_remedy_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    for words in (
        ("--store", "postgresql://db/x", "runs"),
        ("store", "create", "postgresql://db/x"),
    ):
        answer = ask(tmp_path, *words)
        assert answer.code == 3
        assert f"postgresql://db/x: needs psycopg: {with_extra('postgresql')}" in answer.err


def test_info_tells_where_journals_are_damaged(tmp_path: Path) -> None:
    trial = a_trial(tmp_path)
    lines = without_checksums(trial.folder.journal).split(b"\n")
    broken = [*lines[:4], b"\x1b[31m", b"{", *lines[4:9], b"bad", *lines[9:]]
    trial.folder.journal.write_bytes(b"\n".join(broken))
    told = ask(tmp_path, "store", "info").out
    assert "3  lines of journals that could not be read:\n" in told
    assert (
        f"{trial.folder.journal}:5, 2 lines, after 11-21 12:00:04, before 11-21 12:00:05\n" in told
    )
    assert f"{trial.folder.journal}:12 after 11-21 12:00:09, before 11-21 12:00:10\n" in told


def test_update_says_how_much_was_new(tmp_path: Path) -> None:
    trial = a_trial(tmp_path)
    assert ask(tmp_path, "store", "update").out.endswith(": 27 new events of 1 trials\n")
    trial.event(AlertRaised, text="hot")
    trial.write()
    assert ask(tmp_path, "store", "update").out.endswith(": 1 new events of 1 trials\n")
    assert ask(tmp_path / "none", "store", "update").code == 2
