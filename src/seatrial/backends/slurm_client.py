"""What is asked of Slurm, by its commands."""

import os
import re
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from seatrial.backends import slurm_batch, slurm_parse
from seatrial.backends.protocol import Job, Submission
from seatrial.backends.scheduler_client import SchedulerClient, Unanswered, groups
from seatrial.backends.task_states import KEPT, TaskState, UnexpectedOutput
from seatrial.lazy import regex
from seatrial.machine.facts import unknown_features
from seatrial.machine.model import Machine
from seatrial.machine.schedulers import SlurmScheduler

# Variables of users that change the output of Slurm's commands. Defaults of a site for sbatch, such
# as SBATCH_ACCOUNT, are kept; the options of Seatrial take precedence over them.
_MISLEADING = regex(
    r"(SQUEUE|SACCT|SCANCEL|SCONTROL|SINFO)_\w+|SLURM_(CLUSTERS|TIME_FORMAT)"
    r"|SBATCH_(CLUSTERS|WAIT|INPUT|ERROR)"
)


class Config(NamedTuple):
    """Settings of the cluster: the maximum number of tasks in an array, and whether it has an
    accounting database. The defaults count until Slurm answers."""

    largest_array: int = 1001
    accounting: bool = False


class SlurmClient(SchedulerClient):
    """The client of one cluster of Slurm."""

    scheduler = SlurmScheduler
    programs = ("sbatch", "squeue", "scancel", "scontrol")
    directive = "#SBATCH"
    temporary = slurm_parse.TEMPORARY
    kept = KEPT

    def __init__(self, machine: Machine, on_answer: Callable[[str], None]) -> None:
        super().__init__(machine, on_answer, _MISLEADING)
        self.config = Config()
        self._config_known = False
        self.unknown_features: frozenset[str] | None = None  # of the file, to Slurm
        self._cluster = slurm_batch.cluster_option(machine.slurm)

    @staticmethod
    def request_words(job: Job, machine: Machine) -> list[str]:
        return slurm_batch.request_words(job, machine)

    @property
    def largest_array(self) -> int:
        return self.config.largest_array

    def write(self, folder: Path, submission: Submission) -> None:
        slurm_batch.write(folder, submission, self.machine, self.unknown_features or ())

    def line(self, folder: Path, submission: Submission) -> list[str]:
        unknown = self.unknown_features or ()
        return slurm_batch.sbatch_line(folder, submission, self.machine, unknown)

    def parse_answer(self, text: str) -> int | None:
        return slurm_parse.parse_job_id(text)

    def task_id(self, array: int, index: int, alone: bool) -> str:
        return f"{array}_{index}"

    def parse_task_id(self, text: str) -> tuple[int, int]:
        array, _, index = text.partition("_")
        return int(array), int(index or 0)

    def first_words(self, text: str) -> str:
        return slurm_parse.first_words(text)

    def lacks_features(self, submission: Submission) -> bool:
        asked = any(job.features for job in submission.jobs)
        return asked and self.unknown_features is None

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

    async def queue(self, tasks: Iterable[str]) -> list[TaskState]:
        """Return all array tasks of Seatrial that the controller has, whatever their array."""
        return await self._queue()

    async def _queue(self, *only: str) -> list[TaskState]:
        line = ("squeue", "--noheader", "--array", "--states=all", f"--user={os.geteuid()}")
        layout = f"--Format={slurm_parse.SQUEUE_FORMAT}"
        return await self._ask(slurm_parse.parse_squeue, *line, layout, *only)

    async def accounts(self, arrays: Iterable[int]) -> list[TaskState]:
        """Return the tasks of these arrays, by the accounting; none where the cluster has none."""
        tasks: list[TaskState] = []
        ids = sorted(arrays) if self.config.accounting else []
        for some in groups(list(map(str, ids))):
            tasks += await self._accounted(f"--jobs={','.join(some)}")
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
        tasks = await self._queue(f"--name={name}")
        if not tasks and self.config.accounting:
            start = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(since))
            tasks = await self._accounted(f"--name={name}", f"--starttime={start}")
        return next((task.array for task in tasks if task.name == name), None)

    async def cancel(self, tasks: Sequence[str], pending_only: bool = False) -> None:
        """Cancel array tasks; ``pending_only``: those that have not started."""
        line = ("scancel", *(["--state=PENDING"] if pending_only else []))
        for some in groups(tasks):
            if pending_only:
                await self._detach(some)
            await self._tell(slurm_parse.OVER, *line, *some)

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
            await self._tell(slurm_parse.OVER, "scontrol", "update", which, "Comment=recalled")

    async def _run(self, *line: str) -> str:
        return await super()._run(line[0], *self._cluster, *line[1:])


def _config(text: str) -> Config:
    size = re.search(r"(?m)^MaxArraySize\s*=\s*([0-9]{1,9})\s*$", text)
    if size is None:
        raise UnexpectedOutput(f"scontrol answered {text[:80]!r}")
    accounting = re.search(r"(?m)^AccountingStorageType\s*=.*slurmdbd\s*$", text)
    return Config(max(1, int(size[1])), accounting is not None)
