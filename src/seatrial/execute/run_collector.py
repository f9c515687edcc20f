"""Collects runs that have ended: the events that their jobs wrote, their figures and verdicts."""

import asyncio
import contextlib
import os
import re
from collections.abc import Callable, Coroutine, Sequence
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from seatrial.decide.state import ConductorState
from seatrial.execute import environment as environment_capture
from seatrial.execute import ranks
from seatrial.execute.daemon_thread import run_in_thread
from seatrial.execute.directory import JobEvents, cut_file, job_events
from seatrial.execute.environment import NO_MODULE
from seatrial.execute.hung_processes import waits_in
from seatrial.execute.job_stats import JobStats
from seatrial.execute.kept_files import checksums, sizes_of
from seatrial.execute.protocol import Ended
from seatrial.execute.script import (
    BROKEN,
    CLAIMED,
    END_NOT_WRITTEN,
    NO_DIRECTORY,
    NOT_BOOTED,
    NOT_WRITABLE,
    judged_files,
)
from seatrial.execute.trial_record import Record, references_of
from seatrial.files import is_full, open_regular
from seatrial.hooks import load, provided
from seatrial.journal.events import JobsOwnEvent
from seatrial.judge import checks, log_rules
from seatrial.judge.check_values import NO_NAMES, names_of
from seatrial.judge.checks import reading_limits
from seatrial.judge.reading import HostFailed, own_words
from seatrial.judge.script_check import (
    NO_CAUSE,
    CauseSearch,
    FoundCause,
    alias_of,
    is_judged_by_script,
)
from seatrial.judge.search import PAGE, SearchTookLong
from seatrial.judge.verdict import RunConditions, judge
from seatrial.model import codes
from seatrial.model.codes import CANCELLED, HUNG, RECALLED, TIMEOUT, Code
from seatrial.model.figures import MetricValue
from seatrial.model.proving import COUNTED_FILE, counts_threads
from seatrial.model.test import Case, Metric, Test
from seatrial.units import show_seconds

THREADS = 2
SUMMED_AT_ONCE = 256 << 10  # bytes whose checksums are made in the loop itself
LOOK_AGAIN_SECONDS = 0.5
STDERR_TAIL = 8192

_WRITE_ERROR = re.compile(
    "write error: (No space left on device|Disk quota exceeded|Input/output error)"
)

T = TypeVar("T")


class CollectedRun(Struct, frozen=True):
    """The outcome of one run. ``stop`` is why the trial cannot go on, "" where it can. ``sums`` are
    the checksums of what the run wrote, by name; ``refused`` are the names of events in its file
    that a job may not write; ``cause`` is what it failed of."""

    code: codes.Code
    reason: str
    job_events: Sequence[JobsOwnEvent] = ()
    figures: Sequence[MetricValue] = ()
    stop: str = ""
    sums: dict[str, str] | None = None
    refused: Sequence[str] = ()
    cause: FoundCause = NO_CAUSE


class EndedRun(Struct, frozen=True):
    """A run whose job has ended, and its stage. ``file_system`` has its directory, "" stands for
    the trial's own folder. ``explain`` returns the end of the job, given the events that the job
    wrote; ``output`` is the file in which the scheduler says what it did to the job."""

    case: Case
    path: Path
    file_system: str
    explain: Callable[[JobEvents], Ended]
    stage: str = ""
    output: Path | None = None


class LeftByJob(Struct, frozen=True):
    """What a job left: its events, and which file is shorter here than it was there, "" if none."""

    own: JobEvents
    cut: str


class RunReader:
    """What a plug-in reads from the directories of a trial's runs: a class of the hook
    ``seatrial_collectors`` overrides what it needs. Nothing is trusted that a job wrote."""

    def __init__(self, record: Record, trials: Path) -> None:
        """``trials``: the folder of trials."""
        self.record = record
        self.trials = trials

    def is_slow(self, test: Test) -> bool:
        """Return whether it may take long to read the runs of a test. They are then judged in a
        thread."""
        return False

    def collect(self, run: EndedRun) -> None:
        """Collect in the directory of a run what its processes left there, whatever its verdict."""

    def figures(self, run: EndedRun, nodes: str, right: bool) -> Sequence[MetricValue]:
        """Return figures of a run beside those of its test. ``nodes``: those on which its script
        started, folded; ``right``: whether its answer is, by its test."""
        return ()

    def digest_of_facts(self, nodes: str) -> str:
        """Return the digest of the facts of nodes, which a run records as it starts there; "" where
        they are not known."""
        return ""


class RunCollector:
    """Collects and judges the runs of one trial. Where jobs run on other hosts, it waits for the
    files of a run to appear through the shared file system."""

    def __init__(
        self, record: Record, environments: Path, trials: Path, job_stats: JobStats | None = None
    ) -> None:
        """``trials``: the folder of trials, beside which digests of nodes are."""
        self.record = record
        self.environments = environments
        self._job_stats = job_stats
        self._patience = record.machine.batch.visible_after.seconds
        self._host = "" if record.machine.jobs_run_elsewhere else os.uname().nodename
        self.references = references_of(record)
        self._readers: list[RunReader] = [
            load(name)(record, trials) for name in provided("seatrial_collectors")
        ]
        self._captured: list[Path] = []  # directories of runs whose outcome is not written yet
        self._named: dict[str, tuple[str, ...]] = {}  # by test
        self._free_threads: dict[str, asyncio.Semaphore] = {}  # by file system: one may hang

    def collect(self, run: EndedRun) -> CollectedRun | Coroutine[None, None, CollectedRun]:
        """Return the outcome of a run, or a coroutine that returns it where that may take long. The
        coroutine waits for files, reads in a thread, and asks what file servers counted. The loop
        itself never reads a file system that runs are placed on, because that may hang."""
        if run.file_system or self._job_stats is not None:
            return self._collect_later(run, None)
        left = self._left(run)
        if self._must_wait(run, left) or not self._is_quick(run, left.own):
            return self._collect_later(run, left)
        try:
            return self._collected(run, left)
        except SearchTookLong:
            return self._in_thread(run, lambda: self._collected(run, left))

    async def _collect_later(self, run: EndedRun, left: LeftByJob | None) -> CollectedRun:
        seen = left or await self._look(run)
        waited = 0.0
        while self._must_wait(run, seen) and waited < self._patience:
            await asyncio.sleep(LOOK_AGAIN_SECONDS)
            waited += LOOK_AGAIN_SECONDS
            seen = await self._look(run)
        if self._job_stats is not None and run.explain(seen.own).code is None:
            await self._job_stats.collect(run.path)
        if not run.file_system and self._is_quick(run, seen.own):
            with contextlib.suppress(SearchTookLong):
                return self._collected(run, seen)
        return await self._in_thread(run, lambda: self._collected(run, seen))

    async def _look(self, run: EndedRun) -> LeftByJob:
        if not run.file_system:
            return self._left(run)
        return await self._in_thread(run, lambda: self._left(run))

    def _left(self, run: EndedRun) -> LeftByJob:
        own = job_events(run.path)
        if own.end is None or not own.end.sizes:
            return LeftByJob(own, "")
        names = ("stdout", *judged_files(self.record.tests[run.case.test]))
        return LeftByJob(own, cut_file(run.path, own.end, names))

    async def _in_thread(self, run: EndedRun, work: Callable[[], T]) -> T:
        """Return what ``work`` returns, done in a thread: a few at a time on each file system."""
        free = self._free_threads.setdefault(run.file_system, asyncio.Semaphore(THREADS))
        async with free:
            return await run_in_thread(work, "judge")

    def _must_wait(self, run: EndedRun, left: LeftByJob) -> bool:
        """Return whether the end of the script, or a file that it wrote, may still appear through a
        shared file system."""
        if not self.record.machine.jobs_run_elsewhere:
            return False
        code = run.explain(left.own).code
        if code is not None:
            return code == codes.TIMEOUT.number and not left.own.claimed
        if run.explain(left.own).exit_code == NOT_BOOTED and left.own.compat is not None:
            return False  # its script never began
        return left.own.end is None or bool(left.cut)

    def _is_quick(self, run: EndedRun, own: JobEvents) -> bool:
        """Return whether judging reads one page of stdout at most, and checksums read little, so
        that it delays neither walltimes nor people."""
        test = self.record.tests[run.case.test]
        if any(reader.is_slow(test) for reader in self._readers):
            return False
        sizes = sizes_of(run.path, self._outputs(test))
        if sum(sizes.values()) > SUMMED_AT_ONCE:
            return False
        if run.explain(own).code is not None or not (test.verify or test.metrics):
            return True
        by_patterns = all(
            isinstance(metric, Metric) and metric.in_file == "stdout"
            for metric in test.metrics.values()
        ) and all(
            check.identical is None
            and check.python is None
            and check.script is None
            and check.in_file == "stdout"
            for check in test.verify
        )
        return "stdout" not in sizes or (by_patterns and sizes["stdout"] <= PAGE)

    def _collected(self, run: EndedRun, left: LeftByJob) -> CollectedRun:
        own, stop = left.own, ""
        figures: Sequence[MetricValue] = ()
        try:
            figures, code, reason = self._verdict(run, left)
        except HostFailed as error:
            code, reason, stop = codes.LOST, str(error), str(error)
        sizes = sizes_of(run.path, self._outputs(self.record.tests[run.case.test]))
        if code is not codes.LOST and run.explain(own).code is None:
            failed = code not in (codes.PASS, codes.PERFORMANCE)
            if failed and ((full := is_full(run.path)) or (own.end and own.end.unwritten)):
                code, reason = codes.LOST, "the file system was full when it ended"
                stop = "No space left on device" if full else ""
            elif sizes.get("stderr") and (said := _write_error(run.path)):
                code, reason = codes.LOST, f"its stderr says: {said}"
        if stop:
            stop = f"{run.path}: {stop}: the run could not be judged; see to this host, then resume"
        test = self.record.tests[run.case.test]
        for reader in self._readers:
            reader.collect(run)
        bound = test.bound(run.case.parameters)
        environment = environment_capture.capture(run.path, self.environments, bound)
        if not run.file_system:
            self._captured.append(run.path)
        start = own.start
        if start is not None:
            nodes = self._host or start.nodes
            known = (reader.digest_of_facts(nodes) for reader in self._readers)
            node_facts = next(filter(None, known), "")
            start = replace(start, environment=environment, nodes=nodes, node_facts=node_facts)
        events = [event for event in (own.compat, start, own.end) if event is not None]
        sums = checksums(run.path, sizes, reading_limits(test)) or None
        cause = NO_CAUSE if stop else self._cause(run, code, own.exit_code)
        return CollectedRun(code, reason, events, figures, stop, sums, own.refused, cause)

    def _cause(self, run: EndedRun, code: codes.Code, exit_code: int | None) -> FoundCause:
        """Return what a run failed of, as its check script or its output tells; NO_CAUSE for one
        that did not fail."""
        if code is codes.PASS or code.number in codes.WITHDRAWN:
            return NO_CAUSE
        test = self.record.tests[run.case.test]
        if is_judged_by_script(test) and (alias := alias_of(run.path)):
            return FoundCause(alias)
        if code is codes.PERFORMANCE:
            return NO_CAUSE
        modes = test.failures
        return self._causes.of_run(run.path, modes, exit_code, run.output)

    @cached_property
    def _causes(self) -> CauseSearch:
        return CauseSearch(log_rules.log_rules_for(self.record.machine.log_rules))

    def _outputs(self, test: Test) -> tuple[str, ...]:
        """Return the names of the files that a run leaves and that its verdict may rest on."""
        if test.name not in self._named:
            counted = [COUNTED_FILE] if test.run.prove else []
            self._named[test.name] = ("stdout", "stderr", *judged_files(test), *counted)
        return self._named[test.name]

    def _verdict(
        self, run: EndedRun, left: LeftByJob
    ) -> tuple[Sequence[MetricValue], codes.Code, str]:
        own, ended = left.own, run.explain(left.own)
        if ended.code is not None:
            code = codes.code_of(ended.code)
            if self._must_wait(run, left):  # given to a node that was dead, and nobody noticed
                return (), codes.LOST, "its walltime has passed, and its job script never started"
            reason = end_reason(code, ended.state, ended.nodes, run.case.walltime)
            if code is codes.HUNG and (waits := waits_in(run.path)):
                reason = f"{reason}; {waits}"
            return (), code, reason
        if own.end is None:
            return (), *_without_end(run.path, own, ended.exit_code)
        if left.cut:
            return (), codes.LOST, f"{left.cut}; it is not judged"
        test = self.record.tests[run.case.test]
        names = names_of(test, run.case, self.record.machine) if test.verify else NO_NAMES
        of_files = checks.figures_in(run.path) if self.record.machine.file_use else ()
        ran = RunConditions(run.stage, own.elapsed, of_files)
        if counts_threads(test, run.case):
            with contextlib.suppress(OSError):  # what was not counted is not proved
                ranks.collect(run.path)
        verdict = judge(test, run.case, run.path, own.exit_code, self.references, names, ran)
        figures = verdict.figures
        nodes = own.start.nodes if own.start else ""
        right = verdict.code in (codes.PASS, codes.PERFORMANCE)
        for reader in self._readers:
            if more := reader.figures(run, nodes, right):
                figures = [*figures, *more]
        return figures, verdict.code, verdict.why

    def drop_captured(self) -> None:
        """Remove the files of environments whose hashes are in the journal. Those on other file
        systems stay, as such a file system may hang."""
        environment_capture.drop(self._captured)
        self._captured.clear()


def _without_end(path: Path, own: JobEvents, exit_code: int | None) -> tuple[codes.Code, str]:
    """Return the verdict on a run whose script left no end."""
    if exit_code is None:
        return codes.LOST, "the job ended without a word and left no exit code"
    if exit_code == CLAIMED:
        return codes.LOST, "it was started twice, and the first left no end"
    if exit_code in (NO_DIRECTORY, NOT_WRITABLE, END_NOT_WRITTEN):
        return codes.LOST, "its directory could not be written: see its space, quota, permissions"
    if exit_code in (NO_MODULE, BROKEN) and (said := own_words(path)):
        return codes.FAILED, said
    if exit_code == NOT_BOOTED and own.compat is not None:
        return codes.BOOT_FAILURE, own_words(path) or own.compat.text
    if not own.claimed and path.is_dir():
        return codes.LOST, "its job ended, and nothing that its job script wrote is there"
    if own.start is not None and exit_code == 0:
        return codes.LOST, "its job ended well, and the end of its script is not there"
    reason = "the job script ended before the test's own did, "
    return codes.FAILED, reason + f"with exit code {exit_code}: see stderr"


def _write_error(path: Path) -> str:
    """Return what the end of a run's stderr says of its shell, which could not write; "" where it
    says nothing. Errors of the test's own programs are the test's affair."""
    found = _WRITE_ERROR.search(_stderr_tail(path))
    return found[0] if found else ""


def _stderr_tail(path: Path) -> str:
    try:
        with open_regular(path / "stderr", follow=False) as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - STDERR_TAIL))
            return file.read().decode(errors="replace")
    except OSError:
        return ""


# ---- end reason ----------------------------------------------------------------------------------
#
# The reasons of runs that did not end by themselves.


def cancellation(state: ConductorState, run_id: str) -> tuple[int, str]:
    """Return the verdict code of a run that Seatrial cancelled, and the reason: its output did not
    grow, a person asked for it, or the trial was cancelled."""
    flight = state.in_flight.get(run_id)
    if flight is None or flight.ended_for is None:
        return CANCELLED.number, state.held
    return flight.ended_for, flight.ended_why


def end_reason(code: Code, state: str, nodes: str, walltime: float) -> str:
    """Return the reason for a verdict that the end of a job decides: ``state`` is the scheduler's
    word for it, or the reason of a cancellation; ``walltime`` is in seconds."""
    if code is RECALLED:
        return code.meaning
    if code is HUNG:
        return state
    limit = f" of {show_seconds(walltime)}" if code is TIMEOUT else ""
    return f"{code.meaning}{limit}: {state}" + (f" on {nodes}" if nodes else "")
