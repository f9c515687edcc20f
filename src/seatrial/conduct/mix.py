"""The demand of a sustained trial: a mix of tests that keeps the machine full.

Three things in this order, each as far as caps and throttles admit:

1. *copies*: of each test that has them, as many as are to be in flight; the one that lacks the
   largest part of its copies first, of equals the one with the larger claim.
2. *claims*: until so many runs wait at the scheduler as are to be in reserve, and what waits covers
   the nodes that idle. The next test is the fairest one (below) or, where that does not fit on the
   idle nodes and the reserve is there, the largest one that does.
3. *fill*: nodes still idle: the largest test that fits, of those without a claim.

Fair is, as in weighted fair queueing, who has had the least for its claim: node-seconds delivered
and under way, over its weight; so no test starves, and one that fell behind catches up. Each second
turn it is instead who holds the fewest nodes for its claim now, lest the others starve while one
catches up.

On a shared node what counts is cores instead of nodes, there is no queue, and runs start until the
node is full. A large run would never find it empty enough; so when its test is behind by more than
a run (at first: by anything), or ``PATIENCE`` runs without a claim passed it, nothing else starts
before it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from seatrial.conduct.admission import Shape
from seatrial.conduct.demand import Candidate, Offer
from seatrial.conduct.in_flight import InFlightCounts, RunInFlight
from seatrial.conduct.policy import Policy
from seatrial.suite.model import Case

PATIENCE = 10


class Mix:
    """What each entry has had, and what it is to get next. Its cases take turns."""

    wanted = 0

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
        self._cases: list[list[int]] = [[] for _ in entries]  # those that can start
        self._closed = set(range(len(entries)))  # entries of which none can
        self._least = 0  # the width of the narrowest of them
        widest, walltime = [1] * len(entries), [0.0] * len(entries)
        for case, each in zip(cases, self._shapes, strict=True):
            widest[each.entry] = max(widest[each.entry], each.width)
            walltime[each.entry] = max(walltime[each.entry], case.walltime)
        self._widest = widest
        self._claim = [e.weight or e.copies * widest[n] for n, e in enumerate(entries)]
        self._claimed = [n for n, claim in enumerate(self._claim) if claim > 0]
        self._unclaimed = [n for n, claim in enumerate(self._claim) if not claim]
        self._delivered = [0.0] * len(entries)  # width x seconds
        self._seconds = [0.0] * len(entries)  # of the runs that started and ended
        self._ended = [0] * len(entries)
        self._usual = walltime  # seconds of a run: the mean, as long as there is none the walltime
        self._turn = [0] * len(entries)  # runs launched
        self._turns = 0  # of tests that have a claim, and no copies
        self._fills = 0  # of those without a claim
        self._passed_at = [0] * len(entries)  # how many of these when an entry was last launched

    # ---- events in ------------------------------------------------------------------------

    def __len__(self) -> int:
        return 1 << 30 if any(self._cases) else 0

    def runs_of(self, case: int) -> int:
        return 1

    def ready(self, case: int) -> None:
        cases = self._cases[self._entry_of[case]]
        if case not in cases:
            cases.append(case)
            cases.sort()
            self._closed.discard(self._entry_of[case])
            self._least = min(self._least or 1 << 30, self._shapes[case].width)

    def again(self, case: int, stage: str) -> None:
        pass

    def left(self) -> Collection[int]:
        return [case for cases in self._cases for case in cases]

    def launched(self, case: int, stage: str) -> None:
        entry = self._entry_of[case]
        self._turn[entry] += 1
        self._turns += self._takes_turns(entry)
        self._fills += not self._claim[entry]
        self._passed_at[entry] = self._fills

    def ended(self, flight: RunInFlight, seconds: float) -> None:
        entry = flight.entry
        self._delivered[entry] += flight.width * seconds
        if flight.started or seconds:
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
        """Runs of tests that have a claim, the fairest first."""
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
        """Who has had the least for its claim or, ``by_nodes``, holds the least for it now; of
        equals the widest."""
        claim, width, widest = self._claim, counts.width, self._widest
        if by_nodes:
            order = [(width[n] / claim[n], -widest[n], n) for n in entries]
        else:
            had = self._had(entries, counts)
            order = [(part, -widest[n], n) for part, n in zip(had, entries, strict=True)]
        return min(order)[2]

    def _had(self, entries: Sequence[int], counts: InFlightCounts) -> list[float]:
        """What each of these has had and has under way, over its claim."""
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
        """The entry that all others wait for on a shared node, if there is one."""
        ready = [n for n in self._claimed if self._cases[n]]
        had = dict(zip(ready, self._had(ready, offer.counts), strict=True))
        most = max(had.values(), default=0.0)
        for entry in sorted(had, key=lambda n: (had[n], n)):
            shape = self._shapes[taking.next(entry)]
            run = 0.0  # its first one comes at once: how long it takes is not known before
            if self._turn[entry] or taking.has(entry):
                run = shape.width * self._usual[entry] / self._claim[entry]
            passed = self._fills - self._passed_at[entry] >= PATIENCE and not taking.has(entry)
            if (most - had[entry] > run or passed) and taking.gives(entry):
                return entry
        return None


class _Taking:
    """What one decision has taken: its choices, each entry's turn, and the entries that give no
    more."""

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
        """The case whose turn it is, of an entry that has some."""
        cases = self._mix._cases[entry]
        return cases[self.turn(entry) % len(cases)] if len(cases) > 1 else cases[0]

    def turn(self, entry: int) -> int:
        """How many runs of an entry were launched, with those that are now."""
        return self._mix._turn[entry] + self._ahead.get(entry, 0)

    def width(self, entry: int) -> int:
        return self._mix._shapes[self.next(entry)].width

    def gives(self, entry: int) -> bool:
        """Whether an entry may start a run now, targets aside."""
        if entry in self.shut:
            return False
        if self._offer.may(self.next(entry)):
            return True
        self.shut.add(entry)
        return False

    def take(self, entry: int) -> bool:
        """Launch the case whose turn it is; an entry that gives none gives no more now."""
        choice = None if entry in self.shut else self._offer.take(self.next(entry))
        if choice is None:
            self.shut.add(entry)
            return False
        self.choices.append(choice)
        self._ahead[entry] = self._ahead.get(entry, 0) + 1
        self.turns += self._mix._takes_turns(entry)
        return True


def _idle(counts: InFlightCounts, nodes: int) -> int:
    """The nodes that idle, and will when all that is queued and fits on them has started."""
    idle = nodes - counts.running
    if idle > 0:
        for width in sorted(counts.queued_widths, reverse=True):
            if width <= idle:
                idle -= width * min(counts.queued_widths[width], idle // width)
    return idle
