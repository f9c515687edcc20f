"""The background tasks of a driver, and the inbox through which they report to its loop."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, NamedTuple

from seatrial.backends.protocol import Update
from seatrial.journal.events import AlertRaised, Event
from seatrial.trial.requests import WaitingRequest


class Nudge(NamedTuple):
    """Makes the loop ask the conductor again, though there is nothing to record."""


News = Update | Event | WaitingRequest | Nudge


class Tasks:
    """The background tasks, whose failure ends the drive, and the inbox of updates, events and
    failures."""

    def __init__(self) -> None:
        self.inbox: asyncio.Queue[News | BaseException] = asyncio.Queue()
        self._tasks: set[asyncio.Task[None]] = set()

    def put(self, update: Update | Event | WaitingRequest) -> None:
        self.inbox.put_nowait(update)

    def alert(self, kind: str, subject: str, text: str) -> None:
        self.put(AlertRaised(kind=kind, subject=subject, text=text))

    def fail(self, error: BaseException) -> None:
        """End the drive with an error, after the updates that came before."""
        self.inbox.put_nowait(error)

    def nudge(self) -> None:
        self.inbox.put_nowait(Nudge())

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run a coroutine in the background; a failure ends the drive."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._on_done)
        return task

    def _on_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.fail(error)

    async def end(self) -> None:
        """Cancel all tasks, and wait for them."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
