"""A token bucket: starts are spread over time."""

from __future__ import annotations

from seatrial.conduct import policy
from seatrial.units import SECOND_NS


class Bucket:
    """Holds at most ``starts`` tokens and gets as many each ``per`` seconds; it starts full."""

    def __init__(self, stagger: policy.Stagger) -> None:
        self._most = float(stagger.starts)
        self._rate = stagger.starts / (stagger.per * SECOND_NS)  # tokens per ns
        self._level = self._most
        self._time = 0

    def level(self, now: int) -> float:
        """Tokens that there are."""
        return min(self._most, self._level + max(0, now - self._time) * self._rate)

    def take(self, time: int) -> None:
        """A start was made; what was announced may have been decided a moment earlier."""
        self._level = max(0.0, self.level(time) - 1)
        self._time = max(time, self._time)

    def whole(self, now: int, taken: int) -> int:
        """How many starts can be made now, beside those that are decided already."""
        return int(self.level(now) - taken + _ROUNDING)

    def next(self, now: int) -> int:
        """When there is a whole token again."""
        missing = max(0.0, 1 - self.level(now))
        return now + int(missing / self._rate) + 1


_ROUNDING = 1e-6
