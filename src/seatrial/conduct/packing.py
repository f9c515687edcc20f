"""Which waiting case starts next: the oldest that fits, but nobody is passed over for ever.

Cases wait in one queue for each size, so that a choice costs the number of sizes, not of cases.
After ``PATIENCE`` younger cases overtook the oldest one, nothing starts until that fits.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator

PATIENCE = 50


class Waiting:
    """Cases, by number, that wait for room; ``size`` is the room that each needs."""

    def __init__(self) -> None:
        self._queues: dict[int, deque[tuple[int, int]]] = {}
        self._gone: Counter[tuple[int, int]] = Counter()  # left from within a queue
        self._overtaken = 0
        self._order = 0
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, number: int, size: int) -> None:
        self._queues.setdefault(size, deque()).append((self._order, number))
        self._order += 1
        self._count += 1

    def choose(self, room: int, most: int) -> list[int]:
        """The numbers of the cases to start now, in order, without removing them."""
        chosen: list[int] = []
        overtaken = self._overtaken
        rows = {size: self._present(size) for size in self._queues}
        heads = {size: head for size, row in rows.items() if (head := next(row, None))}
        while heads and len(chosen) < most:
            oldest = min(heads, key=lambda size: heads[size])
            fitting = [size for size in heads if size <= room]
            if not fitting or (oldest > room and overtaken >= PATIENCE):
                break
            size = min(fitting, key=lambda size: heads[size])
            overtaken = 0 if size == oldest else overtaken + 1
            chosen.append(heads[size][1])
            room -= size
            following = next(rows[size], None)
            if following is None:
                del heads[size]
            else:
                heads[size] = following
        return chosen

    def remove(self, number: int, size: int) -> None:
        """A case was started."""
        queue = self._queues.get(size)
        if not queue:
            return
        self._count -= 1
        if queue[0][1] != number:
            self._gone[number, size] += 1
            return
        order = queue.popleft()[0]
        while queue and self._gone[queue[0][1], size] > 0:
            self._gone[queue.popleft()[1], size] -= 1
        if not queue:
            del self._queues[size]
        older = any(other[0][0] < order for other in self._queues.values() if other)
        self._overtaken = self._overtaken + 1 if older else 0

    def _present(self, size: int) -> Iterator[tuple[int, int]]:
        gone = {key: count for key, count in self._gone.items() if count > 0}
        for order, number in self._queues[size]:
            if gone.get((number, size), 0) > 0:
                gone[number, size] -= 1
            else:
                yield order, number
