"""The demand of a sustained trial: a mix of tests that keeps the machine full.

Each test has a planned share of the machine (``shares``): its copies, its share, its part of what
these leave, or with ``fill`` what all others leave. Runs are chosen in three steps, each as far as
caps and throttles allow:

1. *copies*: tests with copies get as many runs in flight as they have copies. The test that lacks
the largest part of its copies is first; of equal ones the test with the larger share.

2. *shares*: runs are added until the reserve waits at the scheduler and the waiting runs cover the
idle nodes. The fairest test (see below) is next. Where it does not fit on the idle nodes and the
reserve is there, the fairest of the tests that fit is next. A test with copies gets runs beyond
them only where they have to wait, so that its next run is ready when one of its copies ends.

3. *gaps*: where nodes are still idle, the largest test that fits, of those without a share: all is
claimed by others.

The fairest test is, as in weighted fair queueing, the one with the least node-seconds, delivered
and in flight, over its share. So no test starves, and a test that fell behind catches up. While one
is behind by several runs, each second turn goes to a test that with it holds at most half its share
of the nodes, so that the others do not starve.

Where the shares add up to less than the machine, and no test fills it, the rest stays idle
(``pace``): a share is a part of the machine, not of what the others use.

On a shared node cores count instead of nodes; there is no queue, and runs start until the node is
full. A large run would never find enough free cores. So nothing else starts before it when its test
is behind by more than a run (at first: by anything), or when ``PATIENCE`` runs without a share have
started before it.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence

from seatrial.decide.demand import Budget, ChosenRun, Demand
from seatrial.decide.in_flight import (
    ROUNDING,
    InFlightCounts,
    Requests,
    RunInFlight,
    planned_shares,
    widest_of,
)
from seatrial.model.policy import Policy
from seatrial.model.test import Case
from seatrial.units import SECOND_NS

PATIENCE = 10
MAX_OVER = 0.02  # of all node-hours, that a test may have beyond its share to fill gaps
CATCH_UP = 4  # runs that a test must be behind, before others get turns beside it


class Mix(Demand):
    """The runs that each entry has had, and the one that it gets next. The cases of an entry take
    turns. ``cores`` is the cores of a shared node, 0 where there is none."""

    def __init__(
        self, cases: Sequence[Case], policy: Policy, requests: Requests, cores: int
    ) -> None:
        entries = policy.entries
        self._entry_of = policy.entry_of
        self._shared = bool(cores)
        self._requests = requests
        self._cases: list[list[int]] = [[] for _ in entries]  # cases that can start, by entry
        self._closed = set(range(len(entries)))  # entries without such cases
        self._least = 0  # the width of the narrowest such case
        self._widest = widest_of(requests, len(entries))
        self._width = self._widest.copy()  # of each case of an entry; 0 where they differ
        for request in requests:
            if request.width < self._widest[request.entry]:
                self._width[request.entry] = 0
        self._whole = cores or policy.nodes
        self._follow(policy)
        self._delivered = [0.0] * len(entries)  # width x seconds
        self._seconds = [0.0] * len(entries)  # of runs that started and ended
        self._ended = [0] * len(entries)
        self._walltime = [0.0] * len(entries)
        for case, request in zip(cases, requests, strict=True):
            self._walltime[request.entry] = max(self._walltime[request.entry], case.walltime)
        self._usual = self._walltime.copy()  # mean seconds of a run, or what is assumed of it
        self._turn = [0] * len(entries)  # runs launched, by entry
        self._turns = 0  # runs launched of tests with a share and no copies
        self._gaps = 0  # runs launched of tests without a share
        self._passed_at = [0] * len(entries)  # ``_gaps`` when an entry was last launched

    def _follow(self, policy: Policy) -> None:
        """Take the shares, the copies and the reserve of a policy."""
        widths, whole = self._widest, self._whole
        self._copies = [entry.copies for entry in policy.entries]
        self._with_copies = [n for n, copies in enumerate(self._copies) if copies]
        self._reserve = policy.reserve
        planned = planned_shares(policy, widths, whole)
        self._share = planned.shares
        self._claimed = [n for n, share in enumerate(self._share) if share > 0]
        self._unclaimed = [n for n, share in enumerate(self._share) if not share]
        self._keeps_to_copies = _keeps_to_copies(policy, widths, whole)
        self._pace: Pace | None = None
        if planned.left > ROUNDING:
            self._pace = Pace([share * whole for share in planned.shares], widths, self._copies)
        # entries that may always have one more run in flight
        self._is_free = [self._pace is None and not keeps for keeps in self._keeps_to_copies]

    # ---- events in ------------------------------------------------------------------------

    def change(self, policy: Policy, flights: Iterable[RunInFlight], now: int) -> None:
        """Share by another policy from now on. What a test lacks of its former share, or has had
        beyond it, is still made up for; but a new share asks for nothing from before the change."""
        going = [0.0] * len(self._share)  # node-seconds of runs that were not added yet
        for flight in flights:
            began = flight.job_started or flight.script_started
            if began is not None and flight.has_job:
                going[flight.entry] += flight.request.width * max(0, now - began) / SECOND_NS
        had = [each + more for each, more in zip(self._delivered, going, strict=True)]
        total, former = sum(had), self._share
        self._follow(policy)
        for n, share in enumerate(self._share):
            lag = had[n] - former[n] * total if share > 0 and former[n] > 0 else 0.0
            self._delivered[n] = lag - going[n]

    def __len__(self) -> int:
        return 1 << 30 if self._least else 0

    def ready(self, case: int) -> None:
        cases = self._cases[self._entry_of[case]]
        if case not in cases:
            cases.append(case)
            cases.sort()
            self._closed.discard(self._entry_of[case])
            self._least = min(self._least or 1 << 30, self._requests[case].width)

    def left(self) -> Collection[int]:
        return [case for cases in self._cases for case in cases]

    def launched(self, case: int, time: int) -> None:
        entry = self._entry_of[case]
        self._turn[entry] += 1
        self._turns += self._takes_turns(entry)
        self._gaps += not self._share[entry]
        self._passed_at[entry] = self._gaps
        if self._pace is not None:
            self._pace.launched(entry, self._requests[case].width, time, self._usual[entry])

    def ended(self, flight: RunInFlight, seconds: float) -> None:
        entry = flight.entry
        self._delivered[entry] += flight.request.width * seconds
        if flight.job_started or seconds:
            self._seconds[entry] += seconds
            self._ended[entry] += 1
            self._usual[entry] = self._seconds[entry] / self._ended[entry]
            self._assume()

    def _assume(self) -> None:
        """Assume that a test of which no run has ended takes the same part of its walltime as the
        others do."""
        if all(self._ended):
            return
        known = [n for n, ended in enumerate(self._ended) if ended]
        part = sum(self._usual[n] for n in known) / sum(self._walltime[n] for n in known)
        for n, ended in enumerate(self._ended):
            if not ended:
                self._usual[n] = part * self._walltime[n]

    def _takes_turns(self, entry: int) -> bool:
        return self._share[entry] > 0 and not self._copies[entry]

    def passes_over(self, entry: int, other: int, counts: InFlightCounts, idle: int) -> bool:
        if not self._share[other] or self._copies[entry]:
            return False
        waits = not self._shared and counts.queued < self._reserve
        if not waits and self._widest[other] > idle:
            return False
        if not self._share[entry]:
            return self._surplus(counts)[0][other] <= 0
        had, other_had = self._had((entry, other), counts)
        return had >= other_had and self._held(entry, counts) >= self._held(other, counts)

    # ---- choices out ----------------------------------------------------------------------

    def wants(self, counts: InFlightCounts, cores: int, nodes: int) -> bool:
        if self._shared:
            return 0 < self._least <= cores
        if counts.queued < self._reserve:
            return True
        in_flight, copies = counts.in_flight, self._copies
        if any(in_flight[n] < copies[n] for n in self._with_copies):
            return True
        return self._least <= counts.idle(nodes)

    def asks_after_start(self, counts: InFlightCounts, idle_changed: bool) -> bool:
        """Return True if the queue fell below its reserve, or the number of idle nodes changed.

        Where nodes are shared a start takes no idle node, so it changes neither.
        """
        if self._shared:
            return False
        return counts.queued == self._reserve - 1 or idle_changed or bool(counts.confined)

    def choose(self, budget: Budget) -> list[ChosenRun]:
        taking = _Taking(self, budget)
        if self._shared:
            while (first := self._must_be_next(budget, taking)) is not None:
                if not taking.take(first):
                    return taking.choices
        if budget.follows_load:
            self._keep_room(budget, taking)
        if self._with_copies:
            self._to_copies(budget, taking)
        if self._claimed:
            self._to_claims(budget, taking)
        if self._unclaimed:
            self._to_gaps(budget, taking)
        return taking.choices

    def next_start(self, now: int, launches: Requests, counts: InFlightCounts) -> int | None:
        """Return when a test that is kept to its share may start its next run (ns), if runs of
        these requests are launched now; None where only an event can let one start."""
        if self._pace is None:
            return None
        return self._pace.next_start(now, launches, counts, self._usual)

    def _to_copies(self, budget: Budget, taking: "_Taking") -> None:
        copies = self._copies

        def lack(entry: int) -> tuple[float, float, int]:
            return budget.counts.in_flight[entry] / copies[entry], -self._share[entry], entry

        short = [n for n in self._with_copies if budget.counts.in_flight[n] < copies[n]]
        while short:
            entry = min(short, key=lack)
            if not taking.take(entry) or budget.counts.in_flight[entry] >= copies[entry]:
                short.remove(entry)

    def _to_claims(self, budget: Budget, taking: "_Taking") -> None:
        """Take runs of tests with a share, the fairest first."""
        open_ones = [n for n in self._claimed if n not in taking.shut]
        while open_ones:
            entry = self._next_claim(open_ones, budget, taking)
            if entry is None:
                return
            if not taking.take(entry):
                open_ones.remove(entry)

    def _next_claim(self, entries: Sequence[int], budget: Budget, taking: "_Taking") -> int | None:
        """Return the fairest of some entries; where it would neither wait at the scheduler nor fit,
        the fairest of those that fit. None: no run is to be taken."""
        counts, idle = budget.counts, self._idle(budget)
        waits = not self._shared and counts.queued < self._reserve
        if not waits and idle < self._least:
            return None
        due = self._due(entries, taking, budget, idle)
        if not due:
            return None
        entry = self._fairest(due, counts, (self._turns + taking.turns) % 2 == 1)
        if waits or taking.width(entry) <= idle or not taking.gives(entry):
            return entry
        surplus, total = self._surplus(counts)
        fitting = [
            n
            for n in due
            if taking.width(n) <= idle and surplus[n] <= max(MAX_OVER * total, 2 * self._of_run(n))
        ]
        return self._fairest(fitting, counts, odd=False) if fitting else None

    def _idle(self, budget: Budget) -> int:
        """Return the nodes, or cores of a shared node, that will be idle."""
        return budget.cores if self._shared else budget.counts.idle(budget.nodes)

    def _due(
        self, entries: Sequence[int], taking: "_Taking", budget: Budget, idle: int
    ) -> Sequence[int]:
        """Return those of some entries that may have one more run in flight: they have fewer than
        their copies, or the run would wait and be ready when one of them ends; or the pace allows
        it."""
        counts = budget.counts
        if self._pace is not None:
            widths = [taking.width(n) for n in entries]
            usual, ahead = self._usual, taking.widths
            return self._pace.allowed(entries, widths, counts, budget.now, usual, ahead)
        free, copies, in_flight = self._is_free, self._copies, counts.in_flight
        ready = 0 if self._shared else self._reserve
        return [
            n
            for n in entries
            if free[n]
            or in_flight[n] < copies[n]
            or (in_flight[n] < copies[n] + ready and taking.width(n) > idle)
        ]

    def _fairest(self, entries: Sequence[int], counts: InFlightCounts, odd: bool) -> int:
        """Return the entry that has had the least for its share; of equal ones the widest. While
        one catches up, return at ``odd`` turns an entry that then holds at most half its share."""
        share, width, widest = self._share, counts.width, self._widest
        had = self._had(entries, counts)
        behind = max(had) - min(had) if odd else 0.0
        if odd and all(behind > CATCH_UP * self._of_run(n) / share[n] for n in entries):
            least = min((self._held(n, counts), -widest[n], n) for n in entries)
            if least[0] <= sum(width) / 2:
                return least[2]
        least_had = min(had)
        if had.count(least_had) == 1:
            return entries[had.index(least_had)]
        equal = [n for n, each in zip(entries, had, strict=True) if each == least_had]
        return min(equal, key=lambda n: (-widest[n], n))

    def _held(self, entry: int, counts: InFlightCounts) -> float:
        """Return what an entry would hold with one more run, over its share."""
        return (counts.width[entry] + self._widest[entry]) / self._share[entry]

    def _had(self, entries: Sequence[int], counts: InFlightCounts) -> list[float]:
        """Return what each of these entries has had and has in flight, over its share."""
        had, under_way, usual, share = self._delivered, counts.width, self._usual, self._share
        return [(had[n] + under_way[n] * usual[n]) / share[n] for n in entries]

    def _surplus(self, counts: InFlightCounts) -> tuple[list[float], float]:
        """Return the node-seconds, delivered and in flight, that each entry has had beyond its
        share of all, and the sum of all."""
        usual, width, share = self._usual, counts.width, self._share
        had = [each + width[n] * usual[n] for n, each in enumerate(self._delivered)]
        total = sum(had)
        return [each - share[n] * total for n, each in enumerate(had)], total

    def _of_run(self, entry: int) -> float:
        """Return the node-seconds of a usual run."""
        return self._widest[entry] * self._usual[entry]

    def _to_gaps(self, budget: Budget, taking: "_Taking") -> None:
        open_ones = [n for n in self._unclaimed if n not in taking.shut]
        while open_ones:
            idle = self._idle(budget)
            if idle < self._least:
                return
            fitting = [
                (width, -taking.turn(n), -n)
                for n in open_ones
                if (width := taking.width(n)) <= idle
            ]
            if not fitting:
                return
            entry = -max(fitting)[2]
            if not taking.take(entry):
                open_ones.remove(entry)

    def _must_be_next(self, budget: Budget, taking: "_Taking") -> int | None:
        """Return the entry that all others wait for on a shared node; None where there is none."""
        ready = self._due([n for n in self._claimed if self._cases[n]], taking, budget, 0)
        had = dict(zip(ready, self._had(ready, budget.counts), strict=True))
        max_had = max(had.values(), default=0.0)
        for entry in sorted(had, key=lambda n: (had[n], n)):
            request = self._requests[taking.next(entry)]
            run = 0.0  # the first comes at once, as its time is not known
            if self._turn[entry] or taking.has(entry):
                run = request.width * self._usual[entry] / self._share[entry]
            passed = self._gaps - self._passed_at[entry] >= PATIENCE and not taking.has(entry)
            if (max_had - had[entry] > run or passed) and taking.gives(entry):
                return entry
        return None

    def _keep_room(self, budget: Budget, taking: "_Taking") -> None:
        """Keep what the target of a throttle leaves for the test that is furthest behind, where it
        is behind by more than a run and only lacks room: else the small loads of others would pass
        it for ever."""
        ready = [n for n in self._claimed if self._cases[n] and n not in taking.shut]
        ready = list(self._due(ready, taking, budget, 0))
        had = dict(zip(ready, self._had(ready, budget.counts), strict=True))
        ahead = max(self._had(self._claimed, budget.counts), default=0.0)
        for entry in sorted(had, key=lambda n: (had[n], n)):
            case = taking.next(entry)
            run = self._of_run(entry) / self._share[entry] if self._turn[entry] else 0.0
            if ahead - had[entry] > run and budget.keep_room(case):
                return


class _Taking:
    """The choices of one decision, the turn of each entry, and the entries that give no more
    runs."""

    def __init__(self, mix: Mix, budget: Budget) -> None:
        self._mix = mix
        self._budget = budget
        self._ahead: dict[int, int] = {}
        self.widths: dict[int, int] = {}  # of the runs that were chosen, by entry
        self.choices: list[ChosenRun] = []
        self.turns = 0
        self.shut = mix._closed | budget.shut

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
        return self._mix._width[entry] or self._mix._requests[self.next(entry)].width

    def gives(self, entry: int) -> bool:
        """Return whether an entry may start a run now, targets aside."""
        if entry in self.shut:
            return False
        if self._budget.may_start(self.next(entry)):
            return True
        self.shut.add(entry)
        return False

    def take(self, entry: int) -> bool:
        """Choose the case whose turn it is. Returns whether that was possible; if not, the entry
        gives no more runs in this decision."""
        choice = None if entry in self.shut else self._budget.take(self.next(entry))
        if choice is None:
            self.shut.add(entry)
            return False
        self.choices.append(choice)
        width = self._mix._requests[choice.case].width
        self.widths[entry] = self.widths.get(entry, 0) + width
        self._ahead[entry] = self._ahead.get(entry, 0) + 1
        self.turns += self._mix._takes_turns(entry)
        return True


def _keeps_to_copies(policy: Policy, widths: Sequence[int], whole: int) -> list[bool]:
    """Return which entries have no share but their copies."""
    return [
        entry.copies > 0 and entry.weight <= entry.copies * width / max(whole, 1) + ROUNDING
        for entry, width in zip(policy.entries, widths, strict=True)
    ]


# ---- pace ----------------------------------------------------------------------------------------
#
# The pace of tests whose shares leave a part of the machine idle.
#
# A test may always start a run where its runs in flight then hold no more nodes than its share. A
# share that is no whole number of runs is kept in time: a further run starts when the runs so far,
# at their usual time, have used up the share up to now (the generic cell rate algorithm, ITU-T
# I.371). Time that was lost before is made up for by one run at most.


class Pace:
    """The share of each entry in ``nodes`` (of a shared node: in cores), and what it has started.

    Since ``_base`` (ns) the runs that were launched have a width of ``_width`` together."""

    def __init__(
        self, nodes: Sequence[float], widths: Sequence[int], copies: Sequence[int]
    ) -> None:
        self._nodes = [each + ROUNDING for each in nodes]
        fitting = [int(each // width) for each, width in zip(self._nodes, widths, strict=True)]
        # tests with copies alone keep to them; others may make up for lost time by one run
        self._most = [
            number if 0 < runs <= number else runs + 1
            for number, runs in zip(copies, fitting, strict=True)
        ]
        self._widths = widths
        self._base = [0] * len(nodes)  # 0 before the first launch
        self._width = [0] * len(nodes)
        self._known: list[tuple[float, int] | None] = [None] * len(nodes)

    def launched(self, entry: int, width: int, time: int, usual: float) -> None:
        """Record the launch of a run. ``usual`` is the time of a run of the entry in seconds."""
        earliest = self._earliest(entry, time, usual)
        if earliest > self._base[entry] + self._span(entry, self._width[entry], usual):
            self._base[entry], self._width[entry] = earliest, 0
        self._width[entry] += width
        self._known[entry] = None

    def due(self, entry: int, now: int, usual: float, ahead: int = 0) -> int:
        """Return when the share will be used up (ns) by the runs so far, and by runs of the width
        ``ahead`` that are launched now."""
        due = self._used_up(entry, usual)
        if due < now and (earliest := self._earliest(entry, now, usual)) > due:
            return earliest + self._span(entry, ahead, usual)
        if not ahead:
            return due
        return self._base[entry] + self._span(entry, self._width[entry] + ahead, usual)

    def _used_up(self, entry: int, usual: float) -> int:
        """Return when the share is used up by the runs that were launched (ns); kept, as it is
        asked for often between two launches."""
        known = self._known[entry]
        if known is None or known[0] != usual:
            span = self._span(entry, self._width[entry], usual)
            known = self._known[entry] = usual, self._base[entry] + span
        return known[1]

    def _earliest(self, entry: int, now: int, usual: float) -> int:
        """Return the time before which nothing is made up for: that of one run, none at first."""
        if not self._base[entry]:
            return now
        return now - self._span(entry, self._widths[entry], usual)

    def _span(self, entry: int, width: int, usual: float) -> int:
        """Return in what time (ns) the share of an entry comes to a run of a width."""
        return math.ceil(width * usual * SECOND_NS / self._nodes[entry])

    def allowed(
        self,
        entries: Sequence[int],
        widths: Sequence[int],
        counts: InFlightCounts,
        now: int,
        usual: Sequence[float],
        ahead: Mapping[int, int],
    ) -> list[int]:
        """Return those of some entries of which a run of their width may start now, after runs of
        the widths ``ahead`` that are launched with it. ``counts`` includes these."""
        in_flight, held, max_runs, nodes = counts.in_flight, counts.width, self._most, self._nodes
        return [
            n
            for n, width in zip(entries, widths, strict=True)
            if in_flight[n] < max_runs[n]
            and (held[n] + width <= nodes[n] or self.due(n, now, usual[n], ahead.get(n, 0)) <= now)
        ]

    def next_start(
        self,
        now: int,
        launches: Requests,
        counts: InFlightCounts,
        usual: Sequence[float],
    ) -> int | None:
        """Return the earliest time after now (ns) at which a share is used up, if runs of these
        requests are launched now; None if there is none."""
        runs, ahead = counts.in_flight, [0] * len(usual)
        if launches:
            runs = list(runs)
            for request in launches:
                ahead[request.entry] += request.width
                runs[request.entry] += 1
        earliest = None
        for entry, max_runs in enumerate(self._most):
            if runs[entry] < max_runs:
                due = self.due(entry, now, usual[entry], ahead[entry])
                if due > now and (earliest is None or due < earliest):
                    earliest = due
        return earliest
