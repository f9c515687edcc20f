"""The demand of ``isolated_then_full``: each application alone, then as many copies as fit.

The runs come in waves. A wave starts when nothing else is in flight: first each case alone, as
often as its part says, then waves of as many copies as fit on the machine or as caps allow.
"""

from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence

from msgspec import Struct

from seatrial.decide.demand import Budget, ChosenRun, Demand
from seatrial.decide.in_flight import RunInFlight
from seatrial.decide.resources import Requests, ResourceRequest
from seatrial.model.policy import Entry, Limits, Policy, fitting
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
