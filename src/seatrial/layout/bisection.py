"""Ranks on nodes by recursive bisection: halves of the ranks go to halves of the nodes, so that
little is sent between the halves.

    node_of = bisected(graph, network, sizes)

The nodes are halved along their network: at a border of its largest level, or across the longest
axis of a torus. A half of the ranks grows from one end of the graph, and is refined by moves of
many ranks at once, in the manner of Kernighan and Lin; or another program finds it (``split``).
"""

import functools
from collections.abc import Callable, Sequence

from seatrial.arrays import Bools, Floats, Ints
from seatrial.layout.network_loads import PlacedNetwork
from seatrial.layout.patterns import RankGraph
from seatrial.lazy import np

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
        for own, there in ((first, low), (~first, high)):
            inside = own[own_a] & own[own_b]
            parts.append((ranks[own], there, a[inside], b[inside], weights[inside]))
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
        own = unit[nodes]
        if len(np.unique(own)) > 1:
            ranked = nodes[np.argsort(own, kind="stable")]
            borders = np.flatnonzero(np.diff(np.sort(own))) + 1
            cut = int(borders[np.argmin(np.abs(borders - len(nodes) / 2))])
            return ranked[:cut], ranked[cut:]
    return nodes[: len(nodes) // 2], nodes[len(nodes) // 2 :]


def _filled(first: Bools, wanted: int, a: Ints, b: Ints, weights: Floats) -> Bools:
    """Return the parts with ``wanted`` vertices in the first one."""
    surplus = int(first.sum()) - wanted
    if not surplus:
        return first
    gain = np.bincount(a, np.where(first[a] != first[b], weights, -weights), len(first))
    there = np.flatnonzero(first if surplus > 0 else ~first)
    moved = there[np.argsort(-gain[there], kind="stable")[: abs(surplus)]]
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
    found = np.full(number, number, dtype=np.int64)
    found[start] = 0
    step = 0
    while True:
        step += 1
        near = b[(found[a] == step - 1)]
        near = near[found[near] == number]
        if not len(near):
            return found
        found[near] = step


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
