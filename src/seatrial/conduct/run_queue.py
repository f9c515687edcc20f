"""The queue of waiting cases: the oldest that fits is next, and none is passed over for ever.

Cases wait in one queue for each size (and group), so that the cost of a choice depends on the
number of queues, not of cases. After ``PATIENCE`` younger cases overtook the oldest one, nothing
starts until that fits.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heapreplace

PATIENCE = 50

_Key = tuple[int, object]  # size, group
_Queue = OrderedDict[int, int]  # case -> its place in line


class RunQueue:
    """Cases, by number, that wait for room; ``size`` is the room that each of their runs needs.
    Cases of one ``group`` are alike: if one of a size is not admitted, none is."""

    def __init__(self) -> None:
        self._queues: dict[_Key, _Queue] = {}
        self._more: dict[int, int] = {}  # case -> number of its waiting runs after the first
        self._overtaken = 0
        self._places = 0
        self._count = 0

    def __len__(self) -> int:
        """Return the number of runs that wait."""
        return self._count

    def fits(self, room: int) -> bool:
        """Return whether any waiting run fits into that room."""
        return any(size <= room for size, _ in self._queues)

    def heads(self) -> list[int]:
        """Return the oldest case of each queue."""
        return [next(iter(queue)) for queue in self._queues.values()]

    def add(self, number: int, size: int, runs: int = 1, group: object = None) -> None:
        """Add runs of a case; they have one place in line, that of the first."""
        self._count += runs
        queue = self._queues.setdefault((size, group), OrderedDict())
        if number not in queue:
            queue[number] = self._places
            self._places += 1
            runs -= 1
        if runs:
            self._more[number] = self._more.get(number, 0) + runs

    def choose(self, room: int, most: int, admit: Callable[[int], bool] | None = None) -> list[int]:
        """Return the cases to start now, in order, without removing them. Cases that ``admit``
        refuses keep their place, and do not hold up others."""
        chosen: list[int] = []
        if not self.fits(room):
            return chosen
        overtaken = self._overtaken
        rows = {key: self._row(queue) for key, queue in self._queues.items()}
        # place, case, size, row; places differ, so that rows are never compared
        heads = [(*next(row), key[0], row) for key, row in rows.items()]
        heapify(heads)
        passed_over = False
        while heads and len(chosen) < most:
            _, number, size, row = heads[0]
            if size > room:
                heappop(heads)
                passed_over = True
                continue
            if passed_over and overtaken >= PATIENCE:
                break
            if admit is not None and not admit(number):
                heappop(heads)
                continue
            overtaken = overtaken + 1 if passed_over else 0
            chosen.append(number)
            room -= size
            following = next(row, None)
            if following is None:
                heappop(heads)
            else:
                heapreplace(heads, (*following, size, row))
        return chosen

    def remove(self, number: int, size: int, group: object = None) -> None:
        """Remove a run of a case that was started; one that does not wait changes nothing."""
        queue = self._queues.get((size, group))
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
                del self._queues[size, group]

    def _row(self, queue: _Queue) -> Iterator[tuple[int, int]]:
        """Yield (place, case) of each run that waits in a queue, oldest first."""
        for number, place in queue.items():
            for _ in range(1 + self._more.get(number, 0)):
                yield place, number
