"""Grids that a pattern may be the halo exchange of, and cells that fill nodes.

    shapes = likely_shapes(pattern)          # [(16, 16, 16), ...]: the best first
    cells = cells_of((16, 16, 16), 32)       # [(2, 4, 4), (4, 2, 4), ...]

A pattern file does not say how a program numbers its grid. So all factorisations of the number of
ranks into up to three lengths are tried; the best is that in which messages go least far.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from seatrial.layout.patterns import Pattern
from seatrial.lazy import np

_SAMPLE = 20_000  # pairs by which shapes are compared
_DIMENSIONS = 3
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
    shorter. Lengths of 1 are left out, so one shape may have fewer dimensions."""
    step = max(1, len(pattern.senders) // _SAMPLE)
    a, b = pattern.senders[::step], pattern.receivers[::step]
    volumes = pattern.volumes[::step].astype(np.float64)
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
        found[shape] = float(far @ volumes)
    return sorted(found, key=lambda shape: (found[shape], len(shape), shape))[:keep]


def cells_of(shape: Sequence[int], ranks: int) -> list[Shape]:
    """Return the cells of so many ranks whose lengths divide those of the grid."""
    return [
        cell
        for cell in factorisations(ranks, len(shape))
        if all(length % own == 0 for length, own in zip(shape, cell, strict=True))
    ]


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


def order_of_cells(shape: Sequence[int], cells: Sequence[Shape]) -> list[int]:
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
    order: list[int] = split.transpose(axes).reshape(-1).tolist()
    return order
