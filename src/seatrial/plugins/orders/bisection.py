"""Ranks on nodes by recursive bisection: halves of the ranks go to halves of the nodes, so that
little is sent between the halves.

    node_of = bisected(graph, network, sizes)

The nodes are halved along their network: at a border of its largest level, or across the longest
axis of a torus. A half of the ranks grows from one end of the graph, and is refined by moves of
many ranks at once, in the manner of Kernighan and Lin; or another program finds it (``split``).
"""

import functools
import time
from collections.abc import Callable, Iterator, Sequence

from seatrial.lazy import Bools, Floats, Ints, np
from seatrial.plugins.orders.network_loads import PlacedNetwork
from seatrial.plugins.orders.patterns import RankGraph, graph_of_edges

_ROUNDS = 30
# Which of so many vertices are in the first part, which is to have so many of them; the ends and
# the weights of the edges, each in both directions, by their first ends.
Split = Callable[[int, int, Ints, Ints, Floats], Bools]


def bisected(
    graph: RankGraph,
    network: PlacedNetwork,
    sizes: Sequence[int],
    split: Split | None = None,
    seed: int = 0,
) -> Ints:
    """Return the node of each rank; node i has ``sizes[i]`` of them. Where ``split`` gives too many
    to a part, those for which it costs least are moved."""
    random = np.random.default_rng(seed)
    split = split or functools.partial(_half, random)
    owner = np.repeat(np.arange(graph.ranks), np.diff(graph.starts))
    node_of = np.zeros(graph.ranks, dtype=np.int64)
    slots = np.array(sizes, dtype=np.int64)
    local = np.full(graph.ranks, -1, dtype=np.int64)
    # A part: its ranks, its nodes, and the edges between its ranks.
    whole = (np.arange(graph.ranks), np.arange(len(sizes)), owner, graph.neighbours, graph.weights)
    parts = [whole]
    while parts:
        ranks, nodes, a, b, weights = parts.pop()
        if len(nodes) == 1 or not len(ranks):
            node_of[ranks] = nodes[0]
            continue
        low, high = halves(network, nodes)
        local[ranks] = np.arange(len(ranks))
        wanted = min(len(ranks), int(slots[low].sum()))
        own_a, own_b = local[a], local[b]
        first = split(len(ranks), wanted, own_a, own_b, weights)
        first = _filled(first, wanted, own_a, own_b, weights)
        for half, nodes_of_half in ((first, low), (~first, high)):
            inside = half[own_a] & half[own_b]
            parts.append((ranks[half], nodes_of_half, a[inside], b[inside], weights[inside]))
    return node_of


def halves(network: PlacedNetwork, nodes: Ints) -> tuple[Ints, Ints]:
    """Return two parts of nodes: near to each other within, as alike in size as a border allows."""
    if network.topology.kind == "torus":
        at = network.at[nodes]
        extents = [len(np.unique(column)) for column in at.T]
        axis = int(np.argmax(extents))
        ranked = nodes[np.argsort(at[:, axis], kind="stable")]
        return ranked[: len(nodes) // 2], ranked[len(nodes) // 2 :]
    for unit in reversed(network.units):
        units = unit[nodes]
        if len(np.unique(units)) > 1:
            ranked = nodes[np.argsort(units, kind="stable")]
            borders = np.flatnonzero(np.diff(np.sort(units))) + 1
            cut = int(borders[np.argmin(np.abs(borders - len(nodes) / 2))])
            return ranked[:cut], ranked[cut:]
    return nodes[: len(nodes) // 2], nodes[len(nodes) // 2 :]


def _filled(first: Bools, wanted: int, a: Ints, b: Ints, weights: Floats) -> Bools:
    """Return the parts with ``wanted`` vertices in the first one."""
    surplus = int(first.sum()) - wanted
    if not surplus:
        return first
    gain = np.bincount(a, np.where(first[a] != first[b], weights, -weights), len(first))
    movable = np.flatnonzero(first if surplus > 0 else ~first)
    moved = movable[np.argsort(-gain[movable], kind="stable")[: abs(surplus)]]
    first = first.copy()
    first[moved] = surplus < 0
    return first


def _half(
    random: "np.random.Generator", number: int, wanted: int, a: Ints, b: Ints, weights: Floats
) -> Bools:
    """Return which of the vertices are in the first part, which has ``wanted`` of them."""
    best: Bools | None = None
    least = np.inf
    for _ in range(2):
        distance = _distances(number, a, b, int(random.integers(number)))
        far = int(distance.argmax())
        ranked = np.argsort(_distances(number, a, b, far), kind="stable")
        first = np.zeros(number, dtype=bool)
        first[ranked[:wanted]] = True
        first = _moved(first, a, b, weights)
        cut = float(weights[first[a] != first[b]].sum())
        if cut < least:
            best, least = first, cut
    assert best is not None
    return best


def _distances(number: int, a: Ints, b: Ints, start: int) -> Ints:
    """Return the steps from a vertex to each other; those that it does not reach come last."""
    steps = np.full(number, number, dtype=np.int64)
    steps[start] = 0
    step = 0
    while True:
        step += 1
        near = b[(steps[a] == step - 1)]
        near = near[steps[near] == number]
        if not len(near):
            return steps
        steps[near] = step


def _moved(first: Bools, a: Ints, b: Ints, weights: Floats) -> Bools:
    """Return the parts after swaps of as many vertices of each as lower the cut."""
    number = len(first)
    cut = float(weights[first[a] != first[b]].sum())
    share = 0.5
    for _ in range(_ROUNDS):
        apart = np.where(first[a] != first[b], weights, -weights)
        gain = np.bincount(a, apart, number)
        ours, theirs = np.flatnonzero(first), np.flatnonzero(~first)
        ours = ours[np.argsort(-gain[ours], kind="stable")]
        theirs = theirs[np.argsort(-gain[theirs], kind="stable")]
        pairs = min(len(ours), len(theirs))
        good = int((gain[ours[:pairs]] + gain[theirs[:pairs]] > 0).sum())
        if not good:
            break
        count = max(1, int(good * share))
        moved = first.copy()
        moved[ours[:count]], moved[theirs[:count]] = False, True
        now = float(weights[moved[a] != moved[b]].sum())
        if now < cut:
            first, cut = moved, now
        elif count == 1:
            break
        else:
            share /= 2
    return first


# ---- refinement ----------------------------------------------------------------------------------
#
# Swaps that bring ranks nearer to those that they talk to (Kernighan and Lin 1970).
#
#     node_of = refined(graph, node_of, distances, until=deadline)
#
# The cost is the bytes of each pair of ranks times the hops between their nodes. Two nodes
# exchange ranks pair by pair, the best pair first, also at a loss; the exchange is cut where the
# gain was largest. Clusters of ranks are swapped before single ranks: whole nodes, then clusters
# of ranks that talk to each other, of ..., 4, 2 ranks: a swap of single ranks alone does not leave
# the boxes of a grid.


_LOSSES = 6  # so many swaps in a row without a new best end an exchange
_CHUNK = 1 << 22  # elements of an array that is made in one go
_DENSE = 3e10  # products for what each cluster would cost on each node: more take too long
_MATCHINGS = 8  # rounds in which clusters choose each other


def refined(
    graph: RankGraph, node_of: Ints, distances: Floats, until: float, seed: int = 0
) -> Ints:
    """Return nodes of ranks that cost no more. ``until``: the time of ``time.monotonic`` at which
    the search ends. The number of ranks of each node stays."""
    random = np.random.default_rng(seed)
    gained = True
    while gained and time.monotonic() < until:
        gained = False
        for cluster_of, movable in _levels(graph, node_of, random):
            coarse = _merged(graph, cluster_of)
            first = np.unique(cluster_of, return_index=True)[1]
            search = _Search(coarse, node_of[first], movable, distances)
            gained = search.run(until, random) or gained
            node_of = search.node_of[cluster_of]
            if time.monotonic() > until:
                break
    return node_of


def _levels(
    graph: RankGraph, node_of: Ints, random: "np.random.Generator"
) -> list[tuple[Ints, Bools]]:
    """Return the cluster of each rank, and which clusters can be swapped with each other, as they
    have as many ranks: whole nodes, and then ever smaller clusters. Each consists of whole clusters
    of the next level, so they stay on one node when larger ones are swapped."""
    sizes = np.bincount(node_of)
    largest = int(sizes.max())
    found = [(np.arange(graph.ranks), np.ones(graph.ranks, dtype=bool))]
    coarse, nodes, of = graph, node_of, np.arange(graph.ranks)
    size = 1
    while 2 * size < largest:
        full = found[-1][1]
        pair_of = _pairs(coarse, nodes, full, random)
        coarse, of = _merged(coarse, pair_of), pair_of[of]
        nodes = nodes[np.unique(pair_of, return_index=True)[1]]
        size *= 2
        found.append((of, np.bincount(of) == size))
    if size < largest:
        filled = np.unique(node_of, return_inverse=True)[1]
        found.append((filled, np.bincount(filled) == largest))
    return found[::-1]


def _pairs(graph: RankGraph, node_of: Ints, full: Bools, random: "np.random.Generator") -> Ints:
    """Return the pair of each cluster: of two that are full and on the same node, and that talk
    most to each other where they chose each other. What is left alone is a pair of its own."""
    number = graph.ranks
    partner = np.arange(number)
    owner = np.repeat(np.arange(number), np.diff(graph.starts))
    other = graph.neighbours
    inside = (node_of[owner] == node_of[other]) & full[owner] & full[other]
    owner, other, weights = owner[inside], other[inside], graph.weights[inside]
    lot = random.permutation(number)
    ranked = np.lexsort([lot[owner] + lot[other], -weights])
    owner, other = owner[ranked], other[ranked]
    for _ in range(_MATCHINGS):
        if not len(owner):
            break
        who, at = np.unique(owner, return_index=True)
        chosen = np.full(number, -1)
        chosen[who] = other[at]
        mutual = who[chosen[chosen[who]] == who]
        partner[mutual] = chosen[mutual]
        free = (partner[owner] == owner) & (partner[other] == other)
        owner, other = owner[free], other[free]
    left = np.flatnonzero((partner == np.arange(number)) & full)
    left = left[np.argsort(node_of[left], kind="stable")]
    own = node_of[left]
    rank = np.arange(len(left)) - np.searchsorted(own, own)
    first = np.flatnonzero((rank[:-1] % 2 == 0) & (own[:-1] == own[1:]))
    partner[left[first]], partner[left[first + 1]] = left[first + 1], left[first]
    return np.unique(np.minimum(partner, np.arange(number)), return_inverse=True)[1]


def _merged(graph: RankGraph, cluster_of: Ints) -> RankGraph:
    if len(cluster_of) == int(cluster_of.max()) + 1:
        return graph
    owner = np.repeat(np.arange(graph.ranks), np.diff(graph.starts))
    once = owner < graph.neighbours
    a, b = cluster_of[owner[once]], cluster_of[graph.neighbours[once]]
    return graph_of_edges(int(cluster_of.max()) + 1, a, b, graph.weights[once])


class _Search:
    """The search over swaps of clusters of one size."""

    def __init__(self, graph: RankGraph, node_of: Ints, movable: Bools, distances: Floats) -> None:
        self.graph, self.node_of, self.distances = graph, node_of.copy(), distances
        self.movable = movable
        self.local = np.full(graph.ranks, -1, dtype=np.int64)
        self.members: list[list[int]] = [[] for _ in range(len(distances))]
        for cluster in np.flatnonzero(movable).tolist():
            self.members[self.node_of[cluster]].append(cluster)

    def run(self, until: float, random: "np.random.Generator") -> bool:
        """Exchange clusters between pairs of nodes until none gains, or the time is over. Return
        whether any gained."""
        nodes = len(self.distances)
        gained = False
        while nodes * nodes * len(self.node_of) < _DENSE:
            pairs = list(self._in_time(*self._promising(), until))
            if not sum(self._exchange(*pair) > 0 for pair in pairs):
                break
            gained = True
        changed = np.ones(nodes, dtype=bool)
        while changed.any() and time.monotonic() < until:
            a, b = self._adjacent()
            some = changed[a] | changed[b]
            a, b = a[some], b[some]
            changed = np.zeros(nodes, dtype=bool)
            shuffled = random.permutation(len(a))
            for pair in self._in_time(a[shuffled], b[shuffled], until):
                if self._exchange(*pair) > 0:
                    changed[[*pair]] = gained = True
        return gained

    def _in_time(self, a: Ints, b: Ints, until: float) -> Iterator[tuple[int, int]]:
        for pair in zip(a.tolist(), b.tolist(), strict=True):
            if time.monotonic() > until:
                return
            yield pair

    def _promising(self) -> tuple[Ints, Ints]:
        """Return the pairs of nodes of which the two best moves gain together, the best first;
        each node is in the first few of its pairs only."""
        nodes = len(self.distances)
        best = np.full((nodes, nodes), -np.inf)
        order = np.argsort(self.node_of, kind="stable")
        order = order[self.movable[order]]
        step = max(1, _CHUNK // nodes)
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
        a, b = a[ranked], b[ranked]
        used = [0] * nodes
        keep = []
        for place, (one, other) in enumerate(zip(a.tolist(), b.tolist(), strict=True)):
            if used[one] < 2 and used[other] < 2:
                used[one], used[other] = used[one] + 1, used[other] + 1
                keep.append(place)
        return a[keep], b[keep]

    def _costs(self, clusters: Ints) -> Floats:
        """Return what each cluster would cost on each node."""
        nodes = len(self.distances)
        starts = self.graph.starts
        sizes = starts[clusters + 1] - starts[clusters]
        at = _ranges(starts[clusters], sizes)
        row = np.repeat(np.arange(len(clusters)), sizes)
        keys = row * nodes + self.node_of[self.graph.neighbours[at]]
        sent = np.bincount(keys, self.graph.weights[at], len(clusters) * nodes)
        costs: Floats = sent.reshape(len(clusters), nodes) @ self.distances
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
    numbers: Ints = np.arange(int(sizes.sum())) + np.repeat(firsts - ends + sizes, sizes)
    return numbers
