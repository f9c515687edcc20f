"""Finds jobs that a scheduler has twice: two arrays of one name.

A submission has a name of its own, and is submitted once. Where it was submitted twice nevertheless
(by a command whose answer was lost twice, by a person who ran it by hand), the job that claimed the
run's directory is the run; the other one is cancelled, or has ended with 93 already.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Literal

from seatrial.backends.batch_task import BatchTask
from seatrial.backends.job_readings import JobReadings
from seatrial.backends.protocol import Doubled, Queued, Update
from seatrial.backends.scheduler_client import SchedulerClient
from seatrial.backends.task_states import TaskKey, TaskState
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


def chosen(
    own: JobEvents, ours: TaskState | None, job_id: str, twin: TaskState, twin_id: str
) -> Choice:
    """Return which of two tasks is the run: the one whose job started the script; else the one that
    is ahead. ``own``: the events that the job wrote. ``later``: both run, and it is not known yet
    which has claimed the directory."""
    started = own.start.job_id if own.start is not None else ""
    if started == twin_id:
        return "twin"
    if started == job_id or twin.state == "PENDING":
        return "ours"
    if ours is None or not ours.active or ours.state == "PENDING":
        return "twin"
    return "later"


class DoubledJobs:
    """Settles the jobs that a scheduler has twice. ``report`` gets an update for each array that is
    doubled, and for each run that follows another job."""

    def __init__(
        self, client: SchedulerClient, readings: JobReadings, report: Callable[[Update], None]
    ) -> None:
        self._client = client
        self._readings = readings
        self._report = report
        self._told: set[tuple[int, ...]] = set()  # arrays of one name

    async def settle(self, tasks: Iterable[BatchTask], states: Mapping[TaskKey, TaskState]) -> None:
        """Of runs that the scheduler has twice follow the job that is ahead, and cancel the other
        one if it has not started: else it finds the directory claimed. Raises Unanswered."""
        ours = {(task.name, task.index): task for task in tasks}
        arrays = {key: task.array for key, task in ours.items()}
        found = {(twin.name, twin.task): twin for twin in twins(arrays, states.values())}
        events = await self._readings.read(ours[name, task or 0].job for name, task in found)
        others: list[str] = []
        for twin in found.values():
            task = ours[twin.name, twin.task or 0]
            self._tell(task, twin)
            if (own := events.get(task.job.run_id)) is None:
                continue  # its file system does not answer
            state = task.state_in(states)
            ids = (self._id(task, task.array), self._id(task, twin.array))
            choice = chosen(own, state, ids[0], twin, ids[1])
            if choice == "ours":
                others.append(self._id(task, twin.array))
            elif choice == "twin":
                if state is not None and state.active:
                    others.append(self._id(task, task.array))
                task.array, task.started, task.missing_since = twin.array, False, 0.0
                self._report(Queued(task.job.run_id, self._id(task, task.array)))
        if others:
            await self._client.cancel(others, pending_only=True)

    def _id(self, task: BatchTask, array: int) -> str:
        return self._client.task_id(array, task.index, task.alone)

    def _tell(self, task: BatchTask, twin: TaskState) -> None:
        arrays = tuple(sorted((task.array, twin.array)))
        if arrays not in self._told:
            self._told.add(arrays)
            self._report(Doubled(task.name, arrays))
