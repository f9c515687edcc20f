"""When nodes fail and come back, and which nodes are slow: by chance, from streams of their own."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import NamedTuple


class NodeFailure(NamedTuple):
    """A node, by its place, fails at ``time`` and is back after ``repair`` (seconds)."""

    time: float
    node: int
    repair: float


def failures(nodes: int, between: float, repair: float, random: Random) -> Iterator[NodeFailure]:
    """Failures without end: each node fails after an exponential time of mean ``between``, is down
    for one of mean ``repair``, and so on. Those of all nodes together are one Poisson process of
    ``nodes`` times the rate; one that hits a node that is down is to be passed over, which is
    the same by chance since such times have no memory."""
    time = 0.0
    while True:
        time += random.expovariate(nodes / between)
        yield NodeFailure(time, random.randrange(nodes), random.expovariate(1 / repair))


def slow_nodes(nodes: int, share: float, random: Random) -> int:
    """A share of the nodes, as bits."""
    return sum(1 << node for node in random.sample(range(nodes), round(share * nodes)))
