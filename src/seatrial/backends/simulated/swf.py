"""Reads logs in the Standard Workload Format 2.2, as in the Parallel Workloads Archive.

    log = swf.read(Path("theta.swf.gz"))
    log.jobs[0].run_time
    log.damaged                # number of lines that are no jobs

A line is a job: 18 numbers, -1 where one is missing. Lines that begin with ``;`` are comments.
"""

from __future__ import annotations

import gzip
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from seatrial.errors import UsageError

FIELDS = 18
_LONGEST_LINE = 10_000


class SwfJob(NamedTuple):
    """A job, field by field. Times are in seconds, memory in KB for each processor; -1: missing."""

    number: float
    submit: float
    wait: float
    run_time: float
    processors: float
    cpu_time: float
    memory: float
    asked_processors: float
    asked_time: float
    asked_memory: float
    status: float
    user: float
    group: float
    executable: float
    queue: float
    partition: float
    preceding: float
    think_time: float


class SwfLog(NamedTuple):
    """A log: its jobs in the order of the file, and the number of lines that are no jobs."""

    jobs: list[SwfJob]
    damaged: int


def read(path: Path) -> SwfLog:
    """Read a log, compressed (``.gz``) or not. Raises UsageError."""
    try:
        opened: Any = gzip.open if path.suffix == ".gz" else open
        with opened(path, "rt", encoding="utf-8", errors="replace") as lines:
            return parse(lines)
    except (OSError, EOFError) as error:
        raise UsageError(f"{path}: the workload cannot be read: {error}") from error


def parse(lines: Iterable[str]) -> SwfLog:
    """Parse the lines of a log."""
    texts = (line[:_LONGEST_LINE].strip() for line in lines)
    jobs = [_job(text) for text in texts if text and not text.startswith(";")]
    return SwfLog([job for job in jobs if job], jobs.count(None))


def _job(text: str) -> SwfJob | None:
    try:
        numbers = [float(word) for word in text.split()]
    except ValueError:
        return None
    if len(numbers) != FIELDS or not all(map(math.isfinite, numbers)):
        return None
    return SwfJob(*numbers)
