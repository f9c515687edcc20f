"""Summarise a matrix by groups of rows and columns: median, extremes and counts of each block.

    found = blocks(figures, [0, 0, 1, 1, 1], groups=2)
    found.median[0, 1], found.known[0, 1]       # from group 0 to group 1

Gaps are NaN. The rows of one group are sorted in one step for all groups of columns, so a thousand
groups take seconds.
"""

from typing import NamedTuple

from seatrial.arrays import Floats, Indices
from seatrial.lazy import np


class Blocks(NamedTuple):
    """Arrays of shape (groups, groups), indexed by the group of the rows and of the columns.

    ``median``, ``low``, ``high``: of the figures of a block, NaN if it has none. ``known``: how
    many figures it has. ``cells``: how many cells, gaps included.
    """

    median: Floats
    low: Floats
    high: Floats
    known: Indices
    cells: Indices


def blocks(figures: Floats, member: Indices, groups: int) -> Blocks:
    """Return the blocks of a square matrix.

    ``figures``: shape (n, n). ``member``: the group of each row and column, shape (n,).
    """
    count = len(figures)
    sizes = np.bincount(member, minlength=groups)
    largest = int(sizes.max(initial=0))
    order = np.argsort(member, kind="stable")
    begins = np.cumsum(sizes) - sizes
    padded = np.full((groups, largest), count)  # the index of an added column of gaps
    padded[member[order], np.arange(count) - begins[member[order]]] = order
    median, low, high = (np.full((groups, groups), np.nan) for _ in range(3))
    known = np.zeros((groups, groups), dtype=np.intp)
    for group in np.flatnonzero(sizes):
        rows = padded[group, : sizes[group]]
        strip = np.hstack([figures[rows], np.full((len(rows), 1), np.nan)])
        block = np.sort(strip[:, padded].transpose(1, 0, 2).reshape(groups, -1), axis=1)
        counts = block.shape[1] - np.isnan(block).sum(axis=1)
        those = np.flatnonzero(counts)
        middle, last = counts[those] // 2, counts[those] - 1
        median[group, those] = (block[those, last // 2] + block[those, middle]) / 2
        low[group, those], high[group, those] = block[those, 0], block[those, last]
        known[group] = counts
    return Blocks(median, low, high, known, np.outer(sizes, sizes))
