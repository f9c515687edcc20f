"""What a pattern costs on a network, when its ranks are on these nodes.

    network = PlacedNetwork(topology, nodes)     # the nodes of a job, in their order
    network.score(pattern, node_of)              # bytes off the node, hop-bytes, largest link load

Distances and paths are those of ``Topology``, computed for all pairs at once by arrays.
"""

import functools
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple, Protocol

from seatrial.lazy import Floats, Ints, np
from seatrial.model.topology import Topology
from seatrial.plugins.orders.patterns import Pattern

# ---- link loads ----------------------------------------------------------------------------------
#
# Loads of links by the pairs of nodes whose messages take them, and sums along paths.
#
#     for use in uses:                        # of each kind of link
#         load = use.loads(volumes)           # of each link
#         strain = use.sums(load, pairs)      # of each pair, over the links of its path
#
# A torus has a use for each axis and direction. The links that a path takes there follow each
# other on a ring, so loads are sums of differences along the ring, and sums along paths are
# differences of sums.


class _LinkUse(Protocol):
    """Which pairs of nodes take which links of one kind."""

    def loads(self, volumes: Floats) -> Floats:
        """Return the bytes over each link. ``volumes``: those of each pair."""

    def sums(self, values: Floats, number: int) -> Floats:
        """Return the sum of the values of the links that each of so many pairs takes. Links without
        a value have 0."""


class _SingleLinks(NamedTuple):
    """Pairs that take one link each; ``links`` are their numbers."""

    pairs: Ints
    links: Ints

    def loads(self, volumes: Floats) -> Floats:
        return np.bincount(self.links, volumes[self.pairs]).astype(np.float64)

    def sums(self, values: Floats, number: int) -> Floats:
        of_link = np.zeros(max(len(values), int(self.links.max(initial=0)) + 1))
        of_link[: len(values)] = values
        return np.bincount(self.pairs, of_link[self.links], number).astype(np.float64)


class _RingLinks(NamedTuple):
    """Pairs that take links which follow each other on rings of this ``length``. Each ring is there
    twice, one behind the other, so that a path around its end has a start and an end, too."""

    pairs: Ints
    starts: Ints
    ends: Ints
    rings: int
    length: int

    def loads(self, volumes: Floats) -> Floats:
        own, size = volumes[self.pairs], 2 * self.rings * self.length
        change = np.bincount(self.starts, own, size + 1) - np.bincount(self.ends, own, size + 1)
        twice = np.cumsum(change)[:size].reshape(self.rings, 2, self.length)
        found: Floats = twice.sum(axis=1).reshape(-1)
        return found

    def sums(self, values: Floats, number: int) -> Floats:
        rings = values.reshape(self.rings, 1, self.length)
        total = np.concatenate([[0.0], np.cumsum(np.repeat(rings, 2, axis=1))])
        found = np.bincount(self.pairs, total[self.ends] - total[self.starts], number)
        return found.astype(np.float64)


# ---- network loads -------------------------------------------------------------------------------


ScoreKind = Literal["hop_bytes", "off_node", "link_load"]
MAX_NODES = 4096  # more have no matrix of distances
_POWER = 8
_DENSE = 1 << 22  # pairs of nodes: fewer are counted, more are sorted


class OrderScore(NamedTuple):
    """Bytes that leave their node; these times the hops that they go; bytes of the link that
    carries the most."""

    off_node: float
    hop_bytes: float
    link_load: float


class NodeTraffic(NamedTuple):
    """The pairs of different nodes that have messages, and the bytes of each."""

    senders: Ints
    receivers: Ints
    volumes: Floats


class PlacedNetwork:
    """The nodes of a job in their network. Nodes are numbered as ``nodes`` lists them."""

    def __init__(self, topology: Topology, nodes: Sequence[int]) -> None:
        self.topology = topology
        self.nodes = list(nodes)
        chosen = np.array(self.nodes, dtype=np.int64)
        self.units = [np.array(level.unit_of)[chosen] for level in topology.levels]
        self.at: Ints = np.zeros((len(self.nodes), 0), np.int64)
        if topology.kind == "torus":
            self.at = np.array(topology.coordinates, dtype=np.int64)[chosen]
            self.shape = np.array(topology.shape, dtype=np.int64)

    def __len__(self) -> int:
        return len(self.nodes)

    def hops(self, a: Ints, b: Ints) -> Ints:
        """Return the hops between nodes, pair by pair."""
        if self.topology.kind == "torus":
            axes = [np.abs(self._steps(axis, a, b)) for axis in range(len(self.shape))]
            return functools.reduce(np.add, axes)
        height = self._heights(a, b)
        table = np.array([self.topology.hops_at(h) for h in range(len(self.units) + 1)])
        hops: Ints = np.where(a == b, 0, table[height])
        return hops

    @functools.cached_property
    def distances(self) -> "Ints | None":
        """The hops between any two nodes, as a matrix; None for more than MAX_NODES."""
        if len(self) > MAX_NODES:
            return None
        each = np.arange(len(self))
        rows = [self.hops(np.full(len(each), one), each).astype(np.int32) for one in each]
        return np.array(rows)

    def score(self, pattern: Pattern, node_of: Ints) -> OrderScore:
        """Return what a pattern costs with each rank on this node."""
        traffic = self.traffic(pattern, node_of)
        return OrderScore(
            *(self.cost(traffic, by) for by in ("off_node", "hop_bytes", "link_load"))
        )

    def cost(self, traffic: NodeTraffic, by: ScoreKind) -> float:
        """Return one figure of the score of an order with this traffic between nodes."""
        a, b, volumes = traffic
        if by == "off_node":
            return float(volumes.sum())
        if by == "hop_bytes":
            far = self.hops(a, b) if self.distances is None else self.distances[a, b]
            return float(volumes @ far)
        loads = (use.loads(volumes) for use in self._links(a, b))
        return max((float(each.max(initial=0.0)) for each in loads), default=0.0)

    def traffic(self, pattern: Pattern, node_of: Ints) -> NodeTraffic:
        """Return the pairs of different nodes that have messages, and the bytes of each."""
        a, b = node_of[pattern.senders], node_of[pattern.receivers]
        apart = a != b
        number = len(self) * len(self)
        if number <= _DENSE:
            pairs = a[apart] * len(self) + b[apart]
            sums = np.bincount(pairs, pattern.volumes[apart], number).astype(np.float64)
            some = np.flatnonzero(sums).astype(np.int64)
            return NodeTraffic(some // len(self), some % len(self), sums[some])
        keys, inverse = np.unique(a[apart] * len(self) + b[apart], return_inverse=True)
        volumes = np.bincount(inverse, pattern.volumes[apart], len(keys)).astype(np.float64)
        return NodeTraffic(keys // len(self), keys % len(self), volumes)

    def strains(self, pattern: Pattern, node_of: Ints) -> Floats:
        """Return how much a byte between any two nodes, there and back, burdens links that are busy
        already: the sum over its path of the load of each link, as a share of the largest, to a
        high power. With these as distances, swaps relieve the busiest links."""
        a, b, volumes = self.traffic(pattern, node_of)
        loads = [use.loads(volumes) for use in self._links(a, b)]
        largest = max((float(each.max(initial=0.0)) for each in loads), default=0.0) or 1.0
        each = np.arange(len(self))
        a, b = np.repeat(each, len(self)), np.tile(each, len(self))
        burden = np.zeros(len(a))
        for load, use in zip(loads, self._links(a, b), strict=True):
            burden += use.sums((load / largest) ** _POWER, len(a))
        square = burden.reshape(len(self), len(self))
        both: Floats = square + square.T
        return both

    # ---- links ----------------------------------------------------------------------------

    def _heights(self, a: Ints, b: Ints) -> Ints:
        height = np.full(np.shape(a), len(self.units), dtype=np.int64)
        for level in reversed(range(len(self.units))):
            height[self.units[level][a] == self.units[level][b]] = level
        return height

    def _steps(self, axis: int, a: Ints, b: Ints) -> Ints:
        """Return the shorter way along an axis, up where both are as long."""
        place, length = self.at[:, axis], int(self.shape[axis])
        up = (place[b] - place[a]) % length
        steps: Ints = np.where(2 * up <= length, up, up - length)
        return steps

    def _links(self, a: Ints, b: Ints) -> Iterator[_LinkUse]:
        """Yield for each kind of link which of the pairs of nodes take which of them."""
        if self.topology.kind == "torus":
            yield from self._torus_links(a, b)
        elif self.topology.kind == "dragonfly":
            yield from self._dragonfly_links(a, b)
        else:
            for unit in (np.arange(len(self)), *self.units):  # up from these, and down to them
                leaves = np.flatnonzero(unit[a] != unit[b])
                yield _SingleLinks(leaves, unit[a[leaves]])
                yield _SingleLinks(leaves, unit[b[leaves]])

    def _dragonfly_links(self, a: Ints, b: Ints) -> Iterator[_LinkUse]:
        apart = np.flatnonzero(a != b)
        yield _SingleLinks(apart, a[apart])  # into the router
        if not self.units:
            return
        router, group = self.units[0], self.units[-1]
        height = self._heights(a, b)
        inside = np.flatnonzero((height > 0) & (height < len(self.units)))
        far = np.flatnonzero(height == len(self.units))
        routers, groups = int(router.max()) + 1, int(group.max()) + 1
        yield _SingleLinks(inside, router[a[inside]] * routers + router[b[inside]])
        yield _SingleLinks(far, router[a[far]])
        yield _SingleLinks(far, router[b[far]])
        yield _SingleLinks(far, group[a[far]] * groups + group[b[far]])

    def _torus_links(self, a: Ints, b: Ints) -> Iterator[_LinkUse]:
        """Yield the links along each axis, up and down: messages go along the first axis first."""
        for axis, length in enumerate(self.shape.tolist()):
            steps = self._steps(axis, a, b)
            for way in (1, -1):
                pairs = np.flatnonzero(way * steps > 0)
                first = self.at[a[pairs], axis]
                if way < 0:
                    first = length - 1 - first
                ring, rings = np.zeros(len(pairs), dtype=np.int64), 1
                for other, own in enumerate(self.shape.tolist()):
                    if other != axis:
                        ring = ring * own + self.at[(b if other < axis else a)[pairs], other]
                        rings *= own
                starts = 2 * length * ring + first
                yield _RingLinks(pairs, starts, starts + np.abs(steps[pairs]), rings, length)


class SetTraffic:
    """The traffic of a pattern under one order after the other. Orders that put the same ranks
    together, on other nodes, have the same traffic between sets of ranks: it is summed up once for
    those that follow each other."""

    def __init__(self, pattern: Pattern, network: PlacedNetwork) -> None:
        self._pattern, self._network = pattern, network
        self._set_of: Ints = np.zeros(0, np.int64)
        self._of_sets = NodeTraffic(self._set_of, self._set_of, np.zeros(0))

    def between(self, node_of: Ints) -> NodeTraffic:
        """Return what ``PlacedNetwork.traffic`` does, in another order of the pairs."""
        ranks = np.arange(len(node_of))
        lowest = np.full(len(self._network), len(node_of))
        lowest[node_of[::-1]] = ranks[::-1]  # the last one counts, which is the lowest
        nodes = np.argsort(lowest, kind="stable")
        number = np.empty(len(nodes), np.int64)
        number[nodes] = np.arange(len(nodes))
        set_of = number[node_of]
        if not np.array_equal(set_of, self._set_of):
            self._set_of, self._of_sets = set_of, self._network.traffic(self._pattern, set_of)
        senders, receivers, volumes = self._of_sets
        return NodeTraffic(nodes[senders], nodes[receivers], volumes)
