"""What goes on beside a driver's loop, and the one inbox through which the loop hears of it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, NamedTuple

from seatrial.backends.protocol import Update
from seatrial.journal.codes import Name


class DriverNote(NamedTuple):
    """Something of the driver's own happened: an event to note, none for a mere nudge."""

    event: str = ""
    more: dict[str, Any] = {}  # noqa: RUF012  (never changed)


class Tasks:
    """Tasks whose failure ends the drive, and an inbox of updates, notes and failures."""

    def __init__(self) -> None:
        self.inbox: asyncio.Queue[Update | DriverNote | BaseException] = asyncio.Queue()
        self._tasks: set[asyncio.Task[None]] = set()

    def put(self, update: Update | DriverNote) -> None:
        self.inbox.put_nowait(update)

    def note(self, event: str, **more: Any) -> None:
        """Have an event noted."""
        self.inbox.put_nowait(DriverNote(event, more))

    def alert(self, kind: str, subject: str, text: str) -> None:
        """Have people told."""
        self.note(Name.ALERT, alias=kind, test=subject, text=text)

    def nudge(self) -> None:
        """The conductor may have something to do."""
        self.inbox.put_nowait(DriverNote())

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run beside the loop; a failure ends the drive."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._on_done)
        return task

    def _on_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.inbox.put_nowait(error)

    async def end(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
