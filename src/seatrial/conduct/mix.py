"""The demand of a sustained trial: a mix of tests that keeps the machine full.

Three things in this order, each as far as caps and throttles admit:

1. *copies*: of each test that has them, as many as are to be in flight; the one that lacks the
   largest part of its copies first, of equals the larger one.
2. *reserve*: so many runs wait at the scheduler. Next is the test that has had the least of what
   it has a claim to (node-seconds delivered and under way, over its weight), as in weighted fair
   queueing; so no test starves, and one that fell behind catches up.
3. *fill*: nodes would idle, as nothing that is queued fits on them: the largest test that fits, of
   those without a claim first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from seatrial.conduct.demand import Choice, Offer
from seatrial.conduct.flights import Counts, Flight
from seatrial.conduct.policy import Policy
from seatrial.suite.model import Case


class Mix:
    """What each entry has had, and what it is to get next. Its cases take turns."""

    wanted = 0

    def __init__(self, cases: Sequence[Case], policy: Policy) -> None:
        entries = policy.entries
        self._entries = entries
        self._reserve = policy.reserve
        self._entry_of = policy.entry_of
        self._nodes = [case.nodes for case in cases]
        self._cases: list[list[int]] = [[] for _ in entries]  # those that can start
        self._turn = [0] * len(entries)
        self._claim = [
            entry.weight or entry.copies * self._widest(cases, number)
            for number, entry in enumerate(entries)
        ]
        self._delivered = [0.0] * len(entries)  # node-seconds
        self._seconds = [0.0] * len(entries)  # of the runs that ended
        self._ended = [0] * len(entries)
        self._walltime = [
            max(
                (c.walltime for c, e in zip(cases, self._entry_of, strict=True) if e == n),
                default=0,
            )
            for n in range(len(entries))
        ]

    def _widest(self, cases: Sequence[Case], entry: int) -> int:
        return max(
            (c.nodes for c, e in zip(cases, self._entry_of, strict=True) if e == entry), default=1
        )

    # ---- events in ------------------------------------------------------------------------

    def __len__(self) -> int:
        return 1 << 30 if any(self._cases) else 0

    def ready(self, case: int, runs: int) -> None:
        cases = self._cases[self._entry_of[case]]
        if case not in cases:
            cases.append(case)
            cases.sort()

    def launched(self, case: int, stage: str) -> None:
        self._turn[self._entry_of[case]] += 1

    def ended(self, flight: Flight, seconds: float, again: bool) -> None:
        self._delivered[flight.entry] += flight.nodes * seconds
        if flight.started:
            self._seconds[flight.entry] += seconds
            self._ended[flight.entry] += 1

    # ---- choices out ----------------------------------------------------------------------

    def choose(self, offer: Offer) -> Iterator[Choice]:
        turns = self._turn.copy()
        yield from self._copies(offer, turns)
        yield from self._to_reserve(offer, turns)
        yield from self._to_fill(offer, turns)

    def _copies(self, offer: Offer, turns: list[int]) -> Iterator[Choice]:
        counts = offer.counts
        short = {n for n, e in enumerate(self._entries) if counts.in_flight[n] < e.copies}
        while short:
            entry = min(short, key=lambda n: self._lack(n, counts))
            choice = self._take(entry, offer, turns)
            if choice is not None:
                yield choice
            if choice is None or counts.in_flight[entry] >= self._entries[entry].copies:
                short.discard(entry)

    def _lack(self, entry: int, counts: Counts) -> tuple[float, float]:
        return counts.in_flight[entry] / self._entries[entry].copies, -self._claim[entry]

    def _to_reserve(self, offer: Offer, turns: list[int]) -> Iterator[Choice]:
        counts = offer.counts
        if counts.queued >= self._reserve:
            return
        open_ones = {n for n, claim in enumerate(self._claim) if claim > 0}
        while open_ones and counts.queued < self._reserve:
            entry = min(open_ones, key=lambda n: (self._served(n, counts), n))
            choice = self._take(entry, offer, turns)
            if choice is None:
                open_ones.discard(entry)
            else:
                yield choice

    def _served(self, entry: int, counts: Counts) -> float:
        """What an entry has had and has under way, over its claim."""
        under_way = counts.nodes[entry] * self._usual_seconds(entry)
        return (self._delivered[entry] + under_way) / self._claim[entry]

    def _usual_seconds(self, entry: int) -> float:
        if self._ended[entry]:
            return self._seconds[entry] / self._ended[entry]
        return self._walltime[entry]

    def _to_fill(self, offer: Offer, turns: list[int]) -> Iterator[Choice]:
        counts = offer.counts
        shut: set[int] = set()
        while (idle := offer.nodes - counts.running_nodes - _fitting(offer)) > 0:
            entry = self._filler(idle, shut, turns)
            if entry is None:
                return
            choice = self._take(entry, offer, turns)
            if choice is None:
                shut.add(entry)
            else:
                yield choice

    def _filler(self, idle: int, shut: set[int], turns: list[int]) -> int | None:
        """The entry that fills so many idle nodes best."""
        fitting = [
            (self._claim[n] == 0, self._nodes[self._next(n, turns)], -n)
            for n in range(len(self._entries))
            if n not in shut and self._cases[n] and self._nodes[self._next(n, turns)] <= idle
        ]
        return -max(fitting)[2] if fitting else None

    def _take(self, entry: int, offer: Offer, turns: list[int]) -> Choice | None:
        if not self._cases[entry]:
            return None
        choice = offer.take(self._next(entry, turns))
        if choice is not None:
            turns[entry] += 1
        return choice

    def _next(self, entry: int, turns: list[int]) -> int:
        cases = self._cases[entry]
        return cases[turns[entry] % len(cases)]


def _fitting(offer: Offer) -> int:
    """The nodes that queued runs will take of those that idle, as far as each of them fits."""
    idle = offer.nodes - offer.counts.running_nodes
    queued = offer.counts.queued_nodes
    return sum(nodes * runs for nodes, runs in queued.items() if nodes <= idle)
