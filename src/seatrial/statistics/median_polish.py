"""Tukey's median polish of a matrix with gaps: matrix = row effect + column effect + rest.

Tukey, Exploratory Data Analysis, 1977, chapter 11. The overall effect stays in those of the rows.
"""

from typing import TYPE_CHECKING

from seatrial.arrays import Floats
from seatrial.lazy import np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Single = NDArray[np.float32]

ROUNDS = 5
ROWS_AT_ONCE = 256
STILL = 1e-4  # the rounds end early if no correction is larger


def polish(rest: "Single") -> tuple[Floats, Floats]:
    """Subtract the medians of rows and columns from a matrix in turn, in up to five rounds.

    ``rest``: shape (m, n), changed in place to the residuals; NaN is a gap. Returns the effects of
    the rows, shape (m,), and of the columns, shape (n,); NaN for one that is all gaps.
    """
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


def medians(matrix: "Single") -> Floats:
    """Return the median of each row without its gaps, shape (m,); NaN if a row is all gaps."""
    result = np.full(len(matrix), np.nan)
    for start in range(0, len(matrix), ROWS_AT_ONCE):
        some = np.ascontiguousarray(matrix[start : start + ROWS_AT_ONCE])
        counts = matrix.shape[1] - np.isnan(some).sum(axis=1)
        for count in np.unique(counts[counts > 0]).tolist():
            those = np.flatnonzero(counts == count)
            result[start + those] = _middles(some[those], count)
    return result


def _middles(rows: "Single", count: int) -> Floats:
    """Return the medians of rows with ``count`` figures each.

    ``partition`` moves gaps to the end. Partitioning at one place and taking the maximum below it
    is several times as fast as partitioning at two.
    """
    rows = np.partition(rows, count // 2, axis=1)
    upper: Floats = rows[:, count // 2].astype(float)
    if count % 2 == 0:
        upper = (upper + rows[:, : count // 2].max(axis=1)) / 2
    return upper
