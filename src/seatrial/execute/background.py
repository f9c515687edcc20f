"""Coroutines that run in the background, until they are done or all are ended."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from seatrial.execute.backends import Update
from seatrial.execute.requests import WaitingRequest
from seatrial.journal.events import AlertRaised, Event


class BackgroundTasks:
    """Tasks of the running loop. ``on_failure`` gets the error of each that fails."""

    def __init__(self, on_failure: Callable[[BaseException], None]) -> None:
        self._on_failure = on_failure
        self._tasks: set[asyncio.Task[None]] = set()

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._on_done)
        return task

    def _on_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._on_failure(error)

    async def end(self) -> None:
        """Cancel all tasks, and wait for them."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


# ---- tasks ---------------------------------------------------------------------------------------
#
# The background tasks of a driver, and the inbox through which they report to its loop.


News = Update | Event | WaitingRequest | None
"""None makes the loop ask the conductor again, though there is nothing to record."""


class Tasks(BackgroundTasks):
    """The background tasks, whose failure ends the drive, and the inbox of updates, events and
    failures: that of the backend."""

    def __init__(self, inbox: asyncio.Queue[Any]) -> None:
        super().__init__(self.fail)
        self.inbox: asyncio.Queue[News | BaseException] = inbox

    def put(self, update: Update | Event | WaitingRequest) -> None:
        self.inbox.put_nowait(update)

    def alert(self, kind: str, subject: str, text: str) -> None:
        self.put(AlertRaised(kind=kind, subject=subject, text=text))

    def fail(self, error: BaseException) -> None:
        """End the drive with an error, after the updates that came before."""
        self.inbox.put_nowait(error)

    def nudge(self) -> None:
        self.inbox.put_nowait(None)
