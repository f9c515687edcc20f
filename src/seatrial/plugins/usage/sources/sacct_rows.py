"""Reads what sacct prints: records of jobs and of their steps. Pure: no command is run here.

    reader = Reader(machine="frost", asked=now)
    for job in reader.jobs(lines, rejects, "saved.txt"):
        ...

Fields and states are those of ``sacct(1)``, "Job Accounting Fields" and "JOB STATE CODES", as Slurm
22.05 prints them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, tzinfo
from operator import itemgetter
from typing import NamedTuple

from msgspec.structs import replace

from seatrial.errors import UsageError
from seatrial.plugins.usage.archive import Rejects
from seatrial.plugins.usage.jobs import UNFINISHED, JobState, UserJob
from seatrial.plugins.usage.sources.files import LATEST, whole

STATES: dict[str, JobState] = {
    "BOOT_FAIL": "node_fail",  # its nodes did not boot
    "CANCELLED": "cancelled",
    "COMPLETED": "completed",
    "COMPLETING": "running",
    "CONFIGURING": "running",  # its nodes boot; they are allocated
    "DEADLINE": "timeout",  # ended at its deadline; cancelled, if it had not started
    "FAILED": "failed",
    "LAUNCH_FAILED": "node_fail",
    "NODE_FAIL": "node_fail",
    "OUT_OF_MEMORY": "out_of_memory",
    "PENDING": "pending",
    "POWER_UP_NODE": "running",
    "PREEMPTED": "preempted",
    "RECONFIG_FAIL": "node_fail",
    "REQUEUED": "requeued",
    "REQUEUE_FED": "pending",
    "REQUEUE_HOLD": "pending",
    "RESIZING": "requeued",  # ended with its former size; it goes on as another record
    "RESV_DEL_HOLD": "pending",
    "REVOKED": "requeued",  # another cluster of the federation started it
    "RUNNING": "running",
    "SIGNALING": "running",
    "SPECIAL_EXIT": "requeued",  # held, after an exit code by which it is to run again
    "STAGE_OUT": "running",
    "STOPPED": "suspended",
    "SUSPENDED": "suspended",
    "TIMEOUT": "timeout",
}
"""The states of ``sacct(1)`` and ``squeue(1)``, "JOB STATE CODES". Any other word is "unknown"."""

COLUMNS: dict[str, tuple[str, ...]] = {
    "id": ("JobID",),
    "raw": ("JobIDRaw",),
    "name": ("JobName",),
    "user": ("User",),
    "uid": ("UID",),
    "account": ("Account",),
    "queue": ("Partition",),
    "cluster": ("Cluster",),
    "state": ("State",),
    "exit": ("ExitCode",),
    "submitted": ("Submit",),
    "eligible": ("Eligible",),
    "started": ("Start",),
    "ended": ("End",),
    "elapsed": ("ElapsedRaw", "Elapsed"),
    "suspended": ("Suspended",),
    "limit": ("TimelimitRaw", "Timelimit"),
    "nodes": ("AllocNodes", "NNodes"),
    "nodes_asked": ("ReqNodes",),
    "cores": ("AllocCPUS", "NCPUS"),
    "cores_asked": ("ReqCPUS",),
    "tres": ("AllocTRES",),
    "tres_asked": ("ReqTRES",),
    "node_list": ("NodeList",),
    "cpu": ("TotalCPU",),
    "energy": ("ConsumedEnergyRaw",),
    "reservation": ("Reservation",),
    "reason": ("Reason",),
    "comment": ("Comment",),
    "admin_comment": ("AdminComment",),
}
"""What is read, and which fields of sacct tell it: the first of them that is printed."""

NEEDED = ("id", "state", "submitted", "started", "ended", "cores")
"""Without these nothing can be said of a job."""

EXECUTABLE_FROM = ("step", "admin-comment", "comment")
"""What may tell the executable: the name of the longest step, and the comments."""

_FREE = ("JobName", "Comment", "AdminComment", "SubmitLine", "WorkDir", "SystemComment")
"""Fields with text of users, in which a delimiter and the end of a line may be."""

_ID = re.compile(
    r"(?P<job>\d{1,12}(?:_(?:\d{1,10}|\[[^\]]*\]))?(?:\+\d{1,6})?)(?:\.(?P<step>\w+))?"
)
_RANGE = re.compile(r"(?P<array>\d+)_\[(?P<tasks>[^\]%]*)(?:%\d+)?\]")
_TASKS = re.compile(r"(\d{1,7})(?:-(\d{1,7})(?::(\d{1,7}))?)?", re.ASCII)
_GPUS = re.compile(r"(?:^|,)gres/gpu(:[^=,]*)?=(\d{1,9})", re.ASCII)
_SPAN = re.compile(r"(?:(?:(\d{1,6})-)?(\d{1,9}):)?(\d{1,9}):(\d{1,9})(\.\d+)?", re.ASCII)
_EXIT = re.compile(r"(\d{1,10}):(\d{1,5})", re.ASCII)
_CANCELLED = re.compile(r"CANCELLED by (\d+)", re.ASCII)
_LARGEST_ARRAY = 4_000_001  # MaxArraySize, slurm.conf(5)
_LONGEST_RECORD = 1 << 20  # characters
_UNMEASURED_J = 1 << 60  # from here on Slurm means "no value"
_RUNAWAY_S = 7 * 86400


class Header(NamedTuple):
    """The titles of what sacct prints, and what stands between them."""

    titles: tuple[str, ...]
    delimiter: str
    #: Whether a delimiter ends each record, too (``-p``).
    closed: bool

    @classmethod
    def of(cls, line: str, delimiter: str = "") -> Header:
        """Return the header that a line is. Without a delimiter it is what stands behind the first
        title. Raises UsageError."""
        known = {title for titles in COLUMNS.values() for title in titles} | {*_FREE}
        if not delimiter:
            first = re.match(r"[A-Za-z]+", line)
            rest = line[first.end() :] if first else ""
            delimiter = re.match(r"[^A-Za-z]*", rest)[0]  # type: ignore[index]
        titles = line.split(delimiter) if delimiter else []
        closed = bool(titles) and not titles[-1]
        titles = titles[:-1] if closed else titles
        if not known.intersection(titles):
            raise UsageError(
                f"{line[:60]!r} is no header of sacct -p or -P; save its output with the header, "
                "without --noheader and without a fixed width"
            )
        return cls(tuple(titles), delimiter, closed)

    def place(self, names: Sequence[str]) -> int:
        """Return where the first of these titles stands; -1 if none does."""
        return next((self.titles.index(name) for name in names if name in self.titles), -1)


def header_faults(header: Header) -> str:
    """Return which fields are missing that are needed; "" if none is."""
    missing = [COLUMNS[key][0] for key in NEEDED if header.place(COLUMNS[key]) < 0]
    return ", ".join(missing)


class Record(NamedTuple):
    """A record, whose last line has this number."""

    line: int
    fields: list[str]


Report = Callable[[str, str, str], None]
"""Takes a row that cannot be read: its place, the reason, and the row."""


def records(lines: Iterable[str], header: Header, broken: Report, origin: str) -> Iterator[Record]:
    """Yield the records below a header, which is line 1. One goes on in the next line where a name
    has the end of a line in it. What is no record goes to ``broken``."""
    between = header.delimiter
    whole = len(header.titles) - (not header.closed)
    identity = header.place(COLUMNS["id"])
    kept = ""
    number = 1
    for number, line in enumerate(lines, 2):
        line = line.rstrip("\r\n")
        found = line.count(between)
        if kept:
            if found >= whole and _starts(line, header, identity):
                broken(f"{origin}:{number - 1}", "is cut off", kept)
            else:
                line = f"{kept}\n{line}"
                found = line.count(between)
            kept = ""
        if found < whole:
            if _starts(line, header, identity) and len(line) < _LONGEST_RECORD:
                kept = line
            elif line:
                broken(f"{origin}:{number}", "is no record of sacct", line[:_LONGEST_RECORD])
            continue
        fields = line.split(between)
        if found > whole:
            fields = _rejoined(fields, header)
        if len(fields) != whole + 1 or (header.closed and fields.pop()):
            reason = (
                f"has {found + 1} columns, not {whole + 1}: text of a user holds {between!r}; save "
                "with --delimiter and characters that nobody writes"
            )
            broken(f"{origin}:{number}", reason, line)
            continue
        yield Record(number, fields)
    if kept:
        broken(f"{origin}:{number}", "is cut off", kept)


def _starts(line: str, header: Header, identity: int) -> bool:
    """Return whether a line begins a record: the id of a job is where it should be."""
    fields = line.split(header.delimiter, identity + 1)
    return len(fields) > identity and _ID.fullmatch(fields[identity]) is not None


def _rejoined(fields: list[str], header: Header) -> list[str]:
    """Return the fields of a record in which the only text of a user holds the delimiter."""
    free = [place for place, title in enumerate(header.titles) if title in _FREE]
    if len(free) != 1:
        return fields
    (place,) = free
    behind = len(header.titles) - 1 - place + header.closed
    end = len(fields) - behind
    return [*fields[:place], header.delimiter.join(fields[place:end]), *fields[end:]]


class Reader:
    """Makes jobs of records. ``asked``: when sacct was asked, in s; ``zone``: of times without
    one; ``cluster``: the only one that is read; ``executable_from``: the fields that tell what ran,
    the first that says something counts. The raw ids of jobs that have not ended are put into
    ``unfinished``, and taken out once they have; any that is read is taken out of ``unseen``."""

    def __init__(
        self,
        machine: str,
        asked: int,
        *,
        zone: tzinfo | None = None,
        cluster: str = "",
        cpus_per_core: int = 1,
        executable_from: Sequence[str] = EXECUTABLE_FROM,
        unfinished: set[int] | None = None,
        unseen: set[int] | None = None,
    ) -> None:
        self.machine = machine
        self.asked = asked
        self.zone = zone
        self.cluster = cluster
        self.cpus_per_core = cpus_per_core
        self.executable_from = executable_from
        self.unfinished = set() if unfinished is None else unfinished
        self.unseen = set() if unseen is None else unseen
        self._clusters: set[str] = set()
        self._attempts: dict[tuple[str, int], int] = {}

    def jobs(
        self,
        lines: Iterable[str],
        header: Header,
        rejects: Rejects,
        origin: str,
        broken: Report | None = None,
    ) -> Iterator[UserJob]:
        """Yield the jobs of the records below a header; tasks of an array that wait as one record
        each for itself. What is no record at all goes to ``broken``. Raises UsageError where the
        records are of several clusters."""
        places = [header.place(titles) for titles in COLUMNS.values()]
        chosen = itemgetter(*places)  # -1: the empty field behind the last one
        job: UserJob | None = None
        steps = _Steps()
        for record in records(lines, header, broken or rejects.add, origin):
            row = _Row._make(chosen([*record.fields, ""]))
            try:
                if step := "" if row.id.isdigit() else _step_of(row.id):
                    steps.add(step, row)
                    continue
                if job is not None:
                    yield from self._finished(job, steps)
                job, steps = None, _Steps(row.comment, row.admin_comment)
                if not self._is_of_others(row.cluster):
                    job = self._job(row)
            except ValueError as error:
                text = header.delimiter.join(record.fields)
                rejects.add(f"{origin}:{record.line}", str(error), text)
        if job is not None:
            yield from self._finished(job, steps)

    def _is_of_others(self, cluster: str) -> bool:
        """Return whether a record is of another cluster than the one that is read."""
        if self.cluster:
            return bool(cluster) and cluster != self.cluster
        if cluster and cluster not in self._clusters:
            self._clusters.add(cluster)
            if len(self._clusters) > 1:
                both = " and ".join(sorted(self._clusters))
                raise UsageError(f"the records are of the clusters {both}; choose with --cluster")
        return False

    def _job(self, row: _Row) -> UserJob:
        """Return the job of a record. Raises ValueError."""
        if "[" in row.id:
            _unfolded(row.id)
        submitted, started, ended = self._times(row)
        limit = _limit(row.limit)
        state, reason = _state(row, started)
        if state == "running" and self._ran_away(started, limit):
            state, ended, reason = "unknown", started, "no end was recorded (runaway)"
        self._remember(row, state in UNFINISHED)
        code, signal = (0, 0) if row.exit == "0:0" else _exit(row.exit)
        nodes, cores, gpus = self._resources(row, started is not None)
        return UserJob(
            machine=self.machine,
            job=row.id,
            submitted=submitted,
            attempt=self._attempt(row, submitted, ended),
            cluster=self.cluster and row.cluster,
            eligible=self._moment(row.eligible),
            started=started,
            ended=ended,
            suspended_s=0 if row.suspended in ("", "00:00:00") else _span(row.suspended),
            limit_s=limit,
            state=state,
            exit_code=None if ended is None else code,
            signal=signal,
            user=row.user or row.uid,
            account=row.account,
            queue=row.queue,
            name=row.name,
            reservation=row.reservation,
            nodes=nodes,
            cores=cores,
            gpus=gpus,
            node_list="" if row.node_list.startswith("None") else row.node_list,
            cpu_s=None if row.cpu in ("", "00:00:00") else _span(row.cpu),
            energy_j=_energy(row.energy),
            reason=reason,
        )

    def _times(self, row: _Row) -> tuple[int, int | None, int | None]:
        """Return when a job was submitted, started and ended. Raises ValueError."""
        submitted = self._moment(row.submitted)
        started, ended = self._moment(row.started), self._moment(row.ended)
        if submitted is None:
            raise ValueError(f"Submit is {row.submitted!r}, no time")
        if row.nodes == "0" and row.node_list.startswith("None"):
            started = None  # Slurm gives some that were cancelled in the queue a start, but no node
        if started is not None and started < submitted:
            started = submitted  # after it was resized; Start is that of its first record
        if ended is not None and ended < (started or submitted):
            raise ValueError(f"it ended ({ended}) before it started ({started or submitted})")
        return submitted, started, ended

    def _resources(self, row: _Row, allocated: bool) -> tuple[int, int, int]:
        """Return the nodes, cores and GPUs of a job: those that it asked for, if it has none
        yet."""
        nodes = row.nodes if allocated else row.nodes_asked or row.nodes
        cores = _number(row.cores if allocated else row.cores_asked or row.cores)
        gpus = _gpus(row.tres if allocated else row.tres_asked)
        return _number(nodes), -(-cores // self.cpus_per_core), gpus

    def _moment(self, text: str) -> int | None:
        """Return the s of a time; None where it is not known, or will be. Raises ValueError."""
        if text.isdigit():
            return whole(text, "a time", LATEST)
        if text in ("Unknown", "None", ""):
            return None
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            raise ValueError(
                f"{text!r} is no time; save with SLURM_TIME_FORMAT=%s, or with none"
            ) from None
        return int((moment if moment.tzinfo else moment.replace(tzinfo=self.zone)).timestamp())

    def _ran_away(self, started: int | None, limit: int | None) -> bool:
        """Return whether a job that runs should have ended long ago: Slurm lost its end, as
        ``sacctmgr show runawayjobs`` tells."""
        return (
            started is not None and limit is not None and started + limit + _RUNAWAY_S < self.asked
        )

    def _remember(self, row: _Row, unfinished: bool) -> None:
        raw = row.raw or row.id.partition("_")[0].partition("+")[0]
        number = whole(raw, "JobIDRaw") if raw.isdigit() else 0
        self.unseen.discard(number)
        (self.unfinished.add if unfinished else self.unfinished.discard)(number)

    def _attempt(self, row: _Row, submitted: int, ended: int | None) -> int:
        """Return the number of an attempt. Slurm gives a job that it puts back another time of
        submission. So attempts share one only if the first of them ended in that very second."""
        key = (row.id, submitted)
        attempt = self._attempts.get(key, 0) if self._attempts else 0
        if ended == submitted or row.state == "RESIZING":
            self._attempts[key] = attempt + 1
        return attempt

    def _finished(self, job: UserJob, steps: _Steps) -> Iterator[UserJob]:
        """Yield a job with what its steps tell; each task of a range by itself."""
        executable = steps.executable(self.executable_from)
        if executable or (job.energy_j is None and steps.energy_j):
            job = replace(
                job, executable=executable, energy_j=job.energy_j or steps.energy_j or None
            )
        if "[" not in job.job:
            yield job
            return
        array, _, _ = job.job.partition("_")
        for tasks in _unfolded(job.job):
            for task in tasks:
                yield replace(job, job=f"{array}_{task}")


class _Row(NamedTuple):
    """The fields of a record, in the order of COLUMNS."""

    id: str
    raw: str
    name: str
    user: str
    uid: str
    account: str
    queue: str
    cluster: str
    state: str
    exit: str
    submitted: str
    eligible: str
    started: str
    ended: str
    elapsed: str
    suspended: str
    limit: str
    nodes: str
    nodes_asked: str
    cores: str
    cores_asked: str
    tres: str
    tres_asked: str
    node_list: str
    cpu: str
    energy: str
    reservation: str
    reason: str
    comment: str
    admin_comment: str


class _Steps:
    """What the steps of a job, and its comments, tell of what it ran."""

    def __init__(self, comment: str = "", admin_comment: str = "") -> None:
        self.energy_j = 0
        self._told = {"comment": comment, "admin-comment": admin_comment, "step": ""}
        self._longest = -1

    def add(self, step: str, row: _Row) -> None:
        """Add a step. The program is that of the longest step which srun started; the steps
        ``batch``, ``extern`` and ``interactive`` are none."""
        self.energy_j += _energy(row.energy) or 0
        whole_s = row.elapsed.isdigit()
        elapsed = whole(row.elapsed, "Elapsed") if whole_s else _span(row.elapsed or "0:0")
        if step.isdigit() and elapsed > self._longest:
            self._longest = elapsed
            self._told["step"] = row.name

    def executable(self, order: Sequence[str]) -> str:
        """Return what tells the executable, in this order."""
        for each in order:
            if told := self._told[each]:
                return told
        return ""


def _step_of(job_id: str) -> str:
    """Return the name of a step; "" where the id is that of a job. Raises ValueError."""
    found = _ID.fullmatch(job_id)
    if found is None:
        raise ValueError(f"{job_id!r} is no id of a job")
    return found["step"] or ""


# ---- fields --------------------------------------------------------------------------------------


def _number(text: str) -> int:
    """Return a whole number; 0 where there is none. Slurm shortens large ones (``1.5K``) unless it
    is asked not to. Raises ValueError."""
    if not text:
        return 0
    if not text.isdigit():
        raise ValueError(f"{text[:40]!r} is no whole number; save with --noconvert")
    return whole(text, "a number of nodes or CPUs")


def _span(text: str) -> int:
    """Return the s of ``[[DAYS-]HOURS:]MINUTES:SECONDS[.mmm]``, rounded. Raises ValueError."""
    found = _SPAN.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no duration of Slurm")
    days, hours, minutes, seconds, part = found.groups(default="0")
    whole = ((int(days) * 24 + int(hours)) * 60 + int(minutes)) * 60 + int(seconds)
    return whole + (part != "0" and float(part) >= 0.5)


def _limit(text: str) -> int | None:
    """Return a limit in s; None for UNLIMITED, and for Partition_Limit, whose value the accounting
    does not tell. TimelimitRaw is in minutes."""
    if text.isdigit():
        return 60 * whole(text, "the limit")
    return _span(text) if ":" in text else None


def _exit(text: str) -> tuple[int | None, int]:
    """Return the exit code and the signal of ``CODE:SIGNAL``."""
    if text == "0:0":
        return 0, 0
    found = _EXIT.fullmatch(text)
    return (int(found[1]), int(found[2])) if found else (None, 0)


def _gpus(text: str) -> int:
    """Return the GPUs among trackable resources: ``gres/gpu=4``, or the sum of their kinds where
    these alone are tracked (``gres/gpu:a100=2,gres/gpu:v100=2``)."""
    if "gres/gpu" not in text:
        return 0
    kinds = _GPUS.findall(text)
    whole = [int(number) for kind, number in kinds if not kind]
    return whole[0] if whole else sum(int(number) for _, number in kinds)


def _energy(text: str) -> int | None:
    """Return an energy in J; None where it was not measured, for which Slurm has several words."""
    value = int(text) if text.isascii() and text.isdigit() and len(text) <= 20 else 0
    return value if 0 < value < _UNMEASURED_J else None


def _by_whom(row: _Row) -> str:
    """Return who cancelled a job, without a name."""
    found = _CANCELLED.match(row.state)
    if found is None:
        return ""
    if found[1] == row.uid:
        return "cancelled by its user"
    return "cancelled by root" if found[1] == "0" else "cancelled by another user"


def _unfolded(job: str) -> list[range]:
    """Return the tasks of ``12_[3-9,12,20-30:2%4]``. Raises ValueError."""
    found = _RANGE.fullmatch(job)
    tasks = []
    for part in found["tasks"].split(",") if found else [job]:
        span = _TASKS.fullmatch(part)
        if span is None:
            raise ValueError(f"{part!r} are no tasks of an array; save with SLURM_BITSTR_LEN=0")
        first, last, step = int(span[1]), int(span[2] or span[1]), int(span[3] or 1)
        if last < first or not step or last >= _LARGEST_ARRAY:
            raise ValueError(f"{part!r} are no tasks of an array")
        tasks.append(range(first, last + 1, step))
    return tasks


def _state(row: _Row, started: int | None) -> tuple[JobState, str]:
    """Return the state of a job, and why it waits or was ended."""
    reason = "" if row.reason == "None" else row.reason
    if row.state == "COMPLETED":
        return "completed", reason
    word, _, _ = row.state.partition(" ")
    state = STATES.get(word.rstrip("+"), "unknown")
    if word == "DEADLINE" and started is None:
        return "cancelled", word
    if state == "unknown":
        return state, f"state {row.state}"
    return state, (_by_whom(row) or reason) if state == "cancelled" else reason
