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
_COLUMNS = (0, 1, 3, 4, 7, 8)  # of the fields of ``SwfJob``
_LONGEST_LINE = 10_000


class SwfJob(NamedTuple):
    """The fields of a job that a simulation needs. Times are in seconds; -1: missing."""

    number: float
    submit: float
    run_time: float
    processors: float
    asked_processors: float
    asked_time: float


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
    return SwfJob(*(numbers[column] for column in _COLUMNS))
