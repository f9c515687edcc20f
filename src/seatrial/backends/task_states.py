"""The states of jobs, as the backends of batch systems speak of them.

The words are those of ``squeue(1)`` and ``sacct(1)``, "JOB STATE CODES"; what other schedulers say
is translated into them.
"""

from typing import NamedTuple

from seatrial.journal import codes

PREFIX = "seatrial-"  # of the names of jobs

ENDED: dict[str, int | None] = {
    "COMPLETED": None,  # the exit code and the output decide
    "FAILED": None,
    "BOOT_FAIL": codes.BOOT_FAILURE.number,
    "CANCELLED": codes.CANCELLED.number,
    "DEADLINE": codes.DEADLINE.number,
    "LAUNCH_FAILED": codes.LAUNCH_FAILED.number,
    "NODE_FAIL": codes.NODE_FAILURE.number,
    "OUT_OF_MEMORY": codes.OUT_OF_MEMORY.number,
    "PREEMPTED": codes.PREEMPTED.number,
    "RECONFIG_FAIL": codes.BOOT_FAILURE.number,
    "REQUEUED": codes.REQUEUED.number,
    "REVOKED": codes.REVOKED.number,
    "SPECIAL_EXIT": codes.SPECIAL_EXIT.number,
    "TIMEOUT": codes.TIMEOUT.number,
}

# The job ended, but Slurm keeps it and may run it again.
KEPT = frozenset({"REQUEUED", "SPECIAL_EXIT"})

ACTIVE = frozenset(
    {
        *("PENDING", "RUNNING", "CONFIGURING", "COMPLETING", "RESIZING", "SIGNALING"),
        *("STAGE_OUT", "STOPPED", "SUSPENDED", "REQUEUE_FED", "REQUEUE_HOLD", "RESV_DEL_HOLD"),
        *("EXPEDITING", "POWER_UP_NODE", "UPDATE_DB"),
    }
)

TaskKey = tuple[str, int, int | None]  # name of the job, job id of the array, task number


class UnexpectedOutput(ValueError):
    """The output of a command is not as documented."""


class TaskState(NamedTuple):
    """An array task: the job id of its array, its number there, the name of the job, its state, its
    exit code if it ended. The job id alone is not unique, as a controller that lost its state gives
    it out again. ``task`` is None for the last waiting task of an array that was cancelled, as
    Slurm forgets its number. ``by``: the account that cancelled it, "" where that is not told."""

    array: int
    task: int | None
    name: str
    state: str
    exit_code: int
    nodes: str
    by: str = ""

    @property
    def key(self) -> TaskKey:
        return (self.name, self.array, self.task)

    @property
    def active(self) -> bool:
        return self.state not in ENDED
