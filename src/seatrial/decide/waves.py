"""The demand of ``isolated_then_full``: each application alone, then as many copies as fit.

The runs come in waves. A wave starts when nothing else is in flight: first each case alone, as
often as its part says, then waves of as many copies as fit on the machine or as caps allow.
"""

from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence

from msgspec import Struct

from seatrial.decide.admission import Shape
from seatrial.decide.builds import BundleQueue
from seatrial.decide.demand import Candidate, Demand, Offer
from seatrial.decide.in_flight import InFlightCounts, RunInFlight, RunQueue
from seatrial.decide.race import Rounds
from seatrial.model.policy import Limits, Policy, fitting
from seatrial.model.test import Case

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
        shapes: Sequence[Shape],
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
            copies = copies_at_full(policy, shapes[number], limits)
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

    def choose(self, offer: Offer) -> Iterator[Candidate]:
        open_cases = self._open
        if self._flying:
            open_cases = [case for case in self._flying if self._missing_now(case)]
        for case in open_cases:
            wave = self._left[case][-1]
            taken = 0
            while taken < wave.missing:
                choice = offer.take(case, wave.stage)
                if choice is None:
                    break
                taken += 1
                yield choice
            if taken:
                return


def copies_at_full(policy: Policy, shape: Shape, limits: Limits) -> int:
    """Return how many copies fit on the machine, or are allowed by caps; at least one."""
    entry, caps = policy.entries[shape.entry], policy.caps
    most = [
        limits.room // shape.size if limits.room else fitting(policy, shape.unfit) // shape.nodes,
        limits.gpus // shape.gpus if shape.gpus else 0,
        entry.most,
        caps.machine,
        limits.jobs,
    ]
    if name := entry.file_system:
        most.append(caps.file_systems.get(name, 0))
        most.append(caps.bytes.get(name, 0) // entry.bytes if entry.bytes else 0)
        safe = [t.safe for t in policy.targets if t.file_system == name]
        if caps.per_target:
            most.append(caps.per_target * len(safe))
        if all(safe) and entry.opens:
            most.append(sum(int(each / entry.opens) for each in safe))
    given = [limit for limit in most if limit]
    return max(1, min(given)) if given else 1


# ---- once ----------------------------------------------------------------------------------------
#
# The demand of a trial that runs each case its number of times: the oldest that fits is next.
#
# Repeats take turns, in rounds; cases that share an allocation are launched together
# (``bundles``).


class Once(Demand):
    """Cases wait until there is room. ``grouped``: something else than room can hold cases back;
    then cases that the same thing holds back wait in one queue. ``seed`` draws the order of rounds
    after the first; ``room`` is all that of a shared node."""

    def __init__(
        self,
        cases: Sequence[Case],
        policy: Policy,
        shapes: Sequence[Shape],
        grouped: bool,
        seed: str,
        room: int,
    ) -> None:
        self._cases = cases
        self.wanted = sum(case.repeat for case in cases)
        self._shapes = shapes
        self._grouped = grouped
        self._waiting = RunQueue(Rounds(len(cases), seed).place)
        self._bundles = BundleQueue(cases, policy, shapes, seed, room)

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
        shape = self._shapes[case]
        self._waiting.remove(case, shape.size, self._group(shape))

    def ended(self, flight: RunInFlight, seconds: float) -> None:
        if flight.case in self._bundles:
            self._bundles.ended(flight.case)

    def wants(self, counts: InFlightCounts, room: int, nodes: int) -> bool:
        return self._waiting.fits(room) or self._bundles.fits(room)

    def choose(self, offer: Offer) -> Iterator[Candidate]:
        yield from self._bundles.choose(offer)
        room, places = offer.room, offer.places
        if offer.lets_all:
            yield from (Candidate(case) for case in self._waiting.choose(room, places))
            return
        taken: list[Candidate] = []

        def admit(case: int) -> bool:
            choice = offer.take(case)
            if choice is not None:
                taken.append(choice)
            return choice is not None

        self._waiting.choose(room, places, admit)
        yield from taken

    def _wait(self, case: int, runs: int) -> None:
        shape = self._shapes[case]
        self._waiting.add(case, shape.size, runs, self._group(shape))

    def _group(self, shape: Shape) -> object:
        return (
            (shape.entry, shape.nodes, shape.gpus, shape.unfit, shape.wish)
            if self._grouped
            else None
        )
