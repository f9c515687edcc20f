"""The rank order that costs least for a pattern on a network, found among candidates.

    found = ranked(pattern, network, sizes, by="hop_bytes", seconds=10)
    found[0].order             # never worse than `smp`, which is among the candidates

Candidates are the standard orders, cells of the grids that the pattern may be a halo exchange of,
recursive bisection, what other programs found (``others``), and the swaps that make the best of
these better.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, permutations
from typing import Literal, NamedTuple

from seatrial.arrays import Ints
from seatrial.layout import orders
from seatrial.layout.bisection import bisected
from seatrial.layout.grid_fits import Shape, likely_shapes, nested_cells, order_of_cells
from seatrial.layout.network_loads import OrderScore, PlacedNetwork
from seatrial.layout.orders import Order
from seatrial.layout.patterns import Pattern, graph_of
from seatrial.layout.refinement import refined
from seatrial.lazy import np

ScoreKind = Literal["hop_bytes", "off_node", "link_load"]
DEFAULT = "smp"
MAX_NODES = 4096  # more have no matrix of distances, and no swaps
_MAX_GRIDS = 400  # of each shape
_SHARE_OF_GRIDS = 0.3  # of the time
_STARTS = 2  # the best candidates from which swaps start


class ScoredOrder(NamedTuple):
    """A candidate: its name, its order, and what it costs. Without an order: why it was refused."""

    name: str
    order: Order | None
    score: OrderScore | None
    refused: str = ""


def ranked(
    pattern: Pattern,
    network: PlacedNetwork,
    sizes: Sequence[int],
    others: Mapping[str, Ints] | None = None,
    by: ScoreKind = "hop_bytes",
    seconds: float = 0.0,
) -> list[ScoredOrder]:
    """Return all candidates, the best first and those that were refused last. ``others``: the node
    of each rank, as other programs have it. ``seconds``: the time for swaps; 0 takes the usual one
    for this number of ranks. Raises ValueError where ranks and slots are not as many."""
    if sum(sizes) != pattern.ranks:
        raise ValueError(f"the pattern has {pattern.ranks} ranks, and the nodes have {sum(sizes)}")
    seconds = seconds or usual_seconds(pattern.ranks)
    began = time.monotonic()
    until = began + seconds
    graph = graph_of(pattern)
    found = [scored(name, of, pattern, network, sizes) for name, of in _standard(sizes)]
    grids_until = began + _SHARE_OF_GRIDS * seconds
    if (grid := _best_grid(pattern, network, sizes, by, grids_until)) is not None:
        found.append(grid)
    own = bisected(graph, network, sizes)
    found.append(scored("recursive bisection", own, pattern, network, sizes))
    for name, of in (others or {}).items():
        found.append(scored(name, of, pattern, network, sizes))
    found = _in_order(found, by)
    if 1 < len(network) <= MAX_NODES:
        distances = network.distances()
        starts = [one for one in found[:_STARTS] if one.order is not None]
        for left, start in zip(range(len(starts), 0, -1), starts, strict=True):
            now = time.monotonic()
            of = _nodes_of(start.order or [], sizes)
            better = refined(graph, of, distances, now + max(0.0, until - now) / left)
            found.append(scored(f"swaps from {start.name}", better, pattern, network, sizes))
    return _in_order(found, by)


def usual_seconds(ranks: int) -> float:
    """Return the time for swaps that this number of ranks is given."""
    return 4 + ranks / 2048


def _in_order(found: Sequence[ScoredOrder], by: ScoreKind) -> list[ScoredOrder]:
    """Return candidates by their score; equal ones as they stand, so that simple ones win."""

    def key(one: ScoredOrder) -> tuple[float, ...]:
        if one.score is None:
            return (math.inf,)
        return (getattr(one.score, by), one.score.hop_bytes, one.score.link_load)

    return sorted(found, key=key)


def scored(
    name: str, node_of: Ints, pattern: Pattern, network: PlacedNetwork, sizes: Sequence[int]
) -> ScoredOrder:
    """Return a candidate with its cost, or refused: one that puts ranks on a node without slots
    for them is no order."""
    filled = Counter(node_of.tolist())
    for node, number in sorted(filled.items()):
        slots = sizes[node] if 0 <= node < len(sizes) else 0
        if number > slots:
            told = network.topology.nodes[network.nodes[node]] if slots else f"node {node}"
            return ScoredOrder(name, None, None, f"{number} ranks on {told}, of {slots} slots")
    if len(node_of) != pattern.ranks:
        return ScoredOrder(name, None, None, f"{len(node_of)} ranks, not {pattern.ranks}")
    order = np.argsort(node_of, kind="stable").tolist()
    return ScoredOrder(name, order, network.score(pattern, node_of))


def _nodes_of(order: Sequence[int], sizes: Sequence[int]) -> Ints:
    return np.array(orders.nodes_of_ranks(order, sizes), dtype=np.int64)


def _standard(sizes: Sequence[int]) -> Iterator[tuple[str, Ints]]:
    yield DEFAULT, _nodes_of(orders.smp(sizes), sizes)
    yield "round robin", _nodes_of(orders.round_robin(sizes), sizes)
    yield "folded", _nodes_of(orders.folded(sizes), sizes)


# ---- grids --------------------------------------------------------------------------------


def _best_grid(
    pattern: Pattern,
    network: PlacedNetwork,
    sizes: Sequence[int],
    by: ScoreKind,
    until: float,
) -> ScoredOrder | None:
    """Return the best order by cells of a grid; None where nodes differ in slots."""
    if len(set(sizes)) > 1:
        return None
    found: list[ScoredOrder] = []
    for shape in likely_shapes(pattern):
        for nodes, inner in _node_orders(network, sizes[0]):
            for cells in islice(nested_cells(shape, inner), _MAX_GRIDS):
                if time.monotonic() > until:
                    break
                of = np.empty(pattern.ranks, dtype=np.int64)
                of[order_of_cells(shape, cells)] = np.repeat(nodes, sizes[0])
                one = scored(_grid_name(shape, cells), of, pattern, network, sizes)
                found = _in_order([*found, one], by)[:1]
    return found[0] if found else None


def _grid_name(shape: Shape, cells: Sequence[Shape]) -> str:
    texts = ["x".join(map(str, each)) for each in (shape, *cells)]
    return f"grid {texts[0]} by {' of '.join(texts[1:])}"


def _node_orders(network: PlacedNetwork, ranks: int) -> Iterator[tuple[Ints, list[int]]]:
    """Yield orders of the nodes, and the sizes of cells of cells that go with each: the ranks of a
    node, the nodes of a smallest unit, the units of a larger one, where all have as many."""
    if network.topology.kind == "torus":
        for axes in permutations(range(network.at.shape[1])):
            keys = [network.at[:, axis] for axis in reversed(axes)]
            yield np.lexsort(keys), [ranks]
        return
    keys = [np.arange(len(network)), *network.units]
    nodes = np.lexsort(keys)
    yield nodes, [ranks]
    inner, below = [ranks], 1
    for unit in network.units:
        each = set(np.bincount(unit)[np.unique(unit)].tolist())
        if len(each) > 1:
            break
        own = each.pop()
        if own > below:
            inner = [*inner, own // below]
            below = own
            yield nodes, inner
