"""Decide how long a delivery goes on, and how long it retries.

lifetime = SinkLifetime(folder, follow=True)
while not lifetime.is_over(): lifetime.wait(2)
"""

import threading
import time
from dataclasses import dataclass

from seatrial.store.liveness import owned
from seatrial.trial.folder import TrialFolder


@dataclass
class SinkLifetime:
    """How long the deliveries of a trial go on. ``follow``: go on while the trial is driven;
    otherwise to the end of the journal. ``patience``: seconds for which a failing sink is retried,
    instead of each sink's own."""

    folder: TrialFolder
    follow: bool = False
    patience: float | None = None

    def __post_init__(self) -> None:
        self._stopped = threading.Event()
        self._over = 0.0  # when the drive ended, by the monotonic clock

    def is_over(self) -> bool:
        """Return whether the journal will not grow any more."""
        if self._stopped.is_set() or not self.follow:
            return True
        if owned(str(self.folder.path)):
            self._over = 0.0
            return False
        self._over = self._over or time.monotonic()
        return True

    def bears(self, failing: float, patience: float, pause: float) -> bool:
        """Return whether a sink is retried after a pause of so many seconds. It is while the trial
        is driven, and for ``patience`` seconds afterwards. ``failing``: when it began to fail, by
        the monotonic clock."""
        if self._stopped.is_set():
            return False
        if not self.is_over():
            return True
        limit = patience if self.patience is None else self.patience
        return time.monotonic() + pause - max(failing, self._over) <= limit

    def wait(self, pause: float) -> None:
        """Wait for so many seconds, or until ``stop`` is called."""
        self._stopped.wait(pause)

    def stop(self) -> None:
        """End every delivery as soon as possible."""
        self._stopped.set()
