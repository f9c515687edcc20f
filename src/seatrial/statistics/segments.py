"""Fit a piecewise constant function to a series in the L1 norm, at a price for each piece.

starts(values, penalty=14.4 * sigma, shortest=3)     # [0, 60]: two pieces, the second from 60 on

The cost of a piece is the sum of its figures' distances from their median. PELT with an L1 cost
(Killick, Fearnhead and Eckley 2012) and the L1 Potts functional (Storath, Weinmann and Unser 2014)
have the same optimum. The median of a piece can be chosen among the values, so the least cost of
each prefix is kept for every level that occurs: one row of numbers a point, O(n^2), exact.
"""

from seatrial.arrays import Bools, Floats
from seatrial.lazy import np

MAX_LEVELS = 1000  # with more different values, levels are so many quantiles of these


def starts(values: Floats, penalty: float, shortest: int = 1) -> list[int]:
    """Return the indices at which the pieces of the best fit begin; the first is 0.

    ``values``: finite, shape (n,). ``penalty``: the price of a piece, in their unit. Each piece has
    at least ``shortest`` points.
    """
    count = len(values)
    if count < 2 * shortest:
        return [0]
    levels = np.unique(values)
    if len(levels) > MAX_LEVELS:
        levels = np.quantile(levels, np.linspace(0, 1, MAX_LEVELS))
    return _back(*_forward(values, levels, penalty, shortest), shortest)


def _forward(
    values: Floats, levels: Floats, penalty: float, shortest: int
) -> tuple[Bools, list[int]]:
    """Return, for each prefix, where its last piece had best begun, and the best level of it.

    The first is an array of shape (n + 1, levels): True if a last piece on that level had best
    begun ``shortest`` points before the end of the prefix. The second has n + 1 indices of levels.
    """
    count = len(values)
    away = np.abs(values[:shortest, None] - levels)  # a ring buffer of the latest points
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
            oldest = latest.copy()
            np.abs(np.subtract(values[end - 1], levels, out=latest), out=latest)
            window += latest
            window -= oldest
        np.add(window, best[end - shortest] + penalty, out=enter)
        np.add(cost, latest, out=cost)
        np.less(enter, cost, out=entered[end])
        np.minimum(cost, enter, out=cost)
        level[end] = cheapest = int(cost.argmin())
        best[end] = float(cost[cheapest])
    return entered, level


def _back(entered: Bools, level: list[int], shortest: int) -> list[int]:
    """Return the beginnings of the pieces, traced back from the end."""
    beginnings: list[int] = []
    end = len(level) - 1
    while end > 0:
        at = end - int(entered[end::-1, level[end]].argmax())
        end = at - shortest
        beginnings.append(end)
    return beginnings[::-1]
