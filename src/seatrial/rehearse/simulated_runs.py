"""What becomes of the runs of a rehearsal: the updates of its cluster, made into events.

runs = SimulatedRuns(record, conductor, writer, at)
runs.begin(now, run)                      # launched, or refused
if runs.receive(now, update): ...         # there may be something to decide
"""

from collections.abc import Callable
from typing import Any

from seatrial.backends.protocol import NodesDown, NodesUp, Queued, Refused, Started
from seatrial.backends.simulated.cluster import SimulatedUpdate
from seatrial.backends.simulated.jobs import FinishedJob, Hangs
from seatrial.conduct.conductor import Conductor
from seatrial.journal import codes, events
from seatrial.rehearse.event_writer import EventWriter
from seatrial.rehearse.rehearsed_run import RehearsedRun, judge
from seatrial.rehearse.sampling import figures
from seatrial.suite.known_failures import KnownFailures
from seatrial.trial.end_reason import cancellation, end_reason
from seatrial.trial.record import Record, references_of
from seatrial.units import SECOND_NS, ns
from seatrial.verify.figures import MetricValue

At = Callable[[int, Callable[[int, Any], bool], object], None]
"""Plans what is to happen at a time; that says whether there is something to decide."""


class SimulatedRuns:
    """The runs without a verdict, by id. ``look_by`` is when there may be something to decide
    if nothing is told before: no sooner than ``patience`` (ns; None: never) after a run was queued.
    ``all_passed`` tells of the verdicts that stand."""

    def __init__(
        self, record: Record, luck: str, conductor: Conductor, writer: EventWriter, at: At
    ) -> None:
        self._luck = luck
        self._references = references_of(record)
        self._known = KnownFailures(record.known_failures)
        self._conductor = conductor
        self._writer = writer
        self._at = at
        self.runs: dict[str, RehearsedRun] = {}
        self.look_by: int | None = None
        watch = conductor.state.policy.watch
        self.patience = ns(watch.wait_least) if watch.wait_factor else None
        self.all_passed = True

    def begin(self, now: int, run: RehearsedRun) -> None:
        """A run is launched, or refused."""
        self.runs[run.id] = run
        if self._writer.in_full:
            self._writer.add_step(events.RunCreated(time=now, **run.header))

    def receive(self, now: int, update: SimulatedUpdate) -> bool:
        """Make events of an update; whether there may be something to decide."""
        handler = _HANDLERS.get(type(update))
        if handler is not None:
            run = self.runs.get(update.run_id)  # type: ignore[union-attr]
            return run is not None and handler(self, now, run, update)
        if isinstance(update, NodesDown):
            self._writer.note(now, events.NodeDown(nodes=update.nodes, reason=update.reason))
        elif isinstance(update, NodesUp):
            self._writer.note(now, events.NodeUp(nodes=update.nodes))
        return True

    def _on_queued(self, now: int, run: RehearsedRun, update: Queued) -> bool:
        """Nothing follows from that but, in time, an alert that it waits for long."""
        if self._writer.in_full:
            self._writer.add_step(events.SubmitEnded(time=now, **run.header, refused=0))
        self._writer.add(events.JobQueued(time=now, **run.header, job_id=update.job_id))
        if self.patience is not None and self.look_by is None:
            self.look_by = now + self.patience
        return False

    def _on_refused(self, now: int, run: RehearsedRun, update: Refused) -> bool:
        self._writer.add(
            events.SubmitEnded(time=now, **run.header, refused=1, reason=update.reason)
        )
        self.verdict(now, run, codes.LAUNCH_FAILED, update.reason)
        return True

    def _on_started(self, now: int, run: RehearsedRun, update: Started) -> bool:
        state = self._conductor.state
        state.changed = False  # what was told before has been answered
        self._writer.add(events.JobStarted(time=now, **run.header, nodes=update.nodes))
        return state.changed

    def _on_hangs(self, now: int, run: RehearsedRun, update: Hangs) -> bool:
        if quiet := run.entry.quiet_after:
            self._at(now + ns(run.sampled.elapsed + quiet), self._quiet, run)
        return False

    def _on_over(self, now: int, run: RehearsedRun, update: FinishedJob) -> bool:
        code, add = update.code, self._writer.add
        recalled = run.recalled and code == codes.CANCELLED.number and not update.nodes
        if recalled:
            code = codes.RECALLED.number
        if code == codes.TIMEOUT.number and update.script_ended and run.run_model.keeps:
            code = None  # its test was over; it kept its nodes as long as it could
        ended = events.JobEnded(
            time=now,
            **run.header,
            code=code or 0,
            state=update.state,
            text="" if update.exit_code is None else f"exit code {update.exit_code}",
            nodes=update.nodes,
            exit_code=update.exit_code,
            recalled=recalled,
        )
        add(ended)
        if update.script_started:
            start, nodes = update.script_started, update.nodes
            add(events.ScriptStarted(time=start, **run.header, nodes=nodes))
        if update.script_ended:
            end, status = update.script_ended, run.sampled.exit_code
            add(events.ScriptEnded(time=end, **run.header, exit_code=status))
        if self._writer.in_full:
            self._writer.add_step(events.CheckStarted(time=now, **run.header))
        if code is None:
            elapsed = (update.script_ended - update.script_started) / SECOND_NS
            self.verdict(now, run, *self._judged(now, run, elapsed))
        else:
            state = update.state
            if run.cancelled and code == codes.CANCELLED.number:
                code, state = cancellation(self._conductor.state, run.id)
            verdict = codes.code_of(code)
            reason = end_reason(verdict, state, update.nodes, run.case.walltime)
            self.verdict(now, run, verdict, reason)
        return True

    def _judged(self, now: int, run: RehearsedRun, elapsed: float) -> tuple[codes.Code, str]:
        """The verdict of a run whose script came to its end, its figures noted."""
        found: list[MetricValue] = []
        if not run.sampled.exit_code and run.run_model.figures:
            found += figures(self._luck, run.case.test, run.attempt, run.run_model)
        for figure in found:
            recorded = events.MetricRecorded(
                time=now,
                **run.header,
                metric=figure.name,
                value=figure.value,
                unit=figure.unit,
                better=figure.better,
            )
            self._writer.add(recorded)
        return judge(run, elapsed, found, self._references)

    def verdict(self, now: int, run: RehearsedRun, code: codes.Code, reason: str) -> None:
        code, reason, known = self._known.judged(run.case, code, reason, now)
        reruns = self._conductor.state.will_rerun(run.number, run.id, code.number)
        judged = events.RunJudged(
            time=now,
            **run.header,
            code=code.number,
            verdict=code.name,
            reason=reason,
            will_rerun=reruns,
            known=known,
        )
        self._writer.add(judged)
        del self.runs[run.id]
        self.all_passed &= reruns or code in (codes.PASS, codes.KNOWN)

    def _quiet(self, now: int, run: RehearsedRun) -> bool:
        """The output of a run that hangs has not grown for as long as its plan bears."""
        if run.id not in self.runs:
            return False
        self._writer.add(events.OutputQuiet(time=now, **run.header, seconds=run.entry.quiet_after))
        return True


_HANDLERS: dict[type, Callable[[SimulatedRuns, int, RehearsedRun, Any], bool]] = {
    Queued: SimulatedRuns._on_queued,
    Refused: SimulatedRuns._on_refused,
    Started: SimulatedRuns._on_started,
    Hangs: SimulatedRuns._on_hangs,
    FinishedJob: SimulatedRuns._on_over,
}


def sooner(one: int | None, other: int | None) -> int | None:
    """The earlier of two times, either of which may be missing."""
    if one is None or other is None:
        return other if one is None else one
    return one if one < other else other
