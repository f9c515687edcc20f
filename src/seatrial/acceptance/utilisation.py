"""The use of nodes over the time of a trial.

    timeline = timeline_of(history, now)
    timeline.total.accepted / timeline.total.available      # utilisation
    timeline.bins(240)                                      # the same over time

Every available node-hour belongs to exactly one use (``USES``), so that they add up: a node on
which runs overlap counts once, and one that is down is down, whatever ran there. The trial's nodes
are available while its clock runs, without planned outages. Sums are of whole nanoseconds, so that
they depend neither on the order of events nor on where time is cut.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from operator import add, mul, sub
from typing import NamedTuple

from seatrial.acceptance.contested_nodes import Claim, claims_of, contested
from seatrial.acceptance.node_bits import NodeBits
from seatrial.acceptance.outages import PlannedOutage, Span, outages_of, outside
from seatrial.acceptance.trial_history import RunHistory, TrialHistory
from seatrial.journal.trial_life import end_by
from seatrial.units import SECOND_NS

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


class UtilisationSpan(NamedTuple):
    """A span (ns) in which nothing changed. ``use`` is in nodes."""

    start: int
    end: int
    use: Use


class Bin(NamedTuple):
    """A span of the trial's clock, in seconds, and the use of the nodes in it."""

    start: float
    end: float
    use: Use


class Timeline(NamedTuple):
    """The use of nodes over time. ``sums`` are the uses in node-ns before each ``CHUNK`` of pieces,
    and after the last; ``down`` are node-ns of nodes that were down, whether or not a run held
    them; ``end`` is the trial's clock at its end, in ns."""

    pieces: list[UtilisationSpan]
    sums: list[Use]
    down: int
    end: int
    spans: list[Span]

    @property
    def total(self) -> Use:
        """The node-ns by use of the whole trial."""
        return self.sums[-1]

    def bins(self, number: int) -> list[Bin]:
        """Return the uses in so many equal spans of the trial's clock."""
        if not self.pieces:
            return []
        edges = [self.end * i // number for i in range(number + 1)]
        widths = (end - start for start, end, _ in self.pieces)
        starts = list(accumulate(widths, initial=0))[:-1]  # by the trial's clock
        before = [self._before(edge, starts) for edge in edges]
        return [
            Bin(since / SECOND_NS, until / SECOND_NS, Use._make(map(sub, after, ahead)))
            for (since, ahead), (until, after) in pairwise(zip(edges, before, strict=True))
        ]

    def _before(self, time: int, starts: Sequence[int]) -> Use:
        """Return the node-ns by use up to a time of the trial's clock."""
        place = max(0, bisect_right(starts, time) - 1)
        start, end, use = self.pieces[place]
        cut = UtilisationSpan(start, max(start, min(end, start + time - starts[place])), use)
        chunk = place // CHUNK
        return _and(self.sums[chunk], _added([*self.pieces[chunk * CHUNK : place], cut]))


# ---- nodes --------------------------------------------------------------------------------


def timeline_of(history: TrialHistory, now: int) -> Timeline:
    """Return the use of the nodes up to ``now``, within the trial's duration."""
    spans, downs = history.window(now), _downs(history, now)
    states = _states(_changes(history, now, spans, downs))
    known: dict[tuple[int, ...], Use] = {}  # most states come again and again
    pieces = []
    for since, until, state in states:
        if (use := known.get(state)) is None:
            use = known[state] = _use(state, history.nodes)
        pieces.append(UtilisationSpan(since, until, use))
    chunks = (pieces[i : i + CHUNK] for i in range(0, len(pieces), CHUNK))
    sums = list(accumulate(map(_added, chunks), _and, initial=Use()))
    down = sum(
        max(0, min(end, stop) - max(start, begin))
        for _, (start, end) in downs
        for begin, stop in spans
    )
    return Timeline(pieces, sums, down, sum(b - a for a, b in spans), spans)


def total_of(history: TrialHistory, now: int, tests: Collection[str]) -> Use:
    """Return the node-ns by use up to ``now``, by runs of these tests."""
    changes = _changes(history, now, history.window(now), _downs(history, now), tests)
    widths: dict[tuple[int, ...], int] = defaultdict(int)  # ns by state
    for since, until, state in _states(changes):
        widths[state] += until - since
    uses = [_use(state, history.nodes) for state in widths] or [Use()]
    columns = zip(*uses, strict=True)
    return Use._make(sum(map(mul, column, widths.values())) for column in columns)


_Downs = Sequence[tuple[str, Span]]  # nodes, and when they were down


def _downs(history: TrialHistory, now: int) -> _Downs:
    """Return when nodes were down, outside of planned outages."""
    outages = outages_of(history)
    return [
        (down.node, span)
        for down in history.downs
        for span in outside(down.node, down.start, end_by(down.end, now), outages)
    ]


def _changes(
    history: TrialHistory,
    now: int,
    spans: Sequence[Span],
    downs: _Downs,
    tests: Collection[str] | None = None,
) -> list[Change]:
    """Return the changes of the use of the nodes, in the order of time: ``spans`` are those of the
    clock; by runs of these tests, or of all."""
    held = [
        (run, run.held_nodes(now))
        for run in history.runs
        if tests is None or history.test_of(run) in tests
    ]
    outages, bits = outages_of(history), history.bits
    claims = claims_of(held, bits)
    of_several = contested(claims, downs, bits)
    partial = [outage for outage in outages if outage.names]
    changes = _of_queue(held, now)
    changes += _of_claims(claims, of_several, bits, partial)
    changes += _of_contested(claims, downs, of_several, bits, partial)
    several = frozenset(bits.names_in(of_several))
    for which, intervals in (
        (_DOWN, [(*span, 1) for node, span in downs if node not in several]),
        (_OUT, [(outage.start, outage.end, outage.size) for outage in outages]),
        (_CLOCK, [(*span, 1) for span in spans]),
    ):
        for start, end, number in intervals:
            changes += ((start, which, number), (end, which, -number))
    if (last := _last_start(history, now, spans, claims)) is not None:
        changes.append((last, _CLOSED, 1))
    changes.sort()
    return changes


def _and(one: Use, other: Use) -> Use:
    return Use._make(map(add, one, other))


def _added(pieces: Sequence[UtilisationSpan]) -> Use:
    """Return the node-ns by use of some pieces, at least one."""
    starts, ends, uses = zip(*pieces, strict=True)
    widths = list(map(sub, ends, starts))
    columns = zip(*uses, strict=True)
    return Use._make(sum(map(mul, column, widths)) for column in columns)


Change = tuple[int, int, int]  # time, which count, by how much
# What is counted: first the uses.
_ACCEPTED, _FAILED, _GOING, _STARTING, _KEPT, _DOWN, _QUEUED, _OUT, _CLOCK, _CLOSED = range(10)
# Of several uses of a node the first counts: a node that is down is down.
_ORDER = (_DOWN, _ACCEPTED, _FAILED, _GOING, _STARTING, _KEPT)


def _states(changes: Sequence[Change]) -> Iterator[tuple[int, int, tuple[int, ...]]]:
    """Yield the spans between the times at which anything changes, while the clock runs, each with
    what is counted."""
    counts = [0] * (_CLOSED + 1)
    since = 0
    for time, which, change in changes:
        if time > since:
            if counts[_CLOCK]:
                yield since, time, tuple(counts)
            since = time
        counts[which] += change


def _use(counts: Sequence[int], nodes: int) -> Use:
    """Return the nodes by use. More nodes may be in use than there are, as it is not known on which
    nodes some runs were. Then the uses that come first in ``_ORDER`` count."""
    parts = counts[:_QUEUED]
    available = nodes - counts[_OUT]
    left = available - sum(parts)
    if left < 0:
        left = available = max(0, available)
        parts = list(parts)
        for i in _ORDER:
            parts[i] = min(parts[i], left)
            left -= parts[i]
    rest = (0, left, 0)
    if not counts[_QUEUED]:
        rest = (0, 0, left) if counts[_CLOSED] else (left, 0, 0)
    return Use._make((available, *parts, *rest))


def _of_queue(held: Iterable[tuple[RunHistory, Span | None]], now: int) -> list[Change]:
    """Return the changes by the spans in which any run waited in the queue; each run with when it
    held nodes."""
    waits = [waited for run, span in held if (waited := run.waited(span, now)) is not None]
    changes: list[Change] = []
    for start, end in _united(waits):
        changes += ((start, _QUEUED, 1), (end, _QUEUED, -1))
    return changes


def _united(spans: Iterable[Span]) -> Iterator[Span]:
    """Yield the union of some spans as spans with gaps between them, without empty ones."""
    since = until = 0
    for start, end in sorted(spans):
        if start > until:
            if until > since:
                yield since, until
            since = start
        until = max(until, end)
    if until > since:
        yield since, until


def _of_claims(
    claims: Sequence[Claim], of_several: int, bits: NodeBits, partial: Sequence[PlannedOutage]
) -> list[Change]:
    """Return the changes by runs, without their contested nodes; ``partial`` are the planned
    outages of some of the nodes. Nodes that are not known count by the number that was asked
    for."""
    changes: list[Change] = []
    add = changes.append
    outages = [(each.start, each.end, bits.of_names(each.names)) for each in partial]
    for start, end, own, run in claims:
        known = own.bit_count()
        size = max(run.size, known) - ((own & of_several).bit_count() if of_several else 0)
        if not size:
            continue
        for use, begin, stop in _parts(run, (start, end)):
            if stop <= begin:
                continue
            add((begin, use, size))
            add((stop, use, -size))
            for since, until, there in outages:
                first, last = max(begin, since), min(stop, until)
                if first < last and (out := (own & there & ~of_several).bit_count()):
                    add((first, use, -out))
                    add((last, use, out))
    return changes


def _of_contested(
    claims: Sequence[Claim],
    downs: Sequence[tuple[str, Span]],
    of_several: int,
    bits: NodeBits,
    partial: Sequence[PlannedOutage],
) -> list[Change]:
    """Return the changes on contested nodes: at each time a node has the first use of ``_ORDER``
    that it is put to."""
    if not of_several:
        return []
    by_node: dict[str, list[Change]] = {name: [] for name in bits.names_in(of_several)}
    for start, end, own, run in claims:
        for name in bits.names_in(own & of_several):
            for use, begin, stop in _parts(run, (start, end)):
                for since, until in outside(name, begin, stop, partial):
                    by_node[name] += ((since, use, 1), (until, use, -1))
    for name, (start, end) in downs:
        if name in by_node:
            by_node[name] += ((start, _DOWN, 1), (end, _DOWN, -1))
    return [change for each in by_node.values() for change in _of_one_node(each)]


def _of_one_node(changes: list[Change]) -> Iterator[Change]:
    """Yield the changes by the use of one node, which has one use at a time."""
    changes.sort()
    counts = [0] * _QUEUED
    current: int | None = None
    for number, (time, which, change) in enumerate(changes):
        counts[which] += change
        if number + 1 < len(changes) and changes[number + 1][0] == time:
            continue
        use = next((each for each in _ORDER if counts[each]), None)
        if use != current:
            if current is not None:
                yield time, current, -1
            if use is not None:
                yield time, use, 1
            current = use


def _parts(run: RunHistory, held: Span) -> tuple[tuple[int, int, int], ...]:
    """Return the parts of a job: (use, start, end)."""
    start, end = held
    if not run.over:
        return ((_GOING, start, end),)
    if not run.passed:
        return ((_FAILED, start, end),)
    began, left = run.script(held)
    return (_STARTING, start, began), (_ACCEPTED, began, left), (_KEPT, left, end)


def _last_start(
    history: TrialHistory, now: int, spans: Sequence[Span], claims: Sequence[Claim]
) -> int | None:
    """Return when the last job started, if no more are started; else None."""
    closed = history.over or (bool(history.duration) and history.clock(now) >= history.duration)
    if not closed or not spans:
        return None
    starts = [claim.start for claim in claims if claim.start < spans[-1][1]]
    return max(starts, default=None)


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
