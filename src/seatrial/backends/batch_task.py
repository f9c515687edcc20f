"""A run, or a bundle of runs, as a task of an array that the scheduler has."""

import time
from collections.abc import Mapping
from dataclasses import dataclass

from seatrial.backends.bundles import BundleWatch
from seatrial.backends.protocol import Job
from seatrial.backends.task_states import TaskKey, TaskState

FORGOTTEN = -1  # stands for the job id of an array that the scheduler does not know any more
NO_PLACE = -1  # stands for the number of a task that the list of its submission does not have


@dataclass(slots=True)
class BatchTask:
    """A run that the scheduler has, as far as is known, or a ``bundle`` of runs. ``alone``: its
    array has one task. ``missing_since`` is by the monotonic clock. ``kept`` is the state in which
    the job ended and the scheduler kept it; then the job is being cancelled."""

    job: Job
    name: str
    array: int
    index: int
    alone: bool
    missing_since: float = 0.0
    started: bool = False
    kept: TaskState | None = None
    bundle: BundleWatch | None = None
    ended_since: float = 0.0  # by the monotonic clock; of a bundle of which not all is seen yet

    def state_in(self, states: Mapping[TaskKey, TaskState]) -> TaskState | None:
        """Return the state of the task. Where it has none, return that of its array without a
        task's number, if the array has one task."""
        state = states.get((self.name, self.array, self.index))
        return states.get((self.name, self.array, None)) if state is None and self.alone else state

    def may_appear(self, longest: float) -> bool:
        """Return whether ends of runs of a bundle, whose job has ended by itself, may still appear
        through a shared file system. They do within ``longest`` seconds."""
        if self.bundle is None or not self.bundle.left:
            return False
        self.ended_since = self.ended_since or time.monotonic()
        return time.monotonic() - self.ended_since < longest
