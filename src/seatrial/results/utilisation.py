"""The use of nodes over the time of a trial.

    timeline = timeline_of(history, now)
    timeline.total.accepted / timeline.total.available      # utilisation
    timeline.bins(240)                                      # the same over time

Every available node-hour belongs to exactly one use (``USES``), so that they add up: a node on
which runs overlap counts once, and one that is down is down, whatever ran there. The trial's nodes
are available while its clock runs, without planned outages. Sums are of whole nanoseconds, so that
they depend neither on the order of events nor on where time is cut.
"""

from array import array
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush
from itertools import accumulate, groupby, pairwise
from operator import add, itemgetter, mul, sub
from typing import NamedTuple

from msgspec import Struct

from seatrial.journal.trial import end_by
from seatrial.results.trial_history import (
    NO_ENTRY,
    NodeBits,
    RunHistory,
    Span,
    TrialHistory,
    outages_of,
    outside,
    whole_outages,
)
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


def _changes(intervals: Iterable[tuple[int, int, float]]) -> dict[float, dict[int, int]]:
    """Return by weight, then by time, how many more intervals are open from then on."""
    by_weight: dict[float, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for start, end, weight in intervals:
        if end > start:
            by_weight[weight][start] += 1
            by_weight[weight][end] -= 1
    return by_weight


def levels(
    intervals: Iterable[tuple[int, int, float]], spans: Sequence[Span], without: Sequence[Span] = ()
) -> list[LevelSpan]:
    """Return the sum of the weights of the intervals that are open, over the time of the spans
    without that of others. An interval that ends when another begins makes no dip."""
    by_weight = _changes(intervals)
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


def few_levels(levels: Sequence[LevelSpan], most: int) -> Sequence[LevelSpan]:
    """Return few enough levels to draw: the least and the largest of each of many equal spans."""
    if len(levels) <= most:
        return levels
    first, length = levels[0].start, levels[-1].end - levels[0].start
    kept: list[LevelSpan] = []
    for _, group in groupby(levels, lambda level: (level.start - first) * most // 3 // length):
        group_levels = list(group)
        kept += sorted(
            {min(group_levels, key=_value), max(group_levels, key=_value), group_levels[-1]}
        )
    ends = [level.start for level in kept[1:]] + [levels[-1].end]
    gaps = {level.end for level, after in pairwise(levels) if after.start > level.end}
    return [
        level if level.end in gaps else LevelSpan(level.start, end, level.value)
        for level, end in zip(kept, ends, strict=True)
    ]


def _value(level: LevelSpan) -> float:
    return level.value


class Dip(Struct, frozen=True):
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


# ---- pieces of time ------------------------------------------------------------------------------
#
# The pieces of a trial's time in which nothing changes, with what the nodes were used for.
#
#     changes = in_order(claims, heap)      # of runs and of all else, one after another
#     pieces_of(changes, nodes)
#
# A trial may have a million runs on thousands of nodes. So the changes are made one after another,
# and the nodes of each use are the bits of whole numbers, of which few exist at a time.


# What changes: first the uses.
ACCEPTED, FAILED, GOING, STARTING, KEPT, DOWN, QUEUED, OUT, CLOCK, CLOSED = range(10)
# Of several uses of a node the first counts: a node that is down is down.
ORDER = (DOWN, ACCEPTED, FAILED, GOING, STARTING, KEPT)

Change = tuple[int, int, int, int, int]
"""When (ns), of what, +1 or -1, the bits of the nodes, and the number of those without bits."""


def begin_and_end(kind: int, span: Span, bits: int = 0, number: int = 0) -> tuple[Change, Change]:
    """Return the changes of something that begins and ends."""
    start, end = span
    return (start, kind, 1, bits, number), (end, kind, -1, bits, number)


def in_order(
    runs: Iterable[RunHistory],
    now: int,
    bits: NodeBits,
    others: Iterable[Change],
    uses: Collection[int] = ORDER,
) -> Iterator[Change]:
    """Yield the changes of some uses by runs, which are in the order of their starts, and all
    others, in the order of time. Nodes that are not known count by the number that was asked
    for."""
    heap = list(others)
    heapify(heap)
    for run in runs:
        held = run.held_nodes(now)
        if held is None:
            continue
        while heap and heap[0][0] < held[0]:
            yield heappop(heap)
        own = bits.of(run.nodes)
        unknown = max(0, run.size - own.bit_count())
        for use, start, end in _parts(run, held):
            if start < end and use in uses:
                for change in begin_and_end(use, (start, end), own, unknown):
                    heappush(heap, change)
    while heap:
        yield heappop(heap)


def _parts(run: RunHistory, held: Span) -> tuple[tuple[int, int, int], ...]:
    """Return the parts of a job: the use, the start and the end of each."""
    start, end = held
    if not run.over:
        return ((GOING, start, end),)
    if not run.passed:
        return ((FAILED, start, end),)
    began, left = run.script(held)
    return (STARTING, start, began), (ACCEPTED, began, left), (KEPT, left, end)


class _UsedNodes:
    """The nodes in one use: ``levels[n]`` has the bits of those that more than n runs put to it;
    ``unknown`` is the number of those without bits."""

    def __init__(self) -> None:
        self.levels = [0]
        self.unknown = 0

    def change(self, sign: int, bits: int, unknown: int) -> None:
        """Record that a run begins or ends to use nodes."""
        self.unknown += sign * unknown
        levels = self.levels
        if sign > 0:
            for level, before in enumerate(levels):
                levels[level] = before | bits
                bits &= before
            if bits:
                levels.append(bits)
        else:
            for level in range(len(levels) - 1, -1, -1):
                lowered = levels[level] & bits
                levels[level] ^= lowered
                bits ^= lowered


class NodeUses:
    """What the nodes of a trial are used for at a time."""

    def __init__(self, nodes: int) -> None:
        self._nodes = nodes
        self._used = [_UsedNodes() for _ in ORDER]
        self._out = 0  # the bits of nodes that are planned to be out, where these are named
        self._numbers = dict.fromkeys((QUEUED, OUT, CLOCK, CLOSED), 0)

    @property
    def clock_runs(self) -> bool:
        return self._numbers[CLOCK] > 0

    def change(self, kind: int, sign: int, bits: int, number: int) -> None:
        if kind < QUEUED:
            self._used[kind].change(sign, bits, number)
            return
        self._numbers[kind] += sign * number
        if kind == OUT:
            self._out ^= bits

    def by_use(self) -> list[int]:
        """Return the nodes by use, a number for each member of ``Use``. More nodes may be in use
        than there are, as it is not known on which nodes some runs were. Then the uses that come
        first in ``ORDER`` count."""
        available = left = max(0, self._nodes - self._numbers[OUT])
        parts = [0] * len(ORDER)
        elsewhere = self._out
        for use in ORDER:
            used = self._used[use]
            if used.levels[0] or used.unknown:
                bits = used.levels[0] & ~elsewhere
                elsewhere |= bits
                parts[use] = min(left, bits.bit_count() + used.unknown)
                left -= parts[use]
        unfilled = left if self._numbers[QUEUED] else 0
        drained = left - unfilled if self._numbers[CLOSED] else 0
        return [available, *parts, left - unfilled - drained, unfilled, drained]


class Pieces(NamedTuple):
    """The pieces of a trial's time in which nothing changes.

    ``starts`` and ``ends`` are their times (ns); ``nodes`` are the nodes by use in each, a column
    for each member of ``Use``."""

    starts: Sequence[int]
    ends: Sequence[int]
    nodes: list[Sequence[int]]


def pieces_of(changes: Iterable[Change], nodes: int) -> Pieces:
    """Return the pieces between the times at which anything changes, while the clock runs."""
    starts, ends = array("q"), array("q")
    two_bytes_do = nodes < 1 << 15
    rows = array("h" if two_bytes_do else "i")
    uses, since = NodeUses(nodes), 0
    for time, together in groupby(changes, itemgetter(0)):
        if uses.clock_runs:
            starts.append(since)
            ends.append(time)
            rows.extend(uses.by_use())
        for _, kind, sign, bits, number in together:
            uses.change(kind, sign, bits, number)
        since = time
    table, columns = memoryview(rows), len(Use._fields)
    return Pieces(starts, ends, [table[column::columns] for column in range(columns)])


def united(spans: Iterable[Span]) -> Iterator[Span]:
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
CHUNK = 64  # pieces that are summed at a time


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


class Bin(NamedTuple):
    """A span of the trial's clock, in seconds, and the use of the nodes in it."""

    start: float
    end: float
    use: Use


class Timeline(Struct, frozen=True):
    """The use of nodes over time, in pieces in which nothing changed.

    ``starts`` and ``ends`` are the times (ns) of the pieces; ``nodes`` are the nodes by use, a
    column for each member of ``Use``. ``sums`` are the uses in node-ns before each ``CHUNK`` of
    pieces, and after the last; ``down`` are node-ns of nodes that were down, whether or not a run
    held them; ``end`` is the trial's clock at its end, in ns."""

    starts: Sequence[int]
    ends: Sequence[int]
    nodes: list[Sequence[int]]
    sums: list[Use]
    down: int
    end: int
    spans: list[Span]

    @property
    def total(self) -> Use:
        """The node-ns by use of the whole trial."""
        return self.sums[-1]

    def nodes_in(self, use: str) -> Sequence[int]:
        """Return the nodes in a use in each piece."""
        return self.nodes[Use._fields.index(use)]

    def bins(self, number: int) -> list[Bin]:
        """Return the uses in so many equal spans of the trial's clock."""
        if not len(self.starts):
            return []
        edges = [self.end * i // number for i in range(number + 1)]
        clock = array("q", accumulate(_widths(self.starts, self.ends), initial=0))
        before = [self._before(edge, clock) for edge in edges]
        return [
            Bin(since / SECOND_NS, until / SECOND_NS, Use._make(map(sub, after, ahead)))
            for (since, ahead), (until, after) in pairwise(zip(edges, before, strict=True))
        ]

    def _before(self, time: int, clock: Sequence[int]) -> Use:
        """Return the node-ns by use up to a time of the trial's clock; ``clock`` is the clock at
        the start of each piece, and at the end of the last."""
        place = max(0, bisect_right(clock, time, hi=len(self.starts)) - 1)
        chunk = place // CHUNK
        first = chunk * CHUNK
        starts = clock[first : place + 1]
        widths = _widths(starts, [*starts[1:], time])
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
        self._downs = [
            (down.node, span)
            for down in history.downs
            for span in outside(down.node, down.start, end_by(down.end, now), self._outages)
        ]
        self._runs = sorted(history.runs, key=self._start)

    def _start(self, run: RunHistory) -> int:
        """Return when a run's nodes were first held; ``now`` of one that held none."""
        held = run.held_nodes(self._now)
        return held[0] if held is not None else self._now

    def timeline(self) -> Timeline:
        """Return the use of the nodes over time."""
        starts, ends, nodes = pieces_of(self._changes(), self._history.nodes)
        widths = _widths(starts, ends)
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

    def total_of(self, tests: Collection[str]) -> Use:
        """Return the node-ns of runs of these tests that passed or go on, of those available."""
        starts, ends, nodes = pieces_of(self._changes(tests), self._history.nodes)
        available, accepted, _, going = _node_ns(nodes[:4], _widths(starts, ends))
        return Use(available=available, accepted=accepted, going=going)

    def _queue_changes(self) -> Iterator[Change]:
        """Yield when runs waited in the queue, and when the last one started."""
        now = self._now
        waits = (run.waited(run.held_nodes(now), now) for run in self._history.runs)
        for span in united(waited for waited in waits if waited is not None):
            yield from begin_and_end(QUEUED, span, number=1)
        if (last := self._last_start()) is not None:
            yield last, CLOSED, 1, 0, 1

    def _changes(self, tests: Collection[str] | None = None) -> Iterator[Change]:
        """Return the changes of what the nodes are used for, by the runs of some tests that passed,
        failed or go on (None: by all)."""
        history, now, bits = self._history, self._now, self._history.bits
        runs: Iterable[RunHistory] = self._runs
        uses: Collection[int] = ORDER
        others: list[Change] = []
        if tests is not None:
            runs = (run for run in runs if history.test_of(run) in tests)
            uses = (ACCEPTED, FAILED, GOING)  # the others change none of what is asked
        else:
            others += self._queue_changes()
        for node, span in self._downs:
            others += begin_and_end(DOWN, span, bits.of_names([node]))
        for outage in self._outages:
            named = bits.of_names(outage.names)
            others += begin_and_end(OUT, (outage.start, outage.end), named, outage.size)
        for span in self._spans:
            others += begin_and_end(CLOCK, span, number=1)
        return in_order(runs, now, bits, others, uses)

    def _last_start(self) -> int | None:
        """Return when the last job started, if no more are started; else None."""
        history, spans = self._history, self._spans
        timed_out = bool(history.duration) and history.clock(self._now) >= history.duration
        if not (history.over or timed_out) or not spans:
            return None
        latest_first = map(self._start, reversed(self._runs))
        return next((start for start in latest_first if start < spans[-1][1]), None)


def timeline_of(history: TrialHistory, now: int) -> Timeline:
    """Return the use of the nodes up to ``now``, within the trial's duration."""
    return Utilisation(history, now).timeline()


def _and(one: Use, other: Use) -> Use:
    return Use._make(map(add, one, other))


def _widths(starts: Sequence[int], ends: Sequence[int]) -> Sequence[int]:
    """Return how wide some pieces are (ns)."""
    return array("q", map(sub, ends, starts))


def _node_ns(columns: Sequence[Sequence[int]], widths: Sequence[int], first: int = 0) -> list[int]:
    """Return the node-ns of each column of nodes, in the pieces from ``first`` on that are so wide
    (ns)."""
    pieces = slice(first, first + len(widths))
    return [sum(map(mul, column[pieces], widths)) for column in columns]


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
