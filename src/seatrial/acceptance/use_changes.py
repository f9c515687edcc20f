"""The changes of the use of nodes over the time of a trial, and the pieces between them.

    changes = [defaultdict(int) for _ in range(KINDS)]
    add_claims(changes, claims, several, bits, partial)
    add_contested(changes, claims, downs, several, bits, partial)
    starts, ends, counts = pieces_of(changes)

A change is by how much a number grows at a time. There is one for each use of nodes by a run, for
the nodes that are down, the runs that are queued, the nodes that are planned to be out, the clock
of the trial, and the end of all starts.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, chain, compress

from seatrial.acceptance.contested_nodes import Claim
from seatrial.acceptance.node_bits import NodeBits
from seatrial.acceptance.outages import PlannedOutage, Span, outside
from seatrial.acceptance.trial_history import RunHistory

# What is counted: first the uses.
ACCEPTED, FAILED, GOING, STARTING, KEPT, DOWN, QUEUED, OUT, CLOCK, CLOSED = range(10)
KINDS = CLOSED + 1
# Of several uses of a node the first counts: a node that is down is down.
ORDER = (DOWN, ACCEPTED, FAILED, GOING, STARTING, KEPT)

Changes = defaultdict[int, int]
"""By time (ns), by how much a number grows then."""


def pieces_of(changes: Sequence[Changes]) -> tuple[list[int], list[int], list[list[int]]]:
    """Return the pieces between the times at which anything changes, while the clock runs: their
    starts, their ends, and what is counted in each, by kind."""
    times = sorted(dict.fromkeys(chain.from_iterable(changes)))  # they are nearly in order
    place_of = {time: place for place, time in enumerate(times)}
    counts = [_counts(each, place_of) for each in changes]
    runs = counts[CLOCK][:-1]
    columns = [times[:-1], times[1:], *counts]
    starts, ends, *found = [list(compress(column, runs)) for column in columns]
    return starts, ends, found


def _counts(changes: Changes, place_of: Mapping[int, int]) -> list[int]:
    """Return a number from each of the times on, in their order."""
    steps = [0] * len(place_of)
    for time, step in changes.items():
        steps[place_of[time]] = step
    return list(accumulate(steps))


def of_queue(held: Iterable[tuple[RunHistory, Span | None]], now: int) -> Changes:
    """Return the changes by the spans in which any run waited in the queue; each run with when it
    held nodes."""
    waits = [waited for run, span in held if (waited := run.waited(span, now)) is not None]
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
    it is put to."""
    if not several:
        return
    by_node: dict[str, list[_Change]] = {name: [] for name in bits.names_in(several)}
    for start, end, own, run in claims:
        for name in bits.names_in(own & several):
            for use, begin, stop in _parts(run, (start, end)):
                for since, until in outside(name, begin, stop, partial):
                    by_node[name] += ((since, use, 1), (until, use, -1))
    for name, (start, end) in downs:
        if name in by_node:
            by_node[name] += ((start, DOWN, 1), (end, DOWN, -1))
    for each in by_node.values():
        for time, use, change in _of_one_node(each):
            changes[use][time] += change


_Change = tuple[int, int, int]  # time, use, by how much


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


def _parts(run: RunHistory, held: Span) -> tuple[tuple[int, int, int], ...]:
    """Return the parts of a job: (use, start, end)."""
    start, end = held
    if not run.over:
        return ((GOING, start, end),)
    if not run.passed:
        return ((FAILED, start, end),)
    began, left = run.script(held)
    return (STARTING, start, began), (ACCEPTED, began, left), (KEPT, left, end)
