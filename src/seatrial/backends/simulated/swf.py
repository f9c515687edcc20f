"""Reads logs in the Standard Workload Format 2.2, as in the Parallel Workloads Archive.

    log = swf.read(Path("theta.swf.gz"))
    log.jobs[0].run_time
    log.damaged                # number of lines that are no jobs

A line is a job: 18 numbers, -1 where one is missing. Lines that begin with ``;`` are comments.
"""

import io
import math
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from seatrial.errors import UsageError
from seatrial.files import open_regular
from seatrial.lazy import gzip

FIELDS = 18
_COLUMNS = (0, 1, 3, 4, 7, 8)  # of the fields of ``SwfJob``
_LONGEST_LINE = 10_000
_MAX_NUMBER = 4e9  # seconds, beyond times since the epoch, and processors


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
        compressed = path.suffix == ".gz"
        with open_regular(path) as file, gzip.open(file) if compressed else file as data:
            return parse(io.TextIOWrapper(data, encoding="utf-8", errors="replace"))
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
    job = SwfJob(*(numbers[column] for column in _COLUMNS))
    return job if max(job[1:]) <= _MAX_NUMBER else None
