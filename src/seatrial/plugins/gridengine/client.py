"""What is asked of Grid Engine by its commands, and what these answer.

States are those of ``sge_status(5)``, and so are the numbers of failures in the accounting; its
fields are those of ``accounting(5)``. The states of tasks are said in the words of task_states.py.
"""

import math
import os
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

from msgspec.structs import replace

from seatrial.account import name_of
from seatrial.errors import UsageError
from seatrial.execute.backends import Job, Submission, allocation_of
from seatrial.execute.batch.scheduler_client import (
    QdelClient,
    SubmissionRefused,
    TaskKey,
    TaskState,
    Unanswered,
    UnexpectedOutput,
)
from seatrial.execute.batch.submitter import write_submission
from seatrial.execute.detect import ask_scheduler, by_kind, sockets_hint
from seatrial.execute.toolchains import detect_toolchains
from seatrial.hooks import value_of
from seatrial.model.machine import Launcher, Machine, Memory, NodeGroup
from seatrial.model.node_set import fold, unfold
from seatrial.model.run_settings import effective
from seatrial.model.test import JobOptions
from seatrial.plugins.gridengine import GridEngine, GridEngineScheduler

_STATE = re.compile(r"d?E?h?R?[qwrtsSTz]{1,3}")

# Failures of a job that the accounting tells. Of the others the job ran, and its exit state counts.
_FAILURES = {
    **dict.fromkeys((1, 3, 4, 6, 7, 8, 9, 10, 11, 26, 27, 28, 29, 31, 32, 33), "LAUNCH_FAILED"),
    **dict.fromkeys((34, 35, 36, 38), "LAUNCH_FAILED"),
    **dict.fromkeys((18, 19, 20, 21), "NODE_FAIL"),  # the shepherd of the job died
    **dict.fromkeys((24, 25), "REQUEUED"),
}
_LIMIT = 37  # a limit on time or memory was enforced
_SIGNAL = (17, 100)  # of a shell that ended through a signal
_KILLED = 137
_CLAIMED = 93  # the exit code of a job script whose run another job has claimed

# Errors of qsub that may pass: the master was down, or a limit on the number of jobs was reached.
TEMPORARY = re.compile(
    r"unable to (send|contact|receive)|got (send|select|read|receive) error|commlib|timeout"
    r"|timed out|can't (connect|resolve)|jobs are allowed|max_u_jobs|max_jobs|shutting down|busy"
    r"|temporar|try again|no route|unreachable|act_qmaster",
    re.IGNORECASE,
)
# Errors about jobs that Grid Engine does not have, or that are over.
UNKNOWN = re.compile(r"does not exist|do not exist|already in deletion|not found")
# What qacct says of a job without an account, and where there is no file of accounts.
NO_ACCOUNT = re.compile(r"not found")
NO_ACCOUNTING = re.compile(r"no such file|no jobs running since startup", re.IGNORECASE)

_DONE = re.compile(r"\S+ has (registered|deleted) ")
_FIELD = re.compile(r"([a-z_]+)[ \t]*(.*)")
_JOB_ID = re.compile(r"([0-9]{1,18})(?:\.[0-9]+-[0-9]+:[0-9]+)?")


class CellSettings(NamedTuple):
    """The maximum number of tasks in an array of a cell, whether it keeps accounts, and
    after how many seconds at most an account is written. The defaults count until it answers."""

    largest_array: int = 75_000
    accounting: bool = False
    account_within: float = 15.0


def parse_configuration(text: str) -> CellSettings:
    """Return the settings from ``qconf -sconf``. Raises UnexpectedOutput."""
    text = re.sub(r"\\\n", " ", text)
    size = re.search(r"(?m)^max_aj_tasks\s+([0-9]{1,9})\s*$", text)
    reporting = re.search(r"(?m)^reporting_params\s+(.*)$", text)
    if size is None or reporting is None:
        raise UnexpectedOutput(f"qconf answered {text[:80]!r}")
    settings = dict(re.findall(r"(\w+)=(\S+)", reporting[1]))
    within = settings.get("accounting_flush_time") or settings.get("flush_time", "")
    clock = re.fullmatch(r"([0-9]{1,3}):([0-9]{1,2}):([0-9]{1,2})", within)
    wait = CellSettings().account_within
    if clock is not None:
        wait = 3600.0 * int(clock[1]) + 60 * int(clock[2]) + int(clock[3])
    largest = int(size[1]) or CellSettings().largest_array
    return CellSettings(largest, settings.get("accounting") == "true", wait)


def parse_qstat(text: str) -> list[TaskState]:
    """Return the tasks from ``qstat -xml -g dt``, which has an entry for each slot of a task that
    runs, and with ``-s z`` one for the tasks of an array that are over. Raises UnexpectedOutput."""
    tasks: dict[TaskKey, TaskState] = {}
    nodes: dict[TaskKey, dict[str, None]] = {}
    try:
        root = root_of(text, "job_info")
    except ValueError as error:
        raise UnexpectedOutput(f"qstat {error}") from None
    for entry in root.iter("job_list"):
        fields = {field.tag: (field.text or "").strip() for field in entry}
        host = short(fields.get("queue_name", "").partition("@")[2])
        for task in _tasks_of(fields):
            tasks[task.key] = task
            if host:
                nodes.setdefault(task.key, {})[host] = None
    folded = {key: fold(list(hosts)) for key, hosts in nodes.items()}
    return [task._replace(nodes=folded.get(key, "")) for key, task in tasks.items()]


def _tasks_of(fields: Mapping[str, str]) -> list[TaskState]:
    """Return the tasks of an entry of ``qstat``, without their nodes. Raises UnexpectedOutput."""
    number, numbers = _number(fields.get("JB_job_number")), _numbers(fields.get("tasks", "1"))
    if number is None or not numbers or not _STATE.fullmatch(fields.get("state", "")):
        raise UnexpectedOutput(f"qstat answered {str(fields)[:160]}")
    name, state = fields.get("JB_name", ""), _active(fields["state"])
    return [TaskState(number, task - 1, name, state, 0, "") for task in numbers]


def _numbers(text: str) -> list[int]:
    """Return the numbers of tasks that a text names, such as ``3``, ``2,5`` or ``1-6:1``; none
    where it is none."""
    numbers: list[int] = []
    for part in text.split(","):
        parts = re.fullmatch(r"([0-9]{1,7})(?:-([0-9]{1,7})(?::([1-9][0-9]{0,6}))?)?", part.strip())
        if parts is None:
            return []
        first = int(parts[1])
        numbers += range(first, int(parts[2] or first) + 1, int(parts[3] or 1))
    return numbers


def _active(letters: str) -> str:
    """Return the state of a job that Grid Engine has, by its letters. One in error (``Eqw``) starts
    only if somebody clears that."""
    if "E" in letters:
        return "LAUNCH_FAILED"
    if "d" in letters:
        return "COMPLETING"
    for letter, state in (
        *((each, "SUSPENDED") for each in "sST"),
        ("w", "PENDING"),
        ("q", "PENDING"),
        ("t", "CONFIGURING"),
        ("z", "COMPLETING"),
    ):
        if letter in letters:
            return state
    return "RUNNING"


def parse_qacct(text: str) -> list[TaskState]:
    """Return the tasks from ``qacct -j``, the last account of each. The accounting does not tell
    the nodes of a job that may have several. Raises UnexpectedOutput."""
    tasks: dict[tuple[int, int], TaskState] = {}
    for account in _accounts(text):
        number, index = _number(account.get("jobnumber")), _number(account.get("taskid"))
        failed, code = _first(account.get("failed")), _first(account.get("exit_status"))
        if number is None or failed is None or code is None:
            raise UnexpectedOutput(f"qacct answered {str(account)[:160]}")
        state = _ended(account, failed, code)
        name = account.get("jobname", "")
        alone = account.get("granted_pe") == "NONE" and account.get("start_time") != "-/-"
        nodes = short(account.get("hostname", "")) if alone else ""
        tasks[number, index or 1] = TaskState(number, (index or 1) - 1, name, state, code, nodes)
    return list(tasks.values())


def _ended(account: dict[str, str], failed: int, code: int) -> str:
    """Return the state of a job that is over. The accounting does not tell a job that ``qdel``
    ended from one that the execution daemon ended at its limit; that it reached the limit does."""
    if failed in (_LIMIT, *_SIGNAL):
        return _ended_by_signal(account, failed, code)
    if failed in _FAILURES:
        return _FAILURES[failed]
    if code == _CLAIMED:
        return "REQUEUED"
    return "FAILED" if code else "COMPLETED"


def _ended_by_signal(account: dict[str, str], failed: int, code: int) -> str:
    """Return the state of a job that a signal ended."""
    request = account.get("category", "")
    limit = re.search(r"\bh_rt=([0-9]{1,9})\b", request)
    took = re.match(r"[0-9]+", account.get("ru_wallclock", ""))
    if limit and took and int(took[0]) >= int(limit[1]):
        return "TIMEOUT"
    if failed == _LIMIT:
        return "OUT_OF_MEMORY" if re.search(r"\b[hs]_vmem=", request) else "TIMEOUT"
    return "CANCELLED" if code == _KILLED else "FAILED"


def parse_nodes(text: str) -> dict[str, str]:
    """Return, from ``qhost -q -xml``, for each node the reason why it takes no jobs, "" where it
    does. Raises UnexpectedOutput."""
    try:
        return {host.name: host.why_down for host in parse_hosts(text)}
    except ValueError as error:
        raise UnexpectedOutput(f"qhost {error}") from None


def parse_job_id(text: str) -> int | None:
    """Return the number of the job from the last line of ``qsub -terse``; None where the output has
    none."""
    written = [line.strip() for line in text.split("\n") if line.strip()]
    job_id = _JOB_ID.fullmatch(written[-1]) if written else None
    return int(job_id[1]) if job_id else None


def first_words(text: str) -> str:
    """Return the error message of a command on one line, without what it did."""
    lines = (re.sub(r"^(error|qsub|denied): ", "", line.strip()) for line in text.splitlines())
    words = " ".join(line for line in lines if line != "Exiting." and not _DONE.match(line))
    return words.strip()[:300] or "no message"


def _accounts(text: str) -> Iterator[dict[str, str]]:
    """Yield the fields of each account."""
    if text.strip() and not text.startswith("====="):
        raise UnexpectedOutput(f"qacct answered {text[:80]!r}")
    for block in re.split(r"(?m)^=+$", text)[1:]:
        lines = (_FIELD.fullmatch(line.rstrip()) for line in block.splitlines())
        yield {line[1]: line[2] for line in lines if line}


def _first(text: str | None) -> int | None:
    """Return the number that begins a text, such as ``100 : assumedly after job``."""
    number = re.match(r"[0-9]{1,9}(?![^\s:])", text or "")
    return int(number[0]) if number else None


def _number(text: str | None) -> int | None:
    return int(text) if text and re.fullmatch(r"[0-9]{1,18}", text) else None


# ---- gridengine hosts ----------------------------------------------------------------------------
#
# The hosts of Grid Engine, as ``qhost -q -xml`` shows them; states of queues are those of
# ``qstat(1)``.


COMMAND = ("qhost", "-q", "-xml")

# States of a queue on a host that pass by themselves: alarms, suspended for another queue,
# preempted. One other state is enough that it starts no jobs there.
_PASSING = frozenset("aASP")


class HostSeen(NamedTuple):
    """A host: its values by name, such as ``m_core``, and the states and slots of its queues."""

    name: str
    values: dict[str, str]
    states: dict[str, str]
    slots: dict[str, int]

    @property
    def why_down(self) -> str:
        """Why it takes no jobs; "" where it does."""
        if not self.states:
            return "it is in no queue"
        words = [f"{queue} is {state}" for queue, state in self.states.items() if state]
        down = [state for state in self.states.values() if not _PASSING.issuperset(state)]
        return ", ".join(words) if len(down) == len(self.states) else ""

    def value(self, name: str) -> int:
        """Return a whole number among its values; 0 where it is none."""
        return _gridengine_hosts_number(self.values.get(name))


def parse_hosts(text: str) -> list[HostSeen]:
    """Return the hosts, by their names without a domain. Raises ValueError with the reason."""
    hosts = []
    for host in root_of(text, "qhost").iter("host"):
        name = short(host.get("name", ""))
        if not name:
            raise ValueError(f"answered {text[:80]!r}, a host without a name")
        values = {each.get("name", ""): each.text or "" for each in host.iter("hostvalue")}
        states: dict[str, str] = {}
        slots: dict[str, int] = {}
        for each in host.iter("queuevalue"):
            queue, what = each.get("qname", ""), each.get("name")
            if what == "state_string":
                states[queue] = (each.text or "").strip()
            elif what == "slots":
                slots[queue] = _gridengine_hosts_number(each.text)
        if name != "global":
            hosts.append(HostSeen(name, values, states, slots))
    return hosts


def root_of(text: str, tag: str) -> Any:
    """Return the root of an answer in XML, which has this tag. Raises ValueError with the
    reason."""
    try:
        root = ElementTree.fromstring(text) if "<!ENTITY" not in text else None
    except ElementTree.ParseError:
        root = None
    if root is None or root.tag != tag:
        raise ValueError(f"answered {text[:80]!r}, which Grid Engine does not")
    return root


def short(host: str) -> str:
    """Return the name of a host without its domain."""
    return host.strip().partition(".")[0]


def _gridengine_hosts_number(text: str | None) -> int:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 10 else 0


# ---- the client ----------------------------------------------------------------------------------


PATIENCE = 30.0  # seconds for an account beyond those after which it is written

# Variables that a job has, which would be those of a job that submits jobs.
_MISLEADING = re.compile(r"SGE_(TASK_\w+|O_\w+|ND|DEBUG_LEVEL|LONG_QNAMES)|JOB_\w+|PE\w*")
_TASK = re.compile(r"(-?[0-9]+)\.([0-9]+)")


class GridEngineClient(QdelClient):
    """The client of one cell of Grid Engine."""

    scheduler = GridEngineScheduler
    programs = ("qsub", "qstat", "qdel", "qacct", "qhost", "qconf")
    directive = "#$"
    temporary = TEMPORARY
    unknown = UNKNOWN
    kept = frozenset({"LAUNCH_FAILED"})  # Eqw: it would start if somebody clears the error

    def __init__(self, machine: Machine, on_answer: Callable[[str], None]) -> None:
        super().__init__(machine, on_answer, _MISLEADING)
        self.settings: CellSettings | None = None
        self._nodes: dict[TaskKey, str] = {}  # of tasks that were seen while they ran
        self._has_accounts = False  # whether qacct could read them when it was last asked
        self._over_since: dict[TaskKey, float] = {}  # of tasks without an account

    @staticmethod
    def request_words(job: Job, machine: Machine) -> list[str]:
        return request_words(job, machine)

    @property
    def largest_array(self) -> int:
        return (self.settings or CellSettings()).largest_array

    async def learn_config(self) -> None:
        if self.settings is None:
            line = ("qconf", "-sconf")
            self.settings = await self._ask(parse_configuration, *line)

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
        return parse_job_id(text)

    def task_id(self, array: int, index: int, alone: bool) -> str:
        return f"{array}.{index + 1}"

    def parse_task_id(self, text: str) -> tuple[int, int]:
        parts = _TASK.fullmatch(text)
        return (int(parts[1]), int(parts[2]) - 1) if parts else (0, 0)

    def first_words(self, text: str) -> str:
        return first_words(text)

    # ---- asking ---------------------------------------------------------------------------

    async def queue(self, tasks: Iterable[str]) -> list[TaskState]:
        """Return all tasks of this user that Grid Engine has; none of those that have ended."""
        states = await self._listed("prs")
        self._nodes |= {state.key: state.nodes for state in states if state.nodes}
        return states

    async def _listed(self, which: str) -> list[TaskState]:
        line = ("qstat", "-xml", "-g", "dt", "-s", which, "-u", name_of(os.geteuid()))
        return await self._ask(parse_qstat, *line)

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
        self._has_accounts = not NO_ACCOUNTING.search(errors)
        if code != 0 and (NO_ACCOUNT.search(errors) or not self._has_accounts):
            self._on_answer("qacct")
            return []
        if code != 0:
            message = self.first_words(errors.strip() or out)
            raise Unanswered("qacct", f"qacct failed: {message}")
        states = self._parsed(parse_qacct, "qacct", out)
        return [state._replace(nodes=self._nodes.get(state.key, state.nodes)) for state in states]

    async def find(self, name: str, since: float) -> int | None:
        tasks = [*await self.queue([]), *await self._accounted(name)]
        return max((task.array for task in tasks if task.name == name), default=None)

    async def nodes(self) -> dict[str, str]:
        nodes = await self._ask(parse_nodes, *COMMAND)
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


# ---- detect --------------------------------------------------------------------------------------
#
# Detect the cluster of this login node as a machine, by asking Grid Engine (``qhost -q -xml``, and
# ``qconf`` for its parallel environments).
#
# Grid Engine knows cores, sockets, threads and memory of a host; no NUMA domains, and GPUs under a
# name that each site chooses.


_SIZE = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,6})?)([KMGT]?)")
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def detect_gridengine(name: str | None) -> tuple[Machine, str]:
    """Describe the hosts that qhost shows, under that name. A host that is in no queue is left out.
    Raises UsageError if Grid Engine does not answer."""
    try:
        hosts = parse_hosts(_ask(*COMMAND))
    except ValueError as error:
        raise UsageError(f"{' '.join(COMMAND)}: {error}") from None
    kinds = by_kind((host.name, kind) for host in hosts if (kind := _kind(host)) is not None)
    if not kinds:
        raise UsageError("qhost: no host with cores is in a queue; describe the machine by hand")
    toolchains, _ = found = detect_toolchains()
    has_launcher = any(toolchain.launcher for toolchain in toolchains.values())
    machine = Machine(
        machine=name or "cluster",
        about="As Grid Engine describes it",
        nodes=kinds,
        scheduler="gridengine",
        launcher=Launcher(kind="none" if has_launcher else "mpirun"),
        toolchains=toolchains,
    )
    comments = found.comments + _hint_of_sockets(hosts, kinds)
    return replace(machine, gridengine=GridEngine(parallel=_parallel())), comments


def _kind(host: HostSeen) -> NodeGroup | None:
    """Return a node without its name; None if it takes no jobs. A run has a slot for each core, so
    cores without a slot are none."""
    cores = host.value("m_core") or host.value("num_proc")
    usable = min(cores, max(host.slots.values(), default=0))
    if not usable:
        return None
    threads = host.value("m_thread") // cores
    sockets = host.value("m_socket") if _sockets_known(host) else 1
    return NodeGroup(
        names="",
        cores=usable,
        sockets=sockets if sockets and usable % sockets == 0 else 1,
        threads_per_core=max(1, threads),
        memory=Memory(f"{_bytes(host.values.get('mem_total', '')) // 2**20}MiB"),
    )


def _sockets_known(host: HostSeen) -> bool:
    """Return whether the sockets of a host are known. In a virtual machine each core may count as
    one."""
    return host.value("m_socket") < max(2, host.value("m_core"))


def _hint_of_sockets(hosts: Iterable[HostSeen], kinds: Iterable[NodeGroup]) -> str:
    """Return the comment on the hosts of a machine whose sockets are not known."""
    known = {name for kind in kinds for name in unfold(kind.names)}
    unknown = [host.name for host in hosts if host.name in known and not _sockets_known(host)]
    return sockets_hint("Grid Engine", "m_socket is m_core", unknown)


def _parallel() -> dict[str, str | int]:
    """Return the parallel environments, each with its allocation rule."""
    rules: dict[str, str | int] = {}
    for name in _ask("qconf", "-spl").split():
        about = _ask("qconf", "-sp", name)
        if rule := re.search(r"(?m)^allocation_rule\s+(\S+)", about):
            rules[name] = int(rule[1]) if rule[1].isdecimal() else rule[1]
    return rules


def _ask(*command: str) -> str:
    return ask_scheduler("Grid Engine", "sge_qmaster", *command)


def _bytes(text: str) -> int:
    """Return a size of Grid Engine, such as 23.6G, in bytes; 0 where it is none."""
    parts = _SIZE.fullmatch(text.strip())
    return int(float(parts[1]) * _UNITS[parts[2]]) if parts else 0
