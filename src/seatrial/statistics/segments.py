"""The best piecewise constant fit to a series in the L1 norm, at a price for each piece.

starts(values, penalty=14.4 * sigma, shortest=3)     # [0, 60]: two pieces, the second from 60 on

The cost of a piece is the sum of the distances from its median; PELT with an L1 cost, and L1 Potts,
name the same optimum. A piece's median can be taken among the values, so the best fit up to each
point is kept for every level that occurs: one row of numbers a point, O(n^2) in all, exact.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_LEVELS = 1000  # above, levels are quantiles: the fit is that of a series so rounded


def starts(values: NDArray[np.float64], penalty: float, shortest: int = 1) -> list[int]:
    """Where the pieces of the best fit begin, 0 the first; of at least ``shortest`` points each.
    The values are finite; ``penalty`` is in their unit."""
    import numpy as np

    count = len(values)
    if count < 2 * shortest:
        return [0]
    levels = np.unique(values)
    if len(levels) > MAX_LEVELS:
        levels = np.quantile(levels, np.linspace(0, 1, MAX_LEVELS))
    return _back(*_forward(values, levels, penalty, shortest), shortest)


def _forward(
    values: NDArray[np.float64], levels: NDArray[np.float64], penalty: float, shortest: int
) -> tuple[NDArray[np.bool_], list[int]]:
    """For each prefix: the levels at which the last piece had best reached just its least length,
    and the best level of the last piece."""
    import numpy as np

    count = len(values)
    away = np.abs(values[:shortest, None] - levels)  # of the latest points, each at its turn
    entered = np.zeros((count + 1, len(levels)), dtype=bool)
    cost = np.full(len(levels), np.inf)
    enter = np.empty_like(cost)
    window = away.sum(axis=0)
    best = [np.inf] * (count + 1)
    best[0] = -penalty
    level = [0] * (count + 1)
    for end in range(shortest, count + 1):
        latest = away[(end - 1) % shortest]
        if end > shortest:
            left = latest.copy()
            np.abs(np.subtract(values[end - 1], levels, out=latest), out=latest)
            window += latest
            window -= left
        np.add(window, best[end - shortest] + penalty, out=enter)
        np.add(cost, latest, out=cost)
        np.less(enter, cost, out=entered[end])
        np.minimum(cost, enter, out=cost)
        level[end] = found = int(cost.argmin())
        best[end] = float(cost[found])
    return entered, level


def _back(entered: NDArray[np.bool_], level: list[int], shortest: int) -> list[int]:
    found: list[int] = []
    end = len(level) - 1
    while end > 0:
        at = end - int(entered[end::-1, level[end]].argmax())
        end = at - shortest
        found.append(end)
    return found[::-1]
