"""What a driver tells while it works; the command line shows it live."""

from __future__ import annotations

from typing import Protocol

from seatrial.journal.events import Event
from seatrial.suite.model import Case


class Observer(Protocol):
    """Is told how far the trial is when it is taken up, and then every event as it is recorded,
    with the case it is about where there is one."""

    def on_open(self, finished: int, wanted: int) -> None: ...

    def on_event(self, event: Event, case: Case | None) -> None: ...


class Silent:
    """Tells nobody."""

    def on_open(self, finished: int, wanted: int) -> None:
        pass

    def on_event(self, event: Event, case: Case | None) -> None:
        pass
