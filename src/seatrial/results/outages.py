"""Planned outages: spans of time that no criterion counts, of all nodes or of some."""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

from seatrial.model.node_set import unfold_or_empty
from seatrial.results.trial_history import TrialHistory

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
    windows = list(_windows(history))
    edges = sorted({edge for start, end, _ in windows for edge in (start, end)})
    found = []
    for start, end in pairwise(edges):
        covering = [names for begin, stop, names in windows if begin <= start and end <= stop]
        if not covering:
            continue
        if all(covering):
            names = frozenset[str]().union(*covering)
            found.append(PlannedOutage(start, end, names, len(names)))
        else:
            found.append(PlannedOutage(start, end, frozenset(), history.nodes))
    return found


def _windows(history: TrialHistory) -> Iterator[tuple[int, int, frozenset[str]]]:
    """Yield the planned outages as the policy has them: start, end, and nodes, none for all."""
    for window in history.policy.outages:
        start, end = window.span(history.start or 0)
        names = frozenset(history.names.intersection(unfold_or_empty(window.nodes)))
        if end > start and (names or not window.nodes):
            yield start, end, names


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
