"""What a pattern costs on a network, when its ranks are on these nodes.

    network = PlacedNetwork(topology, nodes)     # the nodes of a job, in their order
    network.score(pattern, node_of)              # bytes off the node, hop-bytes, largest link load

Distances and paths are those of ``Topology``, computed for all pairs at once by arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from seatrial.arrays import Floats, Ints
from seatrial.layout.patterns import Pattern
from seatrial.layout.topology import Topology
from seatrial.lazy import np


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

    def distances(self) -> Floats:
        """Return the hops between any two nodes, as a matrix."""
        each = np.arange(len(self.nodes))
        rows = [self.hops(np.full(len(each), one), each) for one in each]
        return np.array(rows, dtype=np.float64)

    def score(self, pattern: Pattern, node_of: Ints) -> OrderScore:
        """Return what a pattern costs with each rank on this node."""
        a, b, volumes = self.traffic(pattern, node_of)
        load = float(max(self._loads(a, b, volumes), default=0.0))
        return OrderScore(float(volumes.sum()), float(volumes @ self.hops(a, b)), load)

    def traffic(self, pattern: Pattern, node_of: Ints) -> tuple[Ints, Ints, Floats]:
        """Return the pairs of different nodes that have messages, and the bytes of each."""
        a, b = node_of[pattern.senders], node_of[pattern.receivers]
        apart = a != b
        keys, inverse = np.unique(a[apart] * len(self) + b[apart], return_inverse=True)
        volumes = np.bincount(inverse, pattern.volumes[apart], len(keys)).astype(np.float64)
        return keys // len(self), keys % len(self), volumes

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

    def _loads(self, a: Ints, b: Ints, volumes: Floats) -> list[float]:
        """Return the load of the busiest link of each kind."""
        if not len(a):
            return []
        found: list[float] = []
        if self.topology.kind == "torus":
            self._torus_loads(a, b, volumes, lambda *load: found.append(_largest(*load)))
        elif self.topology.kind == "dragonfly":
            self._dragonfly_loads(a, b, volumes, lambda *load: found.append(_largest(*load)))
        else:
            below = [np.arange(len(self)), *self.units]
            for unit in below:  # the links up from these units, and down to them
                leaves = unit[a] != unit[b]
                found.append(_largest(unit[a][leaves], volumes[leaves]))
                found.append(_largest(unit[b][leaves], volumes[leaves]))
        return found

    def _dragonfly_loads(
        self, a: Ints, b: Ints, volumes: Floats, note: Callable[[Ints, Floats], None]
    ) -> None:
        note(a, volumes)  # into the router
        if not self.units:
            return
        router, group = self.units[0], self.units[-1]
        height = self._heights(a, b)
        inside = (height > 0) & (height < len(self.units))
        far = height == len(self.units)
        routers, groups = int(router.max()) + 1, int(group.max()) + 1
        note((router[a] * routers + router[b])[inside], volumes[inside])
        note(router[a][far], volumes[far])
        note(router[b][far], volumes[far])
        note((group[a] * groups + group[b])[far], volumes[far])

    def _torus_loads(
        self, a: Ints, b: Ints, volumes: Floats, note: Callable[[Ints, Floats], None]
    ) -> None:
        steps, at = self._steps(a, b), self.at[a].copy()
        strides = np.cumprod([1, *self.shape[:-1]])
        for axis in range(len(self.shape)):
            for way in (1, -1):
                keys, loads = [], []
                for step in range(int((steps[:, axis] * way).max(initial=0))):
                    moving = steps[:, axis] * way > step
                    here = at[moving]
                    here[:, axis] = (here[:, axis] + way * step) % self.shape[axis]
                    keys.append(here @ strides)
                    loads.append(volumes[moving])
                if keys:
                    note(np.concatenate(keys), np.concatenate(loads))
            at[:, axis] = self.at[b][:, axis]


def _largest(keys: Ints, loads: Floats) -> float:
    if not len(keys):
        return 0.0
    _, inverse = np.unique(keys, return_inverse=True)
    return float(np.bincount(inverse, loads).max())
