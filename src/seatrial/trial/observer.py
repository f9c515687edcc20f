"""The interface through which a driver reports its progress, for the live view."""

from typing import TYPE_CHECKING

from seatrial.journal.events import Event

if TYPE_CHECKING:
    from seatrial.suite.model import Case


class Observer:
    """Receives progress when a drive begins, and then every event as it is recorded, with its case
    where it has one. This one does nothing with them."""

    def on_open(self, finished: int, wanted: int) -> None:
        pass

    def on_event(self, event: Event, case: "Case | None") -> None:
        pass
