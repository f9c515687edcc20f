"""Which waiting case starts next: the oldest that fits, but nobody is passed over for ever.

Cases wait in one queue for each size, so that a choice costs the number of sizes, not of cases.
After ``PATIENCE`` younger cases overtook the oldest one, nothing starts until that fits.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heapreplace

PATIENCE = 50


class Waiting:
    """Cases, by number, that wait for room; ``size`` is the room that each run of them needs."""

    def __init__(self) -> None:
        self._queues: dict[int, OrderedDict[int, int]] = {}  # size -> case -> its place in line
        self._more: dict[int, int] = {}  # case -> how many runs of it wait beside the first
        self._overtaken = 0
        self._places = 0
        self._count = 0

    def __len__(self) -> int:
        """The number of runs that wait."""
        return self._count

    def add(self, number: int, size: int, runs: int = 1) -> None:
        """More runs of a case wait; they stand together, in the place of the first."""
        self._count += runs
        queue = self._queues.setdefault(size, OrderedDict())
        if number not in queue:
            queue[number] = self._places
            self._places += 1
            runs -= 1
        if runs:
            self._more[number] = self._more.get(number, 0) + runs

    def choose(self, room: int, most: int, admit: Callable[[int], bool] | None = None) -> list[int]:
        """The numbers of the cases to start now, in order, without removing them; those that
        ``admit`` does not admit keep their place in line, and hold nobody up."""
        chosen: list[int] = []
        if not self._queues or min(self._queues) > room:
            return chosen
        overtaken = self._overtaken
        rows = {size: self._row(queue) for size, queue in self._queues.items()}
        heads = [(*next(row), size) for size, row in rows.items()]  # place, case, size
        heapify(heads)
        passed_over = False
        while heads and len(chosen) < most:
            _, number, size = heads[0]
            if size > room:
                heappop(heads)
                passed_over = True
                continue
            if passed_over and overtaken >= PATIENCE:
                break
            if admit is None or admit(number):
                overtaken = overtaken + 1 if passed_over else 0
                chosen.append(number)
                room -= size
            following = next(rows[size], None)
            if following is None:
                heappop(heads)
            else:
                heapreplace(heads, (*following, size))
        return chosen

    def remove(self, number: int, size: int) -> None:
        """A run of the case was started. One that does not wait changes nothing."""
        queue = self._queues.get(size)
        if queue is None or number not in queue:
            return
        place = queue[number]
        older = any(next(iter(other.values())) < place for other in self._queues.values())
        self._overtaken = self._overtaken + 1 if older else 0
        self._count -= 1
        more = self._more.pop(number, 0)
        if more > 1:
            self._more[number] = more - 1
        elif not more:
            del queue[number]
            if not queue:
                del self._queues[size]

    def _row(self, queue: OrderedDict[int, int]) -> Iterator[tuple[int, int]]:
        """(place, case) of each run that waits in a queue, oldest first."""
        for number, place in queue.items():
            for _ in range(1 + self._more.get(number, 0)):
                yield place, number
