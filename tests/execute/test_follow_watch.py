"""Runs in flight that nothing follows are told."""

from __future__ import annotations

import asyncio

import pytest

from seatrial.execute import jobs
from seatrial.execute.background import Tasks
from seatrial.execute.batch.batch import BatchBackend
from seatrial.execute.driver import Driver
from seatrial.execute.jobs import watch_followed
from seatrial.execute.local import LocalBackend
from seatrial.journal.events import AlertRaised, RunJudged
from tests.programs import Workplace
from tests.waiting import LONG_S


def test_runs_that_are_not_followed_at_two_looks_are_told_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(jobs, "LOOK_SECONDS", 0.01)
    looks = iter([{"r1"}, {"r2"}, {"r2", "r3"}, {"r2", "r3"}, {"r2", "r3"}])
    over = asyncio.Event()

    def unfollowed() -> set[str]:
        found = next(looks, None)
        if found is None:
            over.set()
        return found or set()

    async def work() -> list[AlertRaised]:
        tasks = Tasks(asyncio.Queue())
        tasks.spawn(watch_followed(unfollowed, tasks))
        await asyncio.wait_for(over.wait(), LONG_S)
        await tasks.end()
        told = [tasks.inbox.get_nowait() for _ in range(tasks.inbox.qsize())]
        return [each for each in told if isinstance(each, AlertRaised)]

    alerts = asyncio.run(work())
    assert [(each.kind, each.subject) for each in alerts] == [
        ("unfollowed", "r2"),
        ("unfollowed", "r3"),
    ]


def test_a_driver_tells_of_no_run_that_its_backend_follows(place: Workplace) -> None:
    place.constants = {"execute.jobs.LOOK_SECONDS": 0.02}
    place.test("a", "sleep 0.3", parameters={"n": [1, 2, 3]})
    done = place.run("--name", "t")
    assert done.code == 0, done.said
    assert place.count(RunJudged) == 3
    assert place.alerts() == ""


def test_a_run_that_the_backend_dropped_is_told(
    place: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.test("a", "sleep 0.5")
    assert place.run("--name", "t", "--dry-run").code == 0
    monkeypatch.setattr(jobs, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(LocalBackend, "followed", lambda _: set())
    asyncio.run(Driver(place.trial()).drive())
    (run,) = place.events("t", RunJudged)
    told = [(each.kind, each.subject) for each in place.events("t", AlertRaised)]
    assert told == [("unfollowed", run.run_id)]


@pytest.mark.slurm
def test_the_job_of_a_build_is_watched_too(
    slurm_place: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in slurm_place.env.items():
        monkeypatch.setenv(name, value)
    slurm_place.test("a", "true", build={"where": "job", "script": "sleep 1"})
    assert slurm_place.run("--name", "t", "--dry-run").code == 0
    monkeypatch.setattr(jobs, "LOOK_SECONDS", 0.2)
    monkeypatch.setattr(BatchBackend, "followed", lambda _: set())
    asyncio.run(Driver(slurm_place.trial()).drive())
    told = {e.subject[0] for e in slurm_place.events("t", AlertRaised) if e.kind == "unfollowed"}
    assert "b" in told
