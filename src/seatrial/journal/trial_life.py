"""The life cycle of a trial: its states, its clock, and how events change them.

    trial = TrialLife(duration=864_000)
    trial.apply(event)
    trial.state, trial.elapsed(now), trial.spans

No other module changes the state of a trial. ``TRIAL_TRANSITIONS`` holds every change; a pair of
state and event that it does not hold changes nothing. Times are in ns since the epoch.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Any

from msgspec import Struct

from seatrial.journal import events
from seatrial.units import SECOND_NS

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
