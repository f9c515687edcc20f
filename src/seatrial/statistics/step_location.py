"""Where a step likely is: the median of all places, each weighed by the likelihood of the figures.

    likely(figures, variance, shortest=3)      # 41: the level changes from figures[41] on

The likeliest place is often far off where a step is small: many are nearly as likely. Their median
errs least, and is the same place where the step is plain.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def likely(figures: NDArray[np.float64], variance: float, shortest: int) -> int:
    """The median place of a step in figures whose noise is normal of this ``variance`` (above 0),
    with any levels; at least ``shortest`` figures are on either side, of twice as many or more.
    Outlying figures are to be drawn in before."""
    import numpy as np

    count = len(figures)
    first = np.arange(shortest, count - shortest + 1)
    sums = np.cumsum(figures - figures.mean())[first - 1]
    squares = sums * sums * (count / (first * (count - first)))
    with np.errstate(over="ignore", under="ignore"):  # what is far less likely weighs nothing
        weights = np.cumsum(np.exp((squares - squares.max()) / (2 * variance)))
    return int(first[weights.searchsorted(weights[-1] / 2)])
