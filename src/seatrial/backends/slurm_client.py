"""Slurm's commands, run with a time limit. Whatever goes wrong with one is Unanswered."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import re
import signal
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

from seatrial.backends import slurm_batch, slurm_parse
from seatrial.backends.protocol import Submission
from seatrial.backends.slurm_parse import Nonsense, TaskState
from seatrial.machine.model import Machine

QUERY_SECONDS = 60.0
SUBMIT_SECONDS = 180.0
IDS_AT_ONCE = 500
DEFAULT_ARRAY = 1001

_T = TypeVar("_T")

# What a user set for Slurm's commands that would make them ask or tell something else than is meant
# here. A site's defaults for sbatch stay, such as SBATCH_ACCOUNT; our own options win over them.
_MISLEADING = re.compile(
    r"(SQUEUE|SACCT|SCANCEL|SCONTROL|SINFO)_\w+|SLURM_(CLUSTERS|TIME_FORMAT)"
    r"|SBATCH_(CLUSTERS|WAIT|INPUT|ERROR)"
)


class Unanswered(Exception):
    """The command gave no answer that can be relied on; nothing follows from that."""

    def __init__(self, command: str, text: str) -> None:
        super().__init__(text)
        self.command = command


class SubmitResult(NamedTuple):
    """What sbatch came to: a job id, or why not, and whether that may pass."""

    job_id: int | None
    why: str
    temporary: bool


class Config(NamedTuple):
    """What the cluster is set to."""

    largest_array: int
    accounting: bool


class SlurmClient:
    """Asks and tells one cluster. ``on_answer`` is told the name of each command that answered."""

    def __init__(self, machine: Machine, on_answer: Callable[[str], None]) -> None:
        self.machine = machine
        self._on_answer = on_answer
        self._cluster = slurm_batch.cluster_option(machine.slurm)
        self._environment = {
            name: value for name, value in os.environ.items() if not _MISLEADING.fullmatch(name)
        }

    async def config(self) -> Config:
        return await self._ask(_config, "scontrol", *self._cluster, "show", "config")

    async def queue(self, *only: str) -> list[TaskState]:
        """Every array task of ours that the controller remembers, ended ones included."""
        return await self._ask(
            slurm_parse.parse_squeue,
            "squeue",
            *self._cluster,
            "--noheader",
            "--array",
            "--states=all",
            f"--user={os.geteuid()}",
            f"--Format={slurm_parse.SQUEUE_FORMAT}",
            *only,
        )

    async def accounts(self, arrays: Iterable[int]) -> list[TaskState]:
        """What the accounting says of these arrays."""
        tasks: list[TaskState] = []
        ids = sorted(arrays)
        for start in range(0, len(ids), IDS_AT_ONCE):
            listed = ",".join(map(str, ids[start : start + IDS_AT_ONCE]))
            tasks += await self._accounted(f"--jobs={listed}")
        return tasks

    async def _accounted(self, *which: str) -> list[TaskState]:
        line = ("sacct", *self._cluster, "-X", "-n", "-P", "-o", slurm_parse.SACCT_FORMAT)
        return await self._ask(slurm_parse.parse_sacct, *line, *which)

    async def nodes(self) -> dict[str, str]:
        """The machine's nodes, and why they take no work, "" where they do."""
        names = ",".join(kind.names for kind in self.machine.nodes)
        line = ("sinfo", *self._cluster, "--Node", "--noheader", f"--nodes={names}")
        line = (*line, f"--format={slurm_parse.SINFO_FORMAT}")
        return await self._ask(slurm_parse.parse_sinfo, *line)

    async def job(self, job_id: str) -> TaskState | None:
        """What the controller has as that array task, whatever squeue shows; None: it has none."""
        line = ("scontrol", *self._cluster, "--oneliner", "show", "job", job_id)
        try:
            return await self._ask(slurm_parse.parse_job, *line)
        except Unanswered as error:
            if not slurm_parse.is_no_job(str(error)):
                raise
            self._on_answer(error.command)
            return None

    async def find(self, name: str, since: float, accounting: bool) -> int | None:
        """The array of that name, if the scheduler ever got it."""
        tasks = await self.queue(f"--name={name}")
        if not tasks and accounting:
            start = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(since))
            tasks = await self._accounted(f"--name={name}", f"--starttime={start}")
        return next((task.array for task in tasks if task.name == name), None)

    async def cancel(self, tasks: Sequence[str], pending_only: bool = False) -> None:
        line = ("scancel", *self._cluster, *(["--state=PENDING"] if pending_only else []))
        for start in range(0, len(tasks), IDS_AT_ONCE):
            await self._ask(str, *line, *tasks[start : start + IDS_AT_ONCE])

    # ---- submitting -----------------------------------------------------------------------

    async def submit(self, folder: Path, submission: Submission) -> SubmitResult:
        """Run sbatch. Its answer goes to a file, which it writes even if this process is killed
        meanwhile; as long as it runs it holds the lock on that file."""
        line = slurm_batch.sbatch_line(folder, submission, self.machine)
        with (folder / "answer").open("wb") as answer, (folder / "errors").open("wb") as errors:
            fcntl.flock(answer, fcntl.LOCK_EX)
            try:
                process = await asyncio.create_subprocess_exec(
                    *line,
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=answer,
                    stderr=errors,
                    env=self._environment,
                    start_new_session=True,
                )
            except OSError as error:
                return SubmitResult(None, f"sbatch cannot be started: {error.strerror}", True)
            answered = await _ended(process, SUBMIT_SECONDS)
        if not answered:
            return SubmitResult(None, f"sbatch did not answer in {SUBMIT_SECONDS:.0f} s", True)
        if (job_id := self.answer(folder)) is not None:
            return SubmitResult(job_id, "", False)
        said = (folder / "errors").read_text(errors="replace")
        if process.returncode != 0 and said.strip():
            return SubmitResult(None, slurm_parse.first_words(said), slurm_parse.is_temporary(said))
        out = (folder / "answer").read_bytes()[:80].decode(errors="replace")
        why = f"sbatch ended with {process.returncode} and answered {out!r}, no job id"
        why += f": {slurm_parse.first_words(said)}" if said.strip() else ""
        return SubmitResult(None, why, True)

    def answer(self, folder: Path) -> int | None:
        """The job id that sbatch wrote, if it did."""
        try:
            return slurm_parse.parse_job_id((folder / "answer").read_text(errors="replace"))
        except OSError:
            return None

    async def wait_for_sbatch(self, folder: Path) -> None:
        """Wait until no sbatch of an earlier driver is at work on the submission."""
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

    async def _ask(self, parse: Callable[[str], _T], *line: str) -> _T:
        try:
            answer = parse(await self._run(*line))
        except Nonsense as error:
            raise Unanswered(line[0], str(error)) from error
        self._on_answer(line[0])
        return answer

    async def _run(self, *line: str) -> str:
        try:
            process = await asyncio.create_subprocess_exec(
                *line,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=self._environment,
                start_new_session=True,
            )
        except OSError as error:
            raise Unanswered(line[0], f"{line[0]} cannot be started: {error.strerror}") from error
        try:
            async with asyncio.timeout(QUERY_SECONDS):
                out, errors = await process.communicate()
        except TimeoutError:
            await _ended(process, 0)
            text = f"{line[0]} did not answer in {QUERY_SECONDS:.0f} s"
            raise Unanswered(line[0], text) from None
        except asyncio.CancelledError:
            await _ended(process, 0)
            raise
        if process.returncode != 0:
            said = slurm_parse.first_words((errors.strip() or out).decode(errors="replace"))
            raise Unanswered(line[0], f"{line[0]} failed: {said}")
        return out.decode(errors="replace")


def _config(text: str) -> Config:
    settings = {}
    for line in text.splitlines():
        name, equals, value = line.partition("=")
        if equals:
            settings[name.strip()] = value.strip()
    size = settings.get("MaxArraySize", "")
    if not re.fullmatch(r"[0-9]{1,9}", size):
        raise Nonsense(f"scontrol answered {text[:80]!r}")
    accounting = settings.get("AccountingStorageType", "").endswith("slurmdbd")
    return Config(max(1, int(size)), accounting)


async def _ended(process: asyncio.subprocess.Process, seconds: float) -> bool:
    """Whether the process ended by itself in that time; else it is killed."""
    try:
        async with asyncio.timeout(seconds):
            await process.wait()
        return True
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
        return False
