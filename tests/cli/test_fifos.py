"""A FIFO in the place of each file that a real trial has, in turn: no command waits for it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from tests.programs import Workplace

SECONDS = 20.0
TAG = "p-once"
COMMANDS = [
    *("resume p-once", "run suite -m machine.yaml --name u --quiet", "builds", "builds --remove"),
    *("show p-once/RUN", "runs", "report p-once -o x.html", "note hello", "sink p-once --stdout"),
    *("judge p-once", "accept check plan.yaml --limit 60s", "accept status plan.yaml"),
]


class Kept(NamedTuple):
    """A trial whose last verdict is to come, all that is beside it, and a copy of both."""

    place: Workplace
    copy: Path
    run: str

    def restore(self) -> None:
        shutil.rmtree(self.place.trials)
        shutil.copytree(self.copy, self.place.trials, symlinks=True)

    def files(self) -> Iterator[Path]:
        for path in sorted(self.place.trials.rglob("*")):
            if path.is_file() and not path.is_symlink() and not of_a_linked_build(path):
                yield path

    def words(self, command: str) -> list[str]:
        return command.replace("RUN", self.run).split()


def of_a_linked_build(path: Path) -> bool:
    return any(part.is_symlink() for part in path.parents)


def cut(journal: Path, before: str) -> None:
    """Take the journal back to before its last event of a name, as a killed driver leaves it."""
    lines = journal.read_bytes().splitlines(keepends=True)
    last = max(n for n, line in enumerate(lines) if b'"event":"%b' % before.encode() in line)
    journal.write_bytes(b"".join(lines[:last]))
    journal.with_name(f"{journal.name}.mark").unlink()


def write_plan(place: Workplace) -> None:
    component = {"component": "once", "repeat": 1}
    plan: dict[str, Any] = {"plan": "p", "machine": "machine.yaml", "suites": ["suite"]}
    plan |= {"components": [component], "alerts": {"command": "true"}}
    (place.folder / "plan.yaml").write_text(yaml.safe_dump(plan))


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    place = Workplace(tmp_path_factory.mktemp("fifos"))
    place.local(cores=2)
    build = {"script": "echo 'echo built' > tool; chmod +x tool"}
    place.test("t", "$BUILD/tool", build=build, verify=[{"contains": "built"}])
    write_plan(place)
    assert place.seatrial("--log-level", "debug", "accept", "plan.yaml", "-q").code == 0
    cut(place.trial(TAG).journal, "check_start")
    os.utime(place.trial(TAG).heartbeat, (1e9, 1e9))
    for words in ("accept check plan.yaml --limit 60s", "note hello", "runs"):
        place.seatrial(*words.split())
    (place.trial(TAG).path / "next").write_text("p-next\n")
    (place.trials / "serve.log").write_text("")
    shutil.copytree(place.trials, place.folder / "kept", symlinks=True)
    run = next((place.trial(TAG).path / "runs/t").iterdir()).name
    return Kept(place, place.folder / "kept", f"{run}")


def touched(kept: Kept, command: str) -> list[Path]:
    """The files that a command reads or writes, by their times; those of locks, too."""
    kept.restore()
    before = {}
    for path in kept.files():
        os.utime(path, ns=(0, path.stat().st_mtime_ns))
        about = path.stat()
        before[path] = (about.st_ino, about.st_mtime_ns, 0)
    kept.place.seatrial(*kept.words(command), timeout=SECONDS)
    found = []
    for path, was in before.items():
        now = (0, 0, 0)
        if path.exists():
            about = path.stat()
            now = (about.st_ino, about.st_mtime_ns, about.st_atime_ns)
        if now != was or "lock" in path.name:
            found.append(path)
    return found


@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_waits_for_any_file_of_a_trial(kept: Kept, command: str) -> None:
    files = touched(kept, command)
    assert files, "it reads nothing"
    waited = []
    for path in files:
        kept.restore()
        path.unlink()
        os.mkfifo(path)
        try:
            done = kept.place.seatrial(*kept.words(command), timeout=SECONDS)
        except AssertionError:
            waited.append(path)
            continue
        assert done.code in (0, 1, 2, 3), (command, path, done.said)
        assert "Traceback" not in done.said and "defect" not in done.said, (command, path)
    assert not waited


def test_the_files_are_those_that_the_test_is_about(kept: Kept) -> None:
    kept.restore()
    names = {path.relative_to(kept.place.trials).as_posix() for path in kept.files()}
    for name in ("notes.jsonl", "store.sqlite", "serve.log", *(f"{TAG}/{name}" for name in (
        "trial.json", "cases.jsonl", "journal.jsonl", "journal.jsonl.lock", "heartbeat", "alarm",
        "next", "facts/facts.sh", "facts/hung.sh", "scripts/t.sh", "log/driver.log",
    ))):  # fmt: skip
        assert name in names, name
    for ending in ("seatrial.result", "seatrial.shared.json", "build.log", "lock", "tool"):
        assert any(name.startswith(".builds/") and name.endswith(ending) for name in names), ending
    assert any("/users/1." in name for name in names)
    assert any(name.endswith("/events.jsonl") for name in names)


@pytest.mark.slurm
@pytest.mark.parametrize("before", ["job_queue", "check_start"])
def test_no_resumption_waits_for_a_file_of_a_submission(
    slurm_place: Workplace, before: str
) -> None:
    """``job_queue``: as if the driver was killed before it noted the job's number."""
    place = slurm_place
    place.test("t", "echo well", verify=[{"contains": "well"}])
    assert place.run("--name", "t").code == 0
    cut(place.trial().journal, before)
    copy = place.folder / "kept"
    shutil.copytree(place.trials, copy, symlinks=True)
    files = [path for path in place.trial().submissions.rglob("*") if path.is_file()]
    assert {"answer", "errors", "job.sh", "runs", "submit.sh"} <= {path.name for path in files}
    for path in files:
        shutil.rmtree(place.trials)
        shutil.copytree(copy, place.trials, symlinks=True)
        path.unlink()
        os.mkfifo(path)
        done = place.resume(timeout=SECONDS)
        assert done.code in (0, 1, 2, 3), (path, done.said)
        assert "Traceback" not in done.said and "defect" not in done.said, (path, done.said)
        assert len(place.ran()) == 1, (path, "it ran twice")
