"""What a communication pattern says in a few figures: totals, the share that left its node, the
pairs with the most bytes, and a map of bytes from ranks to ranks."""

from typing import NamedTuple

from msgspec import Struct

from seatrial.arrays import Bools, Floats
from seatrial.layout.patterns import NodeRanks, Pattern, PatternCall, Traffic
from seatrial.lazy import np


class PairTraffic(NamedTuple):
    """What one rank sent to another."""

    sender: int
    receiver: int
    messages: int
    volume: int


class PatternSummary(Struct, frozen=True, kw_only=True):
    """``sent`` is all that was sent, ``to_itself`` what ranks sent to themselves, ``off_node`` what
    went to another node (None: the nodes are not known). ``top`` are the pairs with the most
    bytes, of ``pairs``."""

    ranks: int
    pairs: int
    sent: Traffic
    to_itself: Traffic
    off_node: Traffic | None
    outside: Traffic
    dropped: Traffic
    top: list[PairTraffic]
    calls: list[PatternCall]
    nodes: list[NodeRanks]
    missing: list[int]


def summary_of(pattern: Pattern, top: int = 10) -> PatternSummary:
    """Return the figures of a pattern."""
    own = pattern.senders == pattern.receivers
    order = np.lexsort((pattern.receivers, pattern.senders, -pattern.volumes))[:top]
    columns = (pattern.senders, pattern.receivers, pattern.messages, pattern.volumes)
    rows = np.stack([column[order] for column in columns], axis=1).tolist()
    return PatternSummary(
        ranks=pattern.ranks,
        pairs=len(own),
        sent=_traffic(pattern, np.ones(len(own), np.bool_)),
        to_itself=_traffic(pattern, own),
        off_node=_off_node(pattern),
        outside=pattern.outside,
        dropped=pattern.dropped,
        top=[PairTraffic(*row) for row in rows],
        calls=list(pattern.calls),
        nodes=list(pattern.nodes),
        missing=list(pattern.missing),
    )


def _off_node(pattern: Pattern) -> Traffic | None:
    if not pattern.nodes:
        return None
    node_of = np.full(pattern.ranks, -1)
    for number, node in enumerate(pattern.nodes):
        node_of[list(node.ranks)] = number
    a, b = node_of[pattern.senders], node_of[pattern.receivers]
    return _traffic(pattern, (a != b) & (a >= 0) & (b >= 0))


def _traffic(pattern: Pattern, chosen: Bools) -> Traffic:
    """Return the sums over chosen pairs, as integers of any size."""
    messages, volumes = pattern.messages[chosen], pattern.volumes[chosen]
    return Traffic(sum(messages.tolist()), sum(volumes.tolist()))


def rank_map(pattern: Pattern, most: int) -> tuple[Floats, int]:
    """Return the bytes from ranks (rows) to ranks (columns), shape (k, k) with k at most ``most``,
    and how many ranks a row stands for."""
    per = -(-pattern.ranks // most)
    cells = -(-pattern.ranks // per)
    places = pattern.senders // per * cells + pattern.receivers // per
    sums = np.bincount(places, pattern.volumes.astype(np.float64), cells * cells)
    return sums.astype(np.float64).reshape(cells, cells), per
