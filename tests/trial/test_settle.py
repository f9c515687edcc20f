"""Runs of another host: what their jobs wrote is seen here later than their end."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from typing import Any

import pytest

from seatrial.backends.protocol import Ended, Fact, Job, Queued, Started, Submission
from seatrial.journal.codes import Name
from seatrial.plan.prepare import prepare_plan
from seatrial.trial import driver as driver_module
from seatrial.trial import settle
from seatrial.trial.accepting import begin
from seatrial.trial.driver import Driver
from tests.programs import LONG_S, Workplace
from tests.trial.plans import TAG, ends, short, write_plan
from tests.waiting import until_true

FILES = ("stdout", "events.jsonl")


class RemoteBackend:
    """Runs each job to its end at once, and hides what it wrote. ``appears``: it is shown when the
    driver has recorded the job's end, as by a file system that is slow."""

    room = 0
    durable = True
    jobs = 2

    def __init__(self, place: Workplace, appears: bool) -> None:
        self._place = place
        self._appears = appears
        self._facts: asyncio.Queue[Fact] = asyncio.Queue()
        self._tasks: set[asyncio.Task[None]] = set()

    async def open(self) -> None: ...

    def arrange(self, jobs: Sequence[Job]) -> list[Submission]:
        return [Submission(job.run_id, (job,)) for job in jobs]

    def write(self, submission: Submission) -> None: ...

    async def submit(self, submission: Submission) -> None:
        for job in submission.jobs:
            task = asyncio.create_task(self._run(job))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _run(self, job: Job) -> None:
        self._facts.put_nowait(Queued(job.run_id, "1"))
        self._facts.put_nowait(Started(job.run_id, "n1"))
        output = (job.path / "stdout").open("wb")
        with output:
            script = await asyncio.create_subprocess_exec(
                "bash", str(job.path / "job.sh"), stdout=output
            )
            code = await script.wait()
        for name in FILES:
            (job.path / name).rename(job.path / f".{name}")
        self._facts.put_nowait(Ended(job.run_id, None, "COMPLETED", code, "n1"))
        if self._appears:
            await until_true(lambda: self._is_recorded(job.run_id), "the job's end in the journal")
            for name in FILES:
                (job.path / f".{name}").rename(job.path / name)

    def _is_recorded(self, run_id: str) -> bool:
        return any(event.run_id == run_id for event in self._place.events(TAG, Name.JOB_END))

    async def find(self, submissions: Sequence[Submission], known: dict[str, str]) -> None: ...

    async def cancel(self, run_ids: Collection[str], pending_only: bool = False) -> None: ...

    def watch_nodes(self, down: Collection[str]) -> None: ...

    async def facts(self) -> list[Fact]:
        return [await self._facts.get()]

    async def close(self) -> None: ...


def drive(
    place: Workplace, monkeypatch: pytest.MonkeyPatch, appears: bool, file_system: str
) -> None:
    """A trial of a second on that backend."""
    scratch: dict[str, Any] = {"path": str(place.folder / "scratch")}
    place.local(file_systems={"scratch": scratch})
    short(place, "good", "echo rate 5", metrics={"rate": _metric(r"rate (\S+)")})
    short(place, "bad", "exit 3")
    write_plan(place, "1s", **({"file_system": file_system} if file_system else {}))
    prepared = prepare_plan(place.folder / "plan.yaml")
    trial = begin(place.trials, prepared, prepared.parts[0])
    monkeypatch.setattr(driver_module, "choose_backend", lambda *_: RemoteBackend(place, appears))
    monkeypatch.setattr(settle, "LOOK_AGAIN_SECONDS", 0.01)
    asyncio.run(asyncio.wait_for(Driver(trial).drive(), LONG_S))


def _metric(pattern: str) -> dict[str, str]:
    return {"find": pattern, "unit": "1", "better": "higher"}


def verdicts(place: Workplace) -> set[tuple[str, str]]:
    return {(event.test, event.alias) for event in ends(place)}


@pytest.mark.parametrize("file_system", ["", "scratch"])
def test_what_a_job_wrote_is_waited_for(
    place: Workplace, monkeypatch: pytest.MonkeyPatch, file_system: str
) -> None:
    drive(place, monkeypatch, True, file_system)
    assert verdicts(place) == {("good", "pass"), ("bad", "failed")}
    assert {e.value for e in place.events(TAG, Name.METRIC)} == {5.0}
    assert {e.value for e in place.events(TAG, Name.BINARY_EXECUTE_END)} == {0, 3}


@pytest.mark.parametrize("file_system", ["", "scratch"])
def test_what_never_appears_is_waited_for_a_while(
    place: Workplace, monkeypatch: pytest.MonkeyPatch, file_system: str
) -> None:
    monkeypatch.setattr(settle, "PATIENCE_SECONDS", 0.05)
    drive(place, monkeypatch, False, file_system)
    assert verdicts(place) == {("good", "failed"), ("bad", "failed")}
    assert not place.count(Name.BINARY_EXECUTE_END, tag=TAG)
