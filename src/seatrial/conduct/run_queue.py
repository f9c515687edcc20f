"""The queue of waiting cases: the oldest that fits is next, and none is passed over for ever.

Runs of a case take turns with those of the others: each case has one run in each round. Cases wait
in one queue for each size (and group), so that the cost of a choice depends on the number of
queues, not of cases. After ``PATIENCE`` younger cases overtook the oldest one, nothing starts until
that fits.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from heapq import heapify, heappop, heapreplace

PATIENCE = 50

_Key = tuple[int, object]  # size, group
_Place = tuple[int, int]  # round, place in it


class _Round:
    """The cases of one round that wait, each with its place."""

    def __init__(self) -> None:
        # The first entry of a plain dict is found slowly after many were removed before it.
        self._places: OrderedDict[int, int] = OrderedDict()
        self._last = -1
        self._sorted = True

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, case: int) -> bool:
        return case in self._places

    def add(self, case: int, place: int) -> None:
        self._sorted = self._sorted and place > self._last
        self._last = max(self._last, place)
        self._places[case] = place

    def remove(self, case: int) -> int:
        """Remove a case; return its place."""
        return self._places.pop(case)

    def in_order(self) -> Mapping[int, int]:
        """Return the places by case, in their order."""
        if not self._sorted:
            self._places = OrderedDict(sorted(self._places.items(), key=lambda item: item[1]))
            self._sorted = True
        return self._places


_Queue = dict[int, _Round]  # by the number of the round


class RunQueue:
    """Cases, by number, that wait for room; ``size`` is the room that each of their runs needs.
    Cases of one ``group`` are alike: if one of a size is not admitted, none is. ``place`` returns
    the place of a case in a round (None: the order in which they came, in every round); in the
    first round the order is always that in which they came."""

    def __init__(self, place: Callable[[int, int], int] | None = None) -> None:
        self._place = place
        self._queues: dict[_Key, _Queue] = {}
        self._more: dict[int, int] = {}  # case -> number of its waiting runs after the first
        self._round: dict[int, int] = {}  # case -> its next round, of those beyond the first
        self._came: dict[int, int] = {}  # case -> place in the order in which they came
        self._overtaken = 0
        self._count = 0

    def __len__(self) -> int:
        """Return the number of runs that wait."""
        return self._count

    def fits(self, room: int) -> bool:
        """Return whether any waiting run fits into that room."""
        return any(size <= room for size, _ in self._queues)

    def heads(self) -> list[int]:
        """Return the next case of each queue."""
        return [next(self._row(queue))[1] for queue in self._queues.values()]

    def add(self, number: int, size: int, runs: int = 1, group: object = None) -> None:
        """Add runs of a case: one in each of its next rounds."""
        self._count += runs
        self._came.setdefault(number, len(self._came))
        queue = self._queues.setdefault((size, group), {})
        current = self._round.get(number, 0)
        if current not in queue or number not in queue[current]:
            self._enter(queue, number, current)
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
        current = self._round.get(number, 0)
        if queue is None or current not in queue or number not in queue[current]:
            return
        place = current, queue[current].remove(number)
        if not queue[current]:
            del queue[current]
        self._round[number] = current + 1
        self._count -= 1
        more = self._more.pop(number, 0)
        if more:
            self._enter(queue, number, current + 1)
            if more > 1:
                self._more[number] = more - 1
        elif not queue:
            del self._queues[size, group]
        older = any(_head(other) < place for other in self._queues.values())
        self._overtaken = self._overtaken + 1 if older else 0

    def _enter(self, queue: _Queue, number: int, current: int) -> None:
        if current not in queue:
            queue[current] = _Round()
        queue[current].add(number, self._place_of(number, current))

    def _place_of(self, number: int, current: int) -> int:
        if current and self._place is not None:
            return self._place(current, number)
        return self._came[number]

    def _row(self, queue: _Queue) -> Iterator[tuple[_Place, int]]:
        """Yield (place, case) of each run that waits in a queue, round by round."""
        current = min(queue)
        later: dict[int, int] = {}  # cases of earlier rounds, each with the runs that it has left
        while True:
            there: Mapping[int, int] = queue[current].in_order() if current in queue else {}
            if later:
                places = {number: self._place_of(number, current) for number in later}
                places.update(there)
                there = dict(sorted(places.items(), key=lambda item: item[1]))
            for number, place in there.items():
                yield (current, place), number
            left = {number: self._more.get(number, 0) for number in there if number not in later}
            left |= {number: runs - 1 for number, runs in later.items()}
            later = {number: runs for number, runs in left.items() if runs}
            beyond = [other for other in queue if other > current]
            if later:
                current += 1
            elif beyond:
                current = min(beyond)
            else:
                return


def _head(queue: _Queue) -> _Place:
    """Return the place of the run that is next in a queue."""
    current = min(queue)
    return current, next(iter(queue[current].in_order().values()))
