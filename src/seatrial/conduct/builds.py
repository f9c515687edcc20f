"""Builds: which are to be started, which run, and which cases wait for them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice


class Builds:
    """A case whose build is not done waits; ``why_failed`` tells of each done build why it failed,
    "" if it is good."""

    def __init__(self) -> None:
        self.to_start: dict[str, None] = {}
        self.running: set[str] = set()
        self.why_failed: dict[str, str] = {}
        self._waiting: dict[str, list[int]] = {}  # key -> cases

    def wait(self, key: str, case: int) -> None:
        """A case can start when this build is done."""
        self.to_start[key] = None
        self._waiting.setdefault(key, []).append(case)

    def start(self, key: str) -> None:
        if key in self.to_start:
            del self.to_start[key]
            self.running.add(key)

    def end(self, key: str, why_failed: str) -> list[int]:
        """A build ended; the cases that waited for it."""
        self.running.discard(key)
        self.to_start.pop(key, None)
        self.why_failed[key] = why_failed
        return self._waiting.pop(key, [])

    def restart(self) -> None:
        """Builds that ran are gone with their driver, or were ended by it."""
        self.to_start.update(dict.fromkeys(self.running))
        self.running.clear()

    def next(self, most: int) -> Iterator[str]:
        """The keys to start now, with at most so many at a time."""
        return islice(self.to_start, max(0, most - len(self.running)))
