"""Grids that a pattern may be the halo exchange of, and orders by cells that fill nodes.

    shapes = likely_shapes(pattern)              # [(16, 16, 16), ...]: the best first
    cells = cells_of((16, 16, 16), 32)           # [(4, 2, 4), (4, 4, 2), ...]: the best first
    for name, node_of in curved_orders(shapes, 32): ...

A pattern file does not say how a program numbers its grid. So all factorisations of the number of
ranks into up to three lengths are tried; the best is that in which messages go least far.
"""

import itertools
from collections.abc import Iterator, Sequence

from seatrial.arrays import Ints
from seatrial.layout.grid_order import Curve, GridOrder, cell_positions
from seatrial.layout.network_loads import PlacedNetwork
from seatrial.layout.patterns import Pattern
from seatrial.lazy import np

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
    found: dict[Shape, float] = {}
    for lengths in factorisations(pattern.ranks, _DIMENSIONS):
        shape = tuple(length for length in lengths if length > 1) or (1,)
        if shape in found:
            continue
        far = np.zeros(len(a))
        for x, y, length in zip(
            np.unravel_index(a, shape), np.unravel_index(b, shape), shape, strict=True
        ):
            apart = np.abs(x - y)
            far += np.minimum(apart, length - apart)
        by_chance = float(volumes.sum()) * sum(length / 4 for length in shape)
        if (total := float(far @ volumes)) < _NEAR * by_chance:
            found[shape] = total
    farthest = _ALIKE * min(found.values(), default=0.0)
    shapes = [shape for shape, far in found.items() if far <= farthest]
    return sorted(shapes, key=lambda shape: (found[shape], len(shape), shape))[:keep]


def cells_of(shape: Sequence[int], ranks: int) -> list[Shape]:
    """Return the cells of so many ranks whose lengths divide those of the grid; those with the
    smallest surface first."""
    cells = [
        cell
        for cell in factorisations(ranks, len(shape))
        if all(length % own == 0 for length, own in zip(shape, cell, strict=True))
    ]
    return sorted(cells, key=lambda cell: sum(1 / length for length in cell))


def nested_cells(shape: Sequence[int], sizes: Sequence[int]) -> Iterator[list[Shape]]:
    """Yield cells of cells: a cell of the first size, one of the second made of whole such cells,
    ... ``sizes`` are ranks of a node, of a router, of a group."""
    if not sizes:
        yield []
        return
    for cell in cells_of(shape, sizes[0]):
        inner = tuple(length // own for length, own in zip(shape, cell, strict=True))
        for rest in nested_cells(inner, sizes[1:]):
            yield [cell, *rest]


def order_of_cells(shape: Sequence[int], cells: Sequence[Shape]) -> Ints:
    """Return the ranks of a row-major grid by cells of cells, the smallest first."""
    numbers = np.arange(int(np.prod(shape))).reshape(tuple(shape))
    lengths = [*shape]
    blocks = []  # per dimension: the lengths within the cells, from the smallest on
    for axis in range(len(lengths)):
        own = [cell[axis] for cell in cells]
        blocks.append([*own, lengths[axis] // int(np.prod(own or [1]))])
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
