"""The use of nodes over the time of a trial.

    timeline = timeline_of(history, now)
    timeline.total.accepted / timeline.total.available      # utilisation
    timeline.bins(240)                                      # the same over time

Every available node-hour belongs to exactly one use (``USES``), so that they add up: a node on
which runs overlap counts once, and one that is down is down, whatever ran there. The trial's nodes
are available while its clock runs, without planned outages. Sums are of whole nanoseconds, so that
they depend neither on the order of events nor on where time is cut.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from heapq import merge
from itertools import accumulate, pairwise
from operator import add, mul, sub
from typing import NamedTuple

from seatrial.journal.trial_life import end_by
from seatrial.lazy import Ints, np
from seatrial.results.outages import (
    Claim,
    PlannedOutage,
    Span,
    claims_of,
    contested,
    outages_of,
    outside,
    whole_outages,
)
from seatrial.results.trial_history import NO_ENTRY, NodeBits, RunHistory, TrialHistory
from seatrial.units import SECOND_NS

# ---- step functions ------------------------------------------------------------------------------
#
# Step functions over the time of a trial: runs in flight, the load of metadata targets.
#
# in_flight(history, now), target_loads(history, now)["scratch/mdt0"]


class LevelSpan(NamedTuple):
    """A span of the trial (ns) in which a number had one value."""

    start: int
    end: int
    value: float


def levels(
    intervals: Iterable[tuple[int, int, float]], spans: Sequence[Span], without: Sequence[Span] = ()
) -> list[LevelSpan]:
    """Return the sum of the weights of the intervals that are open, over the time of the spans
    without that of others. An interval that ends when another begins makes no dip."""
    by_weight: dict[float, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for start, end, weight in intervals:
        if end > start:
            changes = by_weight[weight]
            changes[start] += 1
            changes[end] -= 1
    clock: dict[int, int] = defaultdict(int)
    for start, end in spans:
        clock[start] += 1
        clock[end] -= 1
    for start, end in without:
        clock[start] -= len(spans) + 1
        clock[end] += len(spans) + 1
    open_now = dict.fromkeys(sorted(by_weight), 0)  # by weight
    found: list[LevelSpan] = []
    running = since = 0
    for at in sorted({*clock}.union(*by_weight.values())):
        if running > 0:
            value = sum([weight * number for weight, number in open_now.items()], 0.0)
            if found and found[-1].end == since and found[-1].value == value:
                found[-1] = found[-1]._replace(end=at)
            else:
                found.append(LevelSpan(since, at, value))
        since = at
        running += clock.get(at, 0)
        for weight, changes in by_weight.items():
            open_now[weight] += changes.get(at, 0)
    return found


class Dip(NamedTuple):
    """Consecutive levels below a bound: the start of the first, and their length, in ns."""

    start: int
    length: int


def dips(found: Iterable[LevelSpan], bound: float) -> list[Dip]:
    """Return the dips below a bound. A time without levels (a pause) does not end a dip."""
    each: list[Dip] = []
    going = False
    for level in found:
        length = level.end - level.start
        if level.value >= bound:
            going = False
        elif going:
            each[-1] = Dip(each[-1].start, each[-1].length + length)
        else:
            each.append(Dip(level.start, length))
            going = True
    return each


def kept_level(found: Sequence[LevelSpan], short: int) -> tuple[float, int]:
    """Return the largest of the levels below which no dip is as long as ``short`` (ns), and the
    start of the first such dip below the next larger level (below this level, if there is none
    larger)."""
    values = sorted({level.value for level in found})

    def lasting(number: int) -> list[Dip]:
        return [dip for dip in dips(found, values[number]) if dip.length >= short]

    low, high = 0, len(values) - 1  # nothing is below the least; the higher, the longer the dips
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (low, middle - 1) if lasting(middle) else (middle, high)
    longer = lasting(low + 1) if low + 1 < len(values) else []
    return values[low], longer[0].start if longer else found[0].start


def in_flight(
    history: TrialHistory, now: int, tests: Iterable[str] | None = None
) -> list[LevelSpan]:
    """Return how many runs held nodes over the trial's time, without planned outages of all nodes;
    runs of these tests, or of all."""
    wanted = None if tests is None else frozenset(tests)
    intervals = [
        (*held, 1.0)
        for run in history.runs
        if (held := run.held_nodes(now)) and (wanted is None or history.test_of(run) in wanted)
    ]
    return levels(intervals, history.window(now), whole_outages(history))


def target_loads(history: TrialHistory, now: int) -> dict[str, list[LevelSpan]]:
    """Return the load of each metadata target over time: the sum of the ``opens`` of the runs
    there, while their jobs hold nodes."""
    by_target: dict[str, list[tuple[int, int, float]]] = {
        target.name: [] for target in history.policy.targets
    }
    for run in history.runs:
        held = run.held_nodes(now)
        if run.target and held is not None and run.entry != NO_ENTRY:
            opens = history.policy_at(run.submitted or 0).entries[run.entry].opens
            by_target.setdefault(run.target, []).append((*held, opens))
    spans = history.window(now)
    return {name: levels(intervals, spans) for name, intervals in by_target.items()}


# ---- use changes ---------------------------------------------------------------------------------
#
# The changes of the use of nodes over the time of a trial, and the pieces between them.
#
#     changes = [defaultdict(int) for _ in range(KINDS)]
#     add_claims(changes, claims, several, bits, partial)
#     add_contested(changes, claims, downs, several, bits, partial)
#     starts, ends, counts = pieces_of(changes)
#
# A change is by how much a number grows at a time. There is one for each use of nodes by a run,
# for the nodes that are down, the runs that are queued, the nodes that are planned to be out, the
# clock of the trial, and the end of all starts.


# What is counted: first the uses.
ACCEPTED, FAILED, GOING, STARTING, KEPT, DOWN, QUEUED, OUT, CLOCK, CLOSED = range(10)
KINDS = CLOSED + 1
# Of several uses of a node the first counts: a node that is down is down.
ORDER = (DOWN, ACCEPTED, FAILED, GOING, STARTING, KEPT)

Changes = defaultdict[int, int]
"""By time (ns), by how much a number grows then."""


def pieces_of(changes: Sequence[Changes]) -> tuple[Ints, Ints, list[Ints]]:
    """Return the pieces between the times at which anything changes, while the clock runs: their
    starts, their ends, and what is counted in each, by kind."""
    times = np.unique(np.concatenate([_times_of(each) for each in changes]))
    runs = _counts(changes[CLOCK], times)[:-1] > 0
    counts = [_counts(each, times)[:-1][runs] for each in changes]
    return times[:-1][runs], times[1:][runs], counts


def _times_of(changes: Changes) -> Ints:
    return np.fromiter(changes, np.int64, len(changes))


def _counts(changes: Changes, times: Ints) -> Ints:
    """Return a number from each of the times on, in their order."""
    steps = np.zeros(len(times), np.int64)
    steps[np.searchsorted(times, _times_of(changes))] = list(changes.values())
    return np.cumsum(steps, out=steps)


def of_queue(runs: Iterable[RunHistory], now: int) -> Changes:
    """Return the changes by the spans in which any run waited in the queue."""
    each_waited = (run.waited(run.held_nodes(now), now) for run in runs)
    waits = [waited for waited in each_waited if waited is not None]
    changes: Changes = defaultdict(int)
    for start, end in _united(waits):
        changes[start] += 1
        changes[end] -= 1
    return changes


def _united(spans: Iterable[Span]) -> Iterator[Span]:
    """Yield the union of some spans as spans with gaps between them, without empty ones."""
    since = until = 0
    for start, end in sorted(spans):
        if start > until:
            if until > since:
                yield since, until
            since = start
        if end > until:
            until = end
    if until > since:
        yield since, until


def add_claims(
    changes: Sequence[Changes],
    claims: Iterable[Claim],
    several: int,
    bits: NodeBits,
    partial: Sequence[PlannedOutage],
) -> None:
    """Add the changes by runs, without their contested nodes; ``partial`` are the planned outages
    of some of the nodes. Nodes that are not known count by the number that was asked for."""
    outages = [(each.start, each.end, bits.of_names(each.names)) for each in partial]
    for start, end, own, run in claims:
        size, known = run.size, own.bit_count()
        if known > size:
            size = known
        if several:
            size -= (own & several).bit_count()
        if not size:
            continue
        for use, begin, stop in _parts(run, (start, end)):
            if stop <= begin:
                continue
            of_use = changes[use]
            of_use[begin] += size
            of_use[stop] -= size
            for since, until, there in outages:
                first, last = max(begin, since), min(stop, until)
                if first < last and (out := (own & there & ~several).bit_count()):
                    of_use[first] -= out
                    of_use[last] += out


def add_contested(
    changes: Sequence[Changes],
    claims: Iterable[Claim],
    downs: Iterable[tuple[str, Span]],
    several: int,
    bits: NodeBits,
    partial: Sequence[PlannedOutage],
) -> None:
    """Add the changes on contested nodes: at each time a node has the first use of ``ORDER`` that
    it is put to. Claims and downs are in the order of their starts, so a node whose claims have all
    ended before the next one is done with: its changes are added, and let go."""
    if not several:
        return
    names = frozenset(bits.names_in(several))
    of_runs = (_uses_of(claim, several, bits, partial) for claim in claims)
    of_downs = (
        _NodesUse(start, end, [(name, [(DOWN, start, end)])])
        for name, (start, end) in downs
        if name in names
    )
    open_until: dict[str, int] = {}
    by_node: dict[str, list[_Change]] = {name: [] for name in names}
    for start, end, uses in merge(of_runs, of_downs, key=lambda each: each.start):
        for name, parts in uses:
            if open_until.get(name, start) < start:
                _add(changes, by_node[name])
                by_node[name] = []
            open_until[name] = max(open_until.get(name, end), end)
            for use, begin, stop in parts:
                by_node[name] += ((begin, use, 1), (stop, use, -1))
    for each in by_node.values():
        _add(changes, each)


_Part = tuple[int, int, int]  # use, start, end
_Change = tuple[int, int, int]  # time, use, by how much


class _NodesUse(NamedTuple):
    """What some nodes were used for between two times (ns), in ``parts`` for each node."""

    start: int
    end: int
    parts: list[tuple[str, list[_Part]]]


def _uses_of(
    claim: Claim, several: int, bits: NodeBits, partial: Sequence[PlannedOutage]
) -> _NodesUse:
    """Return what a run used its contested nodes for, while they were not planned to be out."""
    start, end, own, run = claim
    parts = [
        (
            name,
            [
                (use, since, until)
                for use, begin, stop in _parts(run, (start, end))
                for since, until in outside(name, begin, stop, partial)
            ],
        )
        for name in bits.names_in(own & several)
    ]
    return _NodesUse(start, end, parts)


def _add(changes: Sequence[Changes], of_node: list[_Change]) -> None:
    """Add the changes of one node."""
    for time, use, change in _of_one_node(of_node):
        changes[use][time] += change


def _of_one_node(changes: list[_Change]) -> Iterator[_Change]:
    """Yield the changes by the use of one node, which has one use at a time."""
    changes.sort()
    counts = [0] * QUEUED
    current: int | None = None
    for number, (time, which, change) in enumerate(changes):
        counts[which] += change
        if number + 1 < len(changes) and changes[number + 1][0] == time:
            continue
        use = next((each for each in ORDER if counts[each]), None)
        if use != current:
            if current is not None:
                yield time, current, -1
            if use is not None:
                yield time, use, 1
            current = use


def _parts(run: RunHistory, held: Span) -> tuple[_Part, ...]:
    """Return the parts of a job."""
    start, end = held
    if not run.over:
        return ((GOING, start, end),)
    if not run.passed:
        return ((FAILED, start, end),)
    began, left = run.script(held)
    return (STARTING, start, began), (ACCEPTED, began, left), (KEPT, left, end)


# ---- utilisation ---------------------------------------------------------------------------------


USES = {
    "accepted": "scripts of runs that passed",
    "failed": "jobs of runs that did not pass",
    "going": "jobs of runs that have no verdict yet",
    "starting": "jobs of runs that passed, before the script began",
    "kept": "jobs of runs that passed, after the script's end",
    "down": "nodes that were down",
    "idle": "idle, with nothing queued",
    "unfilled": "idle, though runs were queued",
    "drained": "idle after the last start, with nothing queued",
}
CHUNK = 32  # pieces that are summed at a time


class Use(NamedTuple):
    """Node-nanoseconds by use; ``available`` is the sum of the others."""

    available: int = 0
    accepted: int = 0
    failed: int = 0
    going: int = 0
    starting: int = 0
    kept: int = 0
    down: int = 0
    idle: int = 0
    unfilled: int = 0
    drained: int = 0

    @property
    def held(self) -> int:
        """What jobs held, with or without a script."""
        return self.accepted + self.failed + self.going + self.starting + self.kept

    def share(self, use: str) -> float:
        """Return the share of the available node-ns; 0 where nothing was available."""
        part: int = getattr(self, use)
        return part / self.available if self.available else 0.0


class TestsUse(NamedTuple):
    """Node-nanoseconds: those ``available``, and what runs of some tests used of them."""

    available: int
    accepted: int
    going: int


class Bin(NamedTuple):
    """A span of the trial's clock, in seconds, and the use of the nodes in it."""

    start: float
    end: float
    use: Use


class Timeline(NamedTuple):
    """The use of nodes over time, in pieces in which nothing changed.

    ``starts`` and ``ends`` are the times (ns) of the pieces; ``nodes`` are the nodes by use, a
    column for each member of ``Use``. ``sums`` are the uses in node-ns before each ``CHUNK`` of
    pieces, and after the last; ``down`` are node-ns of nodes that were down, whether or not a run
    held them; ``end`` is the trial's clock at its end, in ns."""

    starts: Ints
    ends: Ints
    nodes: list[Ints]
    sums: list[Use]
    down: int
    end: int
    spans: list[Span]

    @property
    def total(self) -> Use:
        """The node-ns by use of the whole trial."""
        return self.sums[-1]

    def nodes_in(self, use: str) -> Ints:
        """Return the nodes in a use in each piece."""
        return self.nodes[Use._fields.index(use)]

    def bins(self, number: int) -> list[Bin]:
        """Return the uses in so many equal spans of the trial's clock."""
        if not len(self.starts):
            return []
        edges = [self.end * i // number for i in range(number + 1)]
        clock = np.concatenate(([0], np.cumsum(self.ends - self.starts)))
        before = [self._before(edge, clock) for edge in edges]
        return [
            Bin(since / SECOND_NS, until / SECOND_NS, Use._make(map(sub, after, ahead)))
            for (since, ahead), (until, after) in pairwise(zip(edges, before, strict=True))
        ]

    def _before(self, time: int, clock: Ints) -> Use:
        """Return the node-ns by use up to a time of the trial's clock; ``clock`` is the clock at
        the start of each piece, and at the end of the last."""
        place = max(0, int(np.searchsorted(clock[:-1], time, side="right")) - 1)
        chunk = place // CHUNK
        first = chunk * CHUNK
        widths = np.diff(clock[first : place + 1], append=time)
        return _and(self.sums[chunk], Use._make(_node_ns(self.nodes, widths, first)))


# ---- nodes --------------------------------------------------------------------------------


class Utilisation:
    """What the nodes of a trial were used for up to ``now`` (ns), within its duration: by runs,
    by failures, by planned outages."""

    def __init__(self, history: TrialHistory, now: int) -> None:
        self._history = history
        self._now = now
        self._spans = history.window(now)
        self._outages = outages_of(history)
        downs = [
            (down.node, span)
            for down in history.downs
            for span in outside(down.node, down.start, end_by(down.end, now), self._outages)
        ]
        self._downs = sorted(downs, key=lambda down: down[1][0])
        held = [run for run in history.runs if run.held_nodes(now) is not None]
        self._runs = sorted(held, key=self._start)
        self._several = contested(self._claims(), self._downs, history.bits)

    def _start(self, run: RunHistory) -> int:
        """Return when a run's nodes were first held, of one that held any."""
        held = run.held_nodes(self._now)
        return held[0] if held is not None else self._now

    def _claims(self, tests: Collection[str] | None = None) -> Iterator[Claim]:
        """Yield what runs held, of some tests alone if these are given, in the order of time."""
        runs: Iterable[RunHistory] = self._runs
        if tests is not None:
            runs = (run for run in runs if self._history.test_of(run) in tests)
        return claims_of(runs, self._now, self._history.bits)

    def timeline(self) -> Timeline:
        """Return the use of the nodes over time."""
        changes = self._changes(None, self._several)
        changes[QUEUED] = of_queue(self._history.runs, self._now)
        if (last := self._last_start()) is not None:
            changes[CLOSED][last] += 1
        starts, ends, counts = pieces_of(changes)
        nodes = _uses(counts, self._history.nodes)
        widths = ends - starts
        chunks = (
            Use._make(_node_ns(nodes, widths[first : first + CHUNK], first))
            for first in range(0, len(widths), CHUNK)
        )
        sums = list(accumulate(chunks, _and, initial=Use()))
        down = sum(
            max(0, min(end, stop) - max(start, begin))
            for _, (start, end) in self._downs
            for begin, stop in self._spans
        )
        clock = sum(end - start for start, end in self._spans)
        return Timeline(starts, ends, nodes, sums, down, clock, self._spans)

    def total_of(self, tests: Collection[str]) -> TestsUse:
        """Return the node-ns that runs of these tests used, of those that were available."""
        history = self._history
        several = self._several and contested(self._claims(tests), self._downs, history.bits)
        starts, ends, counts = pieces_of(self._changes(tests, several))
        available, accepted, _, going, *_ = _uses(counts, history.nodes)
        return TestsUse._make(_node_ns((available, accepted, going), ends - starts))

    def _changes(self, tests: Collection[str] | None, several: int) -> list[Changes]:
        """Return the changes by the runs of some tests (None: of all), by what was down or planned
        to be out, and by the clock; ``several`` are the bits of the nodes that two of these had at
        a time."""
        bits = self._history.bits
        partial = [outage for outage in self._outages if outage.names]
        changes: list[Changes] = [defaultdict(int) for _ in range(KINDS)]
        add_claims(changes, self._claims(tests), several, bits, partial)
        add_contested(changes, self._claims(tests), self._downs, several, bits, partial)
        names = frozenset(bits.names_in(several))
        for which, intervals in (
            (DOWN, [(*span, 1) for node, span in self._downs if node not in names]),
            (OUT, [(outage.start, outage.end, outage.size) for outage in self._outages]),
            (CLOCK, [(*span, 1) for span in self._spans]),
        ):
            for start, end, number in intervals:
                changes[which][start] += number
                changes[which][end] -= number
        return changes

    def _last_start(self) -> int | None:
        """Return when the last job started, if no more are started; else None."""
        history, spans = self._history, self._spans
        timed_out = bool(history.duration) and history.clock(self._now) >= history.duration
        if not (history.over or timed_out) or not spans:
            return None
        starts = (start for start in map(self._start, self._runs) if start < spans[-1][1])
        return max(starts, default=None)


def timeline_of(history: TrialHistory, now: int) -> Timeline:
    """Return the use of the nodes up to ``now``, within the trial's duration."""
    return Utilisation(history, now).timeline()


def _and(one: Use, other: Use) -> Use:
    return Use._make(map(add, one, other))


def _node_ns(columns: Sequence[Ints], widths: Ints, first: int = 0) -> list[int]:
    """Return the node-ns of each column of nodes, in the pieces from ``first`` on that are so wide
    (ns). The sums are exact: those of 64 bits end at 10,000 nodes in ten days."""
    last, exact = first + len(widths), widths.tolist()
    return [sum(map(mul, column[first:last].tolist(), exact)) for column in columns]


def _uses(counts: Sequence[Ints], nodes: int) -> list[Ints]:
    """Return the nodes by use in each piece, a column for each member of ``Use``. More nodes may be
    in use than there are, as it is not known on which nodes some runs were. Then the uses that come
    first in ``ORDER`` count."""
    parts, queued, closed = counts[:QUEUED], counts[QUEUED], counts[CLOSED]
    available = np.maximum(0, nodes - counts[OUT])
    left = available.copy()
    for use in ORDER:
        np.minimum(parts[use], left, out=parts[use])
        left -= parts[use]
    unfilled = np.where(queued > 0, left, 0)
    idle = left - unfilled
    drained = np.where(closed > 0, idle, 0)
    return [available, *parts, idle - drained, unfilled, drained]


def available_in_all(history: TrialHistory, now: int) -> int | None:
    """Return the node-ns that will have been available when the trial's duration is over, if its
    clock runs on from now; None where it has no duration. Future outages are those that are planned
    so far."""
    if not history.duration or history.start is None:
        return None
    spans = history.window(now)
    left = round(history.duration * SECOND_NS) - sum(end - start for start, end in spans)
    if left > 0:
        spans = [*spans, (now, now + left)]
    total = history.nodes * sum(end - start for start, end in spans)
    for outage in outages_of(history):
        for start, end in spans:
            total -= outage.size * max(0, min(end, outage.end) - max(start, outage.start))
    return total
