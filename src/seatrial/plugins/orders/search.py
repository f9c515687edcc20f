"""The search for the rank order that costs least for a pattern on a network, among candidates.

    found = best_orders(pattern, network, sizes, by="hop_bytes", seconds=10)
    found[0].order             # never worse than `smp`, which is among the candidates

Candidates are the standard orders, what METIS and Scotch find where they are installed, recursive
bisection where these give none, cells of the grids that the pattern may be a halo exchange of, and
the swaps that make the best of these better.
"""

import importlib.util
import itertools
import logging
import math
import os
import shutil
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from seatrial.errors import with_extra
from seatrial.lazy import Bools, Floats, Ints, np
from seatrial.model import orders
from seatrial.model.orders import Curve, GridOrder, Order, cell_positions
from seatrial.plugins.orders.bisection import bisected, refined
from seatrial.plugins.orders.network_loads import OrderScore, PlacedNetwork, ScoreKind, SetTraffic
from seatrial.plugins.orders.patterns import Pattern, RankGraph, graph_of

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
    candidates = [search.scored(*each) for each in _standard(sizes)]
    of_grids = search.best(curved_orders(shapes, sizes[0]), by, math.inf)
    of_others = search.of_programs(others or {}, began + _SHARE_OF_OTHERS * seconds)
    graph = graph_of(pattern)
    if not any(one.order for one in of_others):
        of_others.append(search.scored("recursive bisection", bisected(graph, network, sizes)))
    candidates += of_others
    until = began + _SHARE_OF_GRIDS * seconds
    of_grids += search.best(nested_orders(shapes, network, sizes[0]), by, until)
    candidates = _in_order([*candidates, *of_grids], by)
    if len(network) > 1 and network.distances is not None:
        swaps = search.swaps if by != "link_load" or len(network) > _MAX_STRAINED else search.relief
        candidates += swaps(graph, candidates, began + seconds)
    return _in_order(candidates, by)


class _Search(NamedTuple):
    """A search for the order of a pattern on nodes with so many slots each."""

    pattern: Pattern
    network: PlacedNetwork
    sizes: Sequence[int]

    def scored(self, name: str, node_of: Ints) -> ScoredOrder:
        return scored(name, node_of, *self)

    def of_programs(
        self, others: "Mapping[str, Callable[[], Ints | None]]", until: float
    ) -> list[ScoredOrder]:
        """Return the orders of other programs; the first two are asked in any case."""
        found: list[ScoredOrder] = []
        for place, (name, mapped) in enumerate(others.items()):
            in_time = time.monotonic() < until
            if (place < _ASKED or in_time) and (node_of := mapped()) is not None:
                found.append(self.scored(name, node_of))
        return found

    def best(
        self, candidates: Iterator[tuple[str, Ints]], by: ScoreKind, until: float
    ) -> list[ScoredOrder]:
        """Return the best of candidates; none where there are none."""
        traffic = SetTraffic(self.pattern, self.network)
        best: tuple[float, str, Ints] | None = None
        for name, node_of in candidates:
            cost = self.network.cost(traffic.between(node_of), by)
            if best is None or cost < best[0]:
                best = (cost, name, node_of)
            if time.monotonic() > until:
                break
        return [self.scored(*best[1:])] if best else []

    def swaps(
        self, graph: RankGraph, candidates: Sequence[ScoredOrder], until: float
    ) -> list[ScoredOrder]:
        """Return the best candidates with fewer hop-bytes by swaps."""
        assert self.network.distances is not None
        distances = self.network.distances.astype(np.float64)
        starts = [one for one in candidates if one.order is not None][:_STARTS]
        better = []
        for left, start in zip(range(len(starts), 0, -1), starts, strict=True):
            now = time.monotonic()
            limit = now + max(0.0, until - now) / left
            node_of = refined(graph, _nodes_of(start.order or [], self.sizes), distances, limit)
            better.append(self.scored(f"swaps from {start.name}", node_of))
        return better

    def relief(
        self, graph: RankGraph, candidates: Sequence[ScoredOrder], until: float
    ) -> list[ScoredOrder]:
        """Return the best candidates with fewer hop-bytes, and the best of all with its busiest
        links relieved: bytes over busy links count for more, and swaps find other ways for them."""
        now = time.monotonic()
        better = self.swaps(graph, candidates, now + max(0.0, until - now) / 2)
        start = _in_order([*candidates, *better], "link_load")[0]
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


def _in_order(candidates: Sequence[ScoredOrder], by: ScoreKind) -> list[ScoredOrder]:
    """Return candidates by their score; equal ones as they stand, so that simple ones win."""

    def key(one: ScoredOrder) -> tuple[float, ...]:
        if one.score is None:
            return (math.inf,)
        return (getattr(one.score, by), one.score.hop_bytes, one.score.link_load)

    return sorted(candidates, key=key)


def scored(
    name: str, node_of: Ints, pattern: Pattern, network: PlacedNetwork, sizes: Sequence[int]
) -> ScoredOrder:
    """Return a candidate with its cost, or refused: one that puts ranks on a node without slots
    for them is no order."""
    filled = Counter(node_of.tolist())
    for node, number in sorted(filled.items()):
        slots = sizes[node] if 0 <= node < len(sizes) else 0
        if number > slots:
            place = network.topology.nodes[network.nodes[node]] if slots else f"node {node}"
            return ScoredOrder(name, None, None, f"{number} ranks on {place}, of {slots} slots")
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


# ---- grid fits -----------------------------------------------------------------------------------
#
# Grids that a pattern may be the halo exchange of, and orders by cells that fill nodes.
#
#     shapes = likely_shapes(pattern)              # [(16, 16, 16), ...]: the best first
#     cells = cells_of((16, 16, 16), 32)           # [(4, 2, 4), (4, 4, 2), ...]: the best first
#     for name, node_of in curved_orders(shapes, 32): ...
#
# A pattern file does not say how a program numbers its grid. So all factorisations of the number
# of ranks into up to three lengths are tried; the best is that in which messages go least far.


_SAMPLE = 10_000  # pairs by which shapes are compared
_DIMENSIONS = 3
_ALIKE = 1.2  # times as far as in the best shape: others are left out
_NEAR = 0.8  # of the way between two ranks by chance: where bytes go further, there is no grid
_MAX_CELLS = 400  # of each shape and order of nodes
_CURVES: dict[Curve, str] = {"Z": "", "P": " Peano", "H": " Hilbert"}
Shape = tuple[int, ...]


def factorisations(number: int, dimensions: int) -> Iterator[Shape]:
    """Yield all ways to write a number as a product of so many lengths, in all orders."""
    if dimensions == 1:
        yield (number,)
        return
    for length in range(1, number + 1):
        if number % length == 0:
            for rest in factorisations(number // length, dimensions - 1):
                yield (length, *rest)


def likely_shapes(pattern: Pattern, keep: int = 3) -> list[Shape]:
    """Return the shapes, row-major, in which the bytes go least far, around the ends if that is
    shorter. Lengths of 1 are left out, so one shape may have fewer dimensions. Shapes in which they
    go further than in the best one, or about as far as between any two ranks, are left out, too."""
    pairs = np.arange(len(pattern.senders))
    if len(pairs) > _SAMPLE:
        pairs = np.random.default_rng(0).integers(0, len(pairs), _SAMPLE)
    a, b = pattern.senders[pairs], pattern.receivers[pairs]
    volumes = pattern.volumes[pairs].astype(np.float64)
    cost: dict[Shape, float] = {}
    for shape in dict.fromkeys(map(_without_ones, factorisations(pattern.ranks, _DIMENSIONS))):
        total = float(_steps_in(shape, a, b) @ volumes)
        by_chance = float(volumes.sum()) * sum(length / 4 for length in shape)
        if total < _NEAR * by_chance:
            cost[shape] = total
    largest = _ALIKE * min(cost.values(), default=0.0)
    shapes = [shape for shape, total in cost.items() if total <= largest]
    return sorted(shapes, key=lambda shape: (cost[shape], len(shape), shape))[:keep]


def _without_ones(lengths: Shape) -> Shape:
    return tuple(length for length in lengths if length > 1) or (1,)


def _steps_in(shape: Shape, a: Ints, b: Ints) -> Floats:
    """Return how far pairs of ranks are apart in a grid, around the ends if that is shorter."""
    steps = np.zeros(len(a))
    for x, y, length in zip(
        np.unravel_index(a, shape), np.unravel_index(b, shape), shape, strict=True
    ):
        apart = np.abs(x - y)
        steps += np.minimum(apart, length - apart)
    return steps


def cells_of(shape: Sequence[int], ranks: int) -> list[Shape]:
    """Return the cells of so many ranks whose lengths divide those of the grid; those with the
    smallest surface first."""
    cells = [
        cell
        for cell in factorisations(ranks, len(shape))
        if all(length % side == 0 for length, side in zip(shape, cell, strict=True))
    ]
    return sorted(cells, key=lambda cell: sum(1 / length for length in cell))


def nested_cells(shape: Sequence[int], sizes: Sequence[int]) -> Iterator[list[Shape]]:
    """Yield cells of cells: a cell of the first size, one of the second made of whole such cells,
    ... ``sizes`` are ranks of a node, of a router, of a group."""
    if not sizes:
        yield []
        return
    for cell in cells_of(shape, sizes[0]):
        inner = tuple(length // side for length, side in zip(shape, cell, strict=True))
        for rest in nested_cells(inner, sizes[1:]):
            yield [cell, *rest]


def order_of_cells(shape: Sequence[int], cells: Sequence[Shape]) -> Ints:
    """Return the ranks of a row-major grid by cells of cells, the smallest first."""
    numbers = np.arange(int(np.prod(shape))).reshape(tuple(shape))
    lengths = [*shape]
    blocks = []  # per dimension: the lengths within the cells, from the smallest on
    for axis in range(len(lengths)):
        sides = [cell[axis] for cell in cells]
        blocks.append([*sides, lengths[axis] // int(np.prod(sides or [1]))])
    depth = len(cells) + 1
    split = numbers.reshape([length for block in blocks for length in reversed(block)])
    axes = [
        axis * depth + (depth - 1 - level)
        for level in reversed(range(depth))
        for axis in range(len(lengths))
    ]
    order: Ints = split.transpose(axes).reshape(-1)
    return order


# ---- on a network -------------------------------------------------------------------------


def nested_orders(
    shapes: Sequence[Shape], network: PlacedNetwork, per_node: int
) -> Iterator[tuple[str, Ints]]:
    """Yield names and the node of each rank: by cells of cells on nodes that are near each other.
    Orders with the same cells follow each other."""
    alike = itertools.groupby(_node_orders(network, per_node), key=lambda one: one[1])
    groups = [(inner, [nodes for nodes, _ in group]) for inner, group in alike]
    for shape in shapes:
        for inner, group in groups:
            for cells in itertools.islice(nested_cells(shape, inner), _MAX_CELLS):
                name = f"nested {_text(shape)} by {' of '.join(map(_text, cells))}"
                order = order_of_cells(shape, cells)
                for nodes in group:
                    yield name, _placed(order, nodes, per_node)


def curved_orders(shapes: Sequence[Shape], per_node: int) -> Iterator[tuple[str, Ints]]:
    """Yield names, as ``run.order`` has them, and the node of each rank: as ``grid_order`` has
    them, by cells of a node along each curve."""
    for shape in shapes:
        for cell in cells_of(shape, per_node):
            for curve, word in _CURVES.items():
                for grid, major in (
                    (GridOrder(shape, cell, "R", curve), ""),
                    (GridOrder(shape[::-1], cell[::-1], "C", curve), " column"),
                ):
                    name = f"grid {_text(grid.shape)} by {_text(grid.cell)}{major}{word}"
                    yield name, _cell_of_ranks(grid)


def _cell_of_ranks(grid: GridOrder) -> Ints:
    """Return for each rank the number of its cell along the curve; the cells divide the grid."""
    number = [length // own for length, own in zip(grid.shape, grid.cell, strict=True)]
    points = np.array(list(cell_positions(grid, number)), dtype=np.int64)
    found = np.empty(number, dtype=np.int64)
    found[tuple(points.T)] = np.arange(len(points))
    for axis, own in enumerate(grid.cell):
        found = np.repeat(found, own, axis)
    return found.reshape(-1, order="F" if grid.major == "C" else "C")


def _placed(order: Ints, nodes: Ints, per_node: int) -> Ints:
    of = np.empty(len(order), dtype=np.int64)
    of[order] = np.repeat(nodes, per_node)
    return of


def _text(shape: Shape) -> str:
    return "x".join(map(str, shape))


def _node_orders(network: PlacedNetwork, ranks: int) -> Iterator[tuple[Ints, list[int]]]:
    """Yield orders of the nodes, and the sizes of cells of cells that go with each: the ranks of a
    node, the nodes of a smallest unit, the units of a larger one, where all have as many."""
    if network.topology.kind == "torus":
        for axes in itertools.permutations(range(network.at.shape[1])):
            keys = [network.at[:, axis] for axis in reversed(axes)]
            yield np.lexsort(keys), [ranks]
        return
    nodes = np.lexsort([np.arange(len(network)), *network.units])
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


# ---- with other programs -------------------------------------------------------------------------


_SEEDS = (1, 2, 3)  # METIS finds another mapping by each
_SHARE_OF_SCOTCH = 0.3  # of the time


def best_orders(
    pattern: Pattern,
    network: PlacedNetwork,
    sizes: Sequence[int],
    by: ScoreKind = "hop_bytes",
    seconds: float = 0.0,
) -> list[ScoredOrder]:
    """Return the candidates as ``ranked`` does, with those of the programs that are installed."""
    graph = graph_of(pattern)
    seconds = seconds or usual_seconds(pattern.ranks)
    others: dict[str, Callable[[], Ints | None]] = {}
    if program() is not None:
        limit = max(5.0, _SHARE_OF_SCOTCH * seconds)
        others["scotch"] = partial(by_scotch, graph, network, limit)
    if is_installed():
        for seed in _SEEDS:
            others[f"metis, seed {seed}"] = partial(by_metis, graph, network, sizes, seed)
    return ranked(pattern, network, sizes, others, by, seconds)


def missing_programs() -> list[str]:
    """Return a sentence for each program that gives no candidate, as it is not installed."""
    sentences = []
    if not is_installed():
        sentences.append(
            f"METIS gave no candidate: pymetis is not installed ({with_extra('orders')})"
        )
    if program() is None:
        sentences.append("Scotch gave no candidate: it is not on the PATH (Debian: scotch)")
    return sentences


# ---- metis ---------------------------------------------------------------------------------------
#
# Mappings of ranks to nodes by METIS, where ``pymetis`` is installed (``seatrial[orders]``).
#
#     found = mapped(graph, network, sizes)       # the node of each rank; None without pymetis
#
# METIS knows no networks. So it halves the ranks, and the halves, ..., as the network of the nodes
# is halved (Karypis and Kumar 1998; ``plugins/orders/bisection.py``).


_LARGEST_WEIGHT = 1 << 20


def is_installed() -> bool:
    """Return whether METIS can be used."""
    return importlib.util.find_spec("pymetis") is not None


def by_metis(
    graph: RankGraph, network: PlacedNetwork, sizes: Sequence[int], seed: int = 0
) -> "Ints | None":
    """Return the node of each rank; node i has ``sizes[i]`` of them. None without pymetis."""
    if not is_installed():
        return None
    import pymetis

    def split(number: int, wanted: int, a: Ints, b: Ints, weights: Floats) -> Bools:
        if not 0 < wanted < number:
            return np.full(number, wanted == number)
        share = wanted / number
        parts = pymetis.part_graph(
            2,
            pymetis.CSRAdjacency(np.searchsorted(a, np.arange(number + 1)), b),
            eweights=_integers(weights),
            tpwgts=[share, 1 - share],
            recursive=True,
            options=pymetis.Options(ufactor=1, seed=seed),
        )
        first: Bools = np.array(parts.vertex_part, dtype=np.int64) == 0
        return first

    return bisected(graph, network, sizes, split)


def _integers(weights: Floats) -> Ints:
    """Return weights as METIS and Scotch take them: integers from 1 on."""
    scale = min(1.0, _LARGEST_WEIGHT / float(weights.max(initial=1.0)))
    integers: Ints = np.maximum(1, np.rint(weights * scale)).astype(np.int64)
    return integers


# ---- scotch --------------------------------------------------------------------------------------
#
# Mappings of ranks to nodes by Scotch, where its program is on the PATH (Debian: ``scotch``).
#
#     found = mapped(graph, network)       # the node of each rank; None without Scotch
#
# Scotch is asked for parts of equal size (``-b0.001 -cq``): by default it puts 33 ranks on some
# nodes of 32. The caller checks what it gives. It has one thread: with more, each run gives
# another mapping of the same pattern, and takes longer. Formats: Pellegrini, Scotch and libScotch
# 7.0 User's Guide.


_PROGRAMS = ("scotch_gmap", "gmap")
_SECONDS = 60.0
_ONE_THREAD = {"SCOTCH_PTHREAD_NUMBER": "1"}
_LOG = logging.getLogger(__name__)


def program() -> str | None:
    """Return the path of Scotch's program for mappings; None if there is none."""
    return next(filter(None, map(shutil.which, _PROGRAMS)), None)


def by_scotch(graph: RankGraph, network: PlacedNetwork, seconds: float = _SECONDS) -> "Ints | None":
    """Return the node of each rank by Scotch; None where there is no Scotch, or it fails or takes
    longer than this, which is logged."""
    gmap = program()
    if gmap is None:
        return None
    target, nodes = _target(network)
    with tempfile.TemporaryDirectory(prefix="seatrial-scotch-") as name:
        folder = Path(name)
        (folder / "pattern.grf").write_text(_source(graph))
        (folder / "nodes.tgt").write_text(target)
        words = [gmap, "-b0.001", "-cq", "pattern.grf", "nodes.tgt", "ranks.map"]
        try:
            done = subprocess.run(
                words,
                cwd=folder,
                env=os.environ | _ONE_THREAD,
                capture_output=True,
                timeout=seconds,
                check=False,
            )
            rows = np.array((folder / "ranks.map").read_text().split()[1:], dtype=np.int64)
            parts = rows.reshape(-1, 2)
        except (OSError, ValueError, subprocess.TimeoutExpired) as error:
            _LOG.warning("%s gave no mapping: %s", gmap, error)
            return None
    if done.returncode or len(parts) != graph.ranks:
        output = done.stderr.decode(errors="replace").strip()[:200]
        _LOG.warning("%s failed with code %s: %s", gmap, done.returncode, output)
        return None
    node_of = np.zeros(graph.ranks, dtype=np.int64)
    node_of[parts[:, 0]] = nodes[parts[:, 1] % len(nodes)]
    return node_of


def _source(graph: RankGraph) -> str:
    """Return the text of a source graph with weights of edges, which are integers."""
    weights = _integers(graph.weights)
    rows = np.stack([weights, graph.neighbours], axis=1)
    lines = [f"0\n{graph.ranks} {len(weights)}\n0 010"]
    for rank in range(graph.ranks):
        own = rows[graph.starts[rank] : graph.starts[rank + 1]]
        lines.append(" ".join(map(str, [len(own), *own.reshape(-1).tolist()])))
    return "\n".join(lines) + "\n"


def _target(network: PlacedNetwork) -> tuple[str, Ints]:
    """Return the text of a target, and the node of each of its numbers: a torus that is whole, a
    tree of equal units; else a network in which all nodes are as far from each other."""
    if network.topology.kind == "torus":
        shape = [int(each) for each in network.shape]
        if len(network) == np.prod(shape) and len(shape) in (2, 3):
            lengths = " ".join(map(str, shape))
            return f"torus{len(shape)}D {lengths}\n", np.lexsort(list(network.at.T))
        return f"cmplt {len(network)}\n", np.arange(len(network))
    nodes = np.lexsort([np.arange(len(network)), *network.units])
    levels, below, hops = [], 1, 0
    for height, unit in enumerate([*network.units, np.zeros(len(network), np.int64)]):
        each = set(np.bincount(unit)[np.unique(unit)].tolist())
        if len(each) > 1:
            return f"cmplt {len(network)}\n", nodes
        own = each.pop()
        if own > below:
            far = network.topology.hops_at(height)
            levels.append(f"{own // below} {max(1, far - hops)}")
            below, hops = own, far
    if not levels:
        return f"cmplt {len(network)}\n", nodes
    return f"tleaf {len(levels)} {' '.join(reversed(levels))}\n", nodes
