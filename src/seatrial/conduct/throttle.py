"""A gauge with hysteresis: above ``high`` it is closed, below ``low`` it is open again."""

from __future__ import annotations

import math

from seatrial.conduct import policy
from seatrial.journal.events import Event
from seatrial.units import SECOND_NS


class Throttle:
    """The state of one throttle, folded from the readings of its gauge."""

    def __init__(self, about: policy.Throttle) -> None:
        self.about = about
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

    def closed(self, now: int, start: int) -> bool:
        """Whether launches are held back, by a trial that began at ``start``."""
        if self.failing(now, start) or self._closed is None:
            return self.about.on_failure == "closed"
        return self._closed

    def failing(self, now: int, start: int) -> bool:
        """Whether there has been no good reading for too long."""
        return now >= self.stale_at(start)

    def stale_at(self, start: int) -> int:
        """When the latest good reading is too old."""
        return max(self._read, start) + round(self.about.stale_after * SECOND_NS)
