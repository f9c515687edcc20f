"""The queue of updates from a backend to the driver."""

import asyncio

from seatrial.backends.protocol import Update


class UpdateQueue:
    """Updates in the order in which they were reported. A failure of the backend comes first."""

    def __init__(self) -> None:
        self.waiting: list[Update] = []
        self._failure: BaseException | None = None
        self._there = asyncio.Event()

    def report(self, update: Update) -> None:
        self.waiting.append(update)
        self._there.set()

    def fail(self, error: BaseException) -> None:
        """Raise an error in the next call of ``take``."""
        self._failure = error
        self._there.set()

    async def take(self) -> list[Update]:
        """Wait until there is an update. Returns all updates."""
        await self._there.wait()
        if self._failure is not None:
            raise self._failure
        self._there.clear()
        updates, self.waiting = self.waiting, []
        return updates
