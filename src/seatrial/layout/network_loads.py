"""What a pattern costs on a network, when its ranks are on these nodes.

    network = PlacedNetwork(topology, nodes)     # the nodes of a job, in their order
    network.score(pattern, node_of)              # bytes off the node, hop-bytes, largest link load

Distances and paths are those of ``Topology``, computed for all pairs at once by arrays.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Literal, NamedTuple

from seatrial.arrays import Floats, Ints
from seatrial.layout.patterns import Pattern
from seatrial.layout.topology import Topology
from seatrial.lazy import np

ScoreKind = Literal["hop_bytes", "off_node", "link_load"]
MAX_NODES = 4096  # more have no matrix of distances
_POWER = 8
_DENSE = 1 << 20  # pairs of nodes: fewer are counted, more are sorted


class OrderScore(NamedTuple):
    """Bytes that leave their node; these times the hops that they go; bytes of the link that
    carries the most."""

    off_node: float
    hop_bytes: float
    link_load: float


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
            steps: Ints = np.abs(self._steps(a, b)).sum(axis=-1)
            return steps
        height = self._heights(a, b)
        table = np.array([self.topology.hops_at(h) for h in range(len(self.units) + 1)])
        hops: Ints = np.where(a == b, 0, table[height])
        return hops

    @cached_property
    def distances(self) -> Ints | None:
        """The hops between any two nodes, as a matrix; None for more than MAX_NODES."""
        if len(self) > MAX_NODES:
            return None
        each = np.arange(len(self))
        rows = [self.hops(np.full(len(each), one), each).astype(np.int32) for one in each]
        return np.array(rows)

    def cost(self, pattern: Pattern, node_of: Ints, by: ScoreKind) -> float:
        """Return one figure of the score of an order; faster than all of them."""
        if by == "link_load":
            return self.score(pattern, node_of).link_load
        a, b = node_of[pattern.senders], node_of[pattern.receivers]
        if by == "off_node":
            return float(pattern.volumes[a != b].sum())
        far = self.hops(a, b) if self.distances is None else self.distances[a, b]
        return float(pattern.volumes @ far)

    def score(self, pattern: Pattern, node_of: Ints) -> OrderScore:
        """Return what a pattern costs with each rank on this node."""
        a, b, volumes = self.traffic(pattern, node_of)
        loads = (np.bincount(keys, volumes[pairs]) for pairs, keys in self._links(a, b))
        load = max((float(each.max(initial=0.0)) for each in loads), default=0.0)
        return OrderScore(float(volumes.sum()), float(volumes @ self.hops(a, b)), load)

    def traffic(self, pattern: Pattern, node_of: Ints) -> tuple[Ints, Ints, Floats]:
        """Return the pairs of different nodes that have messages, and the bytes of each."""
        a, b = node_of[pattern.senders], node_of[pattern.receivers]
        apart = a != b
        number = len(self) * len(self)
        if number <= _DENSE:
            pairs = a[apart] * len(self) + b[apart]
            sums = np.bincount(pairs, pattern.volumes[apart], number).astype(np.float64)
            some = np.flatnonzero(sums).astype(np.int64)
            return some // len(self), some % len(self), sums[some]
        keys, inverse = np.unique(a[apart] * len(self) + b[apart], return_inverse=True)
        volumes = np.bincount(inverse, pattern.volumes[apart], len(keys)).astype(np.float64)
        return keys // len(self), keys % len(self), volumes

    def strains(self, pattern: Pattern, node_of: Ints) -> Floats:
        """Return how much a byte between any two nodes, there and back, burdens links that are busy
        already: the sum over its path of the load of each link, as a share of the largest, to a
        high power. With these as distances, swaps relieve the busiest links."""
        a, b, volumes = self.traffic(pattern, node_of)
        loads = [np.bincount(keys, volumes[pairs]) for pairs, keys in self._links(a, b)]
        largest = max((float(each.max(initial=0.0)) for each in loads), default=0.0) or 1.0
        each = np.arange(len(self))
        a, b = np.repeat(each, len(self)), np.tile(each, len(self))
        found = np.zeros(len(a))
        for load, (pairs, keys) in zip(loads, self._links(a, b), strict=True):
            strain = np.zeros(int(keys.max(initial=0)) + 1)
            strain[: len(load)] = (load / largest) ** _POWER
            found += np.bincount(pairs, strain[keys], len(a))
        square = found.reshape(len(self), len(self))
        both: Floats = square + square.T
        return both

    # ---- links ----------------------------------------------------------------------------

    def _heights(self, a: Ints, b: Ints) -> Ints:
        height = np.full(np.shape(a), len(self.units), dtype=np.int64)
        for level in reversed(range(len(self.units))):
            height[self.units[level][a] == self.units[level][b]] = level
        return height

    def _steps(self, a: Ints, b: Ints) -> Ints:
        """Return the shorter way along each axis, up where both are as long."""
        up = (self.at[b] - self.at[a]) % self.shape
        steps: Ints = np.where(up <= self.shape - up, up, up - self.shape)
        return steps

    def _links(self, a: Ints, b: Ints) -> Iterator[tuple[Ints, Ints]]:
        """Yield for each kind of link which of the pairs of nodes take one, and its number."""
        if self.topology.kind == "torus":
            yield from self._torus_links(a, b)
        elif self.topology.kind == "dragonfly":
            yield from self._dragonfly_links(a, b)
        else:
            for unit in (np.arange(len(self)), *self.units):  # up from these, and down to them
                leaves = np.flatnonzero(unit[a] != unit[b])
                yield leaves, unit[a[leaves]]
                yield leaves, unit[b[leaves]]

    def _dragonfly_links(self, a: Ints, b: Ints) -> Iterator[tuple[Ints, Ints]]:
        apart = np.flatnonzero(a != b)
        yield apart, a[apart]  # into the router
        if not self.units:
            return
        router, group = self.units[0], self.units[-1]
        height = self._heights(a, b)
        inside = np.flatnonzero((height > 0) & (height < len(self.units)))
        far = np.flatnonzero(height == len(self.units))
        routers, groups = int(router.max()) + 1, int(group.max()) + 1
        yield inside, router[a[inside]] * routers + router[b[inside]]
        yield far, router[a[far]]
        yield far, router[b[far]]
        yield far, group[a[far]] * groups + group[b[far]]

    def _torus_links(self, a: Ints, b: Ints) -> Iterator[tuple[Ints, Ints]]:
        steps, at = self._steps(a, b), self.at[a].copy()
        strides = np.cumprod([1, *self.shape[:-1]])
        for axis in range(len(self.shape)):
            for way in (1, -1):
                pairs, keys = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
                for step in range(int((steps[:, axis] * way).max(initial=0))):
                    moving = np.flatnonzero(steps[:, axis] * way > step)
                    here = at[moving]
                    here[:, axis] = (here[:, axis] + way * step) % self.shape[axis]
                    pairs.append(moving)
                    keys.append(here @ strides)
                yield np.concatenate(pairs), np.concatenate(keys)
            at[:, axis] = self.at[b][:, axis]
