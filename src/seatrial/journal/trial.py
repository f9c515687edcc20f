"""The fold of a trial's journal: its state and its clock, its runs, nodes, tests and builds.

    trial = Trial(new_run=lambda event: RunLife(), nodes=node_names(machine))
    for event in read(journal): trial.apply(event)
    trial.state, trial.elapsed(now), trial.spans
    trial.runs_by_id["flc6evne6aub"].state, trial.excluded, trial.downs

All that reads a journal builds on it: the history that criteria are judged by, the pages, and a
driver that goes on with its trial. It depends on the events alone: it has no clock, and the pieces
in which a journal comes do not matter. Times are in ns since the epoch.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from enum import IntEnum, StrEnum
from typing import Any, Generic, NamedTuple, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from seatrial.journal import events
from seatrial.model import codes
from seatrial.model.node_set import unfold_or_empty
from seatrial.units import SECOND_NS

# ---- life cycle of a run -------------------------------------------------------------------------
#
#     run = RunLife()
#     run.apply(event)                 # True where its state changed
#     run.state, run.job_started, run.code
#
# No other class changes the state of a run. ``RUN_TRANSITIONS`` holds every change; a pair of state
# and event that it does not hold changes nothing. A time is None where there is none yet. Events
# may come late or twice, as a job's own are recorded after it has ended: a life follows their
# times.


class RunState(IntEnum):
    """Where a run stands, in the order in which a run passes through the states."""

    NEW = 0
    CREATED = 1
    SUBMITTED = 2
    QUEUED = 3
    RUNNING = 4
    ENDED = 5
    JUDGED = 6


RUN_STATE_HELP: dict[RunState, str] = {
    RunState.NEW: "nothing has been recorded of it",
    RunState.CREATED: "its directory and scripts are being written",
    RunState.SUBMITTED: "it is being given to the scheduler",
    RunState.QUEUED: "the scheduler has it, and it waits for nodes",
    RunState.RUNNING: "its job runs",
    RunState.ENDED: "its job has ended, and it is being judged",
    RunState.JUDGED: "it has its verdict",
}


_BEFORE_JOB: dict[type[events.Event], RunState] = {
    events.RunSubmitted: RunState.SUBMITTED,
    events.JobQueued: RunState.QUEUED,
    events.JobStarted: RunState.RUNNING,
    events.ScriptStarted: RunState.RUNNING,
    events.ScriptEnded: RunState.RUNNING,
    events.JobEnded: RunState.ENDED,
    events.RunJudged: RunState.JUDGED,
}

RUN_TRANSITIONS: dict[RunState, dict[type[events.Event], RunState]] = {
    RunState.NEW: {
        events.RunCreated: RunState.CREATED,
        **_BEFORE_JOB,
        events.FigureGiven: RunState.JUDGED,
    },
    RunState.CREATED: _BEFORE_JOB,
    RunState.SUBMITTED: _BEFORE_JOB,
    # A run that never reached the scheduler, as its driver died, is submitted again.
    RunState.QUEUED: _BEFORE_JOB,
    RunState.RUNNING: {events.JobEnded: RunState.ENDED, events.RunJudged: RunState.JUDGED},
    RunState.ENDED: {events.RunJudged: RunState.JUDGED},
    RunState.JUDGED: {},
}


class RunLife(Struct, gc=False):
    """The life of one run: its state, its eight times, and what its events say of it."""

    state: RunState = RunState.NEW
    #: Of the latest judgement; before there is one, ``PENDING`` or ``IN_PROGRESS``.
    code: int = codes.PENDING.number
    reason: str = ""
    will_rerun: bool = False
    #: Seatrial recalled it before its job started.
    recalled: bool = False
    #: When it was created, or first heard of.
    created: int | None = None
    #: Of its submission.
    submitted: int | None = None
    queued: int | None = None
    #: By the scheduler's word, as ``job_ended`` is; those of the script are by the job's own.
    job_started: int | None = None
    script_started: int | None = None
    script_ended: int | None = None
    job_ended: int | None = None
    #: When it got its first verdict.
    judged: int | None = None
    exit_code: int | None = None
    job_id: str = ""
    nodes: str = ""
    path: str = ""
    target: str = ""
    stage: str = ""
    environment: str = ""
    node_facts: str = ""
    #: Of a run that was judged again: the code of the first judgement.
    first_code: int | None = None
    cause: str = ""
    cause_code: int = 0
    cause_line: str = ""
    advice: str = ""
    submission: str = ""
    #: Of its submission; "" and 0 if it has a job of its own.
    bundle: str = ""
    position: int = 0
    #: The nodes that were chosen for it, in order.
    placed: str = ""
    judged_again: events.RunJudgedAgain | None = None
    #: What people said of it, all reviews together; None where they were withdrawn.
    review: events.RunReviewed | None = None

    def apply(self, event: events.Event) -> bool:
        """Record what an event says of the run. Returns whether its state changed."""
        if self.created is None:
            self.created = event.time
        step = _RUN_STEPS[self.state].get(type(event))
        if step is None:
            return False
        handler, state = step
        handler(self, event)
        if state is None:
            return False
        self.state = state
        return True

    @property
    def elapsed(self) -> float | None:
        """Seconds from the start of its script to the end; None while there is no such end."""
        start, end = self.script_started, self.script_ended
        return None if start is None or end is None or end < start else (end - start) / SECOND_NS

    def _on_created(self, event: events.RunCreated) -> None:
        self.path = event.path or self.path
        self.created = event.time

    def _on_submitted(self, event: events.RunSubmitted) -> None:
        self.submitted = event.time
        self.submission = event.submission
        if event.bundle:
            self.bundle, self.position = event.bundle, event.position
        self.placed = event.nodes
        self.target, self.stage = event.target, event.stage
        if self.state < RunState.RUNNING:
            self.queued, self.job_id = None, ""

    def _on_queued(self, event: events.JobQueued) -> None:
        self.queued = event.time
        self.job_id = event.job_id or self.job_id

    def _on_job_started(self, event: events.JobStarted) -> None:
        if self.job_started is None:
            self.job_started = event.time
        self.nodes = event.nodes or self.nodes
        self._goes_on()

    def _goes_on(self) -> None:
        """Record that its job was seen to run."""
        if self.judged is None:
            self.code = codes.IN_PROGRESS.number

    def _on_script_started(self, event: events.ScriptStarted) -> None:
        if self.script_started is None or event.time > self.script_started:
            self.script_started = event.time
        self.nodes = self.nodes or event.nodes  # the scheduler's word stands
        self.job_id = event.job_id or self.job_id
        self.environment = event.environment or self.environment
        self.node_facts = event.node_facts or self.node_facts
        self._goes_on()

    def _on_script_ended(self, event: events.ScriptEnded) -> None:
        if self.script_ended is None or event.time >= self.script_ended:
            self.script_ended = event.time
            self.exit_code = event.exit_code
            self.job_id = event.job_id or self.job_id
        self._goes_on()

    def _on_job_ended(self, event: events.JobEnded) -> None:
        self.job_ended = event.time
        self.nodes = event.nodes or self.nodes
        self.recalled = event.recalled and self.job_started is None

    def _on_judged(self, event: events.RunJudged) -> None:
        if (self.judged is not None and event.time < self.judged) or self.first_code is not None:
            return
        self.judged = event.time
        self.code = event.code
        if self.recalled and event.code == codes.CANCELLED.number:
            self.code = codes.RECALLED.number  # as version 0.1 wrote it
        self.reason, self.will_rerun = event.reason, event.will_rerun
        self.cause, self.cause_code = event.cause, event.cause_code
        self.cause_line, self.advice = event.cause_line, event.advice

    def _on_given(self, event: events.FigureGiven) -> None:
        if self.state is RunState.NEW:
            self.judged, self.code, self.stage = event.time, codes.GIVEN.number, event.stage

    def _on_judged_again(self, event: events.RunJudgedAgain) -> None:
        if self.judged is None:
            return
        if self.first_code is None:
            self.first_code = self.code
        self.code = event.code
        self.reason = event.reason
        self.judged_again = event
        if event.code == codes.PASS.number:
            self.cause, self.cause_code, self.cause_line, self.advice = "", 0, "", ""

    def _on_reviewed(self, event: events.RunReviewed) -> None:
        before = self.review
        if event.withdrawn:
            self.review = None
        elif before is None:
            self.review = event
        else:  # what this one does not say stays
            self.review = replace(
                event,
                cause=event.cause or before.cause,
                comment=event.comment or before.comment,
                is_excluded=max(event.is_excluded, before.is_excluded),
                names=_named(before, event),
            )


class RecordedRun(RunLife, kw_only=True):
    """A run with what its journal says of its job and of its output, for those who go on with it,
    judge it again, or verify what it left."""

    run_id: str
    test: str = ""
    case: str = ""
    #: Of its job, by the scheduler's word, and of its script.
    job_end: events.JobEnded | None = None
    script_end: events.ScriptEnded | None = None
    #: Empty where the fold does not follow them.
    figures: dict[str, events.MetricRecorded] = {}
    #: The checksums of its files; None: none were made.
    sha256: dict[str, str] | None = None
    #: Which of its files Seatrial removed.
    removals: list[events.OutputRemoved] = []

    @staticmethod
    def begin(event: events.RunEvent) -> RecordedRun:
        """Return the run that an event names first."""
        return RecordedRun(run_id=event.run_id, test=event.test, case=event.case)

    def apply(self, event: events.Event) -> bool:
        if isinstance(event, events.JobEnded):
            self.job_end = event
        elif isinstance(event, events.ScriptEnded):
            self.script_end = event
        elif isinstance(event, events.MetricRecorded):
            self.figures[event.metric] = event
        elif isinstance(event, events.RunJudged):
            self.sha256 = event.sha256 or self.sha256
        elif isinstance(event, events.OutputRemoved):
            self.removals.append(event)
        return super().apply(event)

    @property
    def ended_by_itself(self) -> bool:
        """Whether its job did, so that its output gave its verdict."""
        return self.job_end is not None and self.job_end.code == codes.PASS.number


def _named(before: events.RunReviewed, event: events.RunReviewed) -> list[str]:
    """Return who stands for two reviews together: of an exclusion only those who agreed to it."""
    if event.is_excluded:
        return event.names
    if before.is_excluded:
        return before.names
    return list(dict.fromkeys([*before.names, *event.names]))


def _next(state: RunState, kind: type[events.Event]) -> RunState | None:
    """Return the state behind an event, None where it is the same."""
    after = RUN_TRANSITIONS[state].get(kind, state)
    return None if after is state else after


_RUN_HANDLERS: dict[type[events.Event], Callable[[RunLife, Any], None]] = {
    events.RunCreated: RunLife._on_created,
    events.RunSubmitted: RunLife._on_submitted,
    events.JobQueued: RunLife._on_queued,
    events.JobStarted: RunLife._on_job_started,
    events.ScriptStarted: RunLife._on_script_started,
    events.ScriptEnded: RunLife._on_script_ended,
    events.JobEnded: RunLife._on_job_ended,
    events.RunJudged: RunLife._on_judged,
    events.RunJudgedAgain: RunLife._on_judged_again,
    events.RunReviewed: RunLife._on_reviewed,
    events.FigureGiven: RunLife._on_given,
}
RUN_KINDS = frozenset(_RUN_HANDLERS)
"""The kinds of events that say anything of the life of a run, but that it is there."""

RECORDED_KINDS: frozenset[type[events.Event]] = frozenset((*RUN_KINDS, events.OutputRemoved))
"""The kinds of events that a ``RecordedRun`` follows, but for those of its figures: they are many,
and few ask for them."""

# For each state (by its number) and kind of event, what it changes and the state behind it, None
# where that is the same.
_RUN_STEPS = [
    {kind: (handler, _next(state, kind)) for kind, handler in _RUN_HANDLERS.items()}
    for state in RunState
]


# ---- life cycle of a trial -----------------------------------------------------------------------
#
# No other class changes the state of a trial. ``TRIAL_TRANSITIONS`` holds every change; a pair of
# state and event that it does not hold changes nothing.


INTERRUPTED = "interrupted"


class TrialState(StrEnum):
    """Where a trial stands."""

    NEW = "new"
    RUNNING = "running"
    PAUSED = "paused"
    CANCELLED = "cancelled"
    ENDED = "ended"
    ABANDONED = "abandoned"
    GIVEN = "given"
    IMPORTED = "imported"


TRIAL_STATE_HELP: dict[TrialState, str] = {
    TrialState.NEW: "it was prepared, and nobody has started it",
    TrialState.RUNNING: "its clock runs",
    TrialState.PAUSED: "its clock stands, and it can be resumed",
    TrialState.CANCELLED: "a person cancelled its jobs, and it can be resumed",
    TrialState.ENDED: "every case has its runs, or its time is up",
    TrialState.ABANDONED: "a person abandoned it, and it cannot be resumed",
    TrialState.GIVEN: "its figures were given by somebody else, and nothing of it runs",
    TrialState.IMPORTED: "its runs were made with another tool, and nothing more of it runs",
}

_STARTS: dict[type[events.Event], TrialState] = {
    events.TrialStarted: TrialState.RUNNING,
    events.TrialResumed: TrialState.RUNNING,
}
_STOPS: dict[type[events.Event], TrialState] = {
    events.TrialCancelled: TrialState.CANCELLED,
    events.TrialEnded: TrialState.ENDED,
    events.TrialAbandoned: TrialState.ABANDONED,
}

TRIAL_TRANSITIONS: dict[TrialState, dict[type[events.Event], TrialState]] = {
    TrialState.NEW: {
        **_STARTS,
        **_STOPS,
        events.TrialPaused: TrialState.PAUSED,
        events.FiguresImported: TrialState.GIVEN,
        events.ResultsImported: TrialState.IMPORTED,
    },
    TrialState.RUNNING: {**_STOPS, events.TrialPaused: TrialState.PAUSED},
    TrialState.PAUSED: _STARTS | _STOPS,
    # What a person decided stands, though the trial then pauses or ends.
    TrialState.CANCELLED: {**_STARTS, events.TrialAbandoned: TrialState.ABANDONED},
    TrialState.ENDED: {
        **_STARTS,
        events.TrialExtended: TrialState.PAUSED,
        events.TrialAbandoned: TrialState.ABANDONED,
        events.ResultsImported: TrialState.IMPORTED,
    },
    TrialState.ABANDONED: {},
    TrialState.GIVEN: {},
    TrialState.IMPORTED: {},
}


def end_by(end: int | None, now: int) -> int:
    """Return the end of a span (None: it lasts), or ``now`` if that is earlier."""
    return now if end is None else min(end, now)


class ClockSpan(Struct):
    """A stretch of time in which the trial's clock ran, in ns; ``end`` is None while it runs. What
    ended it is the kind of an event (None: the driver died, and another one resumed the trial), and
    the reason that this gave."""

    start: int
    end: int | None = None
    ended_by: type[events.Event] | None = None
    reason: str = ""


class TrialLife:
    """The life of one trial: its state, its clock, and its duration.

    ``duration`` is in seconds with what it was extended by, 0 for no limit. ``complete``: it came
    to its end, and was neither resumed nor extended since. ``reason`` is why it does not run,
    ``host`` where it was driven last. The clock stands while the trial is paused; a driver that
    dies does not stop it, because its jobs go on."""

    def __init__(self, duration: float = 0.0, state: TrialState = TrialState.NEW) -> None:
        self.state = state
        self.duration = duration
        self._planned = duration  # without what it was extended by
        self.complete = False
        self.reason = ""
        self.host = ""
        self.opened: events.TrialOpened | None = None  # the latest time
        self.spans: list[ClockSpan] = []
        self._before_ns = 0  # what the clock had run when it was last started
        self._since: int | None = None  # when it was last started, None while it stands

    def apply(self, event: events.Event) -> bool:
        """Record an event. Returns whether it is of the trial and counts: none does once the trial
        is abandoned, nor does an extension that adds no time."""
        handler = _TRIAL_HANDLERS.get(type(event))
        if handler is None:
            return False
        if isinstance(event, events.TrialOpened):
            self.host = event.host
        if self.state is TrialState.ABANDONED or handler(self, event) is False:
            return False
        self.state = TRIAL_TRANSITIONS[self.state].get(type(event), self.state)
        return True

    def _on_started(self, event: events.TrialOpened) -> None:
        self.opened = event
        self.complete = False
        self.reason = ""
        if self._since is None:
            self._since = event.time
        else:
            self._end_span(event, INTERRUPTED)
        self.spans.append(ClockSpan(event.time))

    def _on_paused(
        self, event: events.TrialPaused | events.TrialCancelled | events.TrialAbandoned
    ) -> None:
        self._stop(event)
        if self.state is not TrialState.ENDED or isinstance(event, events.TrialAbandoned):
            self.reason = event.reason

    def _on_ended(self, event: events.TrialEnded) -> None:
        self._stop(event)
        self.complete = True
        self.reason = event.reason

    def _stop(
        self,
        event: events.TrialPaused
        | events.TrialCancelled
        | events.TrialAbandoned
        | events.TrialEnded,
    ) -> None:
        if self._since is not None:
            self._before_ns += max(0, event.time - self._since)
            self._since = None
            self._end_span(event, event.reason, type(event))

    def _end_span(
        self, event: events.Event, reason: str, ended_by: type[events.Event] | None = None
    ) -> None:
        span = self.spans[-1]
        span.end = max(span.start, event.time)
        span.ended_by = ended_by
        span.reason = reason

    def _on_imported(self, event: events.FiguresImported | events.ResultsImported) -> None:
        self.complete = True

    def _on_extended(self, event: events.TrialExtended) -> bool:
        seconds = events.finite(event.seconds)
        if not self.duration or seconds is None or seconds <= 0:
            return False
        self.duration += seconds
        if self.complete:
            self.complete, self.reason = False, ""
        return True

    def _on_policy_changed(self, event: events.PolicyChanged) -> bool:
        """Record another duration; what the trial was extended by is added to it."""
        seconds = events.finite(event.parts.get("duration"))
        if not self.duration or seconds is None or seconds <= 0:
            return False
        self.duration += seconds - self._planned
        self._planned = seconds
        return True

    # ---- its clock ------------------------------------------------------------------------

    @property
    def start(self) -> int | None:
        """When the trial started first."""
        return self.spans[0].start if self.spans else None

    @property
    def clock_runs(self) -> bool:
        return self._since is not None

    @property
    def over(self) -> bool:
        """Whether nothing more comes, unless it is extended."""
        return self.complete or self.state is TrialState.ABANDONED

    def elapsed(self, now: int) -> float:
        """Seconds for which the clock ran until ``now``."""
        running = 0 if self._since is None else max(0, now - self._since)
        return (self._before_ns + running) / SECOND_NS

    def over_at(self) -> int | None:
        """Time (ns) at which the clock will have run the duration; None if it stands before that,
        or if there is no limit."""
        if not self.duration:
            return None
        span = round(self.duration * SECOND_NS)
        if self._since is None:
            return 0 if self._before_ns >= span else None
        return self._since + span - self._before_ns


_TRIAL_HANDLERS: dict[type[events.Event], Callable[[TrialLife, Any], bool | None]] = {
    events.TrialStarted: TrialLife._on_started,
    events.TrialResumed: TrialLife._on_started,
    events.TrialPaused: TrialLife._on_paused,
    events.TrialCancelled: TrialLife._on_paused,
    events.TrialAbandoned: TrialLife._on_paused,
    events.TrialEnded: TrialLife._on_ended,
    events.TrialExtended: TrialLife._on_extended,
    events.PolicyChanged: TrialLife._on_policy_changed,
    events.FiguresImported: TrialLife._on_imported,
    events.ResultsImported: TrialLife._on_imported,
}


# ---- runs, nodes, tests, builds ------------------------------------------------------------------


Run = TypeVar("Run", bound=RunLife)


class Down(NamedTuple):
    """A node was down from a time to another (ns); ``end`` is None while it is."""

    node: str
    start: int
    end: int | None


class Trial(TrialLife, Generic[Run]):
    """The life of a trial, with its runs, nodes, tests, builds, gauges and alerts.

    ``new_run`` makes the run of the first event that names it, or None where that begins no run.
    Nodes other than ``nodes`` do not count; None: all do. Runs follow events of these ``kinds``."""

    def __init__(
        self,
        new_run: Callable[[events.RunEvent], Run | None],
        duration: float = 0.0,
        nodes: Iterable[str] | None = None,
        kinds: Collection[type[events.Event]] = RUN_KINDS,
    ) -> None:
        super().__init__(duration)
        self._new_run = new_run
        self._kinds = kinds
        self._names = None if nodes is None else frozenset(nodes)
        #: the runs in the order of their creation
        self.runs_by_id: dict[str, Run] = {}
        self.alerts: list[events.AlertRaised] = []
        #: nodes that are down, and since when (ns)
        self.down: dict[str, int] = {}
        #: nodes that get no more runs, and why
        self.excluded: dict[str, str] = {}
        #: tests that are launched no more, and why
        self.stopped: dict[str, str] = {}
        #: when tests were stopped (ns)
        self.stops: dict[str, list[tuple[int, int | None]]] = {}
        #: tests that people hold; "": all with I/O
        self.held: dict[str, events.TestHeld] = {}
        #: builds that failed, by their keys
        self.failed_builds: dict[str, events.BuildEnded] = {}
        #: the readings of each gauge: when (ns), and what was read if it was a number
        self.readings: dict[str, list[tuple[int, float | None]]] = {}
        #: by which references people judged the trial again, the latest last
        self.corrections: list[events.ReferencesCorrected] = []
        #: the time of its latest event (ns); what people record long after it does not count
        self.last = 0
        self._downs: list[Down] = []

    def apply(self, event: events.Event) -> bool:
        """Fold one event. Return whether it says anything of a run or of the trial."""
        if event.time > self.last and not event.is_late:
            self.last = event.time
        if event.run_id:
            run = self.runs_by_id.get(event.run_id) or self._begun_by(event)
            if run is not None and type(event) in self._kinds:
                run.apply(event)
            return run is not None
        handler = _HANDLERS.get(type(event))
        if handler is not None:
            handler(self, event)
            return True
        return super().apply(event)

    def _begun_by(self, event: events.Event) -> Run | None:
        """Return the run that an event begins, if it begins one."""
        run = self._new_run(event) if isinstance(event, events.RunEvent) else None
        if run is not None:
            self.runs_by_id[event.run_id] = run
        return run

    @property
    def downs(self) -> list[Down]:
        """The times in which nodes were down."""
        return [*self._downs, *(Down(name, since, None) for name, since in self.down.items())]

    # ---- nodes and tests ------------------------------------------------------------------

    def _ours(self, folded: str) -> Iterable[str]:
        """Return those of a node set that the trial has."""
        names = unfold_or_empty(folded)
        return names if self._names is None else [name for name in names if name in self._names]

    def _on_down(self, event: events.NodeDown) -> None:
        for name in self._ours(event.nodes):
            self.down.setdefault(name, event.time)

    def _on_up(self, event: events.NodeUp) -> None:
        for name in self._ours(event.nodes):
            since = self.down.pop(name, None)
            if since is not None:
                self._downs.append(Down(name, since, max(since, event.time)))

    def _on_excluded(self, event: events.NodeExcluded) -> None:
        self.excluded.update((name, event.reason) for name in self._ours(event.nodes))

    def _on_admitted(self, event: events.NodeAdmitted) -> None:
        for name in self._ours(event.nodes):
            self.excluded.pop(name, None)

    def _on_test_stopped(self, event: events.TestStopped) -> None:
        if event.test not in self.stopped:
            self.stops.setdefault(event.test, []).append((event.time, None))
        self.stopped[event.test] = event.reason

    def _on_test_admitted(self, event: events.TestAdmitted) -> None:
        if self.stopped.pop(event.test, None) is not None:
            spans = self.stops[event.test]
            spans[-1] = (spans[-1][0], max(spans[-1][0], event.time))

    def _on_test_held(self, event: events.TestHeld) -> None:
        if event.io or event.test:
            self.held["" if event.io else event.test] = event

    def _on_test_released(self, event: events.TestReleased) -> None:
        self.held.pop("" if event.io else event.test, None)

    # ---- builds, gauges, alerts -----------------------------------------------------------

    def _on_build_ended(self, event: events.BuildEnded) -> None:
        if event.code == codes.PASS.number:
            self.failed_builds.pop(event.key, None)
        else:
            self.failed_builds[event.key] = event

    def _on_gauge(self, event: events.GaugeRead) -> None:
        readings = self.readings.setdefault(event.gauge, [])
        readings.append((event.time, events.finite(event.value)))

    def _on_alert(self, event: events.AlertRaised) -> None:
        self.alerts.append(event)

    def _on_references(self, event: events.ReferencesCorrected) -> None:
        self.corrections.append(event)


_HANDLERS: dict[type[events.Event], Callable[[Trial[Any], Any], None]] = {
    events.AlertRaised: Trial._on_alert,
    events.BuildEnded: Trial._on_build_ended,
    events.GaugeRead: Trial._on_gauge,
    events.NodeDown: Trial._on_down,
    events.NodeUp: Trial._on_up,
    events.NodeExcluded: Trial._on_excluded,
    events.NodeAdmitted: Trial._on_admitted,
    events.TestStopped: Trial._on_test_stopped,
    events.TestAdmitted: Trial._on_test_admitted,
    events.TestHeld: Trial._on_test_held,
    events.TestReleased: Trial._on_test_released,
    events.ReferencesCorrected: Trial._on_references,
}
