"""Collects runs that have ended: the events that their jobs wrote, their figures and verdicts."""

import asyncio
import contextlib
import os
import re
from collections.abc import Callable, Coroutine, Sequence
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from msgspec.structs import replace

from seatrial.decide.state import ConductorState
from seatrial.execute import environment as environment_capture
from seatrial.execute import wrappers
from seatrial.execute.backends import JobEnd
from seatrial.execute.background import JobStats
from seatrial.execute.beside_loop import run_in_thread
from seatrial.execute.directory import JobEvents, cut_file, job_events
from seatrial.execute.environment import NO_MODULE
from seatrial.execute.kept_files import checksums, sizes_of
from seatrial.execute.runs import RunUnderWay, waits_in
from seatrial.execute.script import (
    BROKEN,
    CLAIMED,
    END_NOT_WRITTEN,
    NO_DIRECTORY,
    NOT_BOOTED,
    NOT_WRITABLE,
    judged_files,
)
from seatrial.execute.trial_folder import Record, references_of
from seatrial.files import is_full, open_regular
from seatrial.hooks import load, provided
from seatrial.journal.events import Event
from seatrial.journal.trial import RunLife
from seatrial.judge import file_use, log_rules
from seatrial.judge.check_values import NO_NAMES, names_of
from seatrial.judge.checks import reading_limits
from seatrial.judge.isolated import PAGE, SearchTookLong
from seatrial.judge.reading import HostFailed, own_words
from seatrial.judge.script_check import (
    NO_CAUSE,
    CauseSearch,
    FoundCause,
    alias_of,
    is_judged_by_script,
    last_words,
)
from seatrial.judge.verdict import RunConditions, Verdict, judge
from seatrial.model import codes
from seatrial.model.codes import CANCELLED, HUNG, RECALLED, TIMEOUT, Code
from seatrial.model.figures import MetricValue
from seatrial.model.task_placement import COUNTED_FILE, counts_threads
from seatrial.model.test import Metric, Test
from seatrial.units import show_seconds

THREADS = 2
SUMMED_AT_ONCE = 256 << 10  # bytes whose checksums are made in the loop itself
LOOK_AGAIN_SECONDS = 0.5
STDERR_TAIL = 8192

_WRITE_ERROR = "write error: (No space left on device|Disk quota exceeded|Input/output error)"

_RIGHT = (codes.PASS, codes.PERFORMANCE)

T = TypeVar("T")

Collected = tuple[JobEvents, Verdict]
"""What is recorded of a run that is over: the events that its job wrote, and the verdict on it."""


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

    def collect(self, run: RunUnderWay) -> None:
        """Collect in the directory of a run what its processes left there, whatever its verdict."""

    def figures(self, run: RunUnderWay, nodes: str, right: bool) -> Sequence[MetricValue]:
        """Return figures of a run beside those of its test. ``nodes``: those on which its script
        started, folded; ``right``: whether its answer is, by its test."""
        return ()

    def digest_of_facts(self, nodes: str) -> str:
        """Return the digest of the facts of nodes, which a run records as it starts there; "" where
        they are not known."""
        return ""

    def events_later(
        self, run: RunUnderWay, life: RunLife, own: JobEvents
    ) -> Coroutine[None, None, Sequence[Event]] | None:
        """Return what finds out, after the verdict of a run, what shows only then, such as lines of
        system logs: events of that run, and of its trial. None where there is nothing to find. The
        drive does not end before it is done, so it must end in bounded time. ``life``: the run by
        the scheduler's word; ``own``: the events that its job wrote."""
        return None


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

    def collect(
        self, run: RunUnderWay, explain: Callable[[JobEvents], JobEnd]
    ) -> Collected | Coroutine[None, None, Collected]:
        """Return the verdict on a run whose job has ended, or a coroutine that returns it where
        that may take long. The coroutine waits for files, reads in a thread, and asks what file
        servers counted. The loop itself never reads a file system that runs are placed on, because
        that may hang. ``explain`` returns the end of the job, given the events that it wrote."""
        if run.place.file_system or self._job_stats is not None:
            return self._collect_later(run, explain, None)
        seen = self._look(run, explain)
        if self._must_wait(*seen) or not self._is_quick(run, seen[0]):
            return self._collect_later(run, explain, seen)
        try:
            return self._collected(run, *seen)
        except SearchTookLong:
            return self._in_thread(run, lambda: self._collected(run, *seen))

    async def _collect_later(
        self,
        run: RunUnderWay,
        explain: Callable[[JobEvents], JobEnd],
        seen: tuple[JobEnd, JobEvents] | None,
    ) -> Collected:
        async def look() -> tuple[JobEnd, JobEvents]:
            if not run.place.file_system:
                return self._look(run, explain)
            return await self._in_thread(run, lambda: self._look(run, explain))

        end, own = seen or await look()
        waited = 0.0
        while self._must_wait(end, own) and waited < self._patience:
            await asyncio.sleep(LOOK_AGAIN_SECONDS)
            waited += LOOK_AGAIN_SECONDS
            end, own = await look()
        if self._job_stats is not None and end.code is None:
            await self._job_stats.collect(run.path)
        if not run.place.file_system and self._is_quick(run, end):
            with contextlib.suppress(SearchTookLong):
                return self._collected(run, end, own)
        return await self._in_thread(run, lambda: self._collected(run, end, own))

    def _look(
        self, run: RunUnderWay, explain: Callable[[JobEvents], JobEnd]
    ) -> tuple[JobEnd, JobEvents]:
        """Return the end of a job, and the events that it wrote, as far as they are seen here."""
        own = job_events(run.path)
        if own.end is not None and own.end.sizes:
            files = ("stdout", *judged_files(run.test))
            own = replace(own, cut=cut_file(run.path, own.end, files))
        return explain(own), own

    async def _in_thread(self, run: RunUnderWay, work: Callable[[], T]) -> T:
        """Return what ``work`` returns, done in a thread: a few at a time on each file system."""
        place = run.place.file_system
        async with self._free_threads.setdefault(place, asyncio.Semaphore(THREADS)):
            return await run_in_thread(work, "judge")

    def _must_wait(self, end: JobEnd, own: JobEvents) -> bool:
        """Return whether the end of the script, or a file that it wrote, may still appear through a
        shared file system."""
        if not self.record.machine.jobs_run_elsewhere:
            return False
        if end.code is not None:
            return end.code == TIMEOUT.number and not own.claimed
        if end.exit_code == NOT_BOOTED and own.compat is not None:
            return False  # its script never began
        return own.end is None or bool(own.cut)

    def _is_quick(self, run: RunUnderWay, end: JobEnd) -> bool:
        """Return whether judging reads one page of stdout at most, and checksums read little, so
        that it delays neither walltimes nor people."""
        test = run.test
        if any(reader.is_slow(test) for reader in self._readers):
            return False
        sizes = sizes_of(run.path, self._outputs(test))
        if sum(sizes.values()) > SUMMED_AT_ONCE:
            return False
        if end.code is not None or not (test.verify or test.metrics):
            return True
        return "stdout" not in sizes or (sizes["stdout"] <= PAGE and _reads_stdout_alone(test))

    def _collected(self, run: RunUnderWay, end: JobEnd, own: JobEvents) -> Collected:
        """Judge a run. Return the events that its job wrote, and the verdict."""
        verdict = self._verdict(run, end, own)
        sizes = sizes_of(run.path, self._outputs(run.test))
        if verdict.code is not codes.LOST and end.code is None:
            verdict = _unless_full(verdict, run.path, own, bool(sizes.get("stderr")))
        if verdict.stop:
            fault = "the run could not be judged; see to this host, then resume"
            verdict = replace(verdict, stop=f"{run.path}: {verdict.stop}: {fault}")
        for reader in self._readers:
            reader.collect(run)
        told = self._with_start_told(run, own)
        sums = checksums(run.path, sizes, reading_limits(run.test)) or None
        cause = NO_CAUSE if verdict.stop else self._cause(run, end, own, verdict.code)
        return told, replace(verdict, sums=sums, cause=cause)

    def _with_start_told(self, run: RunUnderWay, own: JobEvents) -> JobEvents:
        """Return the events that a job wrote, its start with what is known of it here."""
        bound = run.test.bound(run.case.parameters)
        environment = environment_capture.capture(run.path, self.environments, bound)
        if not run.place.file_system:
            self._captured.append(run.path)
        if own.start is None:
            return own
        nodes = self._host or own.start.nodes
        known = (reader.digest_of_facts(nodes) for reader in self._readers)
        node_facts = next(filter(None, known), "")
        start = replace(own.start, environment=environment, nodes=nodes, node_facts=node_facts)
        return replace(own, start=start)

    def _cause(self, run: RunUnderWay, end: JobEnd, own: JobEvents, code: Code) -> FoundCause:
        """Return what a run failed of, as its check script or its output tells; NO_CAUSE for one
        that did not fail."""
        if code is codes.PASS or code.number in codes.WITHDRAWN:
            return NO_CAUSE
        if is_judged_by_script(run.test) and (alias := alias_of(run.path)):
            return FoundCause(alias)
        if code is codes.PERFORMANCE:
            return NO_CAUSE
        cause = self._causes.of_run(run.path, run.test.failures, own.exit_code, end.output)
        return last_words(run.path) if cause == NO_CAUSE and own.exit_code else cause

    @cached_property
    def _causes(self) -> CauseSearch:
        return CauseSearch(log_rules.log_rules_for(self.record.machine.log_rules))

    def _outputs(self, test: Test) -> tuple[str, ...]:
        """Return the names of the files that a run leaves and that its verdict may rest on."""
        if test.name not in self._named:
            counted = [COUNTED_FILE] if test.run.prove else []
            self._named[test.name] = ("stdout", "stderr", *judged_files(test), *counted)
        return self._named[test.name]

    def _verdict(self, run: RunUnderWay, end: JobEnd, own: JobEvents) -> Verdict:
        """Return the verdict on a run, with its figures."""
        try:
            return self._verdict_by_end(run, end, own) or self._verdict_by_output(run, own)
        except HostFailed as error:
            return Verdict(codes.LOST, str(error), stop=str(error))

    def _verdict_by_end(self, run: RunUnderWay, end: JobEnd, own: JobEvents) -> Verdict | None:
        """Return the verdict that the end of the job decides; None where the output is judged."""
        if end.code is not None:
            if self._must_wait(end, own):  # given to a node that was dead, and nobody noticed
                reason = "its walltime has passed, and its job script never started"
                return Verdict(codes.LOST, reason)
            code = codes.code_of(end.code)
            reason = end_reason(code, end.state, end.nodes, run.case.walltime)
            if code is HUNG and (waits := waits_in(run.path)):
                reason = f"{reason}; {waits}"
            return Verdict(code, reason)
        if own.end is None:
            return Verdict(*_without_end(run.path, own, end.exit_code))
        return Verdict(codes.LOST, f"{own.cut}; it is not judged") if own.cut else None

    def _verdict_by_output(self, run: RunUnderWay, own: JobEvents) -> Verdict:
        test, case, machine = run.test, run.case, self.record.machine
        names = names_of(test, case, machine) if test.verify else NO_NAMES
        of_files = file_use.figures_in(run.path) if machine.file_use else ()
        ran = RunConditions(run.launch.stage, own.elapsed, of_files)
        if counts_threads(test, case):
            with contextlib.suppress(OSError):  # what was not counted is not proved
                wrappers.collect_thread_counts(run.path)
        verdict = judge(test, case, run.path, own.exit_code, self.references, names, ran)
        nodes = own.start.nodes if own.start else ""
        for reader in self._readers:
            if more := reader.figures(run, nodes, verdict.code in _RIGHT):
                verdict = replace(verdict, figures=[*verdict.figures, *more])
        return verdict

    def events_later(
        self, run: RunUnderWay, life: RunLife, own: JobEvents
    ) -> list[Coroutine[None, None, Sequence[Event]]]:
        """Return what readers find out about a run that has its verdict."""
        found = (reader.events_later(run, life, own) for reader in self._readers)
        return [each for each in found if each is not None]

    def drop_captured(self) -> None:
        """Remove the files of environments whose hashes are in the journal. Those on other file
        systems stay, as such a file system may hang."""
        environment_capture.drop(self._captured)
        self._captured.clear()


def _reads_stdout_alone(test: Test) -> bool:
    """Return whether a test is judged by patterns in stdout, and by nothing else."""
    metrics = all(
        isinstance(metric, Metric) and metric.in_file == "stdout"
        for metric in test.metrics.values()
    )
    return metrics and all(
        check.identical is None
        and check.python is None
        and check.script is None
        and check.in_file == "stdout"
        for check in test.verify
    )


def _unless_full(verdict: Verdict, path: Path, own: JobEvents, has_errors: bool) -> Verdict:
    """Return the verdict on a run that ended by itself; it is lost where its output may be cut, as
    its file system was full. ``has_errors``: it wrote to stderr."""
    if verdict.code not in _RIGHT:
        full = is_full(path)
        if full or (own.end is not None and own.end.unwritten):
            reason = "the file system was full when it ended"
            stop = "No space left on device" if full else ""
            return replace(verdict, code=codes.LOST, why=reason, stop=stop)
    if has_errors and (words := _write_error(path)):
        return replace(verdict, code=codes.LOST, why=f"its stderr says: {words}")
    return verdict


_UNWRITABLE = "its directory could not be written: see its space, quota, permissions"
_LOST_BY_CODE = {
    None: "the job ended without a word and left no exit code",
    CLAIMED: "it was started twice, and the first left no end",
    NO_DIRECTORY: _UNWRITABLE,
    NOT_WRITABLE: _UNWRITABLE,
    END_NOT_WRITTEN: _UNWRITABLE,
}


def _without_end(path: Path, own: JobEvents, exit_code: int | None) -> tuple[codes.Code, str]:
    """Return the verdict on a run whose script left no end."""
    if reason := _LOST_BY_CODE.get(exit_code):
        return codes.LOST, reason
    if exit_code in (NO_MODULE, BROKEN) and (words := own_words(path)):
        return codes.FAILED, words
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
    match = re.search(_WRITE_ERROR, _stderr_tail(path))
    return match[0] if match else ""


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
