"""Which of two jobs of a run is the run."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import cast

import pytest

from seatrial.execute.backends import Doubled, Job, Update
from seatrial.execute.batch.scheduler_client import SchedulerClient, TaskState
from seatrial.execute.batch.submitter import (
    BatchTask,
    Choice,
    DoubledJobs,
    JobReadings,
    chosen,
    twins,
)
from seatrial.execute.directory import JobEvents
from seatrial.journal.events import ScriptStarted


def task(array: int, state: str = "RUNNING", number: int | None = 3, name: str = "s") -> TaskState:
    return TaskState(array, number, name, state, 0, "")


def own(job_id: str = "") -> JobEvents:
    start = ScriptStarted(time=1, job_id=job_id) if job_id else None
    return JobEvents(claimed=bool(job_id), start=start, end=None)


@pytest.mark.parametrize(
    ("started", "ours", "twin", "expected"),
    [
        ("8_3", "RUNNING", "RUNNING", "twin"),
        ("8_3", "FAILED", "RUNNING", "twin"),
        ("7_3", "RUNNING", "RUNNING", "ours"),
        ("7_3", "COMPLETED", "RUNNING", "ours"),
        ("", "PENDING", "PENDING", "ours"),
        ("", "RUNNING", "PENDING", "ours"),
        ("", "PENDING", "RUNNING", "twin"),
        ("", "FAILED", "RUNNING", "twin"),  # with 93
        ("", "", "RUNNING", "twin"),
        ("", "RUNNING", "RUNNING", "later"),
        ("9_3", "RUNNING", "RUNNING", "later"),
    ],
)
def test_the_job_that_started_the_script_or_is_ahead(
    started: str, ours: str, twin: str, expected: Choice
) -> None:
    state = task(7, ours) if ours else None
    assert chosen(own(started), state, "7_3", task(8, twin), "8_3") == expected


def test_a_twin_has_the_name_and_the_number_of_a_task_of_ours() -> None:
    states = [
        task(7),
        task(8),
        task(8, number=4),
        task(8, number=None),
        task(9, "COMPLETED"),
        task(10, name="other"),
    ]
    ended = task(9, "COMPLETED")  # it found the directory claimed, between two polls
    assert twins({("s", 3): 7, ("s", 5): 7}, states) == [task(8), ended]
    assert twins({("s", 3): -1}, states) == []  # its jobs are forgotten


class Queue:
    """Stands for the scheduler's client: keeps what is cancelled. No job has written an event."""

    def __init__(self) -> None:
        self.cancelled: list[str] = []

    def task_id(self, array: int, index: int, alone: bool) -> str:
        return f"{array}_{index}"

    async def cancel(self, tasks: Collection[str], *, pending_only: bool) -> None:
        self.cancelled += tasks

    async def read(self, jobs: Iterable[Job]) -> dict[str, JobEvents]:
        return {job.run_id: own() for job in jobs}


@pytest.mark.parametrize(
    ("twin", "array", "cancelled"),
    [("CANCELLED", 7, []), ("FAILED", 7, []), ("RUNNING", 8, ["7_3"]), ("PENDING", 7, ["8_3"])],
)
def test_a_second_job_that_has_ended_is_told_and_not_followed(
    twin: str, array: int, cancelled: list[str]
) -> None:
    """A person cancelled it, say, while ours waits: ours is the run."""
    queue, told = Queue(), list[Update]()
    ours = BatchTask(Job("r", Path("r"), 1, 1, 1, 1, 60.0, "", False), "s", 7, 3, alone=False)
    states = {each.key: each for each in (task(7, "PENDING"), task(8, twin))}
    client, readings = cast(SchedulerClient, queue), cast(JobReadings, queue)
    asyncio.run(DoubledJobs(client, readings, told.append).settle([ours], states))
    assert [each for each in told if isinstance(each, Doubled)] == [Doubled("s", (7, 8))]
    assert (ours.array, queue.cancelled) == (array, cancelled)
