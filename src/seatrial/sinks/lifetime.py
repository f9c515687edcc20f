"""How long a delivery goes on: to the journal's end, or with the trial; and how long it is patient.

lifetime = SinkLifetime(folder, follow=True)
while not lifetime.is_over(): lifetime.wait(2)
"""

from __future__ import annotations

import threading
import time

from seatrial.store.liveness import owned
from seatrial.trial.folder import TrialFolder


class SinkLifetime:
    """``follow``: as long as somebody drives the trial. ``patience``: seconds, instead of each
    sink's own, that one is waited for which does not take events."""

    def __init__(
        self, folder: TrialFolder, follow: bool = False, patience: float | None = None
    ) -> None:
        self._folder = str(folder.path)
        self._follow = follow
        self._patience = patience
        self._stopped = threading.Event()
        self._over = 0.0  # since when, by the monotonic clock

    def is_over(self) -> bool:
        """Whether nothing will come after what is in the journal now."""
        if self._stopped.is_set() or not self._follow:
            return True
        if owned(self._folder):
            self._over = 0.0
            return False
        self._over = self._over or time.monotonic()
        return True

    def bears(self, failing: float, patience: float, pause: float) -> bool:
        """Whether a sink that fails since that moment is tried again after a pause: always while
        the trial is driven, and for ``patience`` seconds then."""
        if self._stopped.is_set():
            return False
        if not self.is_over():
            return True
        most = patience if self._patience is None else self._patience
        return time.monotonic() + pause - max(failing, self._over) <= most

    def wait(self, pause: float) -> None:
        """Wait, or be stopped."""
        self._stopped.wait(pause)

    def stop(self) -> None:
        """Have every delivery end as soon as it can."""
        self._stopped.set()
