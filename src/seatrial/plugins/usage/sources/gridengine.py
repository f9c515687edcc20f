"""Jobs from the file ``accounting`` of Grid Engine: Sun's, Son of Grid Engine, Univa's.

A record is a line of fields between colons, written when a job ends: ``accounting(5)``. Univa Grid
Engine has more fields behind them, and times in ms. Of a job that is rescheduled Grid Engine 8.1
writes a record without times; it is counted, and is no job.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from seatrial.cli import Folders
from seatrial.errors import UsageError
from seatrial.model.node_set import fold
from seatrial.plugins.usage.archive import Rejects
from seatrial.plugins.usage.importing import Ask, Batch, bring_in
from seatrial.plugins.usage.jobs import JobState, UserJob
from seatrial.plugins.usage.settings import machine_of
from seatrial.plugins.usage.sources.files import (
    LATEST,
    Position,
    Reading,
    cursor_of,
    first_record,
    is_record,
    jobs_of,
    name_of,
    whole,
)

FAILURES: dict[int, tuple[JobState, str]] = {
    1: ("failed", "assumedly before job"),
    3: ("failed", "before writing config"),
    4: ("failed", "before writing PID"),
    6: ("failed", "setting processor set"),
    7: ("failed", "before prolog"),
    8: ("failed", "in prolog"),
    9: ("failed", "before pestart"),
    10: ("failed", "in pestart"),
    11: ("failed", "before job"),
    18: ("node_fail", "shepherd returned error"),
    19: ("node_fail", "before writing exit_status"),
    20: ("node_fail", "found unexpected error file"),
    21: ("node_fail", "in recognizing job"),
    24: ("requeued", "migrating"),
    25: ("requeued", "rescheduling"),
    26: ("failed", "opening output file"),
    27: ("failed", "searching requested shell"),
    28: ("failed", "changing to working directory"),
    29: ("failed", "AFS setup"),
    30: ("failed", "application error returned"),
    31: ("failed", "accessing sgepasswd file"),
    32: ("failed", "entry is missing in password file"),
    33: ("failed", "wrong password"),
    34: ("failed", "communicating with helper service"),
    35: ("failed", "before job in helper service"),
    36: ("failed", "checking configured daemons"),
    38: ("failed", "adding supplementary group"),
}
"""Numbers of ``failed`` after which a job did not run, or not to its end: ``sge_status(5)``. After
12 to 16 it ran, and its exit status counts; 17, 37 and 100 are of jobs that were ended."""

LIMIT, BY_SIGNAL = 37, (17, 100)
_KILLED, _SIGNALS, _LARGEST_SIGNAL = 137, 128, 64
"""Of exit states, as shells have them: 128 and the number of the signal."""

_MILLISECONDS = 100_000_000_000  # times from here on are in ms: in s, it is the year 5138
_LATEST_MS = 1000 * LATEST
_LEAST_FIELDS = 37
_FIELDS_WITHOUT_UNIVA = 45
_H_RT = re.compile(r"\bh_rt=([\d:]+)")
_MEMORY = re.compile(r"\b[hs]_(vmem|rss|data)=")
_NO_TIMES = "rescheduled; Grid Engine does not tell when that attempt ran, it counts no hours"


class _Record(NamedTuple):
    """What is read of a record."""

    queue: str
    host: str
    owner: str
    name: str
    job: str
    account: str
    submitted: int
    started: int
    ended: int
    failed: int
    exit_status: int
    project: str
    pe: str
    slots: int
    task: int
    cpu: float
    category: str
    pe_task: str


class _Tasks(Struct, array_like=True):
    """What tasks of a parallel job, which have records before its own, tell of it."""

    hosts: dict[str, None]
    cpu: float = 0.0


class Cursor(Struct, omit_defaults=True):
    """What the next import is told: how far the file was read, and its latest end."""

    position: Position = Position()
    until: int = 0
    #: By job and time of submission, how many attempts were rescheduled.
    attempts: dict[str, int] = {}


class Accounts:
    """Makes jobs of records, one after another. ``parallel``: the allocation rules of parallel
    environments, as the machine file has them."""

    def __init__(
        self, machine: str, parallel: Mapping[str, str | int], cursor: Cursor, rejects: Rejects
    ) -> None:
        self.machine = machine
        self.parallel = parallel
        self.rejects = rejects
        self.attempts = cursor.attempts
        self.first = 0
        self.last = cursor.until
        self._tasks: dict[tuple[str, int], _Tasks] = {}

    def job(self, line: str) -> UserJob | None:
        """Return the job of a record, if it is one of a job. Raises ValueError."""
        if not is_record(line) or len(line) == 1:
            return None
        record = _record(line)
        key = (record.job, record.task)
        if record.pe_task not in ("NONE", ""):
            tasks = self._tasks.setdefault(key, _Tasks({}))
            tasks.hosts[record.host] = None
            tasks.cpu += record.cpu
            return None
        if not record.submitted and FAILURES.get(record.failed, ("",))[0] == "requeued":
            self.rejects.note(_NO_TIMES)
            return None
        job = self._job(record, self._tasks.pop(key, _Tasks({})))
        ended = job.ended or job.submitted
        self.first, self.last = min(self.first or ended, ended), max(self.last, ended)
        return job

    def _job(self, record: _Record, tasks: _Tasks) -> UserJob:
        started = record.started or None
        ended = record.ended or record.started or record.submitted
        if not record.submitted:
            raise ValueError("submission_time is 0, no time")
        if ended < (started or record.submitted):
            raise ValueError(f"it ended ({ended}) before it started")
        limit = _limit(record.category)
        took = ended - (started or ended)
        state, reason = _state(record, overdue=limit is not None and took >= limit)
        code = record.exit_status
        signal = code - _SIGNALS if 0 < code - _SIGNALS <= _LARGEST_SIGNAL else 0
        tasks.hosts[record.host] = None
        nodes = self._nodes(record, tasks)
        return UserJob(
            machine=self.machine,
            job=f"{record.job}_{record.task}" if record.task else record.job,
            submitted=record.submitted,
            attempt=self._attempt(record, state),
            started=started,
            ended=ended,
            limit_s=limit,
            state=state,
            exit_code=code,
            signal=signal,
            user=record.owner,
            account=record.account if record.project in ("NONE", "") else record.project,
            queue=record.queue,
            name=record.name,
            nodes=nodes,
            cores=record.slots,
            node_list=fold(list(tasks.hosts)) if nodes == len(tasks.hosts) else "",
            cpu_s=round(record.cpu + tasks.cpu) if started else None,
            reason=reason,
        )

    def _nodes(self, record: _Record, tasks: _Tasks) -> int:
        """Return how many nodes a job had; 0 where neither its records nor the allocation rule of
        its environment tell that."""
        rule = self.parallel.get(record.pe, "")
        if record.pe in ("NONE", "") or record.slots == 1 or rule == "$pe_slots":
            return 1
        if isinstance(rule, int) and rule > 0:
            return -(-record.slots // rule)
        return len(tasks.hosts) if len(tasks.hosts) > 1 else 0

    def _attempt(self, record: _Record, state: JobState) -> int:
        key = f"{record.job}.{record.task}@{record.submitted}"
        attempt = self.attempts.get(key, 0)
        if state == "requeued":
            self.attempts[key] = attempt + 1
        elif attempt:
            del self.attempts[key]
        return attempt


# ---- records -------------------------------------------------------------------------------------


def _record(line: str) -> _Record:
    """Return what is read of a line. Raises ValueError."""
    fields = line.split(":")
    if len(fields) < _LEAST_FIELDS:
        raise ValueError(f"has {len(fields)} fields, not 45: no record of accounting(5)")
    times = [whole(fields[place], name, _LATEST_MS) for place, name in _TIMES]
    univa = times[0] >= _MILLISECONDS
    # In front of the last fields stands the category, with all that was asked for.
    more = 0 if univa else max(0, len(fields) - _FIELDS_WITHOUT_UNIVA)
    submitted, started, ended = (each // 1000 if univa else each for each in times)
    if max(submitted, started, ended) > LATEST:
        raise ValueError(f"{max(times)} is no time")
    return _Record(
        queue=fields[0],
        host=fields[1].partition(".")[0],
        owner=fields[3],
        name=fields[4],
        job=str(whole(fields[5], "job_number")),
        account=fields[6],
        submitted=submitted,
        started=started,
        ended=ended,
        failed=whole(fields[11], "failed"),
        exit_status=whole(fields[12], "exit_status"),
        project=fields[31],
        pe=fields[33],
        slots=whole(fields[34], "slots"),
        task=whole(fields[35], "task_number"),
        cpu=_seconds(fields[36]),
        category=":".join(fields[39 : 40 + more]),
        pe_task=fields[41 + more] if len(fields) > 41 + more else "",
    )


_TIMES = ((8, "submission_time"), (9, "start_time"), (10, "end_time"))


def _seconds(text: str) -> float:
    """Return a time of a processor; 0 where it is none."""
    try:
        value = float(text)
    except ValueError:
        return 0.0
    return value if 0 <= value < 1e12 else 0.0


def _limit(category: str) -> int | None:
    """Return the time limit (``h_rt``) of what was asked for, in s."""
    found = _H_RT.search(category)
    if found is None:
        return None
    seconds = 0
    for part in found[1].split(":"):
        seconds = 60 * seconds + whole(part or "0", "h_rt")
    return seconds or None


def _state(record: _Record, *, overdue: bool) -> tuple[JobState, str]:
    """Return how a job ended, and why. The accounting does not tell one that ``qdel`` ended from
    one that a limit ended; that it reached its limit does."""
    if record.failed in (LIMIT, *BY_SIGNAL):
        return _ended_by_signal(record, overdue=overdue)
    if record.failed in FAILURES:
        return FAILURES[record.failed]
    return ("failed" if record.exit_status else "completed"), ""


def _ended_by_signal(record: _Record, *, overdue: bool) -> tuple[JobState, str]:
    if overdue:
        return "timeout", ""
    if record.failed == LIMIT:
        memory = _MEMORY.search(record.category) is not None
        return ("out_of_memory" if memory else "timeout"), "a limit was enforced"
    return ("cancelled" if record.exit_status == _KILLED else "failed"), "ended by a signal"


# ---- the file as a source ------------------------------------------------------------------------


class _AccountingFile:
    """The file and those that it was rotated to, as a source."""

    name = "gridengine"
    cluster = ""

    def __init__(self, path: Path, parallel: Mapping[str, str | int]) -> None:
        self.path = path
        self.parallel = parallel

    def batches(self, ask: Ask, rejects: Rejects) -> Iterator[Batch]:
        """Yield the jobs of each file, the oldest first. Raises UsageError."""
        cursor = cursor_of(ask.cursor if ask.since is None else "", Cursor)
        files = _files(self.path, cursor.position.first)
        accounts = Accounts(ask.machine, self.parallel, cursor, rejects)
        goes_on = bool(cursor.position.first) and _is_known(files[0], cursor.position.first)
        for path in files:
            position = cursor.position if goes_on and path == files[0] else Position(name_of(path))
            reading = Reading(path, position)
            since = accounts.last if goes_on else 0
            accounts.first = 0

            def ended(since: int = since, reading: Reading = reading) -> tuple[Any, str]:
                kept = Cursor(reading.position, accounts.last, accounts.attempts)
                span = (since or accounts.first, accounts.last)
                return span, msgspec.json.encode(kept).decode()

            jobs = ask.of_span(jobs_of(reading, accounts.job, rejects))
            yield Batch(jobs, str(path), path.stat().st_mtime_ns, ended=ended)
            goes_on = True


def _files(path: Path, first: str) -> list[Path]:
    """Return the files to read, the oldest first: from that of the last import on, which may have
    been rotated since (``accounting.1.gz``). Raises UsageError."""
    folder, name = (path, "accounting") if path.is_dir() else (path.parent, path.name)
    rotated = (f"{name}.", f"{name}-")
    found = [each for each in folder.iterdir() if each.is_file() and each.name.startswith(rotated)]
    found += [folder / name] if not path.is_dir() or (folder / name).is_file() else []
    files = sorted(found, key=lambda each: (each.stat().st_mtime_ns, each.name))
    if not files:
        raise UsageError(f"{path}: has no file accounting; name SGE_ROOT/SGE_CELL/common")
    known = [place for place, each in enumerate(files) if first and _is_known(each, first)]
    if known:
        return files[known[-1] :]
    return files if path.is_dir() else [path]


def _is_known(path: Path, first: str) -> bool:
    """Return whether a file is the one that was read, by its first record."""
    return first_record(path) == first


def import_gridengine(folders: Folders, path: Path, **chosen: Any) -> int:
    """Do ``seatrial usage import gridengine``; return the exit code."""
    machine = machine_of(chosen["machine"] or "")
    settings = getattr(machine, "gridengine", None)  # there is none without that plug-in
    return bring_in(folders, _AccountingFile(path, getattr(settings, "parallel", {})), **chosen)
