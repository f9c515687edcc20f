"""The demand of a sustained trial: a mix of tests that keeps the machine full.

Runs are chosen in three steps, each as far as caps and throttles allow:

1. *copies*: tests with copies get as many runs in flight as they have copies. The test that lacks
the largest part of its copies is first; of equal ones the test with the larger claim.

2. *claims*: runs are added until the reserve waits at the scheduler and the waiting runs cover the
idle nodes. The fairest test (see below) is next. Where it does not fit on the idle nodes and the
reserve is there, the largest test that fits is next.

3. *fill*: where nodes are still idle, the largest test that fits, of those without a claim.

The fairest test is, as in weighted fair queueing, the one with the least node-seconds, delivered
and in flight, over its weight. So no test starves, and a test that fell behind catches up. At each
second turn it is instead the test that now holds the fewest nodes for its claim, so that the others
do not starve while one catches up.

On a shared node cores count instead of nodes; there is no queue, and runs start until the node is
full. A large run would never find enough free cores. So nothing else starts before it when its test
is behind by more than a run (at first: by anything), or when ``PATIENCE`` runs without a claim have
started before it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from seatrial.conduct.admission import Shape
from seatrial.conduct.demand import Candidate, Demand, Offer
from seatrial.conduct.in_flight import InFlightCounts, RunInFlight
from seatrial.conduct.policy import Policy
from seatrial.suite.model import Case

PATIENCE = 10


class Mix(Demand):
    """The runs that each entry has had, and the one that it gets next. The cases of an entry take
    turns."""

    def __init__(
        self, cases: Sequence[Case], policy: Policy, shapes: Sequence[Shape], shared: bool
    ) -> None:
        entries = policy.entries
        self._entry_of = policy.entry_of
        self._copies = [entry.copies for entry in entries]
        self._with_copies = [n for n, copies in enumerate(self._copies) if copies]
        self._reserve = policy.reserve
        self._shared = shared
        self._shapes = shapes
        self._cases: list[list[int]] = [[] for _ in entries]  # cases that can start, by entry
        self._closed = set(range(len(entries)))  # entries without such cases
        self._least = 0  # the width of the narrowest such case
        widest, walltime = [1] * len(entries), [0.0] * len(entries)
        for case, each in zip(cases, self._shapes, strict=True):
            widest[each.entry] = max(widest[each.entry], each.width)
            walltime[each.entry] = max(walltime[each.entry], case.walltime)
        self._widest = widest
        self._claim = [e.weight or e.copies * widest[n] for n, e in enumerate(entries)]
        self._claimed = [n for n, claim in enumerate(self._claim) if claim > 0]
        self._unclaimed = [n for n, claim in enumerate(self._claim) if not claim]
        self._delivered = [0.0] * len(entries)  # width x seconds
        self._seconds = [0.0] * len(entries)  # of runs that started and ended
        self._ended = [0] * len(entries)
        self._usual = walltime  # mean seconds of a run; before the first the walltime
        self._turn = [0] * len(entries)  # runs launched, by entry
        self._turns = 0  # runs launched of tests with a claim and no copies
        self._fills = 0  # runs launched of tests without a claim
        self._passed_at = [0] * len(entries)  # ``_fills`` when an entry was last launched

    # ---- events in ------------------------------------------------------------------------

    def __len__(self) -> int:
        return 1 << 30 if self._least else 0

    def ready(self, case: int) -> None:
        cases = self._cases[self._entry_of[case]]
        if case not in cases:
            cases.append(case)
            cases.sort()
            self._closed.discard(self._entry_of[case])
            self._least = min(self._least or 1 << 30, self._shapes[case].width)

    def left(self) -> Collection[int]:
        return [case for cases in self._cases for case in cases]

    def launched(self, case: int) -> None:
        entry = self._entry_of[case]
        self._turn[entry] += 1
        self._turns += self._takes_turns(entry)
        self._fills += not self._claim[entry]
        self._passed_at[entry] = self._fills

    def ended(self, flight: RunInFlight, seconds: float) -> None:
        entry = flight.entry
        self._delivered[entry] += flight.width * seconds
        if flight.job_started or seconds:
            self._seconds[entry] += seconds
            self._ended[entry] += 1
            self._usual[entry] = self._seconds[entry] / self._ended[entry]

    def _takes_turns(self, entry: int) -> bool:
        return self._claim[entry] > 0 and not self._copies[entry]

    # ---- choices out ----------------------------------------------------------------------

    def wants(self, counts: InFlightCounts, room: int, nodes: int) -> bool:
        if self._shared:
            return 0 < self._least <= room
        if counts.queued < self._reserve:
            return True
        in_flight, copies = counts.in_flight, self._copies
        if any(in_flight[n] < copies[n] for n in self._with_copies):
            return True
        return self._least <= nodes - counts.running and self._least <= _idle(counts, nodes)

    def choose(self, offer: Offer) -> list[Candidate]:
        taking = _Taking(self, offer)
        if self._shared:
            while (first := self._must_be_next(offer, taking)) is not None:
                if not taking.take(first):
                    return taking.choices
        if self._with_copies:
            self._to_copies(offer, taking)
        if self._claimed:
            self._to_claims(offer, taking)
        if self._unclaimed:
            self._to_fill(offer, taking)
        return taking.choices

    def _to_copies(self, offer: Offer, taking: _Taking) -> None:
        copies = self._copies

        def lack(entry: int) -> tuple[float, float, int]:
            return offer.counts.in_flight[entry] / copies[entry], -self._claim[entry], entry

        short = [n for n in self._with_copies if offer.counts.in_flight[n] < copies[n]]
        while short:
            entry = min(short, key=lack)
            if not taking.take(entry) or offer.counts.in_flight[entry] >= copies[entry]:
                short.remove(entry)

    def _to_claims(self, offer: Offer, taking: _Taking) -> None:
        """Take runs of tests with a claim, the fairest first."""
        open_ones = [n for n in self._claimed if n not in taking.shut]
        while open_ones:
            counts, idle = offer.counts, 0
            waits = not self._shared and counts.queued < self._reserve
            if not waits:
                idle = offer.room if self._shared else _idle(counts, offer.nodes)
                if idle < self._least:
                    return
            entry = self._fairest(open_ones, counts, (self._turns + taking.turns) % 2 == 1)
            if not waits and taking.width(entry) > idle and taking.gives(entry):
                fitting = [each for n in open_ones if (each := (taking.width(n), -n))[0] <= idle]
                if not fitting:
                    return
                entry = -max(fitting)[1]
            if not taking.take(entry):
                open_ones.remove(entry)

    def _fairest(self, entries: Sequence[int], counts: InFlightCounts, by_nodes: bool) -> int:
        """Return the entry that has had the least for its claim or, ``by_nodes``, holds the fewest
        nodes for it now; of equal ones the widest."""
        claim, width, widest = self._claim, counts.width, self._widest
        if by_nodes:
            order = [(width[n] / claim[n], -widest[n], n) for n in entries]
        else:
            had = self._had(entries, counts)
            order = [(part, -widest[n], n) for part, n in zip(had, entries, strict=True)]
        return min(order)[2]

    def _had(self, entries: Sequence[int], counts: InFlightCounts) -> list[float]:
        """Return what each of these entries has had and has in flight, over its claim."""
        had, under_way, usual, claim = self._delivered, counts.width, self._usual, self._claim
        return [(had[n] + under_way[n] * usual[n]) / claim[n] for n in entries]

    def _to_fill(self, offer: Offer, taking: _Taking) -> None:
        open_ones = [n for n in self._unclaimed if n not in taking.shut]
        while open_ones:
            idle = offer.room if self._shared else _idle(offer.counts, offer.nodes)
            if idle < self._least:
                return
            widths = [(taking.width(n), n) for n in open_ones]
            fitting = [(width, -taking.turn(n), -n) for width, n in widths if width <= idle]
            if not fitting:
                return
            entry = -max(fitting)[2]
            if not taking.take(entry):
                open_ones.remove(entry)

    def _must_be_next(self, offer: Offer, taking: _Taking) -> int | None:
        """Return the entry that all others wait for on a shared node; None where there is none."""
        ready = [n for n in self._claimed if self._cases[n]]
        had = dict(zip(ready, self._had(ready, offer.counts), strict=True))
        most = max(had.values(), default=0.0)
        for entry in sorted(had, key=lambda n: (had[n], n)):
            shape = self._shapes[taking.next(entry)]
            run = 0.0  # the first comes at once, as its time is not known
            if self._turn[entry] or taking.has(entry):
                run = shape.width * self._usual[entry] / self._claim[entry]
            passed = self._fills - self._passed_at[entry] >= PATIENCE and not taking.has(entry)
            if (most - had[entry] > run or passed) and taking.gives(entry):
                return entry
        return None


class _Taking:
    """The choices of one decision, the turn of each entry, and the entries that give no more
    runs."""

    def __init__(self, mix: Mix, offer: Offer) -> None:
        self._mix = mix
        self._offer = offer
        self._ahead: dict[int, int] = {}
        self.choices: list[Candidate] = []
        self.turns = 0
        self.shut = mix._closed | offer.shut

    def has(self, entry: int) -> bool:
        return entry in self._ahead

    def next(self, entry: int) -> int:
        """Return the case whose turn it is, of an entry that has some."""
        cases = self._mix._cases[entry]
        return cases[self.turn(entry) % len(cases)] if len(cases) > 1 else cases[0]

    def turn(self, entry: int) -> int:
        """Return the number of runs of an entry that were launched, choices included."""
        return self._mix._turn[entry] + self._ahead.get(entry, 0)

    def width(self, entry: int) -> int:
        return self._mix._shapes[self.next(entry)].width

    def gives(self, entry: int) -> bool:
        """Return whether an entry may start a run now, targets aside."""
        if entry in self.shut:
            return False
        if self._offer.may(self.next(entry)):
            return True
        self.shut.add(entry)
        return False

    def take(self, entry: int) -> bool:
        """Choose the case whose turn it is. Returns whether that was possible; if not, the entry
        gives no more runs in this decision."""
        choice = None if entry in self.shut else self._offer.take(self.next(entry))
        if choice is None:
            self.shut.add(entry)
            return False
        self.choices.append(choice)
        self._ahead[entry] = self._ahead.get(entry, 0) + 1
        self.turns += self._mix._takes_turns(entry)
        return True


def _idle(counts: InFlightCounts, nodes: int) -> int:
    """Return the number of nodes that will be idle when all queued runs that fit have started."""
    idle = nodes - counts.running
    if idle > 0:
        for width in sorted(counts.queued_widths, reverse=True):
            if width <= idle:
                idle -= width * min(counts.queued_widths[width], idle // width)
    return idle
