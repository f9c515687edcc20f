"""What is asked of Grid Engine, by its commands."""

import math
import os
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path

from seatrial.account import name_of
from seatrial.execute.batch.scheduler_client import (
    QdelClient,
    SubmissionRefused,
    TaskKey,
    TaskState,
    Unanswered,
)
from seatrial.execute.batch.submitter import write_submission
from seatrial.execute.bundles import allocation_of
from seatrial.execute.protocol import Job, Submission
from seatrial.hooks import value_of
from seatrial.model.job_options import effective
from seatrial.model.machine import Machine
from seatrial.model.node_set import unfold
from seatrial.model.test import JobOptions
from seatrial.plugins.gridengine import GridEngine, GridEngineScheduler, answers
from seatrial.plugins.gridengine.answers import COMMAND

PATIENCE = 30.0  # seconds for an account beyond those after which it is written

# Variables that a job has, which would be those of a job that submits jobs.
_MISLEADING = re.compile(r"SGE_(TASK_\w+|O_\w+|ND|DEBUG_LEVEL|LONG_QNAMES)|JOB_\w+|PE\w*")
_TASK = re.compile(r"(-?[0-9]+)\.([0-9]+)")


class GridEngineClient(QdelClient):
    """The client of one cell of Grid Engine."""

    scheduler = GridEngineScheduler
    programs = ("qsub", "qstat", "qdel", "qacct", "qhost", "qconf")
    directive = "#$"
    temporary = answers.TEMPORARY
    unknown = answers.UNKNOWN
    kept = frozenset({"LAUNCH_FAILED"})  # Eqw: it would start if somebody clears the error

    def __init__(self, machine: Machine, on_answer: Callable[[str], None]) -> None:
        super().__init__(machine, on_answer, _MISLEADING)
        self.settings: answers.CellSettings | None = None
        self._nodes: dict[TaskKey, str] = {}  # of tasks that were seen while they ran
        self._has_accounts = False  # whether qacct could read them when it was last asked
        self._over_since: dict[TaskKey, float] = {}  # of tasks without an account

    @staticmethod
    def request_words(job: Job, machine: Machine) -> list[str]:
        return request_words(job, machine)

    @property
    def largest_array(self) -> int:
        return (self.settings or answers.CellSettings()).largest_array

    async def learn_config(self) -> None:
        if self.settings is None:
            line = ("qconf", "-sconf")
            self.settings = await self._ask(answers.parse_configuration, *line)

    def write(self, folder: Path, submission: Submission) -> None:
        """Write the files of a submission, and the command that submits it. Raises
        SubmissionRefused where the machine has no parallel environment for it."""
        line = self.line(folder, submission)
        write_submission(folder, submission, "$((SGE_TASK_ID - 1))", line)

    def line(self, folder: Path, submission: Submission) -> list[str]:
        """Return the qsub command of a submission. Tasks of an array are numbered from 1. Raises
        SubmissionRefused as `write`."""
        job = allocation_of(submission, folder)
        tasks = 1 if submission.is_bundle else len(submission.jobs)
        line = ["qsub", "-terse", "-N", submission.name, "-S", "/bin/bash", "-t", f"1-{tasks}"]
        line += ["-r", "n", "-m", "n", "-j", "y", "-o", f"{folder}/$TASK_ID.out"]
        return [*line, *request_words(job, self.machine), str(folder / "job.sh")]

    def output(self, folder: Path, index: int) -> Path:
        return super().output(folder, index + 1)

    def parse_answer(self, text: str) -> int | None:
        return answers.parse_job_id(text)

    def task_id(self, array: int, index: int, alone: bool) -> str:
        return f"{array}.{index + 1}"

    def parse_task_id(self, text: str) -> tuple[int, int]:
        parts = _TASK.fullmatch(text)
        return (int(parts[1]), int(parts[2]) - 1) if parts else (0, 0)

    def first_words(self, text: str) -> str:
        return answers.first_words(text)

    # ---- asking ---------------------------------------------------------------------------

    async def queue(self, tasks: Iterable[str]) -> list[TaskState]:
        """Return all tasks of this user that Grid Engine has; none of those that have ended."""
        states = await self._listed("prs")
        self._nodes |= {state.key: state.nodes for state in states if state.nodes}
        return states

    async def _listed(self, which: str) -> list[TaskState]:
        line = ("qstat", "-xml", "-g", "dt", "-s", which, "-u", name_of(os.geteuid()))
        return await self._ask(answers.parse_qstat, *line)

    async def accounts(self, arrays: Iterable[int]) -> list[TaskState]:
        """Return the tasks of these arrays that have ended: by the accounting, and those that were
        deleted while they waited, of which it has no account."""
        wanted = sorted(arrays)
        tasks: list[TaskState] = []
        for array in wanted:
            tasks += await self._accounted(str(array))
        return [*tasks, *await self._deleted(wanted, {state.key for state in tasks})]

    async def _deleted(
        self, arrays: Collection[int], accounted: Collection[TaskKey]
    ) -> list[TaskState]:
        """Return the tasks of these arrays that are over, and whose account would have been written
        if they had run."""
        settings = self.settings
        if not arrays or settings is None or not (settings.accounting and self._has_accounts):
            return []
        now, longest = time.monotonic(), settings.account_within + PATIENCE
        over = [
            state
            for state in await self._listed("z")
            if state.array in arrays and state.key not in accounted
        ]
        since = self._over_since = {s.key: self._over_since.get(s.key, now) for s in over}
        late = [state for state in over if now - since[state.key] > longest]
        return [state._replace(state="CANCELLED") for state in late]

    async def _accounted(self, which: str) -> list[TaskState]:
        """Return the tasks of a job, by its number or its name, that have ended; none where it has
        none, or the site keeps no accounting."""
        code, out, errors = await self._output("qacct", "-j", which)
        self._has_accounts = not answers.NO_ACCOUNTING.search(errors)
        if code != 0 and (answers.NO_ACCOUNT.search(errors) or not self._has_accounts):
            self._on_answer("qacct")
            return []
        if code != 0:
            message = self.first_words(errors.strip() or out)
            raise Unanswered("qacct", f"qacct failed: {message}")
        states = self._parsed(answers.parse_qacct, "qacct", out)
        return [state._replace(nodes=self._nodes.get(state.key, state.nodes)) for state in states]

    async def find(self, name: str, since: float) -> int | None:
        tasks = [*await self.queue([]), *await self._accounted(name)]
        return max((task.array for task in tasks if task.name == name), default=None)

    async def nodes(self) -> dict[str, str]:
        nodes = await self._ask(answers.parse_nodes, *COMMAND)
        return self.of_machine(nodes)


# ---- what a job asks for -------------------------------------------------------------------------


def request_words(job: Job, machine: Machine) -> list[str]:
    """Return the options of qsub by which a job asks for its nodes, its time and its queue. Raises
    SubmissionRefused where the machine has no parallel environment for it."""
    settings = value_of(machine, "gridengine", GridEngine)
    options = effective(settings, job.options)
    slots = job.tasks_per_node * job.threads
    words = ["-l", ",".join(_resources(job, settings, options, slots))]
    if job.nodes > 1 or slots > 1:
        environment = parallel_environment(job.nodes, slots, settings.parallel)
        words += ["-pe", environment, str(job.nodes * slots)]
    for option, value in (
        ("-q", options.partition),
        ("-ar", options.reservation),
        ("-A", options.account),
        ("-P", settings.project),
    ):
        words += [option, value] if value else []
    return [*words, *options.options]


def _resources(job: Job, settings: GridEngine, options: JobOptions, slots: int) -> Iterator[str]:
    """Yield what a job asks of each of its nodes, and its time; ``slots``: of each node."""
    yield f"h_rt={max(1, math.ceil(job.walltime))}"
    if settings.resources:
        yield settings.resources
    for feature in job.features:
        yield feature if "=" in feature else f"{feature}=true"
    if job.exclusive and settings.exclusive:
        yield f"{settings.exclusive}=true"
    if options.memory:
        yield f"{settings.memory}={math.ceil(options.memory / slots / 2**20)}M"
    if gpus := options.gpus_per_node or options.gpus_per_task * job.tasks_per_node:
        yield f"{settings.gpus}={gpus}"
    if job.node or job.avoid:
        yield f"hostname={job.node or '!(' + '|'.join(unfold(job.avoid)) + ')'}"


def parallel_environment(nodes: int, slots: int, parallel: Mapping[str, str | int]) -> str:
    """Return the parallel environment that gives a job this number of slots on each of its nodes:
    one that gives exactly so many, or on one node one that gives all slots there. ``parallel``:
    the allocation rule of each. Raises SubmissionRefused if there is none."""
    for wanted in (str(slots), *(["$pe_slots"] if nodes == 1 else [])):
        for name, rule in parallel.items():
            if str(rule) == wanted:
                return name
    either = ", or $pe_slots" if nodes == 1 else ""
    raise SubmissionRefused(
        f"gridengine.parallel has no parallel environment for {slots} slots on each of {nodes} "
        f"nodes: it needs the allocation_rule {slots}{either}; `qconf -spl` and `qconf -sp NAME` "
        "show those of the site; the administrators can add one"
    )
