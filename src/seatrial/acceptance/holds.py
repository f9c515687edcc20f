"""What holds launches back now: closed gauges, and blackouts.

    holds = Holds(policy, cases)
    for event in journal: holds.apply(event)
    holds.held(now)

The conductor decides by the same throttles. Here they are reported with their numbers and times.
"""

from collections.abc import Sequence

from msgspec import Struct

from seatrial.conduct.builds import unbuilt
from seatrial.conduct.policy import Policy
from seatrial.conduct.policy_change import followed
from seatrial.conduct.throttle import ThrottleState
from seatrial.journal import events
from seatrial.journal.codes import PASS
from seatrial.suite.model import Case
from seatrial.units import SECOND_NS, show_seconds


class Hold(Struct, frozen=True, kw_only=True):
    """One thing that holds launches back. ``kind`` is ``gauge``, ``blackout``, ``excluded``
    (nodes), ``stopped`` or ``held`` (a test), or ``unbuilt`` (tests); ``what`` names it. Times in
    ns, None if not known. ``value`` is the gauge's last good reading, ``low`` and ``high`` are its
    bounds."""

    kind: str
    what: str
    text: str
    since: int | None = None
    until: int | None = None
    value: float | None = None
    low: float | None = None
    high: float | None = None


class Holds:
    """The fold of a trial's events."""

    def __init__(self, policy: Policy, cases: Sequence[Case] = ()) -> None:
        self.policy = policy
        self._cases = cases
        self._why_failed: dict[str, str] = {}  # by build
        self._throttles = [ThrottleState(about) for about in policy.throttles]
        self._closed: list[int | None] = [None] * len(self._throttles)  # since when
        self._values: dict[str, float] = {}  # by gauge
        self._begin: int | None = None  # of the trial
        self._since = 0  # when it started last, or went on

    def apply(self, event: events.Event) -> None:
        """Fold one event."""
        if isinstance(event, events.TrialOpened):
            self._begin = event.time if self._begin is None else self._begin
            self._since = event.time
        elif isinstance(event, events.GaugeRead):
            self._read(event)
        elif isinstance(event, events.PolicyChanged):
            self._follow(followed(self.policy, event.parts))
        elif isinstance(event, events.BuildEnded):
            good = event.code == PASS.number
            self._why_failed[event.key] = "" if good else event.log or "no log"

    def _follow(self, policy: Policy) -> None:
        closed = dict(
            zip((each.about.gauge for each in self._throttles), self._closed, strict=True)
        )
        former = {throttle.about.gauge: throttle for throttle in self._throttles}
        self.policy = policy
        self._throttles = [
            ThrottleState(about, former.get(about.gauge)) for about in policy.throttles
        ]
        self._closed = [closed.get(about.gauge) for about in policy.throttles]

    def unbuilt(self) -> list[Hold]:
        """Return the tests of which no case could be built, those with the same failure
        together."""
        return [
            Hold(kind="unbuilt", what=", ".join(tests), text=f"{', '.join(tests)}: {cause}")
            for cause, tests in unbuilt(self._cases, self._why_failed).items()
        ]

    def _read(self, event: events.GaugeRead) -> None:
        for number, throttle in enumerate(self._throttles):
            if throttle.about.gauge != event.gauge:
                continue
            stale = self._stale(throttle, event.time)
            throttle.apply(event)
            if (value := events.finite(event.value)) is not None:
                self._values[event.gauge] = value
            if not throttle.closed(event.time, self._since):
                self._closed[number] = None
            elif self._closed[number] is None:
                self._closed[number] = event.time if stale is None else stale

    def _stale(self, throttle: ThrottleState, now: int) -> int | None:
        """Return since when a gauge is closed because nobody reads it; None where it is not."""
        if throttle.failing(now, self._since) and throttle.closed(now, self._since):
            return throttle.stale_at(self._since)
        return None

    def held(self, now: int) -> list[Hold]:
        """Return what holds launches back at ``now`` (ns)."""
        gauges = [
            self._gauge(throttle, self._closed[number], now)
            for number, throttle in enumerate(self._throttles)
            if throttle.closed(now, self._since)
        ]
        return [*gauges, *self._blackouts(now)]

    def _gauge(self, throttle: ThrottleState, since: int | None, now: int) -> Hold:
        about = throttle.about
        value = self._values.get(about.gauge)
        if since is None:
            since = self._stale(throttle, now)
        shown = "it gave no number yet" if value is None else f"{value:g}"
        text = f"gauge {about.gauge} is closed: {shown}; it closes above {about.high:g} and opens "
        text += f"below {about.low:g}"
        if trouble := throttle.trouble(now, self._since):
            text += f"; {trouble}"
        return Hold(
            kind="gauge",
            what=about.gauge,
            text=text,
            since=self._since if since is None else since,
            value=value,
            low=about.low,
            high=about.high,
        )

    def _blackouts(self, now: int) -> list[Hold]:
        found = []
        for window in self.policy.blackouts:
            start, end = window.span(self._begin or 0)
            if not start <= now < end:
                continue
            about = self.policy.subject_of(window)
            why = f" ({window.why})" if window.why else ""
            text = f"blackout of {about}{why} ends in {show_seconds((end - now) / SECOND_NS)}"
            found.append(Hold(kind="blackout", what=about, text=text, since=start, until=end))
        return found
