"""Which of two jobs of a run is the run."""

from __future__ import annotations

import pytest

from seatrial.execute.batch.scheduler_client import TaskState
from seatrial.execute.batch.submitter import Choice, chosen, twins
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
