"""What is in flight: launched and without a verdict, with the sums that caps are about."""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from heapq import heapify, heappop, heapreplace
from typing import Self

from msgspec import Struct

from seatrial.journal.run_life import RunLife, RunState
from seatrial.model.policy import Caps, Entry, Limits
from seatrial.units import SECOND_NS


class BundleInFlight(Struct):
    """The allocation that runs share: the room and the GPUs that it takes of a shared node, until
    the last of its ``runs`` has ended."""

    size: int = 0
    gpus: int = 0
    runs: int = 0


class RunInFlight(RunLife, kw_only=True):
    """A run that was submitted and has no verdict yet. ``case`` and ``entry`` are positions;
    ``size`` is the room that it takes on a shared node, ``node_count`` its nodes, ``width`` what it
    takes of the machine: its nodes, or on a shared node its cores; ``gpus`` are those that it takes
    of a shared node; ``unfit`` is the number of its set of nodes that it cannot run on.
    ``cancelled``: the trial was cancelled; ``ended_for``: the verdict code for which this run alone
    is being cancelled, or None, and ``ended_why`` the reason. ``exclusions`` is how many there had
    been when it was launched, ``away`` the nodes that it alone was to avoid. ``shared`` is the
    allocation that it shares, None if it has its own. ``attempt`` counts the runs of its case, from
    0 on; ``figure`` is that of the metric by which a race judges. ``silent`` are its nodes that did
    not answer when others of its compat job did."""

    case: int
    entry: int
    size: int
    node_count: int
    width: int
    gpus: int = 0
    unfit: int = 0
    cancelled: bool = False
    ended_for: int | None = None
    ended_why: str = ""
    exclusions: int = 0
    away: set[str] | None = None
    shared: BundleInFlight | None = None
    attempt: int = 0
    figure: float | None = None
    silent: str = ""

    @property
    def holds_room(self) -> bool:
        """Whether its job has not ended."""
        return self.state < RunState.ENDED

    @property
    def ended_by_us(self) -> bool:
        """Whether Seatrial cancelled it, with the trial or to recall it."""
        return self.cancelled or self.recalled

    @property
    def seconds(self) -> float:
        """Seconds for which its job ran; by its script where nobody saw the job start; else 0."""
        start, end = self.job_started, self.job_ended or self.judged
        if start is None:
            start, end = self.script_started, self.script_ended
        return ((end or 0) - start) / SECOND_NS if start and end and end > start else 0.0


class FreeRoom:
    """What the runs in flight leave: ``room`` and ``gpus`` of a shared node. ``jobs`` is the number
    of jobs in flight; the runs of a bundle have one together."""

    def __init__(self, limits: Limits) -> None:
        self._whole = limits.room
        self.room = limits.room
        self.gpus = limits.gpus
        self.jobs = 0
        self._bundles: dict[str, BundleInFlight] = {}

    def take(self, flight: RunInFlight, at_once: int) -> None:
        """Take the room and the GPUs of a run; those of a bundle, in which so many run ``at_once``,
        once, for its largest runs."""
        self.jobs += 1
        if not flight.bundle:
            self.room -= flight.size
            self.gpus -= flight.gpus
            return
        shared = self._bundles.setdefault(flight.bundle, BundleInFlight())
        flight.shared = shared
        size = max(shared.size, min(flight.size * at_once, self._whole))
        gpus = max(shared.gpus, flight.gpus)
        self.room -= size - shared.size
        self.gpus -= gpus - shared.gpus
        self.jobs -= shared.runs > 0
        shared.size, shared.gpus, shared.runs = size, gpus, shared.runs + 1

    def give_back(self, flight: RunInFlight) -> None:
        """Give back what a run took; what a bundle took, with its last run."""
        size, gpus, shared = flight.size, flight.gpus, flight.shared
        if shared is not None:
            shared.runs -= 1
            if shared.runs:
                return
            size, gpus, shared.size, shared.gpus = shared.size, shared.gpus, 0, 0
        self.jobs -= 1
        self.room += size
        self.gpus += gpus


class InFlightCounts:
    """Sums over the runs whose jobs have not ended: in all, by entry, by target, and by file system
    where the ``caps`` have any. ``queued`` have not started, of each entry ``waiting``; of the
    widths that queue, ``queued_widths`` has their numbers. By their set of nodes that they cannot
    run on (0 aside), ``confined`` has the widths, and ``confined_queued`` the numbers of those that
    have not started."""

    def __init__(self, entries: list[Entry], caps: Caps | None = None) -> None:
        self._entries = entries
        self._by_file_system = caps is None or bool(caps.file_systems or caps.bytes)
        self.total = 0
        self.queued = 0
        self.running = 0  # the width of what has started
        self.queued_widths: dict[int, int] = {}
        self.in_flight = [0] * len(entries)
        self.waiting = [0] * len(entries)
        self.width = [0] * len(entries)
        self.on_target: dict[str, int] = {}
        self.opens: dict[str, float] = {}
        self.on_file_system: dict[str, int] = {}
        self.bytes: dict[str, int] = {}
        self.confined: dict[int, int] = {}
        self.confined_queued: dict[int, int] = {}

    def copy(self) -> Self:
        """Return an independent copy."""
        other = copy(self)
        other.queued_widths = self.queued_widths.copy()
        other.in_flight, other.width = self.in_flight.copy(), self.width.copy()
        other.waiting = self.waiting.copy()
        other.on_target, other.opens = self.on_target.copy(), self.opens.copy()
        other.on_file_system, other.bytes = self.on_file_system.copy(), self.bytes.copy()
        other.confined = self.confined.copy()
        other.confined_queued = self.confined_queued.copy()
        return other

    def launch(self, entry: int, width: int, target: str, unfit: int = 0) -> None:
        self.queued += 1
        self.waiting[entry] += 1
        if unfit:
            self.confined[unfit] = self.confined.get(unfit, 0) + width
            self.confined_queued[unfit] = self.confined_queued.get(unfit, 0) + 1
        self.queued_widths[width] = self.queued_widths.get(width, 0) + 1
        self._add(entry, width, target, 1)

    def start(self, entry: int, width: int, unfit: int = 0) -> None:
        """A queued run has started."""
        self._unqueue(entry, width, unfit)
        self.running += width

    def end(self, entry: int, width: int, target: str, started: bool, unfit: int = 0) -> None:
        """A run's job is over."""
        if started:
            self.running -= width
        else:
            self._unqueue(entry, width, unfit)
        if unfit:
            self.confined[unfit] -= width
        self._add(entry, width, target, -1)

    def idle(self, nodes: int) -> int:
        """Return how many of so many nodes will be idle when all queued runs that fit have
        started."""
        idle = nodes - self.running
        if idle > 0:
            for width in sorted(self.queued_widths, reverse=True):
                if width <= idle:
                    idle -= width * min(self.queued_widths[width], idle // width)
        return idle

    def _unqueue(self, entry: int, width: int, unfit: int) -> None:
        self.queued -= 1
        self.waiting[entry] -= 1
        if unfit:
            self.confined_queued[unfit] -= 1
        left = self.queued_widths[width] - 1
        if left:
            self.queued_widths[width] = left
        else:
            del self.queued_widths[width]

    def _add(self, entry: int, width: int, target: str, sign: int) -> None:
        self.total += sign
        self.in_flight[entry] += sign
        self.width[entry] += sign * width
        about = self._entries[entry]
        if target:
            there = self.on_target[target] = self.on_target.get(target, 0) + sign
            # Sums of floats keep a rest; where no run is, nothing is open.
            load = self.opens.get(target, 0.0) + sign * about.opens if there else 0.0
            self.opens[target] = load
        if self._by_file_system and (name := about.file_system):
            self.on_file_system[name] = self.on_file_system.get(name, 0) + sign
            self.bytes[name] = self.bytes.get(name, 0) + sign * about.bytes


# ---- run queue -----------------------------------------------------------------------------------
#
# The queue of waiting cases: the oldest that fits is next, and none is passed over for ever.
#
# Runs of a case take turns with those of the others: each case has one run in each round. Cases
# wait in one queue for each size (and group), so that the cost of a choice depends on the number
# of queues, not of cases. After ``PATIENCE`` younger cases overtook the oldest one, nothing starts
# until that fits.


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
