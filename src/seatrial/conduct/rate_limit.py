"""A token bucket, which spreads starts over time."""

from __future__ import annotations

from seatrial.conduct import policy
from seatrial.units import SECOND_NS


class TokenBucket:
    """Holds at most ``starts`` tokens, and gets as many in each ``per`` seconds; it starts full.

    It counts in integers, so that rounding makes no token: a token is worth ``per`` ns, and each ns
    brings ``starts``.
    """

    def __init__(self, stagger: policy.RateLimit) -> None:
        self._rate = stagger.starts
        self._token = max(1, round(stagger.per * SECOND_NS))
        self._most = self._rate * self._token
        self._level = self._most
        self._time = 0

    def take(self, time: int) -> None:
        """Record a start. It may have been decided a moment before ``time``."""
        self._level = max(0, self._at(time) - self._token)
        self._time = max(time, self._time)

    def whole(self, now: int) -> int:
        """Return how many starts can be made now."""
        return self._at(now) // self._token

    def next(self, now: int, taken: int = 0) -> int:
        """Return the time at which there is a whole token if ``taken`` are taken now; now if there
        is one."""
        missing = max(0, (taken + 1) * self._token - self._at(now))
        return now + -(-missing // self._rate)

    def _at(self, now: int) -> int:
        level = self._level
        if now > self._time:
            level += (now - self._time) * self._rate
        return level if level < self._most else self._most
