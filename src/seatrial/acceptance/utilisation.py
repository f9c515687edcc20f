"""The use of nodes over the time of a trial.

    timeline = timeline_of(history, now)
    timeline.total.accepted / timeline.total.available      # utilisation
    timeline.bins(240)                                      # the same over time

Every available node-hour belongs to exactly one use (``USES``), so that they add up: a node on
which runs overlap counts once, and one that is down is down, whatever ran there. The trial's nodes
are available while its clock runs, without planned outages. Sums are of whole nanoseconds, so that
they depend neither on the order of events nor on where time is cut.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Sequence
from itertools import accumulate, pairwise
from operator import add, mul, sub
from typing import NamedTuple

from seatrial.acceptance import use_changes
from seatrial.acceptance.contested_nodes import Claim, claims_of, contested
from seatrial.acceptance.outages import Span, outages_of, outside
from seatrial.acceptance.trial_history import TrialHistory
from seatrial.acceptance.use_changes import CLOCK, CLOSED, DOWN, OUT, QUEUED, Changes
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

    starts: list[int]
    ends: list[int]
    nodes: list[list[int]]
    sums: list[Use]
    down: int
    end: int
    spans: list[Span]

    @property
    def total(self) -> Use:
        """The node-ns by use of the whole trial."""
        return self.sums[-1]

    def nodes_in(self, use: str) -> list[int]:
        """Return the nodes in a use in each piece."""
        return self.nodes[Use._fields.index(use)]

    def bins(self, number: int) -> list[Bin]:
        """Return the uses in so many equal spans of the trial's clock."""
        if not self.starts:
            return []
        edges = [self.end * i // number for i in range(number + 1)]
        clock = list(accumulate(map(sub, self.ends, self.starts), initial=0))
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
        widths = [*map(sub, clock[first + 1 : place + 1], clock[first:place]), time - clock[place]]
        return Use._make(map(add, self.sums[chunk], _node_ns(self.nodes, widths, first)))


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
        self._held = [(run, run.held_nodes(now)) for run in history.runs]
        self._claims = claims_of(self._held, history.bits)
        self._several = contested(self._claims, self._downs, history.bits)

    def timeline(self) -> Timeline:
        """Return the use of the nodes over time."""
        changes = self._changes(self._claims, self._several)
        changes[QUEUED] = use_changes.of_queue(self._held, self._now)
        if (last := self._last_start()) is not None:
            changes[CLOSED][last] += 1
        starts, ends, counts = use_changes.pieces_of(changes)
        nodes = _uses(counts, self._history.nodes)
        widths = list(map(sub, ends, starts))
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
        claims = [claim for claim in self._claims if history.test_of(claim.run) in tests]
        several = contested(claims, self._downs, history.bits) if self._several else 0
        starts, ends, counts = use_changes.pieces_of(self._changes(claims, several))
        available, accepted, _, going, *_ = _uses(counts, history.nodes)
        widths = list(map(sub, ends, starts))
        return TestsUse._make(_node_ns((available, accepted, going), widths))

    def _changes(self, claims: Sequence[Claim], several: int) -> list[Changes]:
        """Return the changes by the runs of some claims, by what was down or planned to be out, and
        by the clock; ``several`` are the bits of the nodes that two of these had at a time."""
        bits = self._history.bits
        partial = [outage for outage in self._outages if outage.names]
        changes: list[Changes] = [defaultdict(int) for _ in range(use_changes.KINDS)]
        use_changes.add_claims(changes, claims, several, bits, partial)
        use_changes.add_contested(changes, claims, self._downs, several, bits, partial)
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
        starts = [claim.start for claim in self._claims if claim.start < spans[-1][1]]
        return max(starts, default=None)


def timeline_of(history: TrialHistory, now: int) -> Timeline:
    """Return the use of the nodes up to ``now``, within the trial's duration."""
    return Utilisation(history, now).timeline()


def _and(one: Use, other: Use) -> Use:
    return Use._make(map(add, one, other))


def _node_ns(columns: Sequence[Sequence[int]], widths: Sequence[int], first: int = 0) -> list[int]:
    """Return the node-ns of each column of nodes, in the pieces from ``first`` on that are so wide
    (ns)."""
    last = first + len(widths)
    return [sum(map(mul, column[first:last], widths)) for column in columns]


def _uses(counts: Sequence[list[int]], nodes: int) -> list[list[int]]:
    """Return the nodes by use in each piece, a column for each member of ``Use``. More nodes may be
    in use than there are, as it is not known on which nodes some runs were. Then the uses that come
    first in ``ORDER`` count."""
    parts, queued, closed = counts[:QUEUED], counts[QUEUED], counts[CLOSED]
    available = [nodes - out for out in counts[OUT]]
    left = list(map(sub, available, map(sum, zip(*parts, strict=True))))
    for i in [i for i, number in enumerate(left) if number < 0]:
        rest = available[i] = max(0, available[i])
        for use in use_changes.ORDER:
            parts[use][i] = min(parts[use][i], rest)
            rest -= parts[use][i]
        left[i] = rest
    unfilled = [number if waits else 0 for number, waits in zip(left, queued, strict=True)]
    idle = list(map(sub, left, unfilled))
    drained = [
        number if none_starts else 0 for number, none_starts in zip(idle, closed, strict=True)
    ]
    return [available, *parts, list(map(sub, idle, drained)), unfilled, drained]


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
