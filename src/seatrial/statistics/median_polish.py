"""Tukey's median polish of a matrix with gaps: matrix = row effect + column effect + rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Single = NDArray[np.float32]

ROUNDS = 5
ROWS_AT_ONCE = 256
STILL = 1e-4  # the greatest correction at which it ends before


def polish(rest: Single) -> tuple[Array, Array]:
    """Take the medians of rows and columns out of a matrix, in turn, up to five rounds; NaN is a
    gap. The matrix becomes the rest. Returns the effects of rows and columns, NaN where one is
    all gaps."""
    import numpy as np

    rows, columns = np.zeros(rest.shape[0]), np.zeros(rest.shape[1])
    for _ in range(ROUNDS):
        moved = 0.0
        for effects, side in ((rows, rest), (columns, rest.T)):
            middle = medians(side)
            known = np.where(np.isnan(middle), 0.0, middle)
            side -= known[:, None].astype(np.float32)
            effects += middle
            moved = max(moved, float(np.abs(known).max(initial=0.0)))
        if moved < STILL:
            break
    return rows, columns


def medians(matrix: Single) -> Array:
    """The median of each row without its gaps; NaN of a row that is all gaps."""
    import numpy as np

    result = np.full(len(matrix), np.nan)
    for start in range(0, len(matrix), ROWS_AT_ONCE):
        some = np.ascontiguousarray(matrix[start : start + ROWS_AT_ONCE])
        counts = matrix.shape[1] - np.isnan(some).sum(axis=1)
        for count in np.unique(counts[counts > 0]).tolist():
            those = np.flatnonzero(counts == count)
            result[start + those] = _middles(some[those], count)
    return result


def _middles(rows: Single, count: int) -> Array:
    """Of rows with that many figures; the gaps are sorted to the end. One place to partition at is
    several times as fast as two."""
    import numpy as np

    rows = np.partition(rows, count // 2, axis=1)
    upper: Array = rows[:, count // 2].astype(float)
    if count % 2 == 0:
        upper = (upper + rows[:, : count // 2].max(axis=1)) / 2
    return upper
