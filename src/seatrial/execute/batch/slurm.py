"""Submissions to Slurm: a job array, and the sbatch command."""

import math
import os
import re
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from seatrial.account import name_of
from seatrial.execute.backends import Job, Submission, allocation_of
from seatrial.execute.batch.scheduler_client import (
    ACTIVE,
    ENDED,
    KEPT,
    PREFIX,
    SchedulerClient,
    TaskState,
    Unanswered,
    UnexpectedOutput,
    groups,
)
from seatrial.execute.batch.submitter import write_submission
from seatrial.model.machine import Machine
from seatrial.model.node_set import fold, unfold
from seatrial.model.nodes import node_names, unknown_features
from seatrial.model.requirements import OVERCOMMIT, cpus_of, overcommits
from seatrial.model.run_settings import effective
from seatrial.model.schedulers import Slurm, SlurmScheduler
from seatrial.model.test import JobOptions

_JOB_ID = "${SLURM_ARRAY_JOB_ID-}_${SLURM_ARRAY_TASK_ID-}"
_GROUP = re.compile(r"\([^()]*\)|\[[^\[\]]*\]")


def write_job_script(
    folder: Path, submission: Submission, machine: Machine, unknown: Collection[str] = ()
) -> None:
    """Write the files of a submission, and the command that submits it."""
    line = sbatch_line(folder, submission, machine, unknown)
    write_submission(folder, submission, "$SLURM_ARRAY_TASK_ID", line, _JOB_ID)


def sbatch_line(
    folder: Path, submission: Submission, machine: Machine, unknown: Collection[str] = ()
) -> list[str]:
    """Return the sbatch command of a submission. Slurm does not know the features ``unknown``; jobs
    are kept from the nodes that lack them by the machine's file."""
    slurm = machine.slurm
    job = allocation_of(submission, folder)
    tasks = 1 if submission.is_bundle else len(submission.jobs)
    line = [
        "sbatch",
        "--parsable",
        *cluster_option(slurm),
        f"--job-name={submission.name}",
        f"--array=0-{tasks - 1}",
        f"--output={str(folder).replace('%', '%%')}/%a.out",
        f"--chdir={folder}",
        "--no-requeue",
    ]
    return [*line, *request_words(job, machine, unknown), str(folder / "job.sh")]


def request_words(job: Job, machine: Machine, unknown: Collection[str] = ()) -> list[str]:
    """Return the options of sbatch by which a job asks for its nodes, its time and its
    partition."""
    request = effective(machine.slurm, job.options)
    words = [*_task_words(job, machine), *_node_words(job, machine, unknown)]
    known = [feature for feature in job.features if feature not in unknown]
    if constraint := _constraint(request.constraint or "", *known):
        words.append(f"--constraint={constraint}")
    return [*words, *_option_words(request), *request.options]


def _task_words(job: Job, machine: Machine) -> list[str]:
    """Return the options of sbatch for the tasks of a job, and for its time."""
    time = f"--time={max(1, math.ceil(job.walltime / 60))}"
    tasks = [f"--nodes={job.nodes}", f"--ntasks={job.tasks}"]
    smallest = min(map(cpus_of, machine.nodes))
    if job.tasks_per_node * job.threads > smallest and overcommits(machine, job.options):
        # Slurm refuses more tasks of a node than it has CPUs, whatever else is said.
        return [*tasks, time, OVERCOMMIT]
    tasks += [f"--ntasks-per-node={job.tasks_per_node}", f"--cpus-per-task={job.threads}"]
    return [*tasks, time]


def _node_words(job: Job, machine: Machine, unknown: Collection[str]) -> list[str]:
    """Return the options of sbatch that say which nodes a job may have."""
    words = ["--exclusive"] if job.exclusive else []
    if job.node:
        return [*words, f"--nodelist={job.node}"]
    excluded = _excluded(machine, job.avoid, set(unknown) & set(job.features))
    return [*words, f"--exclude={excluded}"] if excluded else words


def _option_words(asked: JobOptions) -> list[str]:
    """Return the options of sbatch for a partition, an account, GPUs and memory."""
    names = ("partition", "account", "qos", "reservation", "gpus_per_node", "gpus_per_task")
    given = [(name.replace("_", "-"), getattr(asked, name)) for name in names]
    words = [f"--{name}={value}" for name, value in given if value]
    return [*words, *([f"--mem={math.ceil(asked.memory / 2**20)}M"] if asked.memory else [])]


def _excluded(machine: Machine, avoid: str, needed: Collection[str] = ()) -> str:
    """Return the nodes that a job must not get: those outside the machine's ``nodelist``, those
    that it excludes, those without the features ``needed``, and those to avoid. The option
    ``--nodelist`` of sbatch would ask for all its nodes."""
    lacking = [kind.names for kind in machine.nodes if set(needed) - set(kind.features)]
    lacking += [machine.slurm.exclude] if machine.slurm.exclude else []
    if not (machine.slurm.nodelist or lacking):
        return avoid
    excluded = {name for names in filter(None, [*lacking, avoid]) for name in unfold(names)}
    if machine.slurm.nodelist:
        excluded |= set(node_names(machine)).difference(unfold(machine.slurm.nodelist))
    return fold(excluded)


def _constraint(*parts: str) -> str:
    """Return the conjunction of constraints. ``|`` binds less tightly than ``&``, and Slurm has no
    nested parentheses; so a part is put into parentheses only where it has a ``|`` outside of its
    own."""
    given = [part for part in parts if part]
    if len(given) > 1:
        given = [f"({part})" if "|" in _GROUP.sub("", part) else part for part in given]
    return "&".join(given)


def cluster_option(slurm: Slurm) -> list[str]:
    return [f"--clusters={slurm.cluster}"] if slurm.cluster else []


# ---- slurm parse ---------------------------------------------------------------------------------
#
# Parses the output of Slurm's commands. Pure: no command is run here.
#
# States are those of ``squeue(1)`` and ``sacct(1)``, "JOB STATE CODES".


SQUEUE_FORMAT = "ArrayJobID:|,ArrayTaskID:|,Name:|,State:|,exit_code:|,NodeList:|"
SACCT_FORMAT = "JobID,JobName,State,ExitCode,NodeList"
SINFO_FORMAT = "%N|%T|%E"
FEATURES_FORMAT = "%N|%f"

# States of a node in which it takes jobs, or will by itself: sinfo(1), without suffixes such as *
# and ~. In any other state it takes none, also in one that a later Slurm may bring. Of `unknown`
# nodes the controller, which has just started, will know in a moment, and starts no job there until
# then.
NODE_UP = frozenset(
    {
        *("idle", "allocated", "mixed", "completing", "planned", "blocked", "reserved", "maint"),
        *("reboot", "rebooting", "reboot_requested", "reboot_issued", "cancel_reboot"),
        *("power_up", "power_down", "powering_up", "powering_down", "powered_down"),
        *("cloud", "dynamic_norm", "external", "resume", "undrain"),
        *("no_respond", "not_responding", "perfctrs", "npc", "unknown"),
    }
)

# Errors of sbatch that may pass: the controller was down, or a limit on the number of jobs was
# reached. An error about an option, a partition or an account is permanent.
TEMPORARY = re.compile(
    r"contact|timed out|time out|refused by|connect|temporarily|try again|zero bytes|unreachable"
    r"|MaxSubmit|SubmitJobsLimit|MaxJobCount|slot limit|not responding|munge|credential|protocol"
    r"|configuration source|configuration file|backup controller|reset by peer|broken pipe"
    r"|I/O error|host name|Transport endpoint|retrying",
    re.IGNORECASE,
)
# Errors of scontrol: the controller does not have the job.
NO_JOB = re.compile(r"Invalid job id|Job \S+ not found")
OVER = re.compile(r"already (finished|completing)|Invalid job id|not found|No such")
_NUMBER = re.compile(r"[0-9]{1,18}")
_SUBMITTED = re.compile(r"([0-9]{1,18})(?:;\S+)?")
_STATE = re.compile(r"[a-z_]+|\?")
_TASK = re.compile(r"([0-9]{1,18})(?:_([0-9]{1,18}))?")


def parse_squeue(text: str) -> list[TaskState]:
    """Return the tasks of Seatrial from ``squeue --array --Format=SQUEUE_FORMAT``. Other jobs of
    the user are skipped, whatever their state, also if their names contain a ``|``. Raises
    UnexpectedOutput."""
    tasks = []
    for fields in map(_squeue_fields, text.splitlines()):
        if not fields:
            continue
        array, number, *name, state, status, nodes, _ = fields
        task = int(number) if _NUMBER.fullmatch(number) else None
        if task is not None or state in ENDED:
            code = _wait_status(status)
            held = _nodes_of_job(state, nodes)
            tasks.append(TaskState(int(array), task, "|".join(name), state, code, held))
    return tasks


def _squeue_fields(line: str) -> list[str]:
    """Return the fields of a line of squeue about a task of Seatrial; none of any other line.
    Raises UnexpectedOutput."""
    fields = [field.strip() for field in line.split("|")]
    whole = len(fields) >= 7 and _NUMBER.fullmatch(fields[0])
    is_ours = not whole or fields[2].startswith(PREFIX)
    if not line.strip() or line.startswith("CLUSTER:") or not is_ours:
        return []
    if not whole or not _known(fields[-4]):
        raise UnexpectedOutput(f"squeue answered {line[:80]!r}")
    return fields


def parse_sacct(text: str) -> list[TaskState]:
    """Return the tasks from ``sacct -X -n -P -o SACCT_FORMAT``. Jobs that are not arrays are
    skipped, unless they have a name of Seatrial. Raises UnexpectedOutput."""
    tasks = []
    for line in text.splitlines():
        fields = line.split("|")
        words = fields[-3] if len(fields) >= 5 else ""  # CANCELLED by 1000
        state, _, by = words.partition(" ")
        if not _known(state):
            raise UnexpectedOutput(f"sacct answered {line[:80]!r}")
        job_id = _TASK.fullmatch(fields[0])
        if job_id and (job_id[2] or (fields[1].startswith(PREFIX) and state in ENDED)):
            array, task = int(job_id[1]), int(job_id[2]) if job_id[2] else None
            code = _exit_code(fields[-2])
            name = "|".join(fields[1:-3])
            nodes = "" if fields[-1].startswith("None") else fields[-1]  # None assigned
            tasks.append(
                TaskState(array, task, name, state, code, nodes, _account(by.removeprefix("by ")))
            )
    return tasks


def parse_sinfo(text: str) -> dict[str, str]:
    """Return, from ``sinfo --Node --noheader --format=SINFO_FORMAT``, for each node the reason why
    it takes no jobs, "" where it does. A node has one line for each of its partitions. Raises
    UnexpectedOutput."""
    nodes: dict[str, str] = {}
    for line in text.splitlines():
        fields = line.strip().split("|", 2)
        state = fields[1].rstrip("*~#!%$@^-+") if len(fields) == 3 else ""
        if not _STATE.fullmatch(state) or not fields[0]:
            raise UnexpectedOutput(f"sinfo answered {line[:80]!r}")
        reason = fields[2].strip().removeprefix("none")
        words = f"{state}: {reason}" if reason else state
        nodes[fields[0].strip()] = "" if state in NODE_UP else words
    return nodes


def parse_features(text: str) -> dict[str, frozenset[str]]:
    """Return, from ``sinfo --Node --noheader --format=FEATURES_FORMAT``, the features of each
    node. Raises UnexpectedOutput."""
    features: dict[str, frozenset[str]] = {}
    for line in text.splitlines():
        node, separator, listed = line.strip().partition("|")
        if not separator or not node:
            raise UnexpectedOutput(f"sinfo answered {line[:80]!r}")
        words = listed.strip().replace("(null)", "").split(",")
        features[node.strip()] = frozenset(filter(None, words))
    return features


def parse_job(text: str) -> TaskState:
    """Return the task from ``scontrol --oneliner show job ARRAY_TASK``. Raises UnexpectedOutput."""
    fields = dict(word.split("=", 1) for word in text.split() if "=" in word)
    array, task, state = (fields.get(k, "") for k in ("ArrayJobId", "ArrayTaskId", "JobState"))
    if not (_NUMBER.fullmatch(array) and _NUMBER.fullmatch(task) and _known(state)):
        raise UnexpectedOutput(f"scontrol answered {text[:80]!r}")
    name, code = fields.get("JobName", ""), _exit_code(fields.get("ExitCode", ""))
    nodes = _nodes_of_job(state, fields.get("NodeList", "").replace("(null)", ""))
    return TaskState(int(array), int(task), name, state, code, nodes)


def parse_job_id(text: str) -> int | None:
    """Return the job id from the last line of ``sbatch --parsable``; None where the output is
    binary or has no job id."""
    lines = text.split("\n")
    if not all(line.isprintable() and "\N{REPLACEMENT CHARACTER}" not in line for line in lines):
        return None
    written = [line.strip() for line in lines if line.strip()]
    job_id = _SUBMITTED.fullmatch(written[-1]) if written else None
    return int(job_id[1]) if job_id else None


def first_words_of(text: str) -> str:
    """Return the error message of a command on one line."""
    words = " ".join(
        text.replace("sbatch: error:", "").replace("slurm_load_jobs error:", "").split()
    )
    return words[:300] or "no message"


def _account(uid: str) -> str:
    """Return the name of an account; its number where this host has no name for it."""
    try:
        return name_of(int(uid))
    except (ValueError, OverflowError):
        return uid[:32]


def _nodes_of_job(state: str, nodes: str) -> str:
    """Return the nodes of a job; "" while it completes, as the controller then names only those of
    them that have not finished."""
    return "" if state == "COMPLETING" else nodes


def _known(state: str) -> bool:
    return state in ENDED or state in ACTIVE


def _wait_status(text: str) -> int:
    """Return the exit code from a status of wait(2), as squeue prints it: a signal in the low seven
    bits, else the exit code above."""
    status = _number(text)
    signal = status & 0x7F
    return 128 + signal if signal else status >> 8


def _exit_code(text: str) -> int:
    """Return the exit code from ``exit:signal``, as sacct prints it."""
    code, _, signal = text.partition(":")
    return 128 + _number(signal) if _number(signal) else _number(code)


def _number(text: str) -> int:
    return int(text) if _NUMBER.fullmatch(text) else 0


# ---- slurm client --------------------------------------------------------------------------------
#
# What is asked of Slurm, by its commands.


# Variables of users that change the output of Slurm's commands. Defaults of a site for sbatch, such
# as SBATCH_ACCOUNT, are kept; the options of Seatrial take precedence over them.
_MISLEADING = re.compile(
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
    temporary = TEMPORARY
    kept = KEPT

    def __init__(self, machine: Machine, on_answer: Callable[[str], None]) -> None:
        super().__init__(machine, on_answer, _MISLEADING)
        self.config = Config()
        self._config_known = False
        self.unknown_features: frozenset[str] | None = None  # of the file, to Slurm
        self._cluster = cluster_option(machine.slurm)

    @staticmethod
    def request_words(job: Job, machine: Machine) -> list[str]:
        return request_words(job, machine)

    @property
    def largest_array(self) -> int:
        return self.config.largest_array

    def write(self, folder: Path, submission: Submission) -> None:
        write_job_script(folder, submission, self.machine, self.unknown_features or ())

    def line(self, folder: Path, submission: Submission) -> list[str]:
        unknown = self.unknown_features or ()
        return sbatch_line(folder, submission, self.machine, unknown)

    def parse_answer(self, text: str) -> int | None:
        return parse_job_id(text)

    def task_id(self, array: int, index: int, alone: bool) -> str:
        return f"{array}_{index}"

    def parse_task_id(self, text: str) -> tuple[int, int]:
        array, _, index = text.partition("_")
        return int(array), int(index or 0)

    def first_words(self, text: str) -> str:
        return first_words_of(text)

    def lacks_features(self, submission: Submission) -> bool:
        needs_features = any(job.features for job in submission.jobs)
        return needs_features and self.unknown_features is None

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
            layout = f"--format={FEATURES_FORMAT}"
            known = await self._ask(parse_features, *line, layout)
            self.unknown_features = frozenset(unknown_features(self.machine, known))

    async def queue(self, tasks: Iterable[str]) -> list[TaskState]:
        """Return all array tasks of Seatrial that the controller has, whatever their array."""
        return await self._queue()

    async def _queue(self, *only: str) -> list[TaskState]:
        line = ("squeue", "--noheader", "--array", "--states=all", f"--user={os.geteuid()}")
        layout = f"--Format={SQUEUE_FORMAT}"
        return await self._ask(parse_squeue, *line, layout, *only)

    async def accounts(self, arrays: Iterable[int]) -> list[TaskState]:
        """Return the tasks of these arrays, by the accounting; none where the cluster has none."""
        tasks: list[TaskState] = []
        ids = sorted(arrays) if self.config.accounting else []
        for some in groups(list(map(str, ids))):
            tasks += await self._accounted(f"--jobs={','.join(some)}")
        return tasks

    async def _accounted(self, *which: str) -> list[TaskState]:
        line = ("sacct", "-X", "-n", "-P", "-o", SACCT_FORMAT)
        return await self._ask(parse_sacct, *line, *which)

    async def nodes(self) -> dict[str, str]:
        """Return, for each node of the machine, the reason why it takes no jobs, "" where it
        does."""
        names = ",".join(kind.names for kind in self.machine.nodes)
        line = ("sinfo", "--Node", "--noheader", f"--nodes={names}")
        layout = f"--format={SINFO_FORMAT}"
        return await self._ask(parse_sinfo, *line, layout)

    async def job(self, job_id: str) -> TaskState | None:
        """Return the state of an array task, also where squeue hides it; None where the controller
        does not have it."""
        line = ("scontrol", "--oneliner", "show", "job", job_id)
        try:
            return await self._ask(parse_job, *line)
        except Unanswered as error:
            if not NO_JOB.search(str(error)):
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
            await self._tell(OVER, *line, *some)

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
            await self._tell(OVER, "scontrol", "update", which, "Comment=recalled")

    async def _run(self, *line: str) -> str:
        return await super()._run(line[0], *self._cluster, *line[1:])


def _config(text: str) -> Config:
    size = re.search(r"(?m)^MaxArraySize\s*=\s*([0-9]{1,9})\s*$", text)
    if size is None:
        raise UnexpectedOutput(f"scontrol answered {text[:80]!r}")
    accounting = re.search(r"(?m)^AccountingStorageType\s*=.*slurmdbd\s*$", text)
    return Config(max(1, int(size[1])), accounting is not None)
