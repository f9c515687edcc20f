"""The demands that are served in order: the oldest run that fits is next.

``Once`` runs each case its number of times. Repeats take turns, in rounds; cases that share an
allocation are launched together, in bundles. ``Waves`` is ``isolated_then_full``: each application
alone, then as many copies as fit.
"""

import hashlib
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heapreplace
from itertools import count

from msgspec import Struct

from seatrial.decide.demand import Budget, ChosenRun, Demand
from seatrial.decide.in_flight import InFlightCounts, Requests, ResourceRequest, RunInFlight
from seatrial.model.policy import Entry, Limits, Policy, fitting
from seatrial.model.test import Case


class Once(Demand):
    """Cases wait for free cores. ``grouped``: something else can hold cases back;
    then cases that the same thing holds back wait in one queue. ``seed`` draws the order of rounds
    after the first; ``cores`` are all those of a shared node."""

    def __init__(
        self,
        cases: Sequence[Case],
        policy: Policy,
        requests: Requests,
        grouped: bool,
        seed: str,
        cores: int,
    ) -> None:
        self._cases = cases
        self.wanted = sum(case.repeat for case in cases)
        self._requests = requests
        self._grouped = grouped
        self._waiting = RunQueue(Rounds(len(cases), seed).place)
        self._bundles = BundleQueue(cases, policy, requests, seed, cores)

    def __len__(self) -> int:
        return len(self._waiting) + len(self._bundles)

    def runs_of(self, case: int) -> int:
        return self._cases[case].repeat

    def ready(self, case: int) -> None:
        if case in self._bundles:
            self._bundles.ready(case)
        else:
            self._wait(case, self._cases[case].repeat)

    def unbuilt(self, case: int) -> None:
        if case in self._bundles:
            self._bundles.unbuilt(case)

    def again(self, case: int) -> None:
        if case in self._bundles:
            self._bundles.again(case)
        else:
            self._wait(case, 1)

    def left(self) -> Collection[int]:
        return [*self._waiting.heads(), *self._bundles.left()]

    def launched(self, case: int, time: int) -> None:
        if case in self._bundles:
            self._bundles.launched(case)
            return
        request = self._requests[case]
        self._waiting.remove(case, request.cores, self._group(request))

    def ended(self, flight: RunInFlight, seconds: float) -> None:
        if flight.case in self._bundles:
            self._bundles.ended(flight.case)

    def wants(self, counts: InFlightCounts, cores: int, nodes: int) -> bool:
        return self._waiting.fits(cores) or self._bundles.fits(cores)

    def choose(self, budget: Budget) -> Iterator[ChosenRun]:
        yield from self._bundles.choose(budget)
        cores, jobs = budget.cores, budget.jobs
        if budget.lets_all:
            yield from (ChosenRun(case) for case in self._waiting.choose(cores, jobs))
            return
        taken: list[ChosenRun] = []

        def admit(case: int) -> bool:
            choice = budget.take(case)
            if choice is not None:
                taken.append(choice)
            return choice is not None

        self._waiting.choose(cores, jobs, admit)
        yield from taken

    def _wait(self, case: int, runs: int) -> None:
        request = self._requests[case]
        self._waiting.add(case, request.cores, runs, self._group(request))

    def _group(self, request: ResourceRequest) -> object:
        return (
            (request.entry, request.nodes, request.gpus, request.unfit, request.wish)
            if self._grouped
            else None
        )


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
    """Cases, by number, that wait for cores; ``size`` is the number that each of their runs needs.
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

    def fits(self, cores: int) -> bool:
        """Return whether any waiting run needs no more than so many cores."""
        return any(size <= cores for size, _ in self._queues)

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

    def choose(
        self, cores: int, max_runs: int, admit: Callable[[int], bool] | None = None
    ) -> list[int]:
        """Return the cases to start now, in order, without removing them. Cases that ``admit``
        refuses keep their place, and do not hold up others."""
        chosen: list[int] = []
        if not self.fits(cores):
            return chosen
        overtaken = self._overtaken
        rows = {key: self._row(queue) for key, queue in self._queues.items()}
        # place, case, size, row; places differ, so that rows are never compared
        heads = [(*next(row), key[0], row) for key, row in rows.items()]
        heapify(heads)
        passed_over = False
        while heads and len(chosen) < max_runs:
            _, number, size, row = heads[0]
            if size > cores:
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
            cores -= size
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
            waiting: Mapping[int, int] = queue[current].in_order() if current in queue else {}
            if later:
                places = {number: self._place_of(number, current) for number in later}
                places.update(waiting)
                waiting = dict(sorted(places.items(), key=lambda item: item[1]))
            for number, place in waiting.items():
                yield (current, place), number
            left = {number: self._more.get(number, 0) for number in waiting if number not in later}
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


# ---- rounds --------------------------------------------------------------------------------------
#
# The order of repeated runs: in rounds, in each of which every case runs once.
#
#     rounds = Rounds(cases=3, seed="demo")
#     rounds.order(0)                     # (0, 1, 2)
#     rounds.place(4, case=1)             # its place in the fifth round
#
# Runs of one case that stand together make a difference of a drift of the machine. Each round is a
# row of a Williams design (E. J. Williams, Australian Journal of Scientific Research A 2, 1949):
# in a whole cycle of rounds every case has every place equally often, and follows every other case
# equally often within a round. The cycle has as many rounds as there are cases, twice as many if
# that number is odd. The order of the rows is drawn by the seed; the first row has the order of
# the cases.


class Rounds:
    """The rounds of so many ``cases``, without an end. The first row of the design is a zigzag: 0,
    1, n-1, 2, n-2, ...; the others are the same, shifted, and for an odd number reversed, too."""

    def __init__(self, cases: int, seed: str) -> None:
        self._cases = cases
        self._seed = seed
        self._cycle = -1  # the cycle of which the shifts are known
        self._shifts: tuple[list[int], list[int]] = [], []

    def order(self, number: int) -> tuple[int, ...]:
        """Return the cases in the order of a round."""
        return tuple(sorted(range(self._cases), key=lambda case: self.place(number, case)))

    def place(self, number: int, case: int) -> int:
        """Return the place of a case, from 0 on, in a round."""
        shift, reverse = self._row(number)
        place = _place_in_zigzag((_zigzag(case, self._cases) - shift) % self._cases, self._cases)
        return self._cases - 1 - place if reverse else place

    def _row(self, number: int) -> tuple[int, bool]:
        odd = self._cases % 2
        cycle, row = divmod(number, self._cases * (1 + odd))
        if cycle != self._cycle:
            self._cycle, self._shifts = cycle, self._draw(cycle)
        if odd:
            return self._shifts[row % 2][row // 2], row % 2 == 1
        return self._shifts[0][row], False

    def _draw(self, cycle: int) -> tuple[list[int], list[int]]:
        """Return the shifts of the rows of a cycle, and those of its reversed rows."""
        forward, backward = (
            shuffled(range(self._cases), f"{self._seed} {cycle} {side}")
            for side in ("forward", "backward")
        )
        if cycle == 0:
            forward.remove(0)
            forward.insert(0, 0)
        return forward, backward


def shuffled(numbers: Iterable[int], seed: str) -> list[int]:
    """Return the numbers in an order that the seed draws, the same on every machine."""
    return sorted(numbers, key=lambda each: hashlib.sha256(f"{seed} {each}".encode()).digest())


def _zigzag(place: int, cases: int) -> int:
    """Return what stands at a place of 0, 1, n-1, 2, n-2, ..."""
    return (place + 1) // 2 if place % 2 else (cases - place // 2) % cases


def _place_in_zigzag(label: int, cases: int) -> int:
    """Return the place of a label in 0, 1, n-1, 2, n-2, ..."""
    return 2 * label - 1 if 0 < label <= cases // 2 else 2 * (cases - label) % (2 * cases)


# ---- bundles -------------------------------------------------------------------------------------
#
# The demand for runs that share allocations: which of them are launched together, in which order.
#
#     bundles = BundleQueue(cases, policy, requests, seed)
#     bundles.ready(case)                 # its build is done
#     bundles.choose(budget)               # chosen runs; those with one number share an allocation
#
# A *bundle* is a list of runs that get one allocation (one job) together: they run there on the
# same nodes, one after the other in the order of the list, or ``at_once`` at a time. Another
# demand that wants runs on the same nodes in its own order (such as a race) does as ``choose``
# does here: it takes the cases from the budget by ``take_together``, and yields chosen runs with
# the same number ``bundle`` (above 0, another one for each bundle of a decision) in the order in
# which they are to run. The conductor launches them as one job; each is a run like any other, with
# its own directory, events and verdict, and is judged as soon as it has ended. Those that had not
# begun when the job ended (a dead node, its walltime) are submitted again together, which is no
# new launch.


class _Group:
    """Cases that share allocations. ``planned`` are the bundles to launch, each as its cases in
    order; ``again`` are cases of which a run is to be repeated, which wait until no run of the
    group is in flight; ``unready`` are cases whose builds are not done."""

    def __init__(
        self, cases: Sequence[int], repeats: Sequence[int], seed: str, bundles: int
    ) -> None:
        rounds = Rounds(len(cases), seed)
        each = -(-max(repeats) // bundles)  # rounds of each bundle
        runs = [-(-repeat // bundles) for repeat in repeats]
        self.planned = [
            [
                cases[item]
                for number in range(bundle * each, (bundle + 1) * each)
                for item in rounds.order(number)
                if number - bundle * each < runs[item]
            ]
            for bundle in range(bundles)
        ]
        self.again: list[int] = []
        self.unready = set(cases)
        self.in_flight = 0

    def next(self) -> list[list[int]]:
        """Return the bundles that can be launched now."""
        if self.unready:
            return []
        if self.planned:
            return self.planned
        return [self.again] if self.again and not self.in_flight else []

    def remove(self, case: int) -> None:
        """Remove a run that was launched, from the first bundle that has it."""
        for bundle in [*self.planned, self.again]:
            if case in bundle:
                bundle.remove(case)
                break
        self.planned = [bundle for bundle in self.planned if bundle]
        self.in_flight += 1


class BundleQueue:
    """The cases of a trial that share allocations, by the groups of its policy. ``seed`` draws the
    order of the rounds; ``cores`` are all those of a shared node, 0 where there is none."""

    def __init__(
        self,
        cases: Sequence[Case],
        policy: Policy,
        requests: Requests,
        seed: str,
        cores: int,
    ) -> None:
        self._cases = cases
        self._requests = requests
        self._cores = cores
        members: dict[int, list[int]] = {}
        for case, number in enumerate(policy.bundle_of):
            if number:
                members.setdefault(number, []).append(case)
        self._groups: dict[int, _Group] = {}  # by case
        self._all: list[_Group] = []
        for together in members.values():
            repeats = [cases[case].repeat for case in together]
            group = _Group(together, repeats, seed, policy.allocations)
            self._all.append(group)
            self._groups |= dict.fromkeys(together, group)

    def __contains__(self, case: int) -> bool:
        return case in self._groups

    def __len__(self) -> int:
        """Return the number of bundles that can be launched now."""
        return sum(len(group.next()) for group in self._all)

    def ready(self, case: int) -> None:
        """Record that the build of a case is done."""
        self._groups[case].unready.discard(case)

    def unbuilt(self, case: int) -> None:
        """Record that the build of a case failed: the others run without it."""
        group = self._groups[case]
        group.unready.discard(case)
        left = ([each for each in bundle if each != case] for bundle in group.planned)
        group.planned = [bundle for bundle in left if bundle]

    def again(self, case: int) -> None:
        self._groups[case].again.append(case)

    def launched(self, case: int) -> None:
        self._groups[case].remove(case)

    def ended(self, case: int) -> None:
        """Record the verdict of a run."""
        self._groups[case].in_flight -= 1

    def left(self) -> Collection[int]:
        """Return the first case of each bundle that can be launched."""
        return [bundle[0] for group in self._all for bundle in group.next()]

    def fits(self, cores: int) -> bool:
        return any(
            self._cores_of(bundle) <= cores for group in self._all for bundle in group.next()
        )

    def choose(self, budget: Budget) -> Iterator[ChosenRun]:
        """Yield the runs of the bundles that can be launched, whole bundles alone."""
        numbers = count(1)
        for group in self._all:
            for bundle in group.next():
                if budget.take_together(bundle, self._cores_of(bundle)):
                    number = next(numbers)
                    yield from (ChosenRun(case, bundle=number) for case in bundle)

    def _cores_of(self, bundle: Sequence[int]) -> int:
        """Return the cores that a bundle takes on a shared node: those of its largest runs, as many
        as run at a time."""
        largest = max(self._requests[case].cores * self._cases[case].at_once for case in bundle)
        return min(largest, self._cores)


# ---- waves ---------------------------------------------------------------------------------------
#
# A wave starts when nothing else is in flight: first each case alone, as often as its part says,
# then waves of as many copies as fit on the machine or as caps allow.


ALONE, FULL = "alone", "full"


class Wave(Struct):
    """Copies of one case that start together; ``missing`` is the number of those not launched
    yet."""

    stage: str
    missing: int


class Waves(Demand):
    """The waves of each case, in order. The first case that is ready is first; the others pass a
    case whose build is not done or whose test is stopped."""

    def __init__(
        self,
        cases: Sequence[Case],
        policy: Policy,
        limits: Limits,
        requests: Requests,
    ) -> None:
        self._left: dict[int, list[Wave]] = {}  # by case, the last wave first
        self._open: list[int] = []  # cases that can start and have waves left, in order
        self._most = 0  # the maximum number of copies in a wave
        self._flying: dict[int, int] = {}  # case -> number of runs in flight
        for number in range(len(cases)):
            entry = policy.entries[policy.entry_of[number]]
            if cases[number].only_builds:
                self._left[number] = []
                continue
            copies = copies_at_full(policy, requests[number], limits)
            full = [Wave(FULL, copies) for _ in range(entry.full)]
            alone = [Wave(ALONE, 1) for _ in range(entry.alone)]
            self._left[number] = full + alone
            self._most = max(self._most, *(wave.missing for wave in full + alone), 0)
        self._wanted = [
            1 if case.only_builds else sum(wave.missing for wave in waves)
            for case, waves in zip(cases, self._left.values(), strict=True)
        ]
        self.wanted = sum(self._wanted)

    def _missing_now(self, case: int) -> int:
        waves = self._left[case]
        return waves[-1].missing if waves else 0

    def __len__(self) -> int:
        if self._flying:
            return sum(map(self._missing_now, self._flying))
        return self._most if self._open else 0

    def runs_of(self, case: int) -> int:
        return self._wanted[case]

    def left(self) -> Collection[int]:
        return self._open

    # ---- events in ------------------------------------------------------------------------

    def ready(self, case: int) -> None:
        place = bisect_left(self._open, case)
        if self._left[case] and self._open[place : place + 1] != [case]:
            self._open.insert(place, case)

    def again(self, case: int) -> None:
        """Repeat a run within its wave, which lasts until all its copies have final verdicts."""
        if self._left[case]:
            self._left[case][-1].missing += 1

    def launched(self, case: int, time: int) -> None:
        waves = self._left[case]
        if waves and waves[-1].missing:
            waves[-1].missing -= 1
        self._flying[case] = self._flying.get(case, 0) + 1

    def ended(self, flight: RunInFlight, seconds: float) -> None:
        case, waves = flight.case, self._left[flight.case]
        self._flying[case] -= 1
        if not self._flying[case]:
            del self._flying[case]
            if waves and not waves[-1].missing:
                waves.pop()
                if not waves:
                    self._open.remove(case)

    # ---- choices out ----------------------------------------------------------------------

    def choose(self, budget: Budget) -> Iterator[ChosenRun]:
        open_cases = self._open
        if self._flying:
            open_cases = [case for case in self._flying if self._missing_now(case)]
        for case in open_cases:
            wave = self._left[case][-1]
            taken = 0
            while taken < wave.missing:
                choice = budget.take(case, wave.stage)
                if choice is None:
                    break
                taken += 1
                yield choice
            if taken:
                return


def copies_at_full(policy: Policy, request: ResourceRequest, limits: Limits) -> int:
    """Return how many copies fit on the machine, or are allowed by caps; at least one."""
    entry = policy.entries[request.entry]
    if limits.cores:
        fit = limits.cores // request.cores
    else:
        fit = fitting(policy, request.unfit) // request.nodes
    gpus = limits.gpus // request.gpus if request.gpus else 0
    bounds = [fit, gpus, entry.most, policy.caps.machine, limits.jobs]
    if entry.file_system:
        bounds += _copies_on_file_system(policy, entry)
    return max(1, min(filter(None, bounds), default=1))  # 0: no bound


def _copies_on_file_system(policy: Policy, entry: Entry) -> list[int]:
    """Return how many copies the file system of an entry and its metadata targets bear, by each cap
    (0: none)."""
    caps, name = policy.caps, entry.file_system
    safe = [target.safe for target in policy.targets if target.file_system == name]
    bounds = [
        caps.file_systems.get(name, 0),
        caps.bytes.get(name, 0) // entry.bytes if entry.bytes else 0,
        (caps.per_target or 0) * len(safe),
    ]
    if all(safe) and entry.opens:
        bounds.append(sum(int(load / entry.opens) for load in safe))
    return bounds
