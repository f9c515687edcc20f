"""Jobs from the accounting logs of PBS Pro, OpenPBS and Torque.

A log has a file for each day, ``server_priv/accounting/20260131``. Its lines are ``stamp;type;
id;message``: the stamp is local time without a zone, the times within the message are s since the
epoch. Types and keys are those of the PBS Professional Reference Guide, "Accounting Log", and of
Torque's administrator guide, "Accounting Records".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from seatrial.cli import Folders
from seatrial.errors import UsageError
from seatrial.model.node_set import fold
from seatrial.plugins.usage.archive import Rejects
from seatrial.plugins.usage.importing import Ask, Batch, bring_in
from seatrial.plugins.usage.jobs import JobState, UserJob
from seatrial.plugins.usage.sources.files import (
    COMPRESSED,
    LATEST,
    Position,
    Reading,
    cursor_of,
    jobs_of,
    name_of,
    whole,
)

EXIT_STATES: dict[int, tuple[JobState, str]] = {
    -1: ("failed", "execution failed before its files were there"),
    -2: ("failed", "execution failed after its files were there"),
    -3: ("requeued", "execution failed, and was tried again"),
    -4: ("node_fail", "the MOM was started again"),
    -5: ("node_fail", "the MOM was started again; there is a checkpoint"),
    -6: ("node_fail", "the MOM was started again; there is a checkpoint that can move"),
    -7: ("failed", "the restart from a checkpoint failed"),
    -8: ("failed", "the command could not be executed"),
    -9: ("failed", "its output could not be created"),
    -10: ("failed", "the user or group is not known"),
    -11: ("requeued", "it was run again"),
    -12: ("requeued", "it was checkpointed and ended"),
    -13: ("failed", "the password is not right"),
    -14: ("requeued", "a MOM beside the first one did not answer; it was run again"),
    -15: ("requeued", "it was run again after a restart of the MOM"),
    -16: ("requeued", "a hook of the site failed; it was run again"),
    -17: ("failed", "a hook of the site failed; it was deleted"),
    -18: ("requeued", "a hook of the site had it run again"),
    -19: ("cancelled", "a hook of the site deleted it"),
    -20: ("requeued", "a MOM beside the first one failed; it was run again"),
    -24: ("cancelled", "it used more CPUs than it asked for, for a while"),
    -25: ("cancelled", "it used more CPUs than it asked for"),
    -26: ("out_of_memory", "it used more virtual memory than it asked for"),
    -27: ("out_of_memory", "it used more memory than it asked for"),
    -28: ("timeout", "it used more CPU time than it asked for"),
    -29: ("timeout", "it reached its time limit"),
}
"""``Exit_status`` below 0 of PBS Pro and OpenPBS: JOB_EXEC_* of ``pbs_job.h``; "Job Exit Status
Codes" of the Administrator's Guide. Any other negative one is "failed"."""

TORQUE_EXIT_STATES: dict[int, tuple[JobState, str]] = {
    **{code: EXIT_STATES[code] for code in range(-9, 0)},
    -10: ("out_of_memory", "it used more memory than it asked for"),
    -11: ("timeout", "it reached its time limit"),
    -12: ("timeout", "it used more CPU time than it asked for"),
}
"""The same of Torque, whose JOB_EXEC_OVERLIMIT_* are numbers that PBS Pro has for other things."""

SIGNAL, SHELL_SIGNAL = 256, 128
"""An ``Exit_status`` from 256 on is that of a job which a signal ended; from 128 to 192 that of a
shell whose last command a signal ended."""
_LARGEST_SIGNAL = 64
_KILLS = (9, 15)  # by which PBS ends jobs

_LINE = re.compile(
    r"(\d\d)/(\d\d)/(\d{4}) (\d\d):(\d\d):(\d\d);(\w);([^;]*);(.*)", re.DOTALL | re.ASCII
)
_JOB = re.compile(r"(\d+)(?:\[(\d*)\])?(?:\.[\w.-]+)?|(\d+)-(\d+)(?:\.[\w.-]+)?", re.ASCII)
_DAY = re.compile(r"\d{8}")
_OTHERS = frozenset("BFKkLPpUYucseaT")
"""Records of reservations, licences and provisioning; of phases, changes and checkpoints of jobs,
behind which their end follows."""
_NOBODY = ("root", "pbs", "scheduler", "server", "pbs_server", "pbsadmin")
"""Who deletes jobs of others."""
_HOST = re.compile(r"([^/+:]+)(?::\d+)?/([^+]*)")
_VNODE_CPUS = re.compile(r":ncpus=(\d{1,7})", re.ASCII)
_PPN = re.compile(r"(?:^|:)ppn=(\d{1,7})", re.ASCII)
_CHUNK_GPUS = re.compile(r":n?gpus=(\d{1,7})", re.ASCII)
_FIRST_YEAR, _LAST_YEAR = "1980", "2240"
_MAX_OPEN = 3000
"""Jobs without an end that the next import is told of."""
_QUARTER_S = 900


class OpenJob(Struct, omit_defaults=True):
    """A job whose end is not in the log yet."""

    job: UserJob
    deleted: bool = False
    #: Whether its row tells the time when it was created, by which its end has the same key.
    told: bool = False
    suspended_since: int = 0


class Cursor(Struct, omit_defaults=True):
    """What the next import is told: how far the log was read, and what was open then."""

    position: Position = Position()
    #: The last stamp, in s.
    until: int = 0
    #: Local time less UTC, in s, as stamps and times showed it.
    ahead: int | None = None
    open: dict[str, OpenJob] = {}


class PbsRecords:
    """Makes jobs of the records of a log, one after another."""

    def __init__(self, machine: str, zone: tzinfo | None, cursor: Cursor) -> None:
        self.machine = machine
        self.zone = zone
        self.open = cursor.open
        self.ahead = cursor.ahead
        self.first = 0
        self.last = cursor.until
        self._handlers: Mapping[str, Callable[..., UserJob | None]] = {
            "Q": self._queued,
            "S": self._started,
            "E": self._ended,
            "D": self._deleted,
            "A": self._aborted,
            "R": self._rerun,
            "C": self._rerun,
            "M": self._moved,
            "z": self._suspended,
            "r": self._resumed,
        }

    def job(self, line: str) -> UserJob | None:
        """Return the job that a record tells of, if it does. Raises ValueError."""
        found = _LINE.fullmatch(line)
        if found is None:
            raise ValueError("is no record of PBS: stamp;type;id;message")
        month, day, year, hour, minute, second, kind, identity, message = found.groups()
        if not _FIRST_YEAR <= year <= _LAST_YEAR:
            raise ValueError(f"the year {year} is none of PBS")
        stamp = _local(year, month, day) + 3600 * int(hour) + 60 * int(minute) + int(second)
        handler = self._handlers.get(kind)
        if handler is None and kind not in _OTHERS:
            raise ValueError(f"no type of record {kind!r} is known")
        fields = _fields(message)
        now = self._moment(stamp, fields.get({"S": "start", "E": "end"}.get(kind, ""), ""))
        self.first, self.last = self.first or now, max(self.last, now)
        if handler is None:
            return None
        job_id = _job_id(identity)
        return handler(job_id, fields, now) if job_id else None

    def _moment(self, stamp: int, time: str) -> int:
        """Return the s of a stamp, given as if it were UTC. How much local time is ahead is known
        from records that have their time in s, too."""
        if self.zone is not None:
            local = datetime.fromtimestamp(stamp, UTC).replace(tzinfo=self.zone)
            return int(local.timestamp())
        if time.isascii() and time.isdigit() and len(time) < 12:
            ahead = round((stamp - int(time)) / _QUARTER_S) * _QUARTER_S
            if abs(stamp - int(time) - ahead) <= 120 and abs(ahead) <= 14 * 3600:
                self.ahead = ahead
        if self.ahead is None:
            return int(datetime.fromtimestamp(stamp, UTC).replace(tzinfo=None).timestamp())
        return stamp - self.ahead

    # ---- kinds of records ---------------------------------------------------------------

    def _queued(self, job_id: str, fields: dict[str, str], now: int) -> UserJob | None:
        """A job is in a queue. PBS before 2021 tells nothing else of it; then it is shown once it
        starts, for its time of submission differs by a second now and then."""
        told = fields.get("ctime", "").isdigit()
        job = self._made(job_id, fields, _time(fields, "ctime") or now)
        self.open[job_id] = OpenJob(job, told=told)
        return None

    def _started(self, job_id: str, fields: dict[str, str], now: int) -> UserJob | None:
        known = self.open.get(job_id)
        job = self._made(job_id, fields, _submitted(fields))
        started = _time(fields, "start") or now
        attempt = known.job.attempt if known else _run_count(fields)
        self.open[job_id] = OpenJob(
            replace(job, started=started, state="running", attempt=attempt), told=True
        )
        return None

    def _ended(self, job_id: str, fields: dict[str, str], now: int) -> UserJob | None:
        known = self.open.pop(job_id, None)
        job = self._made(job_id, fields, _submitted(fields))
        started, ended = _time(fields, "start"), _time(fields, "end") or now
        if started is not None and ended < started:
            raise ValueError(f"it ended ({ended}) before it started ({started})")
        limit = job.limit_s
        overdue = limit is not None and started is not None and ended - started >= limit
        end = _end_of(fields, deleted=known is not None and known.deleted, overdue=overdue)
        return replace(
            job,
            started=started,
            ended=ended,
            attempt=known.job.attempt if known and known.told else _run_count(fields),
            suspended_s=known.job.suspended_s if known else 0,
            **end,
        )

    def _deleted(self, job_id: str, fields: dict[str, str], now: int) -> UserJob | None:
        """A job was deleted. If it ran, its end follows."""
        known = self.open.get(job_id)
        if known is None:
            return None  # it was queued before this log, or its end stands before
        if known.job.started is not None:
            known.deleted = True
            return None
        del self.open[job_id]
        user, _, _ = fields.get("requestor", "").partition("@")
        return replace(
            known.job,
            user=known.job.user or ("" if user.lower() in _NOBODY else user),
            state="cancelled",
            ended=max(now, known.job.submitted),
            reason="deleted",
        )

    def _aborted(self, job_id: str, fields: dict[str, str], now: int) -> UserJob | None:
        """The server gave a job up."""
        return self._over(job_id, fields, now, "cancelled", "aborted by the server")

    def _moved(self, job_id: str, fields: dict[str, str], now: int) -> UserJob | None:
        return self._over(job_id, fields, now, "requeued", "moved to another server")

    def _over(
        self, job_id: str, fields: dict[str, str], now: int, state: JobState, reason: str
    ) -> UserJob | None:
        known = self.open.pop(job_id, None)
        if known is None:
            return None
        ended = max(now, known.job.started or known.job.submitted)
        return replace(known.job, state=state, ended=ended, reason=reason)

    def _rerun(self, job_id: str, fields: dict[str, str], now: int) -> UserJob | None:
        """An attempt ended, and the job is in its queue again. PBS Pro tells all of the attempt,
        Torque nothing."""
        known = self.open.get(job_id)
        if "ctime" in fields:
            job = self._made(job_id, fields, _submitted(fields))
            started, ended = _time(fields, "start"), _time(fields, "end") or now
        elif known is not None:
            job, started, ended = known.job, known.job.started, now
        else:
            return None
        attempt = known.job.attempt if known and known.told else _run_count(fields)
        waits = replace(job, attempt=attempt + 1, started=None, state="pending")
        self.open[job_id] = OpenJob(waits, told=True)
        if started is None:
            return None
        return replace(
            job,
            attempt=attempt,
            started=started,
            ended=max(ended, started),
            state="requeued",
            reason="run again",
        )

    def _suspended(self, job_id: str, fields: dict[str, str], now: int) -> UserJob | None:
        if known := self.open.get(job_id):
            known.suspended_since = now
        return None

    def _resumed(self, job_id: str, fields: dict[str, str], now: int) -> UserJob | None:
        known = self.open.get(job_id)
        if known and known.suspended_since:
            waited = max(0, now - known.suspended_since)
            known.job = replace(known.job, suspended_s=known.job.suspended_s + waited)
            known.suspended_since = 0
        return None

    # ---- what is open -------------------------------------------------------------------

    def unfinished(self) -> Iterator[UserJob]:
        """Yield the jobs that wait or run at the end of the log."""
        for known in self.open.values():
            if known.told:
                suspended = known.suspended_since and known.job.state == "running"
                yield replace(known.job, state="suspended") if suspended else known.job

    def kept(self) -> dict[str, OpenJob]:
        """Return the latest of what is open, without names: they are in rows alone."""
        latest = list(self.open.items())[-_MAX_OPEN:]
        nameless = {"user": "", "account": "", "name": "", "node_list": ""}
        return {
            job_id: replace(known, job=replace(known.job, **nameless)) for job_id, known in latest
        }

    def _made(self, job_id: str, fields: dict[str, str], submitted: int) -> UserJob:
        """Return a job with what its record tells of its request and its nodes."""
        hosts, slots = _hosts(fields.get("exec_host", ""))
        return UserJob(
            machine=self.machine,
            job=job_id,
            submitted=submitted,
            eligible=_time(fields, "etime"),
            limit_s=_span(fields.get("Resource_List.walltime", "")),
            state="pending",
            user=fields.get("user", ""),
            account=_unquoted(fields.get("account", "")),
            queue=fields.get("queue", ""),
            name=fields.get("jobname", ""),
            reservation=fields.get("resvname", "") or fields.get("resvID", ""),
            nodes=len(hosts) or _number(fields, "Resource_List.nodect"),
            cores=_cores(fields, slots),
            gpus=_gpus(fields),
            node_list=_folded(hosts),
        )


# ---- fields --------------------------------------------------------------------------------------


@lru_cache(maxsize=16)
def _local(year: str, month: str, day: str) -> int:
    return int(datetime(int(year), int(month), int(day), tzinfo=UTC).timestamp())


def _fields(message: str) -> dict[str, str]:
    """Return the values of ``key=value key="value with blanks" ...``. A word without ``=``, or with
    a dash before it, belongs to the value before it."""
    if '"' not in message:
        try:
            return dict([word.split("=", 1) for word in message.split(" ")])
        except ValueError:  # a word without "="
            pass
    fields: dict[str, str] = {}
    key, quoted = "", False
    for word in message.split(" "):
        name, equals, value = word.partition("=")
        if quoted or not equals or name.startswith("-"):
            if key:
                fields[key] += f" {word}"
            quoted = quoted and not word.endswith('"')
        else:
            key, fields[name] = name, value
            quoted = value.startswith('"') and (len(value) == 1 or not value.endswith('"'))
    return fields


def _job_id(identity: str) -> str:
    """Return the id of a job, ``12_3`` of a task of an array; "" of an array itself, whose tasks
    have records of their own, and of what is no job, such as a reservation."""
    found = _JOB.fullmatch(identity)
    if found is None:
        return ""
    if found[3]:
        return f"{found[3]}_{found[4]}"  # Torque before 3: 12-3.server
    if found[2] is None:
        return found[1]
    return f"{found[1]}_{found[2]}" if found[2] else ""


def _time(fields: dict[str, str], key: str) -> int | None:
    text = fields.get(key, "")
    return (whole(text, key, LATEST) or None) if text.isdigit() else None


def _submitted(fields: dict[str, str]) -> int:
    """Return when a job was created. Raises ValueError."""
    created = _time(fields, "ctime")
    if created is None:
        raise ValueError(f"ctime is {fields.get('ctime', 'missing')!r}, no time in s")
    return created


def _number(fields: dict[str, str], key: str) -> int:
    text = fields.get(key, "")
    return whole(text, key) if text.isdigit() else 0


def _span(text: str) -> int | None:
    """Return the s of ``[[HOURS:]MINUTES:]SECONDS``; None where there is none."""
    parts = text.partition(".")[0].split(":")
    if not all(part.isdigit() for part in parts) or len(parts) > 3:
        return None
    seconds = 0
    for part in parts:
        seconds = 60 * seconds + whole(part, "a duration")
    return seconds


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else text


def _run_count(fields: dict[str, str]) -> int:
    """Return the number of an attempt, from how often the job was started."""
    return max(0, _number(fields, "run_count" if "run_count" in fields else "start_count") - 1)


def _hosts(text: str) -> tuple[tuple[str, ...], int]:
    """Return the hosts of ``exec_host``, and its slots: ``n1/0*4+n2/1`` (PBS Pro) has 5 on two,
    ``n1/0-3,6`` (Torque) 5 on one."""
    names: dict[str, None] = {}
    slots = 0
    for host, which in _HOST.findall(text):
        names[host] = None
        times = which.partition("*")[2]
        slots += whole(times, "exec_host") if times.isdigit() else _slots(which)
    return tuple(names), slots


def _slots(spans: str) -> int:
    """Return how many numbers ``0-3,6`` are."""
    total = 0
    for span in spans.split(","):
        first, dash, last = span.partition("-")
        if dash:
            total += max(0, whole(last, "exec_host") - whole(first, "exec_host"))
        total += 1
    return total


@lru_cache(maxsize=4096)
def _folded(hosts: tuple[str, ...]) -> str:
    if len(hosts) == 1:
        return hosts[0]
    return fold(hosts) if hosts else ""


def _cores(fields: dict[str, str], slots: int) -> int:
    """Return the cores of a job: of its virtual nodes; of its slots; what it asked for."""
    vnodes = sum(map(int, _VNODE_CPUS.findall(fields.get("exec_vnode", ""))))
    asked = _number(fields, "Resource_List.ncpus")
    return (
        vnodes
        or _number(fields, "total_execution_slots")
        or slots
        or asked
        or _of_nodes(fields.get("Resource_List.nodes", ""), _PPN, 1)
    )


def _gpus(fields: dict[str, str]) -> int:
    asked = fields.get("Resource_List.ngpus", "")
    if asked.isdigit():
        return whole(asked, "ngpus")
    request = fields.get("Resource_List.nodes", "") or fields.get("Resource_List.select", "")
    return _of_nodes(request, _CHUNK_GPUS, 0)


def _of_nodes(request: str, pattern: re.Pattern[str], default: int) -> int:
    """Return the sum of a resource over ``2:ppn=4:gpus=1+n007:ppn=8`` or ``2:ncpus=4:ngpus=1``."""
    total = 0
    for chunk in filter(None, request.split("+")):
        number, _, _ = chunk.partition(":")
        found = pattern.search(chunk)
        each = int(found[1]) if found else default
        total += each * (whole(number, "a number of nodes") if number.isdigit() else 1)
    return total


def _end_of(fields: dict[str, str], *, deleted: bool, overdue: bool) -> dict[str, Any]:
    """Return how a job ended, as attributes of its row. ``overdue``: it ran up to its limit."""
    text = fields.get("Exit_status", "") or fields.get("exit_status", "")
    about = _used(fields)
    if not re.fullmatch(r"-?[0-9]{1,9}", text):
        state = "cancelled" if deleted else "unknown"
        return about | {"state": state, "reason": f"Exit_status {text or 'is not told'}"}
    status = int(text)
    if status < 0:
        state, reason = _codes(fields).get(status, ("failed", ""))
        return about | {"state": state, "reason": f"Exit_status {status}: {reason}".rstrip(": ")}
    signal = status - SIGNAL if status > SIGNAL else status - SHELL_SIGNAL
    signal = signal if 0 < signal <= _LARGEST_SIGNAL else 0
    about |= {"exit_code": 0 if status > SIGNAL else status, "signal": signal}
    if deleted:
        return about | {"state": "cancelled", "reason": "deleted"}
    if signal in _KILLS and overdue:
        return about | {"state": "timeout"}
    return about | {"state": "failed" if status else "completed"}


def _used(fields: dict[str, str]) -> dict[str, Any]:
    """Return what a job used: CPU time and energy."""
    energy = (_number(fields, f"resources_used.{key}") for key in ("energy", "energy_used"))
    return {
        "cpu_s": _span(fields.get("resources_used.cput", "")),
        "energy_j": max(energy) or None,
    }


def _codes(fields: dict[str, str]) -> dict[int, tuple[JobState, str]]:
    """Return what negative exit states mean: Torque tells the owner or the number of starts by
    other names than PBS Pro."""
    torque = "run_count" not in fields and ("owner" in fields or "start_count" in fields)
    return TORQUE_EXIT_STATES if torque else EXIT_STATES


# ---- the log as a source -------------------------------------------------------------------------


class _PbsLog:
    """The files of a log, as a source."""

    name = "pbs"
    cluster = ""

    def __init__(self, path: Path, zone: ZoneInfo | None) -> None:
        self.path = path
        self.zone = zone

    def batches(self, ask: Ask, rejects: Rejects) -> Iterator[Batch]:
        """Yield the jobs of each file, that of the earliest day first. Raises UsageError."""
        cursor = cursor_of(ask.cursor if ask.since is None else "", Cursor)
        files = _files(self.path, cursor.position.log, ask)
        records = PbsRecords(ask.machine, self.zone, cursor)
        before = cursor.position.log
        for path in files:
            name, asked = name_of(path), path.stat().st_mtime_ns
            goes_on = name == before
            reading = Reading(path, cursor.position if goes_on else Position(name))
            since = records.last if goes_on or _follows(before, name) else 0
            records.first = 0
            jobs = _jobs(records, reading, rejects, last=path == files[-1])

            def ended(since: int = since, reading: Reading = reading) -> tuple[Any, str]:
                kept = Cursor(reading.position, records.last, records.ahead, records.kept())
                span = (since or records.first, records.last)
                return span, msgspec.json.encode(kept).decode()

            yield Batch(ask.of_span(jobs), str(path), asked, ended=ended)
            before = name


def _jobs(
    records: PbsRecords, reading: Reading, rejects: Rejects, *, last: bool
) -> Iterator[UserJob]:
    """Yield the jobs of a file; behind the last one those that have not ended."""
    yield from jobs_of(reading, records.job, rejects)
    if last:
        yield from records.unfinished()


def _files(path: Path, before: str, ask: Ask) -> list[Path]:
    """Return the files to read, in the order of their days: those from that of the last import
    on, or those of the days that the user names. Raises UsageError."""
    if not path.is_dir():
        return [path]
    days = {
        name_of(file): file
        for file in sorted(path.iterdir())
        if _DAY.fullmatch(name_of(file)) and file.suffix in ("", *COMPRESSED)
    }
    if not days:
        raise UsageError(f"{path}: has no files such as 20260131; name server_priv/accounting")
    first = before if ask.since is None else _day(ask.since)
    last = "" if ask.until is None else _day(ask.until + 86400)
    chosen = [days[day] for day in sorted(days) if day >= first and (not last or day <= last)]
    if not chosen:
        raise UsageError(f"{path}: has no file from {first} on; its last one is {max(days)}")
    return chosen


def _day(moment: int) -> str:
    """Return the file of a day. In another zone it may be that of the day before."""
    return datetime.fromtimestamp(moment - 86400, UTC).strftime("%Y%m%d")


def _follows(before: str, name: str) -> bool:
    """Return whether a file is that of the day after another one: none is missing between."""
    if not (_DAY.fullmatch(before) and _DAY.fullmatch(name)):
        return False
    days = [datetime.strptime(day, "%Y%m%d").replace(tzinfo=UTC) for day in (before, name)]
    return (days[1] - days[0]).days == 1


def import_pbs(folders: Folders, path: Path, timezone: ZoneInfo | None, **chosen: Any) -> int:
    """Do ``seatrial usage import pbs``; return the exit code."""
    return bring_in(folders, _PbsLog(path, timezone), **chosen)
