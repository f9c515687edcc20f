"""What is asked of OpenPBS and PBS Pro by their commands, and what these answer.

States and substates are those of ``qstat(1B)`` and of the PBS reference guide, "Job States";
negative exit states those of ``pbs_job.h``, JOB_EXEC_*. The states of tasks are said in the words
of task_states.py.
"""

import asyncio
import functools
import json
import math
import re
import shlex
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from seatrial.errors import UsageError
from seatrial.execute.backends import Job, Submission, allocation_of
from seatrial.execute.batch.scheduler_client import (
    QdelClient,
    TaskState,
    Unanswered,
    UnexpectedOutput,
)
from seatrial.execute.batch.submitter import write_submission
from seatrial.execute.detect import ask_scheduler, by_kind
from seatrial.execute.toolchains import detect_toolchains
from seatrial.hooks import value_of
from seatrial.model.machine import Launcher, Machine, Memory, NodeGroup
from seatrial.model.node_set import fold
from seatrial.model.run_settings import effective
from seatrial.model.test import JobOptions
from seatrial.plugins.pbs import Pbs, PbsScheduler

# States of a job that has not ended; of an array itself, B, nothing follows for its tasks.
_ACTIVE = {
    **dict.fromkeys("QHWTM", "PENDING"),  # queued, held, waits for its time, in transit, moved
    "R": "RUNNING",
    "E": "COMPLETING",
    "S": "SUSPENDED",
    "U": "SUSPENDED",  # as somebody uses the workstation
}
_ENDED = "FX"  # X: a task of an array that has other tasks left
_DELETED = 91  # substate

# Exit states by which PBS itself says why a job ended.
_EXIT_STATES = {
    **dict.fromkeys((-1, -2, -3, -7, -8, -16, -17), "LAUNCH_FAILED"),
    **dict.fromkeys((-4, -5, -6), "NODE_FAIL"),  # the MOM was started again
    **dict.fromkeys((-11, -12, -14, -15, -18), "REQUEUED"),  # -18: by a hook of the site
    -19: "CANCELLED",  # by a hook of the site
    -20: "NODE_FAIL",
    **dict.fromkeys((-24, -25), "CANCELLED"),  # used more CPUs than it asked for
    **dict.fromkeys((-26, -27), "OUT_OF_MEMORY"),
    **dict.fromkeys((-28, -29), "TIMEOUT"),
}
_DIRECT = 19  # the first release that surely knows qsub -k d
_CLAIMED = 93  # the exit code of a job script whose run another job has claimed

# States of a node in which it takes jobs, or will by itself: pbsnodes(8B), -v. In any other state
# it takes none, also in one that a later PBS may bring.
NODE_UP = frozenset(
    {
        *("free", "job-busy", "job-exclusive", "job-sharing", "resv-exclusive", "busy"),
        "sleep",  # saves power until a job needs it
    }
)

# Errors of qsub that may pass: the server was down, or a limit on the number of jobs was reached.
TEMPORARY = re.compile(
    r"cannot connect|connection (refused|reset)|communication failure|timed out|time-?out"
    r"|would exceed|maximum number of jobs|system error|try again|end of file|premature end"
    r"|server is (shutting|busy)|no route|temporar|15010|15012|15021|15031|broken pipe|unreachable"
    r"|invalid credential|bad (uid|cred)|munge",
    re.IGNORECASE,
)
# Errors about jobs that the server does not have, or that are over.
UNKNOWN = re.compile(r"Unknown Job Id|has finished|Job has been deleted|invalid for state of job")
_MEMBER = re.compile(r'[ \t]*"[^"\n]*":')
_BRACKETS = re.compile(r"[ \t]*[]}{[]*,?[ \t]*")
_JOB_ID = re.compile(r"([0-9]{1,18})(\[([0-9]{0,18})\])?(?:\.[A-Za-z0-9._-]+)?")
_VNODE = re.compile(r"\(([A-Za-z0-9._-]+)(?:\[[0-9]+\])?[:)]")


class ServerSettings(NamedTuple):
    """What a server says of itself: the maximum number of tasks in an array, whether it knows jobs
    that have ended, and whether its ``qsub -k d`` lets jobs write their output where it shall be,
    so that no file is copied at their end. The defaults count until it answers."""

    largest_array: int = 10_000
    history: bool = True
    writes_directly: bool = False


def parse_server(text: str) -> ServerSettings:
    """Return the settings from ``qstat -B -f -F json``. Raises UnexpectedOutput."""
    for about in _members(text, "Server", "qstat"):
        size = about.get("max_array_size", ServerSettings().largest_array)
        history = str(about.get("job_history_enable", "False")) == "True"
        release = re.match(r"[0-9]+", str(about.get("pbs_version", "")))
        direct = release is not None and int(release[0]) >= _DIRECT
        return ServerSettings(max(1, _number(size) or 1), history, direct)
    raise UnexpectedOutput(f"qstat answered {text[:80]!r}, no server")


def parse_qstat(text: str) -> list[TaskState]:
    """Return the tasks from ``qstat -f -t -F json``: a job that is no array is its task 0. Raises
    UnexpectedOutput."""
    tasks = []
    for job_id, about in _items(text, "Jobs", "qstat"):
        parts = _JOB_ID.fullmatch(job_id)
        letter = about.get("job_state")
        if parts is None or not isinstance(letter, str) or letter not in (*_ACTIVE, *_ENDED, "B"):
            raise UnexpectedOutput(f"qstat answered {job_id[:40]!r} in the state {letter!r}")
        if not parts[2] or parts[3]:
            code = _number(about.get("Exit_status"))
            state = _ACTIVE.get(letter) or _ended(about, code)
            by = _deleted_by(about) if state == "CANCELLED" else ""
            name, nodes = str(about.get("Job_Name", "")), nodes_of(str(about.get("exec_vnode", "")))
            index = int(parts[3] or 0)
            exit_code = _exit_code(code) if letter in _ENDED else 0
            tasks.append(TaskState(int(parts[1]), index, name, state, exit_code, nodes, by))
    return tasks


class ArrayCounts(NamedTuple):
    """How many tasks of an array are in each state, in the words of PBS ("" of a job that is no
    array), how many are left, and whether the array is over."""

    words: str = ""
    left: int = 0
    over: bool = False


def parse_counts(text: str) -> ArrayCounts:
    """Return the counts of an array, from ``qstat -f -F json`` of it alone, or with its tasks: its
    ``array_state_count`` is ``Queued:5 Running:2 Exiting:0 Expired:3``. Raises UnexpectedOutput."""
    for job_id, about in _items(text, "Jobs", "qstat"):
        parts = _JOB_ID.fullmatch(job_id)
        if parts is not None and parts[2] and not parts[3]:
            state, counts = about.get("job_state"), str(about.get("array_state_count", "")).strip()
            left = sum(map(int, re.findall(r"(?:Queued|Running|Exiting):([0-9]{1,9})\b", counts)))
            return ArrayCounts(f"{state} {counts}", left, state != "B" and left == 0)
    return ArrayCounts()


def _ended(about: dict[str, Any], code: int | None) -> str:
    """Return the state of a job that is over."""
    if about.get("substate") == _DELETED and "terminated" in str(
        about.get("comment", "terminated")
    ):
        return "CANCELLED"
    if code is None:
        return "COMPLETED"
    if code < 0:
        return _EXIT_STATES.get(code, "LAUNCH_FAILED")
    if code == _CLAIMED and (_number(about.get("run_count")) or 0) > 1:
        return "REQUEUED"
    return "FAILED" if code else "COMPLETED"


def _exit_code(status: int | None) -> int:
    """Return the exit code from an exit state: 256 and more, or 128 and more, name a signal; below
    0 no job ended by itself."""
    code = max(status or 0, 0)
    return 128 + code % 128 if code >= 256 else code


def _deleted_by(about: dict[str, Any]) -> str:
    """Return the account that deleted a job, by its comment: ``... and terminated by root@pbs``."""
    match = re.search(r"terminated by (\S{1,80})$", str(about.get("comment", "")))
    return match[1] if match else ""


def nodes_of(vnodes: str) -> str:
    """Return the node set of a job's ``exec_vnode``: ``(n1:ncpus=2)+(n2[0]:ncpus=2)`` is n[1-2]."""
    names = list(dict.fromkeys(_VNODE.findall(vnodes)))
    return fold(names) if names else ""


def parse_pbsnodes(text: str) -> dict[str, str]:
    """Return, from ``pbsnodes -a -F json``, for each node the reason why it takes no jobs, "" where
    it does. Raises UnexpectedOutput."""
    nodes: dict[str, str] = {}
    for name, about in _items(text, "nodes", "pbsnodes"):
        said = about.get("state")
        if not isinstance(said, str) or not said:
            raise UnexpectedOutput(f"pbsnodes answered {name[:40]!r} in the state {said!r}")
        states = said.split(",")
        comment = " ".join(str(about.get("comment", "")).split())
        words = f"{said}: {comment}" if comment else said
        node = name.partition("[")[0]  # a host has vnodes of its name
        nodes[node] = nodes.get(node) or ("" if NODE_UP.issuperset(states) else words)
    return nodes


def parse_job_id(text: str) -> int | None:
    """Return the number of the job from the last line of ``qsub``; None where the output has no
    job id."""
    written = [line.strip() for line in text.split("\n") if line.strip()]
    job_id = _JOB_ID.fullmatch(written[-1]) if written else None
    return int(job_id[1]) if job_id else None


def parse_qselect(text: str) -> list[int]:
    """Return the numbers of the jobs that ``qselect`` lists. Raises UnexpectedOutput."""
    parts = [_JOB_ID.fullmatch(line.strip()) for line in text.splitlines() if line.strip()]
    if not all(parts):
        raise UnexpectedOutput(f"qselect answered {text[:80]!r}")
    return [int(each[1]) for each in parts if each]


def first_words(text: str) -> str:
    """Return the error message of a command on one line."""
    words = " ".join(re.sub(r"(?m)^q\w+:\s*|^pbsnodes:\s*", "", text).split("usage:")[0].split())
    return words[:300] or "no message"


def _members(text: str, key: str, command: str) -> Iterator[dict[str, Any]]:
    return (about for _, about in _items(text, key, command))


def _items(text: str, key: str, command: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the members of an answer in JSON. Older releases leave control characters in texts."""
    try:
        answer = _decoded(text)
    except (ValueError, RecursionError):
        raise UnexpectedOutput(f"{command} answered {text[:80]!r}, no JSON") from None
    if not isinstance(answer, dict) or "pbs_version" not in answer:
        raise UnexpectedOutput(f"{command} answered {text[:80]!r}, which PBS does not")
    members = answer.get(key, {})
    if not isinstance(members, dict):
        raise UnexpectedOutput(f"{command} answered {key} {str(members)[:80]!r}")
    for name, about in members.items():
        if not isinstance(about, dict):
            raise UnexpectedOutput(f"{command} answered {name[:40]!r}: {str(about)[:80]!r}")
        yield name, about


def _decoded(text: str) -> Any:
    """Return the value of a text in JSON. Raises ValueError. PBS writes each member on a line of
    its own, and some releases write values as they are: with quotes and backslashes of a user's
    variables, or names such as 007 as numbers. Such a value is read as a text."""
    try:
        return json.loads(text, strict=False)
    except ValueError:
        return json.loads("\n".join(map(_quoted, _member_lines(text))), strict=False)


def _member_lines(text: str) -> list[str]:
    """Return the lines of a text in JSON, a value that has line feeds with its member."""
    lines: list[str] = []
    for line in text.split("\n"):
        if not lines or _MEMBER.match(line) or _BRACKETS.fullmatch(line):
            lines.append(line)
        else:
            lines[-1] += f"\n{line}"
    return lines


def _quoted(line: str) -> str:
    """Return the line of a member, with its value as a text if it is no value of JSON."""
    member = _MEMBER.match(line)
    value = line[member.end() :].rstrip() if member else "{"
    bare = value.removesuffix(",")
    if member is None or bare.endswith(("{", "[")):
        return line
    try:
        json.loads(bare, strict=False)
    except ValueError:
        bare = bare.removeprefix('"')
        comma = "," if value.endswith(",") else ""
        return f"{member[0]}{json.dumps(bare.removesuffix(chr(34)))}{comma}"
    return line


def _number(value: object) -> int | None:
    """Return a whole number, which some releases write as a text."""
    text = str(value)
    return int(text) if re.fullmatch(r"-?[0-9]{1,18}", text) else None


# ---- the client ----------------------------------------------------------------------------------


QUESTIONS_AT_ONCE = 8
LISTING_SHARE = 20.0  # minimum age of a listing of an array, in durations of that listing
NEAR_END = 0.1  # seconds between polls at the end of an array

# Variables that change what commands print, or how they submit.
_MISLEADING = re.compile(r"PBS_(DPREFIX|QSTAT_\w+|JOBID|JOBCOOKIE|ARRAY_\w+)|QSUB_\w+")
_TASK = re.compile(r"(-?[0-9]+)(?:\[([0-9]+)\])?(?:\..*)?")


class _Listing(NamedTuple):
    """The tasks of an array as they were at a time of the monotonic clock, and how long the server
    took to tell them."""

    states: list[TaskState]
    counts: ArrayCounts
    at: float
    took: float


class PbsClient(QdelClient):
    """The client of one server of PBS."""

    scheduler = PbsScheduler
    programs = ("qsub", "qstat", "qselect", "qdel", "pbsnodes")
    directive = "#PBS"
    temporary = TEMPORARY
    unknown = UNKNOWN

    def __init__(self, machine: Machine, on_answer: Callable[[str], None]) -> None:
        super().__init__(machine, on_answer, _MISLEADING)
        self.settings: ServerSettings | None = None
        self._asking = asyncio.Semaphore(QUESTIONS_AT_ONCE)
        self._listings: dict[str, _Listing] = {}

    @staticmethod
    def request_words(job: Job, machine: Machine) -> list[str]:
        return request_words(job, machine)

    @property
    def largest_array(self) -> int:
        return (self.settings or ServerSettings()).largest_array

    async def learn_config(self) -> None:
        if self.settings is None:
            line = ("qstat", "-B", "-f", "-F", "json")
            self.settings = await self._ask(parse_server, *line)

    def write(self, folder: Path, submission: Submission) -> None:
        line = self.line(folder, submission)
        write_submission(folder, submission, "${PBS_ARRAY_INDEX:-0}", line)

    def line(self, folder: Path, submission: Submission) -> list[str]:
        """Return the qsub command of a submission. PBS has no array of one task, and takes no array
        that must not be run again: a job script that is run again finds its run claimed. ``-f``
        keeps qsub from leaving a process in the background, which would hold the file of its
        answer. ``-k d`` spares a copy of the output at each end. With the host localhost the path
        of the output is each node's own: PBS would copy to this host by scp."""
        job = allocation_of(submission, folder)
        tasks = 1 if submission.is_bundle else len(submission.jobs)
        output = f"localhost:{folder}" if _qsub_keeps_localhost() else str(folder)
        line = ["qsub", "-f", "-N", submission.name, "-S", "/bin/bash", "-m", "n", "-j", "oe"]
        if self.settings is not None and self.settings.writes_directly:
            line += ["-k", "doe"]
        if tasks > 1:
            line += ["-J", f"0-{tasks - 1}", "-o", f"{output}/^array_index^.out"]
        else:
            line += ["-r", "n", "-o", f"{output}/0.out"]
        return [*line, *request_words(job, self.machine), str(folder / "job.sh")]

    def request(self, folder: Path, submission: Submission) -> str:
        job = allocation_of(submission, folder)
        return shlex.join(request_words(job, self.machine))

    def parse_answer(self, text: str) -> int | None:
        return parse_job_id(text)

    def task_id(self, array: int, index: int, alone: bool) -> str:
        return str(array) if alone else f"{array}[{index}]"

    def is_alone(self, task: str) -> bool:
        return "[" not in task

    def parse_task_id(self, text: str) -> tuple[int, int]:
        parts = _TASK.fullmatch(text)
        return (int(parts[1]), int(parts[2] or 0)) if parts else (0, 0)

    def first_words(self, text: str) -> str:
        return first_words(text)

    # ---- asking ---------------------------------------------------------------------------

    async def queue(self, tasks: Iterable[str]) -> list[TaskState]:
        """Return the tasks of the arrays of these tasks. In JSON, qstat tells the first alone of
        the jobs that it is asked for; so each array is a question of its own. A listing of all
        tasks is much work for the server, which starts no jobs meanwhile: it is asked for again
        when the counts of the array have changed."""
        arrays = sorted({re.sub(r"\[.*", "[]", task) for task in tasks})
        self.next_poll = None
        listings = await asyncio.gather(*map(self._listing, arrays))
        self._listings = dict(zip(arrays, listings, strict=True))
        # Most polls of arrays ask for counts alone, and these listings are limited already.
        self.poll_weight = 0.05 if all(each.counts.words for each in listings) else 0.2
        return [state for listing in listings for state in listing.states]

    async def _listing(self, job: str) -> _Listing:
        """Return the tasks of an array, or a job: as last listed, where nothing has changed, or
        where it has changed, but it was listed just before."""
        last = self._listings.get(job)
        if last is not None and last.counts.words:
            counts = self._parsed(parse_counts, "qstat", await self._about(job))
            age = time.monotonic() - last.at
            if counts == last.counts and age < self.machine.batch.poll.seconds:
                return last
            if counts.words and not counts.over and age < LISTING_SHARE * last.took:
                self._expect(LISTING_SHARE * last.took - age, last, counts, age)
                return last
        began = time.monotonic()
        text = await self._about("-t", job)
        states = self._parsed(parse_qstat, "qstat", text)
        now = time.monotonic()
        listing = _Listing(states, parse_counts(text), now, now - began)
        if last is not None and listing.counts != last.counts:
            self._expect(LISTING_SHARE * listing.took, last, listing.counts, now - last.at)
        return listing

    def _expect(self, listing: float, last: _Listing, counts: ArrayCounts, age: float) -> None:
        """Set the time of the next poll: in ``listing`` seconds, when the tasks of an array may be
        listed again, or in half the time in which the array will be over, if its tasks end as they
        did since its last listing. So few polls find that the array is over, and find it soon."""
        ended = last.counts.left - counts.left
        rest = max(counts.left / ended * age / 2, NEAR_END) if ended > 0 else listing
        self.next_poll = min(listing, rest, self.next_poll or listing)

    async def _about(self, *words: str) -> str:
        """Return the answer of qstat about a job; one without jobs where the server does not know
        it."""
        await self.learn_config()
        history = ("-x",) if self.settings is None or self.settings.history else ()
        line = ("qstat", *history, "-f", "-F", "json", *words)
        async with self._asking:
            code, out, errors = await self._output(*line)
        lines = [each for each in errors.splitlines() if each.strip()]
        if code != 0 and "not configured to maintain job history" in errors:
            self.settings = None  # it was turned off
            raise Unanswered("qstat", "qstat: the server keeps no history any more")
        if code != 0 and not (lines and all(map(UNKNOWN.search, lines))):
            message = self.first_words(errors.strip() or out)
            raise Unanswered("qstat", f"qstat failed: {message}")
        return out

    async def fresh(self, tasks: Sequence[str]) -> list[TaskState]:
        self._listings.clear()
        return await self.queue(tasks)

    async def accounts(self, arrays: Iterable[int]) -> list[TaskState]:
        """Return nothing: the history is asked with the queue."""
        return []

    async def find(self, name: str, since: float) -> int | None:
        await self.learn_config()
        history = ("-x",) if self.settings is None or self.settings.history else ()
        jobs = await self._ask(parse_qselect, "qselect", *history, "-N", name)
        return min(jobs, default=None)

    async def nodes(self) -> dict[str, str]:
        line = ("pbsnodes", "-a", "-F", "json")
        nodes = await self._ask(parse_pbsnodes, *line)
        return self.of_machine(nodes)


# ---- what a job asks for -------------------------------------------------------------------------


@functools.cache
def _qsub_keeps_localhost() -> bool:
    """Return whether the canonical name of localhost is localhost. qsub writes the canonical name,
    such as localhost.localdomain, and the nodes take that for another host."""
    try:
        return socket.getaddrinfo("localhost", None, flags=socket.AI_CANONNAME)[0][3] == "localhost"
    except OSError:
        return False


def request_words(job: Job, machine: Machine) -> list[str]:
    """Return the options of qsub by which a job asks for its nodes, its time and its queue."""
    pbs = value_of(machine, "pbs", Pbs)
    options = effective(pbs, job.options)
    words = ["-l", f"select={_select(job, options, pbs.select)}"]
    words += ["-l", f"place={_place(job, pbs.place)}"]
    words += ["-l", f"walltime={max(1, math.ceil(job.walltime))}"]
    for option, value in (
        ("-q", options.reservation or options.partition),
        ("-A", options.account),
        ("-P", pbs.project),
    ):
        words += [option, value] if value else []
    return [*words, *options.options]


def _select(job: Job, options: JobOptions, more: str) -> str:
    """Return the chunks of a job: one for each of its nodes."""
    chunk = [
        f"{job.nodes}:ncpus={job.tasks_per_node * job.threads}",
        f"mpiprocs={job.tasks_per_node}",
        f"ompthreads={job.threads}",
    ]
    gpus = options.gpus_per_node or options.gpus_per_task * job.tasks_per_node
    chunk += [f"ngpus={gpus}"] if gpus else []
    chunk += [f"mem={math.ceil(options.memory / 2**20)}mb"] if options.memory else []
    chunk += [feature if "=" in feature else f"{feature}=True" for feature in job.features]
    chunk += [f"host={job.node}"] if job.node else []
    return ":".join([*chunk, *filter(None, re.split(":", more))])


def _place(job: Job, place: str) -> str:
    return f"{place}:excl" if job.exclusive and "excl" not in place else place


# ---- detect --------------------------------------------------------------------------------------
#
# Detect the cluster of this login node as a machine, by asking PBS (``pbsnodes -a -F json``).
#
# PBS knows CPUs, memory, GPUs and what its administrators call resources; no sockets and no NUMA
# domains. A host with several vnodes, ``n1[0]`` and ``n1[1]``, is one node.


_COMMAND = ("pbsnodes", "-a", "-F", "json")
_SIZE = re.compile(r"([0-9]{1,15})(b|kb|mb|gb|tb)", re.IGNORECASE)
_UNITS = {"b": 1, "kb": 2**10, "mb": 2**20, "gb": 2**30, "tb": 2**40}


def detect_pbs(name: str | None) -> tuple[Machine, str]:
    """Describe the nodes that pbsnodes shows, under that name or the server's. Nodes that belong to
    a queue are left out, and named in ``about``: jobs get them by this queue alone. Raises
    UsageError if PBS does not answer."""
    vnodes, server = _asked()
    free = {vnode: about for vnode, about in vnodes.items() if "queue" not in about}
    kinds = _groups(free) or _groups(vnodes)
    if not kinds:
        raise UsageError("pbsnodes: PBS has no node with CPUs here; describe the machine by hand")
    toolchains, _ = found = detect_toolchains()
    has_launcher = any(toolchain.launcher for toolchain in toolchains.values())
    machine = Machine(
        machine=name or server,
        about=f"As PBS describes it; cores are CPUs of PBS{_of_queues(vnodes)}",
        nodes=kinds,
        scheduler="pbs",
        launcher=Launcher(kind="none" if has_launcher else "mpiexec"),
        toolchains=toolchains,
    )
    return machine, found.comments


def _of_queues(vnodes: dict[str, dict[str, Any]]) -> str:
    """Return to which queues nodes belong, in words; "" where none does."""
    queues = sorted({str(about["queue"]) for about in vnodes.values() if "queue" in about})
    return f"; other nodes belong to queues: {', '.join(queues)}" if queues else ""


def _asked() -> tuple[dict[str, dict[str, Any]], str]:
    """Return the vnodes that pbsnodes shows, and the name of the server. Raises UsageError."""
    text = ask_scheduler("PBS", "pbs_server", *_COMMAND)
    try:
        answer = json.loads(text, strict=False)
        vnodes = {str(vnode): dict(about) for vnode, about in answer.get("nodes", {}).items()}
        return vnodes, str(answer.get("pbs_server", "")) or "cluster"
    except (ValueError, TypeError, AttributeError):
        raise UsageError(f"{' '.join(_COMMAND)}: answered {text[:80]!r}, no JSON of it") from None


def _groups(vnodes: dict[str, dict[str, Any]]) -> list[NodeGroup]:
    """Return the nodes with CPUs by kind."""
    by_node: dict[str, list[dict[str, Any]]] = {}
    for vnode, about in vnodes.items():
        resources = about.get("resources_available")
        by_node.setdefault(vnode.partition("[")[0], []).append(
            resources if isinstance(resources, dict) else {}
        )
    kinds = ((node, _kind(resources)) for node, resources in by_node.items())
    return by_kind((node, kind) for node, kind in kinds if kind is not None)


def _kind(vnodes: list[dict[str, Any]]) -> NodeGroup | None:
    """Return a node without its name; None if it has no CPUs. Its features are the resources that
    are true."""
    cores = _sum(vnodes, "ncpus")
    if not cores:
        return None
    features = {key for vnode in vnodes for key, value in vnode.items() if str(value) == "True"}
    memory = sum(_bytes(vnode.get("mem")) for vnode in vnodes)
    return NodeGroup(
        names="",
        cores=cores,
        memory=Memory(f"{memory // 2**20}MiB"),
        gpus=_sum(vnodes, "ngpus"),
        features=sorted(features),
    )


def _sum(vnodes: Iterable[dict[str, Any]], key: str) -> int:
    texts = (str(vnode.get(key, 0)) for vnode in vnodes)
    return sum(int(text) for text in texts if re.fullmatch("[0-9]{1,9}", text))


def _bytes(text: object) -> int:
    """Return a size of PBS, such as 264039676kb, in bytes; 0 where it is none."""
    parts = _SIZE.fullmatch(str(text))
    return int(parts[1]) * _UNITS[parts[2].lower()] if parts else 0
