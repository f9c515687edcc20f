"""Random failures and repairs of nodes, and the choice of slow nodes, from separate streams."""

from collections.abc import Iterator
from random import Random
from typing import NamedTuple


class NodeFailure(NamedTuple):
    """A node, by its position, fails at ``time`` and is back after ``repair`` (seconds)."""

    time: float
    node: int
    repair: float


def failures(nodes: int, between: float, repair: float, random: Random) -> Iterator[NodeFailure]:
    """Yield failures without end. Each node fails after an exponential time with mean ``between``,
    and is down for an exponential time with mean ``repair``. The failures of all nodes together are
    one Poisson process of ``nodes`` times the rate. The caller skips a failure of a node that is
    down; that gives the same distribution, as exponential times have no memory."""
    time = 0.0
    while True:
        time += random.expovariate(nodes / between)
        yield NodeFailure(time, random.randrange(nodes), random.expovariate(1 / repair))


def slow_nodes(nodes: int, share: float, random: Random) -> int:
    """Return a random share of the nodes, as bits."""
    return sum(1 << node for node in random.sample(range(nodes), round(share * nodes)))
