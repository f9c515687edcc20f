"""Who is told of the events of a trial that is driven."""

from seatrial.journal.events import Event
from seatrial.model.test import Case


class Observer:
    """Receives progress when a drive begins, and then every event as it is recorded, with its case
    where it has one. This one does nothing with them."""

    def on_open(self, finished: int, wanted: int) -> None:
        pass

    def on_event(self, event: Event, case: Case | None) -> None:
        pass
