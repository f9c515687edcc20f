"""Logs in the Standard Workload Format, as the Parallel Workloads Archive has them.

The format is that of https://www.cs.huji.ac.il/labs/parallel/workload/swf.html, version 2.2: each
job is a line of 18 numbers, of which -1 is not known; times are in s since the start that a comment
gives.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import replace

from seatrial.cli import Folders
from seatrial.errors import UsageError
from seatrial.plugins.usage.archive import Rejects
from seatrial.plugins.usage.importing import Ask, Batch, bring_in
from seatrial.plugins.usage.jobs import UserJob
from seatrial.plugins.usage.sources.files import lines_of, opened_text
from seatrial.units import SECOND_NS

FIELDS = 18
LATEST = 1 << 33  # s since 1970, in the year 2242
MOST = 1 << 31  # of any other number
STATES = {0: "failed", 1: "completed", 2: "preempted", 3: "completed", 4: "failed", 5: "cancelled"}
PARTIAL = (2, 3, 4)
"""Statuses of a part of a job that was swapped out, or checkpointed: to be continued, and its last
part."""

NO_RUN_TIME = "the run time is not known; they count no hours"
NO_WAIT = "the wait is not known; they are taken as started when submitted"
NO_CORES = "the allocated processors are not known; those asked for are taken"

_LABEL = re.compile(r";\s*([A-Za-z]+)\s*:\s*(.*)")
_NAMED = re.compile(r"(-?\d+)\s+([^\s(]+)")


class _Header:
    """What the comments at the top of a log say."""

    def __init__(self) -> None:
        #: The time from which all others are counted, in s since 1970; 0 if that is not known.
        self.start = 0
        #: Names of queues and partitions by their numbers.
        self.queues: dict[int, str] = {}
        self.partitions: dict[int, str] = {}

    def take(self, line: str) -> None:
        """Take in a comment."""
        if (match := _LABEL.match(line)) is None:
            return
        name, value = match[1].lower(), match[2].strip()
        if name == "unixstarttime":
            found = re.match(r"\d+", value)
            self.start = int(found[0]) if found else 0
        elif name in ("queue", "partition") and (named := _NAMED.match(value)):
            names = self.queues if name == "queue" else self.partitions
            names[int(named[1])] = named[2]


class SwfLog:
    """A log that is asked for jobs. ``start``: the time from which it counts, in s since 1970; 0:
    the one that it says. ``cores_per_node``: 0 where nodes are not known."""

    name = "swf"
    cluster = ""

    def __init__(self, path: Path, start: int = 0, cores_per_node: int = 0) -> None:
        self.path = path
        self.start = start
        self.cores_per_node = cores_per_node

    def batches(self, ask: Ask, rejects: Rejects) -> Iterator[Batch]:
        """Yield all of the log. Raises UsageError."""
        with opened_text(self.path) as opened:
            rows = self._rows(lines_of(self.path, opened.text), ask.machine, rejects)
            yield Batch(ask.of_span(_jobs(rows)), str(self.path), opened.written, ask.covered)

    def _rows(
        self, lines: Iterator[tuple[int, str]], machine: str, rejects: Rejects
    ) -> Iterator[_Row]:
        """Yield the rows of the log that can be read."""
        header, seen = _Header(), set[int]()
        make = _JobMaker(machine, header, self.cores_per_node, rejects)
        for number, line in lines:
            if line.startswith(";"):
                header.take(line)
                continue
            if not (words := line.split()):
                continue
            if not seen and not (header.start or self.start):
                raise UsageError(
                    f"{self.path}:{number}: no `; UnixStartTime:` stands before the first job; say "
                    "when its times begin: --start 2001-05-01T00:00+00:00"
                )
            try:
                row = make.row(_numbers(words), self.start or header.start)
                if row.number in seen and not row.partial:
                    raise ValueError(f"job {row.number} is there twice; the first one counts")
            except ValueError as error:
                rejects.add(f"{self.path}:{number}", str(error), line.rstrip("\r\n"))
                continue
            seen.add(row.number)
            yield row


class _Row(NamedTuple):
    """A line of the log."""

    number: int
    job: UserJob
    #: Whether it is a part of a job; its times are those of the log then, -1 if not known.
    partial: bool
    submitted: int
    wait: int
    run: int


def _numbers(words: list[str]) -> list[int]:
    """Return the numbers of a line; fractions are rounded. Raises ValueError."""
    if len(words) != FIELDS:
        raise ValueError(f"has {len(words)} fields; a job has {FIELDS}")
    try:
        return [int(word) for word in words]
    except ValueError:
        return [_number(word) for word in words]


def _number(word: str) -> int:
    try:
        value = float(word)
    except ValueError:
        raise ValueError(f"{word[:40]!r} is no number") from None
    if not math.isfinite(value):
        raise ValueError(f"{word[:40]!r} is no finite number")
    return round(value)


def _text(number: int) -> str:
    return "" if number < 0 else str(number)


class _JobMaker:
    """Makes jobs of lines."""

    def __init__(
        self, machine: str, header: _Header, cores_per_node: int, rejects: Rejects
    ) -> None:
        self._machine = machine
        self._header = header
        self._cores_per_node = cores_per_node
        self._note = rejects.note

    def row(self, fields: list[int], start: int) -> _Row:
        """Return the job of a line. Raises ValueError."""
        number, submit, wait, run, allocated, cpu, _, asked_for, limit = fields[:9]
        status, user, group, program, queue, partition = fields[10:16]
        partial = status in PARTIAL
        if number < 0:
            raise ValueError("has no job number")
        if submit < 0 and not partial:
            raise ValueError("has no submit time")
        if max(fields) > MOST or start + submit + wait + run > LATEST:
            raise ValueError(f"{max(fields)} is too large")
        submitted = start + submit if submit >= 0 else -1
        started, ended = self._times(submitted, wait, run, status)
        cores = self._cores(allocated, asked_for, started)
        job = UserJob(
            machine=self._machine,
            job=str(number),
            submitted=submitted,
            eligible=submitted if wait >= 0 else None,
            started=started,
            ended=ended,
            limit_s=limit if limit > 0 else None,
            state=STATES.get(status, "unknown"),
            user=_text(user),
            account=_text(group),
            queue=self._header.queues.get(queue, _text(queue))
            or self._header.partitions.get(partition, _text(partition)),
            executable=_text(program),
            cores=cores,
            nodes=-(-cores // self._cores_per_node) if self._cores_per_node else 0,
            cpu_s=cpu * cores if cpu >= 0 else None,
        )
        return _Row(number, job, partial, submitted, wait, run)

    def _times(self, submitted: int, wait: int, run: int, status: int) -> tuple[int | None, int]:
        """Return when a job started and ended: one that was cancelled in the queue never did."""
        if status == 5 and run <= 0:
            return None, submitted + max(wait, 0)
        if wait < 0:
            self._note(NO_WAIT)
        if run < 0:
            self._note(NO_RUN_TIME)
        started = submitted + max(wait, 0)
        return started, started + max(run, 0)

    def _cores(self, allocated: int, asked_for: int, started: int | None) -> int:
        if allocated < 0 and started is not None:
            self._note(NO_CORES)
        return max(allocated if allocated >= 0 else asked_for, 0)


def _jobs(rows: Iterator[_Row]) -> Iterator[UserJob]:
    """Yield jobs. Where the lines of one are its sum and its parts, the parts are its attempts: the
    sum does not say when it was swapped out."""
    for _, group in groupby(rows, itemgetter(0)):
        same = list(group)
        parts = [row for row in same if row.partial]
        if not parts:
            yield same[0].job
            continue
        submitted = max(row.submitted for row in same)  # later parts do not have it
        end = submitted
        for attempt, part in enumerate(parts):
            before, started = end, end + max(part.wait, 0)
            end = started + max(part.run, 0)
            yield replace(
                part.job,
                submitted=submitted,
                attempt=attempt,
                eligible=before if part.wait >= 0 else None,
                started=started,
                ended=end,
            )


def import_swf(
    folders: Folders, path: Path, start: int, cores_per_node: int | None, **chosen: Any
) -> int:
    """Do ``seatrial usage import swf``; return the exit code."""
    return bring_in(folders, SwfLog(path, start // SECOND_NS, cores_per_node or 0), **chosen)
