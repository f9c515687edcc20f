"""Making the runs of an array: what a file system keeps back holds up no others."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from seatrial.errors import TrialError
from seatrial.execute import creation
from seatrial.execute.backends import Job, Submission
from seatrial.execute.directory import prepare
from seatrial.execute.driver import Driver
from seatrial.execute.local import LocalBackend
from seatrial.execute.plan.prepare import prepare_plan
from seatrial.execute.plan_trials import begin
from seatrial.journal.events import RunSubmitted
from tests.execute.plans import (
    TAG,
    alerts,
    audit,
    control,
    ends,
    paths,
    short,
    start,
    write_plan,
)
from tests.gates import wait_for
from tests.programs import LONG_S, Workplace
from tests.slurm.cluster import SlurmCluster
from tests.waiting import until_true

TARGETS = ["t0", "t1", "t2"]


def scratch(place: Workplace, command: str) -> dict[str, Any]:
    """A file system of three targets, which a command places on."""
    about = {"path": str(place.folder / "scratch"), "targets": TARGETS, "place": command}
    return {"file_systems": {"scratch": {**about, "timeout": "10m"}}}


def used(place: Workplace) -> set[str]:
    """The targets of the runs that passed."""
    over = {event.run_id for event in ends(place) if event.verdict == "pass"}
    return {path.parent.parent.name for path in paths(place) if path.name in over}


@pytest.fixture
def freed(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """The local backend makes arrays, as Slurm does; what hangs until this is set may go on."""

    def arrange(_: LocalBackend, jobs: Sequence[Job]) -> list[Submission]:
        return [Submission(jobs[0].run_id, tuple(jobs))]

    monkeypatch.setattr(LocalBackend, "arrange", arrange)
    return threading.Event()


def driver_of(place: Workplace, **keys: Any) -> Driver:
    """Of a trial that nobody has driven, on the file system of three targets."""
    place.local(cores=6, **scratch(place, 'mkdir "$DIRECTORY"'))
    write_plan(place, "10m", file_system="scratch", **keys)
    prepared = prepare_plan(place.folder / "plan.yaml")
    return Driver(begin(place.trials, prepared, prepared.parts[0]))


async def drive_until(
    driver: Driver, seen: Callable[[], object], freed: threading.Event, last: Callable[[], object]
) -> None:
    """Drive a trial until this was seen while something hangs, and the last when it goes on."""
    drive = asyncio.ensure_future(driver.drive())

    def driven(condition: Callable[[], object]) -> Callable[[], object]:
        def holds() -> object:
            assert not drive.done(), drive.exception()
            return condition()

        return holds

    await until_true(driven(seen), "the others while something hangs")
    freed.set()
    await until_true(driven(last), "what hung")
    driver.interrupt()
    await asyncio.wait_for(drive, LONG_S)


@pytest.mark.parametrize("where", ["is looked at", "was ready before"])
def test_a_target_that_does_not_answer_holds_no_array_of_others(
    place: Workplace, freed: threading.Event, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    def hanging(act: Callable[..., Any]) -> Callable[..., Any]:
        def hang(path: Path, *more: Any) -> Any:
            if "/t0" in str(path):
                assert freed.wait(LONG_S)
            return act(path, *more)

        return hang

    if where == "is looked at":
        monkeypatch.setattr(Path, "is_dir", hanging(Path.is_dir))
    else:
        monkeypatch.setattr("seatrial.execute.creation.prepare", hanging(prepare))
    short(place, "a", walltime="30s")
    driver = driver_of(place)

    def others() -> bool:
        return used(place) == {"t1", "t2"} and len(ends(place)) > 8

    asyncio.run(drive_until(driver, others, freed, lambda: "t0" in used(place)))
    announced = place.events(TAG, RunSubmitted)
    assert len({event.run_id for event in announced}) < len(announced), "they were parted"
    audit(place)


def test_a_target_that_dies_is_told(
    place: Workplace, freed: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = Path.mkdir

    def hang(path: Path, *more: Any, **keys: Any) -> None:
        if "/t0/a/" in str(path):
            assert freed.wait(LONG_S)
        make(path, *more, **keys)

    monkeypatch.setattr(Path, "mkdir", hang)
    monkeypatch.setattr(creation, "SILENT_SECONDS", 0.05)
    short(place, "a", walltime="30s")
    driver = driver_of(place)

    def told() -> list[Any]:  # on a busy host of others, too
        return [each for each in alerts(place, "placement") if each.subject == "scratch/t0"]

    asyncio.run(drive_until(driver, told, freed, lambda: "t0" in used(place)))
    (alert,) = told()
    assert "has not answered for 50 ms" in alert.text


@pytest.mark.slurm
def test_a_placement_command_that_hangs_holds_up_one_target_of_slurm(
    place: Workplace, cluster: SlurmCluster
) -> None:
    """And a driver that is killed meanwhile leaves no run of the parted arrays behind."""
    free = place.folder / "free"
    command = f'if [ "$TARGET" = t0 ]; then {wait_for(free)}; fi; mkdir "$DIRECTORY"'
    place.slurm(cluster, **scratch(place, command))
    short(place, "a", "sleep 1", walltime="60s")
    write_plan(place, "10m", file_system="scratch")
    with start(place) as driving:
        driving.until(lambda: used(place) == {"t1", "t2"}, "runs on the other targets")
        driving.kill()
    free.touch()
    with start(place) as driving:
        driving.until(lambda: "t0" in used(place), "runs on the target that hung")
        assert control(place, "pause").code == 0
        assert driving.end().code == 3
    audit(place)


# ---- a file system that is full ----------------------------------------------------------------


@pytest.mark.parametrize("deck", ["file", "folder"])
def test_a_full_file_system_is_named_and_not_the_decks(
    place: Workplace, freed: threading.Event, monkeypatch: pytest.MonkeyPatch, deck: str
) -> None:
    source = short(place, "a", walltime="30s") / "deck"
    if deck == "folder":
        source.mkdir()
    (source / "input.dat" if deck == "folder" else source).write_text("deck")
    driver = driver_of(place, tests={"a": {"deck": {"source": "deck", "how": "per_run"}}})
    full = os.strerror(errno.ENOSPC)

    def fail(source: Any, target: Any, **_: Any) -> None:
        raise OSError(errno.ENOSPC, full, str(source), None, str(target))

    monkeypatch.setattr(shutil, "copyfile", fail)
    with pytest.raises(TrialError) as failed:
        asyncio.run(driver.drive())
    said = str(failed.value)
    assert said.startswith(f"{place.folder}/scratch/{TAG}/"), said
    assert full in said
    assert str(place.suite) not in said
