"""Collects runs that have ended: the events that their jobs wrote, their figures and verdicts."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

from msgspec.structs import replace

from seatrial.backends.protocol import Ended
from seatrial.journal.codes import FAILED, LOST, Code, code_of
from seatrial.journal.events import ScriptEnded, ScriptStarted
from seatrial.runs.daemon_thread import run_in_thread
from seatrial.runs.directory import JobEvents, job_events
from seatrial.runs.environment_capture import capture
from seatrial.runs.script import CLAIMED
from seatrial.suite.model import Case, Metric
from seatrial.trial.end_reason import end_reason
from seatrial.trial.folder import Record, references_of
from seatrial.verify.figures import MetricValue
from seatrial.verify.search import PAGE
from seatrial.verify.verdict import judge

THREADS = 2
PATIENCE_SECONDS = 15.0  # how long the files of a run may take through a shared file system
LOOK_AGAIN_SECONDS = 0.5

T = TypeVar("T")


class CollectedRun(NamedTuple):
    """The outcome of one run."""

    job_events: Sequence[ScriptStarted | ScriptEnded]
    figures: Sequence[MetricValue]
    code: Code
    reason: str


class EndedRun(NamedTuple):
    """A run whose job has ended. ``file_system`` has its directory, "" stands for the trial's own
    folder. ``explain`` returns the end of the job, given the events that the job wrote."""

    case: Case
    path: Path
    file_system: str
    explain: Callable[[JobEvents], Ended]


class RunCollector:
    """Collects and judges the runs of one trial. ``patient``: jobs run on other hosts, so wait for
    the files of a run to appear through the shared file system."""

    def __init__(self, record: Record, environments: Path, patient: bool) -> None:
        self.record = record
        self.environments = environments
        self.patient = patient
        self.references = references_of(record)
        self._free_threads: dict[str, asyncio.Semaphore] = {}  # by file system: one may hang

    def collect(self, run: EndedRun) -> CollectedRun | Coroutine[None, None, CollectedRun]:
        """Return the outcome of a run, or a coroutine that returns it where that may take long. The
        coroutine waits for files, and reads in a thread. The loop itself never reads a file system
        that runs are placed on, because that may hang."""
        if run.file_system:
            return self._collect_later(run, None)
        own = job_events(run.path)
        if self._must_wait(run, own) or not self._is_quick(run, own):
            return self._collect_later(run, own)
        return self._collected(run, own)

    async def _collect_later(self, run: EndedRun, own: JobEvents | None) -> CollectedRun:
        seen = own or await self._look(run)
        waited = 0.0
        while self._must_wait(run, seen) and waited < PATIENCE_SECONDS:
            await asyncio.sleep(LOOK_AGAIN_SECONDS)
            waited += LOOK_AGAIN_SECONDS
            seen = await self._look(run)
        if not run.file_system and self._is_quick(run, seen):
            return self._collected(run, seen)
        return await self._in_thread(run, lambda: self._collected(run, seen))

    async def _look(self, run: EndedRun) -> JobEvents:
        if not run.file_system:
            return job_events(run.path)
        return await self._in_thread(run, lambda: job_events(run.path))

    async def _in_thread(self, run: EndedRun, work: Callable[[], T]) -> T:
        """Return what ``work`` returns, done in a thread: a few at a time on each file system."""
        free = self._free_threads.setdefault(run.file_system, asyncio.Semaphore(THREADS))
        async with free:
            return await run_in_thread(work, "judge")

    def _must_wait(self, run: EndedRun, own: JobEvents) -> bool:
        """Return whether the end of the script may still appear through a shared file system."""
        return self.patient and own.end is None and run.explain(own).code is None

    def _is_quick(self, run: EndedRun, own: JobEvents) -> bool:
        """Return whether judging reads nothing, or one page of stdout at most, so that it delays
        neither walltimes nor people."""
        test = self.record.tests[run.case.test]
        if run.explain(own).code is not None or not (test.verify or test.metrics):
            return True
        by_patterns = all(
            isinstance(metric, Metric) and metric.in_file == "stdout"
            for metric in test.metrics.values()
        ) and all(check.identical is None and check.in_file == "stdout" for check in test.verify)
        with contextlib.suppress(OSError):  # there is no stdout
            return by_patterns and (run.path / "stdout").stat().st_size <= PAGE
        return True

    def _collected(self, run: EndedRun, own: JobEvents) -> CollectedRun:
        ended = run.explain(own)
        environment = capture(run.path, self.environments, run.case.parameters)
        start = own.start and replace(own.start, environment=environment)
        events = [event for event in (start, own.end) if event is not None]
        if ended.code is not None:
            code = code_of(ended.code)
            reason = end_reason(code, ended.state, ended.nodes, run.case.walltime)
            return CollectedRun(events, (), code, reason)
        if own.end is None:
            code, reason = LOST, "the job ended without a word and left no exit code"
            if ended.exit_code == CLAIMED:
                reason = "it was started twice, and the first left no end"
            elif ended.exit_code is not None:
                code, reason = FAILED, "the job script ended before the test's own did, "
                reason += f"with exit code {ended.exit_code}: see stderr"
            return CollectedRun(events, (), code, reason)
        test = self.record.tests[run.case.test]
        verdict = judge(test, run.case, run.path, own.exit_code, self.references)
        return CollectedRun(events, verdict.figures, verdict.code, verdict.why)
