"""The interface of a backend: it takes jobs from a driver, and reports updates.

submissions = backend.arrange(jobs)        # pure: which jobs are submitted together
await backend.submit(submission)           # after the intent is in the journal
await backend.find(submissions)            # after a restart: reports the state of each job
update = await backend.inbox.get()         # waits for the next one
"""

import asyncio
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from msgspec import Struct

from seatrial.model.codes import LAUNCH_FAILED
from seatrial.model.test import JobOptions


class Job(NamedTuple):
    """The job of a run."""

    run_id: str
    #: The directory of the run.
    path: Path
    nodes: int
    tasks: int
    tasks_per_node: int
    threads: int
    #: In seconds.
    walltime: float
    #: The only nodes that it may run on; "" for any.
    node: str
    #: Whether it has its nodes for itself.
    exclusive: bool
    #: Those that its nodes must have.
    features: tuple[str, ...] = ()
    #: The nodes that it must not get.
    avoid: str = ""
    #: What it asks for besides.
    options: JobOptions = JobOptions()
    #: Where its directory is; "" for the trial's own folder.
    file_system: str = ""
    #: Runs with the same bundle are one job together; "" for none.
    bundle: str = ""
    #: How many runs of the bundle run at a time, in their order.
    at_once: int = 1


class Submission(NamedTuple):
    """Jobs that one call gives to the scheduler, under one name. Those of a bundle are one job to
    the scheduler."""

    name: str
    jobs: tuple[Job, ...]

    @property
    def is_bundle(self) -> bool:
        return bool(self.jobs[0].bundle)


class Queued(Struct, frozen=True):
    """The scheduler accepted the run as ``job_id``."""

    run_id: str
    job_id: str


class Started(Struct, frozen=True):
    """The job of the run is running, on these nodes if the scheduler names them."""

    run_id: str
    nodes: str = ""


class Refused(Struct, frozen=True):
    """The run was not submitted: the scheduler refused it, or what was asked before. ``code`` is
    its verdict."""

    run_id: str
    reason: str
    code: int = LAUNCH_FAILED.number


class JobEnd(Struct, frozen=True):
    """The job of the run is over. ``code`` is a verdict code by the state that the scheduler
    reports, or None where the job ended by itself; ``exit_code`` is the scheduler's exit code;
    ``output`` is the file in which the scheduler says what it did to the job alone."""

    run_id: str
    code: int | None
    state: str
    exit_code: int | None
    nodes: str = ""
    output: Path | None = None


class NeverStarted(Struct, frozen=True):
    """The run was announced, and never started: the scheduler never received it before a restart,
    or the job of its bundle ended before it was its turn."""

    run_id: str


class Doubled(Struct, frozen=True):
    """The scheduler has a submission twice, as these jobs. Each run is done once."""

    submission: str
    jobs: tuple[int, ...]


class Unfollowed(Struct, frozen=True):
    """The backend cannot tell which job of a submission these runs are."""

    submission: str
    run_ids: tuple[str, ...]


class NodesDown(Struct, frozen=True):
    """These nodes cannot run jobs. ``reason`` is the scheduler's."""

    nodes: str
    reason: str


class NodesUp(Struct, frozen=True):
    """These nodes can run jobs again."""

    nodes: str


class Disturbed(Struct, frozen=True):
    """The run is to have its nodes for itself, and a run of another trial was beside it. ``other``
    is the folder of that trial, or the run's directory where it lies elsewhere."""

    run_id: str
    other: str


class Trouble(Struct, frozen=True):
    """A command of the scheduler does not answer, or answers again (``over``). The state of jobs is
    unchanged."""

    text: str
    command: str = ""
    over: bool = False


Update = (
    Queued
    | Started
    | Refused
    | JobEnd
    | NeverStarted
    | Doubled
    | Unfollowed
    | NodesDown
    | NodesUp
    | Disturbed
    | Trouble
)


class Backend(Protocol):
    """Runs jobs. Methods raise BackendError where no job can run at all."""

    inbox: asyncio.Queue[Any]
    """Gets each update, and an error that ends the drive. It is the driver's own inbox, too."""

    room: int
    """Cores of this host that runs share; 0 where the scheduler has a queue."""

    gpus: int
    """GPUs of this host that runs share; 0 where there are none, or the scheduler has a queue."""

    jobs: int
    """Default of the maximum number of runs in flight; 0: no cap."""

    async def open(self) -> None: ...

    def arrange(self, jobs: Sequence[Job]) -> list[Submission]: ...

    def write(self, submission: Submission) -> None:
        """Write the files that ``submit`` would give to the scheduler, for a dry run."""

    def free_directory(self, path: Path) -> Path | None:
        """Before a run is created: rename its directory where it holds what another job left, whose
        events the journal has lost. Returns its new name, None where there is nothing to rename.
        Raises OSError, and BackendError where that job still runs."""

    async def submit(self, submission: Submission) -> None: ...

    async def find(self, submissions: Sequence[Submission], known: dict[str, str]) -> None:
        """Find jobs after a restart. ``known`` maps run ids to job ids, by the journal."""

    def followed(self) -> Collection[str]:
        """Return the runs of which an end will be reported: those that it submits, looks for or
        watches, and has not reported."""

    async def cancel(self, run_ids: Collection[str], pending_only: bool = False) -> None:
        """End runs; with ``pending_only`` only those that have not started."""

    async def inspect(self, job: Job, script: str) -> str:
        """Return what the processes of a running job wait in, as ``script`` (``execute/hung.sh``)
        prints it on each of its nodes; "" if that cannot be told."""

    def watch_nodes(self, down: Collection[str]) -> None:
        """Report from now on nodes that go down or come back; ``down`` are known to be down."""

    def recovered(self) -> list[Trouble]:
        """Return, at the end of a trial, the ends of troubles that were not reported yet."""

    async def close(self) -> None: ...
