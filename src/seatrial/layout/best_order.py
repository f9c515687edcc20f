"""The rank order that costs least for a pattern on a network, found among candidates.

    found = ranked(pattern, network, sizes, by="hop_bytes", seconds=10)
    found[0].order             # never worse than `smp`, which is among the candidates

Candidates are the standard orders, what other programs find (``others``), recursive bisection where
these give none, cells of the grids that the pattern may be a halo exchange of, and the swaps that
make the best of these better.
"""

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from seatrial.arrays import Ints
from seatrial.layout import orders
from seatrial.layout.bisection import bisected
from seatrial.layout.grid_fits import curved_orders, likely_shapes, nested_orders
from seatrial.layout.network_loads import OrderScore, PlacedNetwork, ScoreKind, SetTraffic
from seatrial.layout.orders import Order
from seatrial.layout.patterns import Pattern, RankGraph, graph_of
from seatrial.layout.refinement import refined
from seatrial.lazy import np

DEFAULT = "smp"
_SHARE_OF_OTHERS, _SHARE_OF_GRIDS = 0.4, 0.6  # of the time: when no more are begun
_ASKED = 2  # others that are asked however long it takes
_STARTS = 2  # the best candidates from which swaps start
_MAX_STRAINED = 1024  # nodes: more take too long for links to be relieved
_FAILURES = 4  # rounds in a row that relieve nothing
_HOP = 0.01  # of what a byte over the busiest link counts


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
    others: "Mapping[str, Callable[[], Ints | None]] | None" = None,
    by: ScoreKind = "hop_bytes",
    seconds: float = 0.0,
) -> list[ScoredOrder]:
    """Return all candidates, the best first and those that were refused last. ``others`` ask other
    programs for the node of each rank. ``seconds``: the time for all of it; 0 takes the usual one
    for this number of ranks. Standard orders, cells of a node, and the first two of the others
    are tried in any case. Raises ValueError where ranks and slots are not as many."""
    if sum(sizes) != pattern.ranks:
        raise ValueError(f"the pattern has {pattern.ranks} ranks, and the nodes have {sum(sizes)}")
    seconds = seconds or usual_seconds(pattern.ranks)
    began = time.monotonic()
    search = _Search(pattern, network, sizes)
    shapes = likely_shapes(pattern) if len(set(sizes)) == 1 else []
    found = [search.scored(*each) for each in _standard(sizes)]
    standard = len(found)
    of_grids = search.best(curved_orders(shapes, sizes[0]), by, math.inf)
    for asked, (name, mapped) in enumerate((others or {}).items()):
        in_time = time.monotonic() < began + _SHARE_OF_OTHERS * seconds
        if (asked < _ASKED or in_time) and (of := mapped()) is not None:
            found.append(search.scored(name, of))
    graph = graph_of(pattern)
    if not any(one.order for one in found[standard:]):
        found.append(search.scored("recursive bisection", bisected(graph, network, sizes)))
    until = began + _SHARE_OF_GRIDS * seconds
    of_grids += search.best(nested_orders(shapes, network, sizes[0]), by, until)
    found = _in_order([*found, *of_grids], by)
    if len(network) > 1 and network.distances is not None:
        swaps = search.swaps if by != "link_load" or len(network) > _MAX_STRAINED else search.relief
        found += swaps(graph, found, began + seconds)
    return _in_order(found, by)


class _Search(NamedTuple):
    """A search for the order of a pattern on nodes with so many slots each."""

    pattern: Pattern
    network: PlacedNetwork
    sizes: Sequence[int]

    def scored(self, name: str, node_of: Ints) -> ScoredOrder:
        return scored(name, node_of, *self)

    def best(
        self, candidates: Iterator[tuple[str, Ints]], by: ScoreKind, until: float
    ) -> list[ScoredOrder]:
        """Return the best of candidates; none where there are none."""
        traffic = SetTraffic(self.pattern, self.network)
        best: tuple[float, str, Ints] | None = None
        for name, of in candidates:
            cost = self.network.cost(traffic.of(of), by)
            if best is None or cost < best[0]:
                best = (cost, name, of)
            if time.monotonic() > until:
                break
        return [self.scored(*best[1:])] if best else []

    def swaps(
        self, graph: RankGraph, found: Sequence[ScoredOrder], until: float
    ) -> list[ScoredOrder]:
        """Return the best candidates with fewer hop-bytes by swaps."""
        assert self.network.distances is not None
        distances = self.network.distances.astype(np.float64)
        starts = [one for one in found if one.order is not None][:_STARTS]
        better = []
        for left, start in zip(range(len(starts), 0, -1), starts, strict=True):
            now = time.monotonic()
            limit = now + max(0.0, until - now) / left
            of = refined(graph, _nodes_of(start.order or [], self.sizes), distances, limit)
            better.append(self.scored(f"swaps from {start.name}", of))
        return better

    def relief(
        self, graph: RankGraph, found: Sequence[ScoredOrder], until: float
    ) -> list[ScoredOrder]:
        """Return the best candidates with fewer hop-bytes, and the best of all with its busiest
        links relieved: bytes over busy links count for more, and swaps find other ways for them."""
        now = time.monotonic()
        better = self.swaps(graph, found, now + max(0.0, until - now) / 2)
        start = _in_order([*found, *better], "link_load")[0]
        node_of, least = _nodes_of(start.order or [], self.sizes), start.score
        best, network = node_of, self.network
        assert least is not None and network.distances is not None
        failures = 0
        while failures < _FAILURES and time.monotonic() < until and least.link_load:
            strains = network.strains(self.pattern, node_of) + _HOP * network.distances
            node_of = refined(graph, node_of, strains, until)
            score = network.score(self.pattern, node_of)
            failures += 1
            if score.link_load < least.link_load:
                best, least, failures = node_of, score, 0
        return [*better, self.scored(f"links relieved from {start.name}", best)]


def usual_seconds(ranks: int) -> float:
    """Return the time for a search that this number of ranks is given."""
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
    """Yield the orders that launchers know."""
    yield DEFAULT, _nodes_of(orders.smp(sizes), sizes)
    yield "round robin", _nodes_of(orders.round_robin(sizes), sizes)
    yield "folded", _nodes_of(orders.folded(sizes), sizes)
