"""The events of a rehearsal: applies each at once, and passes them on in portions.

    writer = EventWriter(record, conductor.apply, tell)
    writer.add(JobStarted(time=now, **run.header, nodes="n[1-4]"))
    writer.tell_all()

A job has a dozen events, and a rehearsal a million jobs. Three of the events change nothing that
the next event of their run would not change, which is of the same time: they are told, but not
applied, and not made where no journal is written.
"""

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from seatrial.journal.events import Event
from seatrial.trial.event_headers import header_of
from seatrial.trial.record import Record

PORTION = 500  # events that are told together: their buffers are small enough to be used again

Tell = Callable[[Sequence[Event]], None]
"""Is given the events of a rehearsal, in order, some at a time."""


class EventWriter:
    """Events of one trial. ``apply`` is called with each when it is added. ``in_full``: those that
    change nothing are to be added, too, as people read them in the journal."""

    def __init__(
        self, record: Record, apply: Callable[[Event], None], tell: Tell, in_full: bool
    ) -> None:
        self.in_full = in_full
        self._record = record
        self._apply = apply
        self._tell = tell
        self._untold: list[Event] = []

    def note(self, now: int, event: Event) -> None:
        """Complete an event that is of no run, and add it."""
        self.add(replace(event, time=now, **header_of(self._record, event)))

    def add(self, event: Event) -> None:
        """Apply an event, and keep it to be told."""
        self._untold.append(event)
        self._apply(event)

    def add_step(self, event: Event) -> None:
        """Keep an event to be told that changes nothing; another one of its run and time
        follows."""
        self._untold.append(event)

    def tell_some(self) -> None:
        """Tell what there is if it is enough for a portion."""
        if len(self._untold) >= PORTION:
            self.tell_all()

    def tell_all(self) -> None:
        """Tell all that was not told yet."""
        untold, self._untold = self._untold, []
        self._tell(untold)
