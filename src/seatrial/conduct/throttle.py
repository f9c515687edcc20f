"""A gauge with hysteresis: above ``high`` it is closed, below ``low`` it is open again."""

from __future__ import annotations

import math

from seatrial.conduct import policy
from seatrial.journal.events import Event
from seatrial.units import SECOND_NS, show_seconds


class ThrottleState:
    """The state of one throttle, folded from the readings of its gauge."""

    def __init__(self, about: policy.ThrottleRule) -> None:
        self.about = about
        self._stale_after = round(about.stale_after * SECOND_NS)
        self._closed: bool | None = None  # None: no good reading yet
        self._read = 0  # when it was read well
        self.failure = ""  # what the latest reading failed for

    def apply(self, event: Event) -> None:
        """A reading of the gauge; one without a finite number is a failure."""
        value = event.value
        if isinstance(value, str) or value is None or not math.isfinite(value):
            self.failure = event.text or "it gave no number"
            return
        self.failure = ""
        self._read = event.time
        if value > self.about.high:
            self._closed = True
        elif value < self.about.low or self._closed is None:
            self._closed = False

    def closed(self, now: int, since: int) -> bool:
        """Whether launches are held back, by a trial that last started, or went on, ``since``."""
        if self.failing(now, since) or self._closed is None:
            return self.about.on_failure == "closed"
        return self._closed

    def failing(self, now: int, since: int) -> bool:
        """Whether there has been no good reading for too long."""
        return now >= self.stale_at(since)

    def stale_at(self, since: int) -> int:
        """When the latest good reading is too old: nobody reads it while the trial is paused."""
        return max(self._read, since) + self._stale_after

    def trouble(self, now: int, since: int) -> str:
        """What people must be told of the gauge, "" if it is well."""
        about, failing = self.about, self.failing(now, since)
        if not failing and not self.failure:
            return ""
        why = self.failure or f"no reading for {show_seconds(about.stale_after)}"
        if failing or self._closed is None:
            follows = f"launches of what is not light are {about.on_failure} until it works"
        else:
            follows = f"what it said last holds for {show_seconds(about.stale_after)}"
        return f"gauge {about.gauge} fails: {why}; {follows}"
