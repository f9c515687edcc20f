"""Finds jobs that a scheduler has twice: two arrays of one name.

A submission has a name of its own, and is submitted once. Where it was submitted twice nevertheless
(by a command whose answer was lost twice, by a person who ran it by hand), the job that claimed the
run's directory is the run; the other one is cancelled, or has ended with 93 already.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from seatrial.backends.task_states import TaskState
from seatrial.runs.directory import JobEvents

Choice = Literal["ours", "twin", "later"]


def twins(arrays: Mapping[tuple[str, int], int], states: Iterable[TaskState]) -> list[TaskState]:
    """Return the tasks that the scheduler has besides ours and that have not ended. ``arrays``: the
    array of each task of ours, by the name of the job and the number of the task."""
    found = []
    for state in states:
        if state.task is not None and state.active:
            array = arrays.get((state.name, state.task))
            if array is not None and array >= 0 and array != state.array:
                found.append(state)
    return found


def chosen(own: JobEvents, ours: TaskState | None, job_id: str, twin: TaskState) -> Choice:
    """Return which of two tasks is the run: the one whose job started the script; else the one that
    is ahead. ``own``: the events that the job wrote. ``later``: both run, and it is not known yet
    which has claimed the directory."""
    started = own.start.job_id if own.start is not None else ""
    if started == f"{twin.array}_{twin.task}":
        return "twin"
    if started == job_id or twin.state == "PENDING":
        return "ours"
    if ours is None or not ours.active or ours.state == "PENDING":
        return "twin"
    return "later"
