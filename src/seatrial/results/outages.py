"""Planned outages: spans of time that no criterion counts, of all nodes or of some."""

from collections.abc import Iterable, Iterator, Sequence
from heapq import heappop, heappush, merge
from itertools import pairwise
from typing import NamedTuple

from seatrial.model.nodes import unfold_or_empty
from seatrial.results.trial_history import NodeBits, RunHistory, TrialHistory

Span = tuple[int, int]


class PlannedOutage(NamedTuple):
    """A span of time in which nodes are planned to be out: ``names``, or all nodes if that is
    empty. ``size`` is their number. No two of them overlap."""

    start: int
    end: int
    names: frozenset[str]
    size: int


def outages_of(history: TrialHistory) -> list[PlannedOutage]:
    """Return the planned outages, cut so that no two overlap."""
    windows = []
    for window in history.policy.outages:
        start, end = window.span(history.start or 0)
        names = history.names.intersection(unfold_or_empty(window.nodes))
        if end > start and (names or not window.nodes):
            windows.append((start, end, names))
    edges = sorted({edge for start, end, _ in windows for edge in (start, end)})
    found = []
    for start, end in pairwise(edges):
        there = [names for begin, stop, names in windows if begin <= start and end <= stop]
        if there:
            whole = not all(there)
            names = frozenset() if whole else frozenset[str]().union(*there)
            size = history.nodes if whole else len(names)
            found.append(PlannedOutage(start, end, names, size))
    return found


def whole_outages(history: TrialHistory) -> list[Span]:
    """Return the spans in which all nodes are in a planned outage."""
    return [(each.start, each.end) for each in outages_of(history) if not each.names]


def outside(node: str, start: int, end: int, outages: Iterable[PlannedOutage]) -> Iterator[Span]:
    """Return the parts of a span that are in no planned outage of the node."""
    for outage in outages:  # in the order of time
        if outage.names and node not in outage.names:
            continue
        if outage.start < end and outage.end > start:
            if outage.start > start:
                yield start, outage.start
            start = max(start, outage.end)
    if end > start:
        yield start, end


# ---- contested nodes -----------------------------------------------------------------------------
#
# The nodes on which runs overlap, or that were down while a run held them.
#
#     claims = claims_of(runs, now, history.bits)        # which nodes each run held, and when
#     contested(claims, downs, history.bits)             # the nodes that two of them had at a time
#
# Most trials have few such nodes or none, because their scheduler gives whole nodes. A trial may
# have a million claims, and each has the bits of thousands of nodes: they are made one at a time.


class Claim(NamedTuple):
    """A run that held nodes from a time to another (ns): the ``bits`` of those that are known."""

    start: int
    end: int
    bits: int
    run: RunHistory


def claims_of(runs: Iterable[RunHistory], now: int, bits: NodeBits) -> Iterator[Claim]:
    """Yield what runs held up to ``now`` (ns)."""
    for run in runs:
        if (span := run.held_nodes(now)) is not None:
            yield Claim(*span, bits.of(run.nodes), run)


def contested(claims: Iterable[Claim], downs: Sequence[tuple[str, Span]], bits: NodeBits) -> int:
    """Return the bits of the nodes that two runs held at a time, or that were down while a run held
    them. Claims and downs are in the order of their starts."""
    of_runs = ((start, end, own) for start, end, own, _ in claims)
    of_downs = ((*span, bits.of_names([name])) for name, span in downs)
    ends: list[tuple[int, int]] = []  # of what is busy, the first end first
    busy = several = 0
    for start, end, own in merge(of_runs, of_downs, key=lambda each: each[0]):
        while ends and ends[0][0] <= start:
            busy &= ~heappop(ends)[1]  # a contested node may be thought free: it is known already
        if own and end > start:
            several |= busy & own
            busy |= own
            heappush(ends, (end, own))
    return several
