"""Runs the commands of Slurm with a time limit. Any failure of one is an Unanswered."""

from __future__ import annotations

import asyncio
import fcntl
import os
import re
import time
from asyncio.subprocess import PIPE
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

from seatrial.backends import slurm_batch, slurm_parse
from seatrial.backends.protocol import Submission
from seatrial.backends.slurm_parse import TaskState, UnexpectedOutput
from seatrial.machine.facts import unknown_features
from seatrial.machine.model import Machine
from seatrial.runs.environment import inherited
from seatrial.runs.shell import ends_within, kill_group

QUERY_SECONDS = 60.0
SUBMIT_SECONDS = 180.0
IDS_AT_ONCE = 500

_T = TypeVar("_T")

# Variables of users that change the output of Slurm's commands. Defaults of a site for sbatch, such
# as SBATCH_ACCOUNT, are kept; the options of Seatrial take precedence over them.
_MISLEADING = re.compile(
    r"(SQUEUE|SACCT|SCANCEL|SCONTROL|SINFO)_\w+|SLURM_(CLUSTERS|TIME_FORMAT)"
    r"|SBATCH_(CLUSTERS|WAIT|INPUT|ERROR)"
)


class Unanswered(Exception):
    """A command of Slurm did not answer, or not as expected. The state of jobs is unknown."""

    def __init__(self, command: str, text: str) -> None:
        super().__init__(text)
        self.command = command


class SubmissionRefused(Exception):
    """sbatch refused a submission, and would refuse it again."""


class Config(NamedTuple):
    """Settings of the cluster: the maximum number of tasks in an array, and whether it has an
    accounting database. The defaults count until Slurm answers."""

    largest_array: int = 1001
    accounting: bool = False


class SlurmClient:
    """The client of one cluster. ``on_answer`` receives the name of each command that answered."""

    def __init__(self, machine: Machine, on_answer: Callable[[str], None]) -> None:
        self.machine = machine
        self.config = Config()
        self._config_known = False
        self.unknown_features: frozenset[str] | None = None  # of the file, to Slurm
        self._on_answer = on_answer
        self._cluster = slurm_batch.cluster_option(machine.slurm)
        self._environment = {
            name: value
            for name, value in inherited(machine).items()
            if not _MISLEADING.fullmatch(name)
        }

    async def learn_config(self) -> None:
        """Ask for the settings of the cluster, unless they are known."""
        if not self._config_known:
            self.config = await self._ask(_config, "scontrol", "show", "config")
            self._config_known = True

    async def learn_features(self) -> None:
        """Ask for the features of nodes, unless they are known: Slurm refuses a job that asks for
        one that it does not know."""
        if self.unknown_features is None:
            names = ",".join(kind.names for kind in self.machine.nodes)
            line = ("sinfo", "--Node", "--noheader", f"--nodes={names}")
            layout = f"--format={slurm_parse.FEATURES_FORMAT}"
            there = await self._ask(slurm_parse.parse_features, *line, layout)
            self.unknown_features = frozenset(unknown_features(self.machine, there))

    async def queue(self, *only: str) -> list[TaskState]:
        """Return all array tasks of Seatrial that the controller has, ended ones included."""
        line = ("squeue", "--noheader", "--array", "--states=all", f"--user={os.geteuid()}")
        layout = f"--Format={slurm_parse.SQUEUE_FORMAT}"
        return await self._ask(slurm_parse.parse_squeue, *line, layout, *only)

    async def accounts(self, arrays: Iterable[int]) -> list[TaskState]:
        """Return the tasks of these arrays, by the accounting; none where the cluster has none."""
        tasks: list[TaskState] = []
        ids = sorted(arrays) if self.config.accounting else []
        for start in range(0, len(ids), IDS_AT_ONCE):
            listed = ",".join(map(str, ids[start : start + IDS_AT_ONCE]))
            tasks += await self._accounted(f"--jobs={listed}")
        return tasks

    async def _accounted(self, *which: str) -> list[TaskState]:
        line = ("sacct", "-X", "-n", "-P", "-o", slurm_parse.SACCT_FORMAT)
        return await self._ask(slurm_parse.parse_sacct, *line, *which)

    async def nodes(self) -> dict[str, str]:
        """Return, for each node of the machine, the reason why it takes no jobs, "" where it
        does."""
        names = ",".join(kind.names for kind in self.machine.nodes)
        line = ("sinfo", "--Node", "--noheader", f"--nodes={names}")
        layout = f"--format={slurm_parse.SINFO_FORMAT}"
        return await self._ask(slurm_parse.parse_sinfo, *line, layout)

    async def job(self, job_id: str) -> TaskState | None:
        """Return the state of an array task, also where squeue hides it; None where the controller
        does not have it."""
        line = ("scontrol", "--oneliner", "show", "job", job_id)
        try:
            return await self._ask(slurm_parse.parse_job, *line)
        except Unanswered as error:
            if not slurm_parse.NO_JOB.search(str(error)):
                raise
            self._on_answer(error.command)
            return None

    async def find(self, name: str, since: float) -> int | None:
        """Return the job id of the array with a name; None where the scheduler has none."""
        tasks = await self.queue(f"--name={name}")
        if not tasks and self.config.accounting:
            start = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(since))
            tasks = await self._accounted(f"--name={name}", f"--starttime={start}")
        return next((task.array for task in tasks if task.name == name), None)

    async def cancel(self, tasks: Sequence[str], pending_only: bool = False) -> None:
        """Cancel array tasks; ``pending_only``: those that have not started."""
        line = ("scancel", *(["--state=PENDING"] if pending_only else []))
        for start in range(0, len(tasks), IDS_AT_ONCE):
            some = tasks[start : start + IDS_AT_ONCE]
            if pending_only:
                await self._detach(some)
            await self._tell(*line, *some)

    async def on_each_node(self, task: str, nodes: int, words: Sequence[str]) -> str:
        """Run a command once on each node of a running array task, beside what runs there. Return
        its output, with the number of the node before each line."""
        # srun takes the number of a job, and none of a task.
        job = await self._ask(str.strip, "squeue", "--noheader", "--format=%A", f"--jobs={task}")
        size = (f"--nodes={nodes}", f"--ntasks={nodes}", "--ntasks-per-node=1", "--cpus-per-task=1")
        step = ("--overlap", "--mem=0", "--input=none", "--label", "--cpu-bind=none")
        return await self._ask(str, "srun", f"--jobid={job}", *size, *step, *words)

    async def _detach(self, tasks: Sequence[str]) -> None:
        """Give array tasks that wait a record of their own, as any change of a task does: of tasks
        that share one, `scancel --state` of Slurm 22.05 cancels all, whichever are named."""
        of_array: dict[str, list[str]] = {}
        for task in tasks:
            array, _, number = task.partition("_")
            of_array.setdefault(array, []).append(number)
        for array, numbers in of_array.items():
            which = f"JobId={array}_[{','.join(numbers)}]"
            await self._tell("scontrol", "update", which, "Comment=recalled")

    async def _tell(self, command: str, *arguments: str) -> None:
        """Run a command on jobs. For those that are over, or forgotten by Slurm, it fails: that is
        no outage, which would hold up every poll."""
        try:
            await self._ask(str, command, *arguments)
        except Unanswered as error:
            if not slurm_parse.OVER.search(str(error)):
                raise
            self._on_answer(command)

    # ---- submitting -----------------------------------------------------------------------

    async def submit(self, folder: Path, submission: Submission) -> int:
        """Run sbatch; return the job id. Raises Unanswered where repeating may help, else
        SubmissionRefused. sbatch writes its answer to a file, so that the answer is kept even if
        this process is killed. While it runs it holds a lock on that file."""
        line = slurm_batch.sbatch_line(
            folder, submission, self.machine, self.unknown_features or ()
        )
        with (folder / "answer").open("wb") as answer, (folder / "errors").open("wb") as errors:
            fcntl.flock(answer, fcntl.LOCK_EX)
            process = await self._start(*line, out=answer.fileno(), errors=errors.fileno())
            if not await _ended(process, SUBMIT_SECONDS):
                raise Unanswered("sbatch", f"sbatch did not answer in {SUBMIT_SECONDS:.0f} s")
        if (job_id := self.answer(folder)) is not None:
            self._on_answer("sbatch")
            return job_id
        said = (folder / "errors").read_text(errors="replace")
        words = slurm_parse.first_words(said)
        if process.returncode != 0 and said.strip():
            if slurm_parse.TEMPORARY.search(said):
                raise Unanswered("sbatch", words)
            self._on_answer("sbatch")
            raise SubmissionRefused(words)
        out = (folder / "answer").read_bytes()[:80].decode(errors="replace")
        reason = f"sbatch ended with {process.returncode} and answered {out!r}, no job id"
        raise Unanswered("sbatch", reason + (f": {words}" if said.strip() else ""))

    def answer(self, folder: Path) -> int | None:
        """Return the job id that sbatch wrote, if it did."""
        try:
            return slurm_parse.parse_job_id((folder / "answer").read_text(errors="replace"))
        except OSError:
            return None

    async def wait_for_sbatch(self, folder: Path) -> None:
        """Wait until no sbatch of an earlier driver runs for the submission."""
        try:
            answer = os.open(folder / "answer", os.O_RDONLY | os.O_CLOEXEC)
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
        try:
            answer = parse(await self._run(command, *self._cluster, *arguments))
        except UnexpectedOutput as error:
            raise Unanswered(command, str(error)) from error
        self._on_answer(command)
        return answer

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
        process = await self._start(*line)
        try:
            async with asyncio.timeout(QUERY_SECONDS):
                out, errors = await process.communicate()
        except TimeoutError:
            text = f"{line[0]} did not answer in {QUERY_SECONDS:.0f} s"
            raise Unanswered(line[0], text) from None
        finally:
            await _ended(process, 0)
        if process.returncode != 0:
            message = slurm_parse.first_words((errors.strip() or out).decode(errors="replace"))
            raise Unanswered(line[0], f"{line[0]} failed: {message}")
        return out.decode(errors="replace")


def _config(text: str) -> Config:
    size = re.search(r"(?m)^MaxArraySize\s*=\s*([0-9]{1,9})\s*$", text)
    if size is None:
        raise UnexpectedOutput(f"scontrol answered {text[:80]!r}")
    accounting = re.search(r"(?m)^AccountingStorageType\s*=.*slurmdbd\s*$", text)
    return Config(max(1, int(size[1])), accounting is not None)


async def _ended(process: asyncio.subprocess.Process, seconds: float) -> bool:
    """Return whether a process ended within some seconds; kill it if not."""
    if not (ended := await ends_within(process, seconds)):
        kill_group(process.pid)
        await process.wait()
    return ended
