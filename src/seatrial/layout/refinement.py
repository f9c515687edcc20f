"""Swaps that bring ranks nearer to those that they talk to (Kernighan and Lin 1970).

    node_of = refined(graph, node_of, distances, until=deadline)

The cost is the bytes of each pair of ranks times the hops between their nodes. Two nodes exchange
ranks pair by pair, the best pair first, also at a loss; the exchange is cut where the gain was
largest. Clusters of ranks are swapped before single ranks: whole nodes, then halves, quarters, ...:
a swap of single ranks alone does not leave the boxes of a grid.
"""

from __future__ import annotations

import time

from seatrial.arrays import Floats, Ints
from seatrial.layout.patterns import RankGraph, graph_of_edges
from seatrial.lazy import np

_LOSSES = 6  # so many swaps in a row without a new best end an exchange
_CHUNK = 1 << 22  # elements of an array that is made in one go


def refined(
    graph: RankGraph, node_of: Ints, distances: Floats, until: float, seed: int = 0
) -> Ints:
    """Return nodes of ranks that cost no more. ``until``: the time of ``time.monotonic`` at which
    the search ends. The number of ranks of each node stays."""
    random = np.random.default_rng(seed)
    node_of = node_of.copy()
    largest = int(np.bincount(node_of).max())
    sizes = [largest]
    while sizes[-1] > 1:
        sizes.append((sizes[-1] + 1) // 2)
    for size in sizes:
        cluster_of = _clusters(graph, node_of, size)
        coarse = graph if size == 1 else _merged(graph, cluster_of)
        first = np.unique(cluster_of, return_index=True)[1]
        weight = np.bincount(cluster_of)
        search = _Search(coarse, node_of[first], weight == size, distances)
        search.run(until, random)
        node_of = search.node_of[cluster_of]
        if time.monotonic() > until:
            break
    return node_of


def _clusters(graph: RankGraph, node_of: Ints, size: int) -> Ints:
    """Return the cluster of each rank: ``size`` ranks of a node, each next to one before it where
    there is one; the last of a node may be smaller."""
    found = np.full(graph.ranks, -1, dtype=np.int64)
    if size == 1:
        return np.arange(graph.ranks)
    order = np.argsort(node_of, kind="stable")
    number = 0
    starts = graph.starts.tolist()
    neighbours, weights = graph.neighbours.tolist(), graph.weights.tolist()
    own_node, cluster = node_of.tolist(), found.tolist()
    filled: dict[int, list[int]] = {}  # the node's ranks that are left, by node
    for rank in order.tolist():
        filled.setdefault(own_node[rank], []).append(rank)
    for node, ranks in filled.items():
        left = dict.fromkeys(ranks)
        while left:
            near: dict[int, float] = {}
            rank = next(iter(left))
            for _ in range(min(size, len(left))):
                del left[rank]
                near.pop(rank, None)
                cluster[rank] = number
                for at in range(starts[rank], starts[rank + 1]):
                    other = neighbours[at]
                    if own_node[other] == node and other in left:
                        near[other] = near.get(other, 0.0) + weights[at]
                if not left:
                    break
                rank = max(near, key=near.__getitem__) if near else next(iter(left))
            number += 1
    return np.array(cluster, dtype=np.int64)


def _merged(graph: RankGraph, cluster_of: Ints) -> RankGraph:
    owner = np.repeat(np.arange(graph.ranks), np.diff(graph.starts))
    once = owner < graph.neighbours
    a, b = cluster_of[owner[once]], cluster_of[graph.neighbours[once]]
    return graph_of_edges(int(cluster_of.max()) + 1, a, b, graph.weights[once])


class _Search:
    """The search over swaps of clusters of one size."""

    def __init__(self, graph: RankGraph, node_of: Ints, movable: Ints, distances: Floats) -> None:
        self.graph, self.node_of, self.distances = graph, node_of.copy(), distances
        self.movable = movable
        self.local = np.full(graph.ranks, -1, dtype=np.int64)
        self.members: list[list[int]] = [[] for _ in range(len(distances))]
        for cluster in np.flatnonzero(movable).tolist():
            self.members[self.node_of[cluster]].append(cluster)

    def run(self, until: float, random: np.random.Generator) -> None:
        """Exchange clusters between pairs of nodes until none gains, or the time is over."""
        while time.monotonic() < until:
            a, b = self._promising()
            gained = sum(self._exchange(*pair) for pair in self._in_time(a, b, until))
            if gained <= 0:
                break
        a, b = self._adjacent()
        shuffled = random.permutation(len(a))
        for pair in self._in_time(a[shuffled], b[shuffled], until):
            self._exchange(*pair)

    def _in_time(self, a: Ints, b: Ints, until: float):  # type: ignore[no-untyped-def]
        for pair in zip(a.tolist(), b.tolist(), strict=True):
            if time.monotonic() > until:
                return
            yield pair

    def _promising(self) -> tuple[Ints, Ints]:
        """Return the pairs of nodes of which the two best moves gain together, the best first;
        each node is in the first few of its pairs only."""
        nodes = len(self.distances)
        best = np.full((nodes, nodes), -np.inf)
        degree = max(1, int(np.diff(self.graph.starts).max(initial=1)))
        step = max(1, _CHUNK // (nodes * degree))
        order = np.argsort(self.node_of, kind="stable")
        order = order[self.movable[order]]
        for first in range(0, len(order), step):
            chunk = order[first : first + step]
            costs = self._costs(chunk)
            own = self.node_of[chunk]
            gains = costs[np.arange(len(chunk)), own][:, None] - costs
            here, at = np.unique(own, return_index=True)
            best[here] = np.maximum(best[here], np.maximum.reduceat(gains, at, axis=0))
        both = np.triu(best + best.T, 1)
        a, b = np.nonzero(both > 1e-9 * max(1.0, float(np.abs(both[np.isfinite(both)]).max())))
        ranked = np.argsort(-both[a, b], kind="stable")
        used: dict[int, int] = {}
        keep = []
        for place, (one, other) in enumerate(
            zip(a[ranked].tolist(), b[ranked].tolist(), strict=True)
        ):
            if used.get(one, 0) < 2 and used.get(other, 0) < 2:
                used[one], used[other] = used.get(one, 0) + 1, used.get(other, 0) + 1
                keep.append(place)
        return a[ranked][keep], b[ranked][keep]

    def _costs(self, clusters: Ints) -> Floats:
        """Return what each cluster would cost on each node."""
        starts = self.graph.starts
        sizes = starts[clusters + 1] - starts[clusters]
        costs = np.zeros((len(clusters), len(self.distances)))
        some = np.flatnonzero(sizes)
        if not len(some):
            return costs
        at = _ranges(starts[clusters[some]], sizes[some])
        there = self.node_of[self.graph.neighbours[at]]
        rows = self.distances[there] * self.graph.weights[at][:, None]
        firsts = np.concatenate([[0], np.cumsum(sizes[some])[:-1]])
        costs[some] = np.add.reduceat(rows, firsts, axis=0)
        return costs

    def _adjacent(self) -> tuple[Ints, Ints]:
        """Return the pairs of nodes that talk to each other."""
        owner = np.repeat(np.arange(self.graph.ranks), np.diff(self.graph.starts))
        a, b = self.node_of[owner], self.node_of[self.graph.neighbours]
        keys = np.unique((a * len(self.distances) + b)[a < b])
        return keys // len(self.distances), keys % len(self.distances)

    def _exchange(self, a: int, b: int) -> float:
        """Swap clusters of two nodes as long as it gains; return the gain."""
        mine, yours = self.members[a], self.members[b]
        if not mine or not yours:
            return 0.0
        both = np.array(mine + yours)
        number, distance = len(both), self.distances[a, b]
        starts = self.graph.starts
        sizes = starts[both + 1] - starts[both]
        at = _ranges(starts[both], sizes)
        row = np.repeat(np.arange(number), sizes)
        neighbours, weights = self.graph.neighbours[at], self.graph.weights[at]
        self.local[both] = np.arange(number)
        column = self.local[neighbours]
        self.local[both] = -1
        there = self.node_of[neighbours]
        gain = np.bincount(
            row, weights * (self.distances[there, a] - self.distances[there, b]), number
        ).astype(np.float64)
        side = np.arange(number) >= len(mine)
        gain[side] *= -1
        within = np.zeros((number, number))
        inside = column >= 0
        within[row[inside], column[inside]] = weights[inside] * (2 * distance)
        swaps, total = _kernighan_lin(gain, within, len(mine))
        for i, j in swaps:
            one, other = int(both[i]), int(both[j])
            self.node_of[one], self.node_of[other] = b, a
            mine[mine.index(one)], yours[yours.index(other)] = other, one
        return total


def _kernighan_lin(gain: Floats, within: Floats, first: int) -> tuple[list[tuple[int, int]], float]:
    """Return the swaps of the first ones with the others that gain most, and the gain. ``gain`` of
    moving each to the other side; ``within``: twice the cost of each pair if they are apart."""
    gain = gain.copy()
    scale = 1e-9 * max(1.0, float(np.abs(gain).max()))
    swaps: list[tuple[int, int]] = []
    total = best = 0.0
    kept = 0
    for _ in range(min(first, len(gain) - first)):
        pairs = gain[:first, None] + gain[None, first:] - within[:first, first:]
        i, j = divmod(int(pairs.argmax()), len(gain) - first)
        total += float(pairs[i, j])
        j += first
        swaps.append((i, j))
        change = within[:, i] - within[:, j]
        gain[:first] += change[:first]
        gain[first:] -= change[first:]
        gain[i] = gain[j] = -np.inf
        if total > best + scale:
            best, kept = total, len(swaps)
        elif len(swaps) - kept >= _LOSSES:
            break
    return swaps[:kept], best


def _ranges(firsts: Ints, sizes: Ints) -> Ints:
    """Return the numbers of all ranges, one after the other."""
    ends = np.cumsum(sizes)
    numbers: Ints = np.arange(int(ends[-1])) + np.repeat(firsts - ends + sizes, sizes)
    return numbers
