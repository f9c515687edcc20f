"""What a backend is to a driver: it takes jobs and reports updates. One file each implements it.

submissions = backend.arrange(jobs)        # pure: what goes to the scheduler together
await backend.submit(submission)           # after the intent is in the journal
await backend.find(submissions)            # after a restart: reports what became of each
updates = await backend.updates()          # waits for the next ones
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from msgspec import Struct


class Job(NamedTuple):
    """A run as a backend sees it. ``walltime`` in seconds; ``node`` pins it to that node;
    ``features`` are what its nodes must have; ``avoid`` are nodes that it must not get."""

    run_id: str
    path: Path
    nodes: int
    tasks: int
    tasks_per_node: int
    threads: int
    walltime: float
    node: str
    exclusive: bool
    features: tuple[str, ...] = ()
    avoid: str = ""


class Submission(NamedTuple):
    """Jobs that are given to the scheduler in one call, under one name."""

    name: str
    jobs: tuple[Job, ...]


class Queued(Struct, frozen=True):
    """The scheduler has the run, as ``job_id``."""

    run_id: str
    job_id: str


class Started(Struct, frozen=True):
    """The run's job runs, on these nodes if the scheduler names them."""

    run_id: str
    nodes: str = ""


class Refused(Struct, frozen=True):
    """The scheduler will not take the run."""

    run_id: str
    why: str


class Ended(Struct, frozen=True):
    """The run's job is over. ``code`` is a verdict code from the scheduler's state, or None where
    it ended by itself; ``exit_code`` its exit code as the scheduler knows it."""

    run_id: str
    code: int | None
    state: str
    exit_code: int | None
    nodes: str = ""


class NeverStarted(Struct, frozen=True):
    """After a restart: the run was announced, but the scheduler never got it."""

    run_id: str


class NodesDown(Struct, frozen=True):
    """These nodes cannot run jobs, and why, as far as the scheduler says."""

    nodes: str
    why: str


class NodesUp(Struct, frozen=True):
    """These nodes can run jobs again."""

    nodes: str


class Trouble(Struct, frozen=True):
    """A command of the scheduler's does not answer, or answers again (``over``); nothing is
    concluded from it."""

    text: str
    command: str = ""
    over: bool = False


Update = Queued | Started | Refused | Ended | NeverStarted | NodesDown | NodesUp | Trouble


class Backend(Protocol):
    """Runs jobs. Methods may raise BackendError where no job can be run at all."""

    room: int
    """Cores that runs share on this host; 0 where the scheduler has a queue of its own."""

    durable: bool
    """Whether jobs outlive this host, so that intents must be on the disk itself first."""

    jobs: int
    """Most runs given to it at a time by default; 0 for no cap."""

    async def open(self) -> None: ...

    def arrange(self, jobs: Sequence[Job]) -> list[Submission]: ...

    def write(self, submission: Submission) -> None:
        """Write what ``submit`` would give to the scheduler, for a dry run."""

    async def submit(self, submission: Submission) -> None: ...

    async def find(self, submissions: Sequence[Submission], known: dict[str, str]) -> None:
        """``known`` maps run ids to the job ids that the journal holds."""

    async def cancel(self, run_ids: Collection[str], pending_only: bool = False) -> None:
        """End runs; ``pending_only``: those that have not started, and leave the others alone."""

    def watch_nodes(self, down: Collection[str]) -> None:
        """From now on report nodes that go down or come back; ``down`` are known to be down."""

    async def updates(self) -> list[Update]: ...

    async def close(self) -> None: ...
