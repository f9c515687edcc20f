"""The events of a rehearsal: applies each at once, and passes them on in portions.

    writer = EventWriter(record, conductor.apply, tell)
    writer.add(JobStarted(time=now, nodes="n[1-4]", **writer.of_run(case, run_id)))
    writer.tell_all()

A job has a dozen events, and a rehearsal a million jobs: an event is made with its header at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypedDict

from seatrial.journal.events import Event
from seatrial.suite.model import Case
from seatrial.trial.folder import Record

PORTION = 2000  # events that are told together

Tell = Callable[[Sequence[Event]], None]
"""Is given the events of a rehearsal, in order, some at a time."""


class EventHeader(TypedDict):
    """What each event of a trial has."""

    trial: str
    machine: str


class RunEventHeader(EventHeader):
    """What each event of a run has."""

    app: str
    test: str
    case: str
    run_id: str


class EventWriter:
    """Events of one trial. ``apply`` is called with each when it is added."""

    def __init__(self, record: Record, apply: Callable[[Event], None], tell: Tell) -> None:
        self.header: EventHeader = {"trial": record.tag, "machine": record.machine.machine}
        self._app_of = {name: test.app for name, test in record.tests.items()}
        self._apply = apply
        self._tell = tell
        self._untold: list[Event] = []

    def of_run(self, case: Case, run_id: str) -> RunEventHeader:
        """Return the header of a run's events."""
        return {
            **self.header,
            "app": self.app_of(case.test),
            "test": case.test,
            "case": case.id,
            "run_id": run_id,
        }

    def app_of(self, test: str) -> str:
        """Return the application of a test; "" where there is no such test."""
        return self._app_of.get(test, "")

    def add(self, event: Event) -> None:
        """Apply an event, and keep it to be told."""
        self._untold.append(event)
        self._apply(event)

    def tell_some(self) -> None:
        """Tell what there is if it is enough for a portion."""
        if len(self._untold) >= PORTION:
            self.tell_all()

    def tell_all(self) -> None:
        """Tell all that was not told yet."""
        untold, self._untold = self._untold, []
        self._tell(untold)
