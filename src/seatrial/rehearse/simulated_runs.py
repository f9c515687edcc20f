"""What becomes of the runs of a rehearsal: the updates of its cluster, made into events.

runs = SimulatedRuns(record, conductor, writer, at)
runs.begin(now, run)                      # launched, or refused
if runs.receive(now, update): ...         # there may be something to decide
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from seatrial.backends.protocol import NodesDown, NodesUp, Queued, Refused, Started
from seatrial.backends.simulated.cluster import SimulatedUpdate
from seatrial.backends.simulated.jobs import FinishedJob, Hangs
from seatrial.conduct.commands import RECALLED
from seatrial.conduct.conductor import Conductor
from seatrial.journal.codes import CANCELLED, LAUNCH_FAILED, PASS, TIMEOUT, Code, Name
from seatrial.rehearse.event_writer import EventWriter
from seatrial.rehearse.rehearsed_run import RehearsedRun, judge, why_ended
from seatrial.rehearse.sampling import figures
from seatrial.trial.folder import Record, references_of
from seatrial.units import SECOND_NS
from seatrial.verify.figures import MetricValue

# Plain text: an event with a member of an enumeration takes three times as long to make.
_BINARY_EXECUTE_END = Name.BINARY_EXECUTE_END.value
_BINARY_EXECUTE_START = Name.BINARY_EXECUTE_START.value
_CHECK_END = Name.CHECK_END.value
_CHECK_START = Name.CHECK_START.value
_JOB_END = Name.JOB_END.value
_JOB_QUEUED = Name.JOB_QUEUED.value
_JOB_START = Name.JOB_START.value
_LOGGING_START = Name.LOGGING_START.value
_NODE_DOWN = Name.NODE_DOWN.value
_NODE_UP = Name.NODE_UP.value
_OUTPUT_QUIET = Name.OUTPUT_QUIET.value
_SUBMIT_END = Name.SUBMIT_END.value

At = Callable[[int, Callable[[int, Any], bool], object], None]
"""Plans what is to happen at a time; that says whether there is something to decide."""


class SimulatedRuns:
    """The runs without a verdict, by id. ``look_by`` is when there may be something to decide
    if nothing is told before; ``all_passed`` tells of the verdicts that stand."""

    def __init__(self, record: Record, conductor: Conductor, writer: EventWriter, at: At) -> None:
        self._seed = record.seed
        self._references = references_of(record)
        self._conductor = conductor
        self._writer = writer
        self._at = at
        self.runs: dict[str, RehearsedRun] = {}
        self.look_by: int | None = None
        self.all_passed = True

    def begin(self, now: int, run: RehearsedRun) -> None:
        """A run is launched, or refused."""
        self.runs[run.id] = run
        self._writer.note_of(now, run, _LOGGING_START)

    def receive(self, now: int, update: SimulatedUpdate) -> bool:
        """Make events of an update; whether there may be something to decide."""
        handler = _HANDLERS.get(type(update))
        if handler is not None:
            run = self.runs.get(update.run_id)  # type: ignore[union-attr]
            return run is not None and handler(self, now, run, update)
        if isinstance(update, NodesDown):
            self._writer.note(now, _NODE_DOWN, nodes=update.nodes, text=update.why)
        elif isinstance(update, NodesUp):
            self._writer.note(now, _NODE_UP, nodes=update.nodes)
        return True

    def _on_queued(self, now: int, run: RehearsedRun, update: Queued) -> bool:
        """Nothing follows from that but, in time, an alert that it waits for long."""
        self._writer.note_of(now, run, _SUBMIT_END, value=0)
        self._writer.note_of(now, run, _JOB_QUEUED, job_id=update.job_id)
        watch = self._conductor.policy.watch
        if watch.wait_factor:
            self.look_by = sooner(self.look_by, now + ns(watch.wait_least))
        return False

    def _on_refused(self, now: int, run: RehearsedRun, update: Refused) -> bool:
        self._writer.note_of(now, run, _SUBMIT_END, value=1, text=update.why)
        self.verdict(now, run, LAUNCH_FAILED, update.why)
        return True

    def _on_started(self, now: int, run: RehearsedRun, update: Started) -> bool:
        self._writer.note_of(now, run, _JOB_START, nodes=update.nodes)
        return True

    def _on_hangs(self, now: int, run: RehearsedRun, update: Hangs) -> bool:
        if quiet := run.entry.quiet_after:
            self._at(now + ns(run.sampled.elapsed + quiet), self._quiet, run)
        return False

    def _on_over(self, now: int, run: RehearsedRun, update: FinishedJob) -> bool:
        code = update.code
        if run.recalled and code == CANCELLED.number and not update.nodes:
            update = replace(update, state=RECALLED)
        if code == TIMEOUT.number and update.left and run.run_model.keeps:
            code = None  # its test was over; it kept its nodes as long as it could
        text = "" if update.exit_code is None else f"exit code {update.exit_code}"
        self._writer.note_of(
            now, run, _JOB_END, value=code or 0, alias=update.state, text=text, nodes=update.nodes
        )
        if update.began:
            self._writer.note_of(update.began, run, _BINARY_EXECUTE_START, nodes=update.nodes)
        if update.left:
            exit_code = run.sampled.exit_code
            self._writer.note_of(update.left, run, _BINARY_EXECUTE_END, value=exit_code)
        self._writer.note_of(now, run, _CHECK_START)
        if code is None:
            self.verdict(now, run, *self._judged(now, run))
        else:
            ended_for = self._conductor.ended_for(run.id)
            self.verdict(now, run, *why_ended(run, update, ended_for, self._conductor.held))
        return True

    def _judged(self, now: int, run: RehearsedRun) -> tuple[Code, str]:
        """The verdict of a run whose script came to its end, its figures noted."""
        found: list[MetricValue] = []
        if not run.sampled.exit_code and run.run_model.figures:
            found += figures(self._seed, run.case.test, run.attempt, run.run_model)
        for figure in found:
            self._writer.note_figure(now, run, figure)
        return judge(run, found, self._references)

    def verdict(self, now: int, run: RehearsedRun, code: Code, why: str) -> None:
        again = self._conductor.runs_again(run.number, run.id, code.number)
        self._writer.note_of(
            now, run, _CHECK_END, value=code.number, alias=code.name, text=why, again=again
        )
        del self.runs[run.id]
        self.all_passed &= again or code is PASS

    def _quiet(self, now: int, run: RehearsedRun) -> bool:
        """The output of a run that hangs has not grown for as long as its plan bears."""
        if run.id not in self.runs:
            return False
        self._writer.note_of(now, run, _OUTPUT_QUIET, value=run.entry.quiet_after)
        return True


_HANDLERS: dict[type, Callable[[SimulatedRuns, int, RehearsedRun, Any], bool]] = {
    Queued: SimulatedRuns._on_queued,
    Refused: SimulatedRuns._on_refused,
    Started: SimulatedRuns._on_started,
    Hangs: SimulatedRuns._on_hangs,
    FinishedJob: SimulatedRuns._on_over,
}


def ns(span: float) -> int:
    return round(span * SECOND_NS)


def sooner(one: int | None, other: int | None) -> int | None:
    """The earlier of two times, either of which may be missing."""
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)
