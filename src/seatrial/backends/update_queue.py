"""The facts that a backend has found and nobody has taken yet."""

from __future__ import annotations

import asyncio

from seatrial.backends.protocol import Update


class UpdateQueue:
    """Facts in the order in which they were reported; a failure of the backend comes first."""

    def __init__(self) -> None:
        self.waiting: list[Update] = []
        self._failure: BaseException | None = None
        self._there = asyncio.Event()

    def report(self, fact: Update) -> None:
        self.waiting.append(fact)
        self._there.set()

    def fail(self, error: BaseException) -> None:
        """Whoever takes the news next is told this instead."""
        self._failure = error
        self._there.set()

    async def take(self) -> list[Update]:
        """Wait until there is news, and take all of it."""
        await self._there.wait()
        if self._failure is not None:
            raise self._failure
        self._there.clear()
        facts, self.waiting = self.waiting, []
        return facts
