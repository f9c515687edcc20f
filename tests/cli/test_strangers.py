"""What other users of the host and of the group put into a folder of trials: nothing of it runs
under the user's name, and nothing outside of the folder is read, written or removed for it."""

from __future__ import annotations

import json
import os
import shutil
import stat
from pathlib import Path

import pytest

from tests.execute.plans import TAG, accept, short, write_plan
from tests.programs import Workplace, until

STRANGER = 61234
GROUP = 61235
IS_ROOT = os.getuid() == 0

needs_root = pytest.mark.skipif(not IS_ROOT, reason="only root gives files away")


@pytest.fixture
def one_trial(place: Workplace) -> Workplace:
    place.test("hello", "echo hello", verify=[{"contains": "hello"}])
    assert place.run("--name", "t").code == 0
    return place


def give_away(folder: Path) -> None:
    for path in (folder, *folder.rglob("*")):
        os.chown(path, STRANGER, STRANGER, follow_symlinks=False)


def unfinished(place: Workplace) -> None:
    """Leave a trial with a run that is to come: its journal has the verdict of none."""
    lines = (place.trial().journal).read_bytes().splitlines(keepends=True)
    first = next(n for n, line in enumerate(lines) if b'"run_create' in line or b'"run_' in line)
    place.trial().journal.write_bytes(b"".join(lines[:first]))
    place.trial().journal.with_name("journal.jsonl.mark").unlink()


# ---- what a trial names -------------------------------------------------------------------


@needs_root
@pytest.mark.parametrize("whose", ["all", "trial.json", "."])
def test_the_trial_of_another_is_not_resumed(one_trial: Workplace, whose: str) -> None:
    unfinished(one_trial)
    ran = len(one_trial.ran())
    trial = one_trial.trial().path
    (trial / "scripts/hello.sh").write_text(f"touch {one_trial.folder}/forged\n")
    if whose == "all":
        give_away(trial)
    else:
        os.chown(trial / whose, STRANGER, -1)
    done = one_trial.resume()
    assert done.code == 3 and f"belongs to {STRANGER}" in done.err, done.said
    assert len(one_trial.ran()) == ran and not (one_trial.folder / "forged").exists()
    for path in (trial, *trial.rglob("*")):
        os.chown(path, 0, 0, follow_symlinks=False)
    assert one_trial.resume().code == 0 and len(one_trial.ran()) == ran + 1
    assert not (one_trial.folder / "forged").exists(), "scripts are written anew"


@needs_root
def test_the_judges_of_anothers_suite_are_not_run(one_trial: Workplace) -> None:
    give_away(one_trial.trial().path)
    done = one_trial.seatrial("judge", "t")
    assert done.code == 2 and "--with" in done.err and f"belongs to {STRANGER}" in done.err
    assert one_trial.seatrial("judge", "t", "--with", "suite").code == 0


@needs_root
def test_references_that_anothers_trial_names_are_not_written(one_trial: Workplace) -> None:
    mine = one_trial.folder / "mine.yaml"
    record = one_trial.trial().path / "trial.json"
    about = json.loads(record.read_text())
    usual = Path(about["references"])
    give_away(one_trial.trial().path)
    accept = ("reference", "accept", "t", "--metric", "elapsed", "--force")
    record.write_text(json.dumps(about | {"references": str(mine)}))
    done = one_trial.seatrial(*accept)
    assert done.code == 2 and f"belongs to {STRANGER}" in done.err, done.said
    assert not mine.exists() and not usual.exists()


@needs_root
def test_the_sinks_of_anothers_trial_get_nothing(place: Workplace) -> None:
    target = place.folder / "lines"
    place.local(sinks=[{"name": "lines", "kind": "file", "path": str(target), "rehearsals": True}])
    place.test("hello", "echo hello")
    assert place.run("--name", "t").code == 0
    until(lambda: place.seatrial("sink", "t").code == 0, "the end of the process of sinks")
    target.unlink()
    give_away(place.trial().path)
    done = place.seatrial("sink", "t", "--again")
    assert done.code == 2 and "--machine" in done.err, done.said
    everything = place.seatrial("sink", "--all", "--again")
    assert f"belongs to {STRANGER}" in everything.err
    assert not target.exists()
    assert (
        place.seatrial("sink", "t", "-m", "machine.yaml", "--again").code == 0 and target.exists()
    )


@needs_root
@pytest.mark.parametrize("above", [0, 1, 2])
def test_a_build_of_another_that_a_trial_has_is_not_run(place: Workplace, above: int) -> None:
    """As an older version linked to it: the journal has the end of the build."""
    build = {"script": "echo 'echo built' > tool; chmod +x tool"}
    place.test("t", "$BUILD/tool", build=build)
    assert place.run("--name", "t").code == 0
    lines = place.trial().journal.read_bytes().splitlines(keepends=True)
    last = next(n for n, line in enumerate(lines) if b'"build_end"' in line)
    place.trial().journal.write_bytes(b"".join(lines[: last + 1]))
    place.trial().journal.with_name("journal.jsonl.mark").unlink()
    built = next(place.trial().builds.iterdir()).resolve()
    os.chown([built, *built.parents][above], STRANGER, -1)
    done = place.resume()
    assert done.code == 3 and f"belongs to {STRANGER}" in done.err, done.said
    os.chown([built, *built.parents][above], 0, -1)
    assert place.resume().code == 0


@needs_root
@pytest.mark.parametrize("kind", ["folder", "link"])
def test_no_run_is_made_in_the_folder_of_another_on_a_file_system(
    place: Workplace, kind: str
) -> None:
    """There the name of a trial's folder can be guessed: it is the trial's tag."""
    path = place.folder / "scratch"
    path.mkdir()
    path.chmod(0o1777)
    place.local(cores=4, file_systems={"scratch": {"path": str(path)}})
    short(place, "a", "sleep 0.1")
    write_plan(place, "1s", file_system="scratch")
    made = path / TAG
    if kind == "folder":
        made.mkdir()
        made.chmod(0o777)
    else:
        (path / "other").mkdir()
        made.symlink_to(path / "other")
    os.chown(made, STRANGER, -1, follow_symlinks=False)
    done = accept(place)
    assert done.code == 3 and f"{made} belongs to {STRANGER}" in done.err, done.said
    assert not place.ran()
    os.chown(made, 0, -1, follow_symlinks=False)
    assert accept(place).code == 0 and place.ran()
    if kind == "folder":
        assert not made.stat().st_mode & 0o022


# ---- links --------------------------------------------------------------------------------


def test_requests_that_are_a_link_are_left_alone(one_trial: Workplace) -> None:
    """The folder of requests leads to a folder of the user, whose files would be removed."""
    private = one_trial.folder / "private"
    private.mkdir(mode=0o700)
    (private / "mine.json").write_text('{"a": 1}')
    (private / "other.json").write_text("[]")
    requests = one_trial.trial().requests
    shutil.rmtree(requests, ignore_errors=True)
    unfinished(one_trial)
    requests.symlink_to(private)
    assert one_trial.resume().code == 0
    assert sorted(path.name for path in private.iterdir()) == ["mine.json", "other.json"]
    done = one_trial.seatrial("cancel", "t/0000")
    assert done.code == 2 and len(list(private.iterdir())) == 2


@pytest.mark.parametrize("name", ["notes.jsonl", "serve.log", "t/log", "t/heartbeat", "t/next"])
def test_what_is_written_is_not_written_through_a_link(one_trial: Workplace, name: str) -> None:
    private = one_trial.folder / "private"
    private.mkdir()
    target = private / "driver.log"
    target.write_text("mine")
    os.utime(target, (1, 1))
    link = one_trial.trials / name
    shutil.rmtree(link, ignore_errors=True)
    link.unlink(missing_ok=True)
    link.symlink_to(private if name == "t/log" else target)
    if name == "notes.jsonl":
        done = one_trial.seatrial("note", "fabric reset")
        assert done.code != 0 and "it is a link" in done.err
    elif name == "serve.log":
        with one_trial.start("--log-level", "debug", "serve", "--port", "0") as server:
            server.until(lambda: "Seatrial shows" in server.said, "the server")
    else:
        unfinished(one_trial)
        assert one_trial.seatrial("--log-level", "debug", "resume", "t").code == 0
    assert (target.read_text(), target.stat().st_mtime) == ("mine", 1)
    assert [path.name for path in private.iterdir()] == ["driver.log"]
    if name == "t/heartbeat":
        assert link.is_file() and not link.is_symlink()


@pytest.mark.parametrize("name", ["journal.jsonl", "journal.jsonl.lock", "journal.jsonl.mark"])
def test_a_journal_is_not_written_through_a_link(one_trial: Workplace, name: str) -> None:
    target = one_trial.folder / "mine"
    target.write_text("no whole line")
    link = one_trial.trial().path / name
    link.unlink(missing_ok=True)
    link.symlink_to(target)
    one_trial.resume()
    one_trial.seatrial("judge", "t", "--again", "--reason", "r")
    assert target.read_text() == "no whole line"


def test_what_is_left_of_a_making_is_removed_and_nothing_that_it_leads_to(
    one_trial: Workplace,
) -> None:
    private = one_trial.folder / "private"
    private.mkdir()
    (private / "file").touch()
    here = f"-{os.uname().nodename}-"
    os.mkfifo(one_trial.trials / f".making-fifo{here}999996")
    (one_trial.trials / f".making-link{here}999997").symlink_to(private)
    left = one_trial.trials / f".making-x{here}999998"
    left.mkdir()
    (left / "link").symlink_to(private)
    os.mkfifo(left / "fifo")
    assert one_trial.run("--name", "u").code == 0
    assert not list(one_trial.trials.glob(".making-*")) and (private / "file").exists()


# ---- folders of groups --------------------------------------------------------------------


def told_of(place: Workplace, mode: int, *words: str) -> bool:
    place.trials.chmod(mode)
    done = place.seatrial(*words)
    return f"chmod +t {place.trials}" in done.err


def test_a_folder_that_lacks_the_sticky_bit_is_told_once(one_trial: Workplace) -> None:
    machine = str(one_trial.machine)
    for number, mode in enumerate((0o777, 0o1777, 0o755)):
        words = ("run", "suite", "-m", machine, "--name", f"u{number}")
        assert told_of(one_trial, mode, *words) is (mode == 0o777)
    assert told_of(one_trial, 0o777, "resume", "t")
    one_trial.trials.chmod(0o777)
    with one_trial.start("serve", "--port", "0") as server:
        server.until(lambda: "Seatrial shows" in server.said, "the server")
        assert server.said.count("chmod +t") == 1


@needs_root
def test_a_group_that_may_write_is_told_unless_it_is_the_own_one(one_trial: Workplace) -> None:
    for group, told in ((GROUP, True), (os.getgid(), False)):
        os.chown(one_trial.trials, -1, group)
        assert told_of(one_trial, 0o2775, "resume", "t") is told
        assert not told_of(one_trial, 0o3775, "resume", "t")


@needs_root
def test_whatever_the_umask_only_its_owner_writes_a_trial(place: Workplace) -> None:
    """As members of groups have it: 002, in a folder that gives what is made to the group."""
    place.trials.mkdir()
    os.chown(place.trials, -1, GROUP)
    place.trials.chmod(0o3775)
    build = {"script": "echo 'echo built' > tool; chmod +x tool"}
    place.test("t", "$BUILD/tool > result", build=build)
    mask = os.umask(0o002)
    try:
        assert place.run("--name", "t").code == 0
        assert place.seatrial("note", "fabric reset").code == 0
    finally:
        os.umask(mask)
    of_the_job = {*place.run_folder("t").iterdir(), *place.trial().facts.glob("*+*")}
    loose = {
        path
        for path in place.trials.rglob("*")
        if not path.is_symlink() and path.stat().st_mode & 0o022
    }
    shared = {place.trial().requests, place.trials / "notes.jsonl"}
    assert {path for path in loose - of_the_job if path.name[0] != "."} <= shared | {
        path for path in loose if path.name.startswith("store.sqlite")
    }
    assert stat.S_IMODE(place.trial().requests.stat().st_mode) == 0o3775


def test_a_trial_that_others_may_write_is_told(one_trial: Workplace) -> None:
    (one_trial.trial().path / "trial.json").chmod(0o666)
    done = one_trial.resume()
    assert "others may write" in done.err and "chmod go-w" in done.err
