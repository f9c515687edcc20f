"""The life cycle of a run: its states, and how events change them.

    run = RunLife()
    run.apply(event)                 # True where its state changed
    run.state, run.job_started, run.code

No other module changes the state of a run. ``RUN_TRANSITIONS`` holds every change; a pair of state
and event that it does not hold changes nothing. Times are in ns since the epoch, None where there
is none yet. Events may come late or twice, as a job's own are recorded after it has ended: a life
follows their times.
"""

from collections.abc import Callable
from enum import IntEnum
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from seatrial.journal import events
from seatrial.model import codes
from seatrial.units import SECOND_NS


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
    def begin(event: events.RunEvent) -> "RecordedRun":
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
