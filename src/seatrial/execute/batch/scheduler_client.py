"""Runs the commands of a batch system with a time limit. Any failure of one is an Unanswered.

A scheduler has a subclass, which says what is asked and how the answers are read.
"""

import asyncio
import contextlib
import fcntl
import os
import re
import shutil
from abc import ABC, abstractmethod
from asyncio.subprocess import PIPE
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import ClassVar, NamedTuple, TypeVar

from seatrial.errors import BackendError
from seatrial.execute.backends import Job, Submission, Trouble
from seatrial.execute.beside_loop import ends_within, kill_group, read_to_end
from seatrial.execute.environment import inherited
from seatrial.files import open_descriptor, open_to_write, read_start
from seatrial.model import codes
from seatrial.model.machine import Machine
from seatrial.model.nodes import node_names
from seatrial.model.schedulers import Scheduler, schedulers

# ---- command outages -----------------------------------------------------------------------------
#
# The outages of a scheduler's commands, each reported once.
#
# outages.failed("squeue", "squeue failed: ...; waiting") # reports, unless it has already
# outages.answered("squeue") # reports after a calm minute


CALM_SECONDS = 60.0


class CommandOutages:
    """Reports the outage of a command once, whatever the command says each time, until it is over:
    the command has answered and then not failed for ``CALM_SECONDS``. So a command that fails now
    and then is one outage. Used within an event loop."""

    def __init__(self, report: Callable[[Trouble], None]) -> None:
        self.scheduler = "Slurm"
        self._report = report
        self._reported: set[str] = set()
        self._ending: dict[str, asyncio.TimerHandle] = {}

    def failed(self, command: str, text: str) -> None:
        """Record that a command gave no reliable answer."""
        if ending := self._ending.pop(command, None):
            ending.cancel()
        if command not in self._reported:
            self._reported.add(command)
            self._report(Trouble(f"{self.scheduler}: {text}", command))

    def answered(self, command: str) -> None:
        """Record that a command answered."""
        if command in self._reported and command not in self._ending:
            loop = asyncio.get_running_loop()
            self._ending[command] = loop.call_later(CALM_SECONDS, self._end, command)

    def recovered(self) -> list[Trouble]:
        """Return the ends of outages whose commands answer and are not calm yet: at the end of a
        trial nobody waits for that."""
        for ending in self._ending.values():
            ending.cancel()
        return [self._over(command) for command in list(self._ending)]

    def _end(self, command: str) -> None:
        self._report(self._over(command))

    def _over(self, command: str) -> Trouble:
        del self._ending[command]
        self._reported.discard(command)
        but = f"; {', '.join(sorted(self._reported))} not yet" if self._reported else ""
        return Trouble(f"{self.scheduler}: {command} answers again{but}", command, over=True)


# ---- task states ---------------------------------------------------------------------------------
#
# The states of jobs, as the backends of batch systems speak of them.
#
# The words are those of ``squeue(1)`` and ``sacct(1)``, "JOB STATE CODES"; what other schedulers
# say is translated into them.


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


# ---- scheduler client ----------------------------------------------------------------------------


QUERY_SECONDS = 60.0
SUBMIT_SECONDS = 180.0
MAX_SAID = 1 << 20  # bytes of an answer or a message that are read
IDS_AT_ONCE = 500

_T = TypeVar("_T")


class Unanswered(Exception):
    """A command of the scheduler did not answer, or not as expected. The state of jobs is
    unknown."""

    def __init__(self, command: str, text: str) -> None:
        super().__init__(text)
        self.command = command


class SubmissionRefused(BackendError):
    """The scheduler refused a submission, or would refuse it, and would again."""


class SchedulerClient(ABC):
    """The client of one cluster. ``on_answer`` receives the name of each command that answered;
    variables of users that match ``misleading`` change what commands print, and are removed."""

    scheduler: type[Scheduler]
    """What is known of its batch system before it is asked."""
    programs: tuple[str, ...]
    """Its commands, which this host must have."""
    directive: str
    """What begins a line for it in a job script, such as #SBATCH."""
    temporary: re.Pattern[str]
    """Errors of that command that may pass."""

    kept: frozenset[str] = frozenset()
    """States of jobs that have ended and that the scheduler may run again."""

    poll_weight: float = 1.0
    """How much of the wait after a poll is needed: 1 where each poll lists all tasks."""

    next_poll: float | None = None
    """Seconds after which ``queue`` will tell more; None where the client does not know."""

    def __init__(
        self, machine: Machine, on_answer: Callable[[str], None], misleading: re.Pattern[str]
    ) -> None:
        self.machine = machine
        self._on_answer = on_answer
        self._environment = {
            name: value
            for name, value in without_outer_job(inherited(machine)).items()
            if not misleading.fullmatch(name)
        }

    @classmethod
    def require_programs(cls) -> None:
        """Raise BackendError where this host does not have the commands of the scheduler."""
        for program in cls.programs:
            if shutil.which(program) is None:
                raise BackendError(
                    f"{program} is not on PATH; run this on a login node of {cls.scheduler.title}"
                )

    # ---- what a scheduler differs in ------------------------------------------------------

    @property
    @abstractmethod
    def largest_array(self) -> int:
        """The maximum number of tasks in an array."""

    @abstractmethod
    async def learn_config(self) -> None:
        """Ask for the settings of the cluster, unless they are known."""

    def lacks_features(self, submission: Submission) -> bool:
        """Return whether ``learn_features`` must answer before the submission."""
        return False

    async def learn_features(self) -> None:  # noqa: B027
        """Ask which features of nodes the scheduler knows."""

    @abstractmethod
    def write(self, folder: Path, submission: Submission) -> None:
        """Write the files of a submission."""

    @abstractmethod
    def line(self, folder: Path, submission: Submission) -> list[str]:
        """Return the command that submits."""

    def request(self, folder: Path, submission: Submission) -> str:
        """Return the options by which a submission asks for nodes, time and queue, where errors of
        the command do not name them; else ""."""
        return ""

    @staticmethod
    @abstractmethod
    def request_words(job: Job, machine: Machine) -> list[str]:
        """Return the options of the submitting command by which a job asks for its nodes, its time
        and its queue. May raise SubmissionRefused."""

    @abstractmethod
    def parse_answer(self, text: str) -> int | None:
        """Return the job id that the submitting command printed; None where it printed none."""

    @abstractmethod
    def task_id(self, array: int, index: int, alone: bool) -> str:
        """Return the id of a task; ``alone``: its array has no other."""

    @abstractmethod
    def parse_task_id(self, text: str) -> tuple[int, int]:
        """Return the array of a task and its number there, from its id."""

    def is_alone(self, task: str) -> bool:
        """Return whether the id of a task tells that its array has no other."""
        return False

    def output(self, folder: Path, index: int) -> Path:
        """Return the file in which the scheduler tells what it does to a task of an array, such as
        that it reached its limit; `job.sh` itself writes into the directory of its run."""
        return folder / f"{index}.out"

    @abstractmethod
    async def queue(self, tasks: Iterable[str]) -> list[TaskState]:
        """Return these tasks as the scheduler has them, ended ones and others included."""

    @abstractmethod
    async def accounts(self, arrays: Iterable[int]) -> list[TaskState]:
        """Return the tasks of these arrays, by the accounting; none where there is none."""

    async def with_accounts(self, cancelled: Sequence[TaskState]) -> dict[TaskKey, TaskState]:
        """Return the states of cancelled jobs, each with who cancelled it by the accounting."""
        by: dict[TaskKey, str] = {}
        with contextlib.suppress(Unanswered):  # the verdict needs no name
            accounted = await self.accounts({state.array for state in cancelled})
            by = {state.key: state.by for state in accounted}
        return {state.key: state._replace(by=by.get(state.key, state.by)) for state in cancelled}

    @abstractmethod
    async def job(self, job_id: str) -> TaskState | None:
        """Return the state of a task; None where the scheduler does not have it."""

    @abstractmethod
    async def find(self, name: str, since: float) -> int | None:
        """Return the job id of the array with a name; None where the scheduler has none.
        ``since``: seconds since the epoch at which it was submitted at the earliest."""

    @abstractmethod
    async def cancel(self, tasks: Sequence[str], pending_only: bool = False) -> None:
        """Cancel tasks; ``pending_only``: those that have not started."""

    @abstractmethod
    async def nodes(self) -> dict[str, str]:
        """Return, for each node of the machine, the reason why it takes no jobs, "" where it
        does."""

    @abstractmethod
    async def on_each_node(self, task: str, nodes: int, words: Sequence[str]) -> str:
        """Run a command once on each node of a running task, beside what runs there. Return its
        output, with the number of the node before each line."""

    @abstractmethod
    def first_words(self, text: str) -> str:
        """Return the error message of a command on one line."""

    # ---- submitting -----------------------------------------------------------------------

    async def submit(self, folder: Path, submission: Submission) -> int:
        """Submit; return the job id. Raises Unanswered where repeating may help, else
        SubmissionRefused. The command writes its answer to a file, so that the answer is kept even
        if this process is killed. While it runs it holds a lock on that file."""
        submits = self.scheduler.submits
        line = self.line(folder, submission)
        with open_to_write(folder / "answer") as answer, open_to_write(folder / "errors") as errors:
            fcntl.flock(answer, fcntl.LOCK_EX)
            process = await self._start(*line, out=answer.fileno(), errors=errors.fileno())
            if not await _ended(process, SUBMIT_SECONDS):
                text = f"{submits} did not answer in {SUBMIT_SECONDS:.0f} s"
                raise Unanswered(submits, text)
        if (job_id := self.answer(folder)) is not None:
            self._on_answer(submits)
            return job_id
        said = read_start(folder / "errors", MAX_SAID).data.decode(errors="replace")
        words = self.first_words(said)
        if process.returncode != 0 and said.strip():
            if self.temporary.search(said):
                raise Unanswered(submits, words)
            self._on_answer(submits)
            request = self.request(folder, submission)
            raise SubmissionRefused(f"{words}; asked for: {request}" if request else words)
        out = read_start(folder / "answer", 80).data.decode(errors="replace")
        reason = f"{submits} ended with {process.returncode} and answered {out!r}, no job id"
        raise Unanswered(submits, reason + (f": {words}" if said.strip() else ""))

    def answer(self, folder: Path) -> int | None:
        """Return the job id that the submitting command wrote, if it did."""
        try:
            data = read_start(folder / "answer", MAX_SAID).data
            return self.parse_answer(data.decode(errors="replace"))
        except OSError:
            return None

    async def wait_for_submitting(self, folder: Path) -> None:
        """Wait until no submitting command of an earlier driver runs for the submission."""
        try:
            answer = open_descriptor(folder / "answer", os.O_RDONLY)
        except OSError:
            return
        try:
            while True:
                try:
                    fcntl.flock(answer, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    return
                except BlockingIOError:
                    await asyncio.sleep(0.2)
        finally:
            os.close(answer)

    # ---- asking ---------------------------------------------------------------------------

    async def _ask(self, parse: Callable[[str], _T], command: str, *arguments: str) -> _T:
        return self._parsed(parse, command, await self._run(command, *arguments))

    def _parsed(self, parse: Callable[[str], _T], command: str, text: str) -> _T:
        try:
            answer = parse(text)
        except UnexpectedOutput as error:
            raise Unanswered(command, str(error)) from error
        self._on_answer(command)
        return answer

    async def _tell(self, over: re.Pattern[str], command: str, *arguments: str) -> None:
        """Run a command on jobs. For those that are over, or forgotten by the scheduler, it fails
        with an error that has the pattern ``over``: that is no outage, which would hold up every
        poll."""
        try:
            await self._ask(str, command, *arguments)
        except Unanswered as error:
            if not over.search(str(error)):
                raise
            self._on_answer(command)

    async def _start(
        self, *line: str, out: int = PIPE, errors: int = PIPE
    ) -> asyncio.subprocess.Process:
        try:
            return await asyncio.create_subprocess_exec(
                *line,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=out,
                stderr=errors,
                env=self._environment,
                start_new_session=True,
            )
        except OSError as error:
            raise Unanswered(line[0], f"{line[0]} cannot be started: {error.strerror}") from error

    async def _run(self, *line: str) -> str:
        code, out, errors = await self._output(*line)
        if code != 0:
            message = self.first_words(errors.strip() or out)
            raise Unanswered(line[0], f"{line[0]} failed: {message}")
        return out

    async def _output(self, *line: str) -> tuple[int, str, str]:
        """Return the exit code of a command, its output and its errors."""
        process = await self._start(*line)
        try:
            async with asyncio.timeout(QUERY_SECONDS):
                out, errors = await process.communicate()
        except TimeoutError:
            text = f"{line[0]} did not answer in {QUERY_SECONDS:.0f} s"
            raise Unanswered(line[0], text) from None
        finally:
            await _ended(process, 0)
            await read_to_end(process)
        code = process.returncode or 0
        return code, out.decode(errors="replace"), errors.decode(errors="replace")


def groups(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield ids, as many at a time as fit a command's line."""
    for start in range(0, len(ids), IDS_AT_ONCE):
        yield ids[start : start + IDS_AT_ONCE]


async def _ended(process: asyncio.subprocess.Process, seconds: float) -> bool:
    """Return whether a process ended within some seconds; kill it if not."""
    if not (ended := await ends_within(process, seconds)):
        kill_group(process.pid)
        await process.wait()
    return ended


# ---- qdel client ---------------------------------------------------------------------------------
#
# What PBS and Grid Engine share: jobs that ``qdel`` deletes, in whatever state they are.


class QdelClient(SchedulerClient):
    """The client of a scheduler whose jobs are deleted by ``qdel``."""

    unknown: ClassVar[re.Pattern[str]]
    """Errors of qdel about jobs that are over, or that the scheduler does not have."""

    async def fresh(self, tasks: Sequence[str]) -> list[TaskState]:
        """Return these tasks as they are now, and perhaps others."""
        return await self.queue(tasks)

    async def job(self, job_id: str) -> TaskState | None:
        jobs = await self.fresh([job_id])
        key = self.parse_task_id(job_id)
        return next((each for each in jobs if (each.array, each.task) == key), None)

    async def cancel(self, tasks: Sequence[str], pending_only: bool = False) -> None:
        """Delete tasks. qdel cannot be told to delete waiting ones alone, so their states are asked
        right before; a task that starts between is deleted, too."""
        if pending_only:
            states = await self.fresh(tasks)
            waiting = {(each.array, each.task) for each in states if each.state == "PENDING"}
            tasks = [task for task in tasks if self.parse_task_id(task) in waiting]
        for some in groups(tasks):
            await self._tell(self.unknown, "qdel", *some)

    async def on_each_node(self, task: str, nodes: int, words: Sequence[str]) -> str:
        """Return nothing: programs beside a job are started from within the job alone."""
        return ""

    def of_machine(self, reasons: dict[str, str]) -> dict[str, str]:
        """Return the nodes of the machine alone, each with the reason why it takes no jobs."""
        ours = set(node_names(self.machine))
        return {node: reason for node, reason in reasons.items() if node in ours}


# ---- outer job -----------------------------------------------------------------------------------
#
# Variables of the job in which a driver runs. They must not reach the jobs that it submits: a
# scheduler passes the environment of the command that submits, and sets only some of them anew.


def without_outer_job(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without the variables of a job that a scheduler started."""
    always, given = _patterns()
    patterns = [always, *(pattern for name, pattern in given.items() if name in environment)]
    return {
        name: value
        for name, value in environment.items()
        if not any(pattern.fullmatch(name) for pattern in patterns)
    }


@cache
def _patterns() -> tuple[re.Pattern[str], dict[str, re.Pattern[str]]]:
    """Return the variables that only schedulers set, and by a variable that is in each job of one
    those that users set as well: in a job they are what it was given. HOSTNAME is kept by bash, and
    would be that of the submitting host."""
    known = schedulers().values()
    always = "|".join(filter(None, ["HOSTNAME", *(each.outer_variables for each in known)]))
    given = dict(filter(None, (each.given_in_jobs for each in known)))
    return re.compile(always), {name: re.compile(each) for name, each in given.items()}
