"""Backends: the interface through which a driver gives them jobs, and what they share.

submissions = backend.arrange(jobs)        # pure: which jobs are submitted together
await backend.submit(submission)           # after the intent is in the journal
await backend.find(submissions)            # after a restart: reports the state of each job
update = await backend.inbox.get()         # waits for the next one
"""

import asyncio
import contextlib
import math
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

from msgspec import Struct

from seatrial.escaping import shell_word
from seatrial.execute.directory import job_events
from seatrial.files import open_regular, touch
from seatrial.model.codes import CANCELLED, LAUNCH_FAILED, LOST, TIMEOUT
from seatrial.model.node_set import fold, unfold
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


# ---- job script of a bundle ----------------------------------------------------------------------
#
# The job script of a bundle: runs that share an allocation, one after the other or some at once.
#
#     bundle_script(folder, at_once=1, cores=4)       # the text of job.sh
#     bundle_list(jobs)                               # the text of its list of runs
#     ask_to_end(folder, run_id)  # the bundle ends this run, or does not begin it
#     read_progress(folder, offset)                   # what it wrote of its runs since
#
# It is bash alone (``bundle.sh``), in a folder of its own, with the list of its runs. Each run has
# its directory, and its own ``job.sh`` claims that and writes its events, as if it were a job; the
# bundle writes the order of things to ``progress``, and ends a run that reaches its walltime.


PROGRESS = "progress"
GRACE_SECONDS = 6  # between the walltime of a run and its end, at most
MARGIN_SECONDS = 30  # of the walltime of a bundle beyond those of its runs

_PORTION = 1 << 20


class BundleLine(Struct, frozen=True):
    """A line of what a bundle wrote of its runs. Of a run that it began, ``exit_code`` is None. Of
    one that is over, ``reason`` is ``-`` if it ended by itself, ``timeout``, ``cancelled``, or
    ``skipped`` if it was never begun."""

    run_id: str
    time: float = 0.0
    exit_code: int | None = None
    reason: str = ""


def bundle_script(folder: Path, at_once: int, cores: int, job: str = "") -> str:
    """Return the text of ``job.sh`` for a bundle, ``at_once`` of whose runs run at a time, on so
    many ``cores`` each. ``job`` is bash for the id of its job, "" where the scheduler does not run
    a job again."""
    head = f"folder={shell_word(str(folder))}\nat_once={at_once}\ncores={cores}\njob={job}\n"
    return "#!/bin/bash\n" + head + Path(__file__).with_name("bundle.sh").read_text()


def bundle_list(jobs: Sequence[Job]) -> str:
    """Return the text of ``runs``, the list of a bundle."""
    return "".join(f"{job.run_id}\t{math.ceil(job.walltime)}\t{job.path}\n" for job in jobs)


def walltime_of(walltimes: Sequence[float], at_once: int) -> float:
    """Return the walltime of a bundle, in seconds: enough for all its runs to reach theirs."""
    each = [walltime + GRACE_SECONDS for walltime in walltimes]
    if at_once == 1:
        return sum(each) + MARGIN_SECONDS
    # List scheduling (R. L. Graham, SIAM Journal on Applied Mathematics 17, 1969).
    return sum(each) / at_once + max(each) + MARGIN_SECONDS


def ask_to_end(folder: Path, run_id: str, *, even_if_begun: bool = True) -> None:
    """Ask a bundle to end a run, or not to begin it. Raises OSError."""
    touch(folder / f"{'cancel' if even_if_begun else 'skip'}.{run_id}")


def read_progress(folder: Path, offset: int = 0) -> tuple[list[BundleLine], int] | None:
    """Return the whole lines of a bundle's progress from ``offset`` on, and the offset behind them;
    None where its job has not begun. Odd lines are left out. Raises OSError."""
    try:
        with open_regular(folder / PROGRESS) as file:
            file.seek(offset)
            text = file.read(_PORTION)
    except FileNotFoundError:
        return None
    whole = text[: text.rfind(b"\n") + 1]
    lines = map(_line, whole.decode(errors="replace").splitlines())
    return [line for line in lines if line is not None], offset + len(whole)


def _line(text: str) -> BundleLine | None:
    words = text.split(" ")
    try:
        if words[0] == "start" and len(words) == 3:
            time = float(words[2])
            return BundleLine(words[1], time=time) if math.isfinite(time) else None
        if words[0] == "end" and len(words) == 4:
            return BundleLine(words[1], exit_code=int(words[2]), reason=words[3])
    except ValueError:
        pass
    return None


# ---- bundles -------------------------------------------------------------------------------------
#
# What the backends share. A bundle is one job to the scheduler, and many runs to us.
#
#     job = allocation_of(submission, folder)     # the job that asks for the allocation
#     write_bundle(folder, submission)            # its script and the list of its runs
#     watch = BundleWatch(folder, submission.jobs)
#     watch.look()                           # starts and ends of its runs since the last look
#     watch.settle(code, state)                   # its job is over: what is left


RunUpdate = Started | JobEnd | NeverStarted
_Holder = TypeVar("_Holder")


def arranged(
    jobs: Sequence[Job], alone: Callable[[list[Job]], list[Submission]], prefix: str = ""
) -> list[Submission]:
    """Return the submissions of jobs: one for each bundle, with the name of its first run; for the
    other jobs those that ``alone`` returns."""
    bundles: dict[str, list[Job]] = {}
    others: list[Job] = []
    for job in jobs:
        (bundles.setdefault(job.bundle, []) if job.bundle else others).append(job)
    together = [Submission(prefix + runs[0].run_id, tuple(runs)) for runs in bundles.values()]
    return [*together, *alone(others)]


def allocation_of(submission: Submission, folder: Path) -> Job:
    """Return the job of a submission: of a bundle the one that has room for its runs, as many as
    run at a time, and that avoids what one of them is to avoid."""
    first = submission.jobs[0]
    if not submission.is_bundle:
        return first
    tasks, threads = first.tasks_per_node, first.threads
    if any((job.tasks_per_node, job.threads) != (tasks, threads) for job in submission.jobs):
        # Launchers fill the cores of the allocation in several ways.
        tasks, threads = max(job.tasks_per_node * job.threads for job in submission.jobs), 1
    avoid = {node for job in submission.jobs if job.avoid for node in unfold(job.avoid)}
    return first._replace(
        run_id=submission.name,
        path=folder,
        tasks=tasks * first.at_once * first.nodes,
        tasks_per_node=tasks * first.at_once,
        threads=threads,
        walltime=walltime_of([job.walltime for job in submission.jobs], first.at_once),
        avoid=fold(avoid) if avoid else "",
    )


def bundle_files(folder: Path, submission: Submission, job_id: str = "") -> dict[str, str]:
    """Return the texts of the files of a bundle by their names. ``job_id`` is bash for the id of
    its job, "" where the scheduler does not run a job again."""
    first = submission.jobs[0]
    cores = first.tasks_per_node * first.threads
    return {
        "runs": bundle_list(submission.jobs),
        "job.sh": bundle_script(folder, first.at_once, cores, job_id),
    }


class Bundles(dict[str, _Holder]):
    """Maps each run of a bundle that is left to what holds the bundle: a job of the backend."""

    def __init__(self, report: Callable[[RunUpdate], None]) -> None:
        self._report = report

    def report(self, updates: Iterable[RunUpdate]) -> None:
        """Report what runs did. Those that are over, or were never begun, are not left."""
        for update in updates:
            if not isinstance(update, Started):
                self.pop(update.run_id, None)
            self._report(update)

    def holders(self, run_ids: Iterable[str]) -> list[_Holder]:
        """Return what holds these runs, each once; runs that nothing holds are passed over."""
        holders = (self[run_id] for run_id in run_ids if run_id in self)
        return list({id(holder): holder for holder in holders}.values())


class BundleWatch:
    """Follows the runs of one bundle by what its job writes. ``left`` are those whose end was not
    reported; ``begun`` maps those of them that run to their starts (seconds since the epoch)."""

    def __init__(self, folder: Path, jobs: Iterable[Job]) -> None:
        self.folder = folder
        self.left = {job.run_id: job for job in jobs}
        self.begun: dict[str, float] = {}
        self._any_begun = False
        self.nodes = ""  # as far as the scheduler named them
        self._unwanted: set[str] = set()
        self._offset = 0

    def look(self, nodes: str = "") -> list[RunUpdate]:
        """Return what happened since the last look; ``nodes`` are those of the job."""
        self.nodes = nodes = nodes or self.nodes
        updates: list[RunUpdate] = []
        while True:
            with contextlib.suppress(OSError):  # it is read again, and decides nothing
                progress = read_progress(self.folder, self._offset)
                if progress is not None and progress[1] > self._offset:
                    lines, self._offset = progress
                    updates += [each for line in lines if (each := self._update(line, nodes))]
                    continue
            return updates

    def _update(self, line: BundleLine, nodes: str) -> RunUpdate | None:
        self._any_begun = True
        if line.run_id not in self.left:
            return None  # an earlier driver has judged it
        if line.exit_code is None:
            self.begun[line.run_id] = line.time
            return Started(line.run_id, nodes)
        self._drop(line.run_id)
        if line.reason == "skipped":
            return JobEnd(line.run_id, CANCELLED.number, "never started", None)
        code = {"timeout": TIMEOUT.number, "cancelled": CANCELLED.number}.get(line.reason)
        state = line.reason if code else "exited"
        return JobEnd(line.run_id, code, state, line.exit_code, nodes)

    def _drop(self, run_id: str) -> Job:
        self.begun.pop(run_id, None)
        return self.left.pop(run_id)

    def cancel(self, run_ids: Collection[str], pending_only: bool) -> bool:
        """Have runs ended, or with ``pending_only`` those that have not begun. Returns whether no
        other run is left: then the job itself may be ended."""
        ours = [run_id for run_id in run_ids if run_id in self.left]
        self._unwanted.update(run_id for run_id in ours if run_id not in self.begun)
        for run_id in ours:
            with contextlib.suppress(OSError):  # its walltime ends it, too
                ask_to_end(self.folder, run_id, even_if_begun=not pending_only)
        return len(ours) == len(self.left)

    def settle(
        self,
        code: int | None,
        state: str,
        exit_code: int | None = None,
        nodes: str = "",
        *,
        restarts: bool = False,
    ) -> list[RunUpdate]:
        """Return updates for the unfinished runs of a bundle whose job ended.

        A run that had begun ended with the job. Those that had not begun are run again if
        ``restarts``, or if any run of the job had begun; otherwise they share the end of the job.
        """
        updates = self.look(nodes)
        for run_id in list(self.left):
            begun = self.begun.get(run_id)
            job = self._drop(run_id)
            if begun is not None:
                updates.append(_ended(job, begun, code, state, nodes))
            elif run_id in self._unwanted:
                updates.append(JobEnd(run_id, CANCELLED.number, "never started", None))
            elif self._any_begun or restarts:
                updates.append(NeverStarted(run_id))
            else:
                updates.append(JobEnd(run_id, code, state, exit_code, nodes))
        return updates


def _ended(job: Job, begun: float, code: int | None, state: str, nodes: str) -> JobEnd:
    """Return the end of a run that was begun, whose bundle's job has ended. What its own script
    says of its end counts; the walltime of the job is not that of the run."""
    own = None if job.file_system else job_events(job.path)
    if own is not None and own.end is not None:
        return JobEnd(job.run_id, None, "exited", own.exit_code, nodes)
    if code is None or (code == TIMEOUT.number and time.time() - begun < job.walltime):
        return JobEnd(job.run_id, LOST.number, f"its bundle ended: {state}", None, nodes)
    return JobEnd(job.run_id, code, state, None, nodes)
