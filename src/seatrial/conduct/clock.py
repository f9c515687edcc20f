"""The trial's clock: the time that it has run, pauses not counted. Times are in ns, spans in s."""

from __future__ import annotations

from seatrial.units import SECOND_NS


class TrialClock:
    """A fold of the trial's starts and pauses. A driver that dies stops it not: jobs go on."""

    def __init__(self) -> None:
        self.start = 0  # when the trial began, 0 before that
        self._before = 0  # what it had run when it was last started
        self._since: int | None = None

    @property
    def running(self) -> bool:
        return self._since is not None

    def go(self, time: int) -> None:
        """The trial starts, or goes on."""
        if not self.start:
            self.start = time
        if self._since is None:
            self._since = time

    def stop(self, time: int) -> None:
        """The trial is paused."""
        if self._since is not None:
            self._before += max(0, time - self._since)
            self._since = None

    def elapsed(self, now: int) -> float:
        """Seconds that the trial has run."""
        since = now if self._since is None else min(self._since, now)
        return (self._before + now - since) / SECOND_NS

    def over_at(self, seconds: float) -> int | None:
        """From when on it has run so long; None where it stands before that."""
        span = round(seconds * SECOND_NS)
        if self._since is None:
            return 0 if self._before >= span else None
        return self._since + span - self._before
