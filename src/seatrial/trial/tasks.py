"""The background tasks of a driver, and the inbox through which they report to its loop."""

import asyncio

from msgspec import Struct

from seatrial.backends.protocol import Update
from seatrial.journal.events import AlertRaised, Event
from seatrial.runs.background_tasks import BackgroundTasks
from seatrial.trial.requests import WaitingRequest


class Nudge(Struct, frozen=True):
    """Makes the loop ask the conductor again, though there is nothing to record."""


News = Update | Event | WaitingRequest | Nudge


class Tasks(BackgroundTasks):
    """The background tasks, whose failure ends the drive, and the inbox of updates, events and
    failures."""

    def __init__(self) -> None:
        super().__init__(self.fail)
        self.inbox: asyncio.Queue[News | BaseException] = asyncio.Queue()

    def put(self, update: Update | Event | WaitingRequest) -> None:
        self.inbox.put_nowait(update)

    def alert(self, kind: str, subject: str, text: str) -> None:
        self.put(AlertRaised(kind=kind, subject=subject, text=text))

    def fail(self, error: BaseException) -> None:
        """End the drive with an error, after the updates that came before."""
        self.inbox.put_nowait(error)

    def nudge(self) -> None:
        self.inbox.put_nowait(Nudge())
