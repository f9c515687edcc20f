"""Collecting a run that has ended: what its job wrote of itself, its figures, its verdict."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

from msgspec.structs import replace

from seatrial.backends.protocol import Ended
from seatrial.journal.codes import FAILED, LOST, TIMEOUT, Code, code_of
from seatrial.journal.events import Event
from seatrial.runs.daemon_thread import run_in_thread
from seatrial.runs.directory import JobEvents, job_events
from seatrial.runs.environment_capture import capture
from seatrial.runs.script import CLAIMED
from seatrial.suite.model import Case, Metric, Test
from seatrial.trial.folder import Record, references_of
from seatrial.units import show_seconds
from seatrial.verify.figures import MetricValue
from seatrial.verify.search import PAGE
from seatrial.verify.verdict import judge

THREADS = 2
PATIENCE_SECONDS = 15.0
LOOK_AGAIN_SECONDS = 0.5

T = TypeVar("T")


class CollectedRun(NamedTuple):
    """The outcome of one run."""

    job_events: Sequence[Event]
    figures: Sequence[MetricValue]
    code: Code
    why: str


class RunCollector:
    """Settles the runs of one trial. ``patient``: jobs run elsewhere, so what they wrote may be
    seen here a little later."""

    def __init__(self, record: Record, environments: Path, patient: bool) -> None:
        self.record = record
        self.environments = environments
        self.patient = patient
        self.references = references_of(record)
        self._free_threads: dict[str, asyncio.Semaphore] = {}  # by file system: one may hang

    def collect_at_once(self, case: Case, path: Path, ended: Ended) -> CollectedRun | None:
        """The outcome, or None where it takes waiting or long reading: then ``collect`` it."""
        own = job_events(path)
        if self.patient and ended.code is None and own.end is None:
            return None
        if not self._is_quick(case, path, ended):
            return None
        return self._collected(case, path, ended, own)

    async def collect(self, case: Case, path: Path, ended: Ended) -> CollectedRun:
        """The outcome, beside other work, of a run in the trial's own folder."""
        own = job_events(path)
        if self.patient and ended.code is None:
            own = await _own_end(own, lambda: _at_once(job_events(path)))
        if self._is_quick(case, path, ended):
            return self._collected(case, path, ended, own)
        return await self.beside("", lambda: self._collected(case, path, ended, own))

    async def collect_away(
        self, case: Case, path: Path, ended: Ended, file_system: str
    ) -> CollectedRun:
        """The outcome of a run that is placed on a file system, which may hang: the loop itself
        looks at nothing there."""

        async def look() -> JobEvents:
            return await self.beside(file_system, lambda: job_events(path))

        own = await look()
        if self.patient and ended.code is None:
            own = await _own_end(own, look)
        return await self.beside(file_system, lambda: self._collected(case, path, ended, own))

    async def beside(self, file_system: str, work: Callable[[], T]) -> T:
        """Do in a thread what looks at runs on a file system, "" for the trial's own folder: a few
        at a time of each."""
        free = self._free_threads.setdefault(file_system, asyncio.Semaphore(THREADS))
        async with free:
            return await run_in_thread(work, "judge")

    def _is_quick(self, case: Case, path: Path, ended: Ended) -> bool:
        """Whether judging is surely so quick that walltimes and people need not be served
        meanwhile: nothing is read, or a page of stdout at most."""
        test = self.record.tests[case.test]
        if ended.code is not None or not (test.verify or test.metrics):
            return True
        return _reads_stdout_alone(test) and _size(f"{path}/stdout") <= PAGE

    def _collected(self, case: Case, path: Path, ended: Ended, own: JobEvents) -> CollectedRun:
        environment = capture(path, self.environments, case.parameters)
        start = own.start and replace(own.start, alias=environment)
        events = [event for event in (start, own.end) if event is not None]
        if ended.code is not None:
            return CollectedRun(events, (), code_of(ended.code), _why(ended, case.walltime))
        if own.end is None and ended.exit_code == CLAIMED:
            return CollectedRun(events, (), LOST, "it was started twice, and the first left no end")
        if own.end is None and ended.exit_code is None:
            return CollectedRun(
                events, (), LOST, "the job ended without a word and left no exit code"
            )
        if own.end is None:
            why = (
                "the job script ended before the test's own did, "
                f"with exit code {ended.exit_code}: see stderr"
            )
            return CollectedRun(events, (), FAILED, why)
        test = self.record.tests[case.test]
        verdict = judge(test, case, path, own.exit_code, self.references)
        return CollectedRun(events, verdict.figures, verdict.code, verdict.why)


def _reads_stdout_alone(test: Test) -> bool:
    """Whether the checks and metrics of a test, exit codes and sizes aside, look at stdout alone
    and by patterns alone."""
    return all(
        check.identical is None and check.in_file == "stdout" for check in test.verify
    ) and all(
        isinstance(metric, Metric) and metric.in_file == "stdout"
        for metric in test.metrics.values()
    )


async def _at_once(events: JobEvents) -> JobEvents:
    return events


async def _own_end(own: JobEvents, look: Callable[[], Awaitable[JobEvents]]) -> JobEvents:
    """Wait for the job's own end to be seen through a shared file system."""
    waited = 0.0
    while own.end is None and waited < PATIENCE_SECONDS:
        await asyncio.sleep(LOOK_AGAIN_SECONDS)
        waited += LOOK_AGAIN_SECONDS
        own = await look()
    return own


def _why(ended: Ended, walltime: float) -> str:
    where = f" on {ended.nodes}" if ended.nodes else ""
    meaning = code_of(ended.code or 0).meaning
    if ended.code == TIMEOUT.number:
        meaning += f" of {show_seconds(walltime)}"
    return f"{meaning}: {ended.state}{where}"


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size  # noqa: PTH116
    except OSError:
        return 0
