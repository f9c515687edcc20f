"""A throttle by a gauge with hysteresis: it closes above ``high`` and opens below ``low``."""

from seatrial.conduct import policy
from seatrial.journal.events import GaugeRead, finite
from seatrial.units import SECOND_NS, show_seconds


class ThrottleState:
    """The state of one throttle, a fold over the readings of its gauge."""

    def __init__(self, about: policy.ThrottleRule, former: "ThrottleState | None" = None) -> None:
        """``former`` is the throttle by the same gauge that this one replaces."""
        self.about = about
        self._stale_after = round(about.stale_after * SECOND_NS)
        self._closed: bool | None = None  # None before the first good reading
        self._read = 0  # time of the latest good reading
        self._value: float | None = None  # the latest good reading
        self.failure = ""  # reason why the latest reading failed
        if former is not None:
            self._closed, self._read = former._closed, former._read
            self._value, self.failure = former._value, former.failure
            self._set()

    def apply(self, event: GaugeRead) -> None:
        """Record a reading of the gauge; a reading without a finite number is a failure."""
        value = finite(event.value)
        if value is None:
            self.failure = event.reason or "it gave no number"
            return
        self.failure = ""
        self._read = event.time
        self._value = value
        self._set()

    def _set(self) -> None:
        """Close or open by the latest good reading."""
        value = self._value
        if value is None:
            return
        if value > self.about.high:
            self._closed = True
        elif value < self.about.low or self._closed is None:
            self._closed = False

    def closed(self, now: int, since: int) -> bool:
        """Return whether launches are held back, in a trial that last started or was resumed at
        ``since``."""
        if self.failing(now, since) or self._closed is None:
            return self.about.on_failure == "closed"
        return self._closed

    def failing(self, now: int, since: int) -> bool:
        """Return whether there has been no good reading for too long."""
        return now >= self.stale_at(since)

    def stale_at(self, since: int) -> int:
        """Return the time (ns) from which the latest good reading is too old. The gauge is not read
        while the trial is paused, so ``since`` counts if it is later."""
        return (self._read if self._read > since else since) + self._stale_after

    def trouble(self, now: int, since: int) -> str:
        """Return the alert about the gauge, "" if it works."""
        about, failing = self.about, self.failing(now, since)
        if not failing and not self.failure:
            return ""
        why = self.failure or f"no reading for {show_seconds(about.stale_after)}"
        if failing or self._closed is None:
            follows = f"launches of what is not light are {about.on_failure} until it works"
        else:
            follows = f"what it said last holds for {show_seconds(about.stale_after)}"
        return f"gauge {about.gauge} fails: {why}; {follows}"
