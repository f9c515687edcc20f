"""Summarise how much one test varies: a row of a variability table.

spread([100.1, 99.8, ..., 61.2], deviations=5)     # n 20, mean 100.0, cv 0.2 %, 1 excluded
"""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from seatrial.lazy import np, statistics
from seatrial.units import unfit

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAD_TO_SIGMA = 1.4826  # median absolute deviation to standard deviation of normal figures
MIN_FIGURES = 8  # in a sample from which outliers may be excluded


class Excluded(Struct, frozen=True):
    """An excluded figure: its index in the values, and the rule that excluded it."""

    index: int
    value: float
    rule: str


class Spread(Struct, frozen=True, kw_only=True):
    """The variability of ``n`` figures.

    ``deviation``: the standard deviation (n - 1). ``cv``: that over the mean. ``mad``: the median
    absolute deviation; times 1.4826 it estimates the standard deviation of normal figures. A number
    that is not defined is None; ``why`` gives the reason, or "".
    """

    n: int
    mean: float | None = None
    deviation: float | None = None
    cv: float | None = None
    median: float | None = None
    mad: float | None = None
    low: float | None = None
    high: float | None = None
    excluded: list[Excluded] = []
    why: str = ""


def spread(values: Sequence[float], deviations: float | None = None) -> Spread:
    """Return the variability of a sample.

    Figures that cannot be judged are excluded. With ``deviations``, so are those farther than so
    many robust deviations from the median, if there are eight figures or more.
    """
    excluded = [
        Excluded(i, value, rule) for i, value in enumerate(values) if (rule := unfit(value))
    ]
    kept = {i: float(value) for i, value in enumerate(values) if not unfit(value)}
    if deviations is not None:
        for outlier in _outlying(kept, deviations):
            excluded.append(outlier)
            del kept[outlier.index]
    figures = list(kept.values())
    excluded.sort(key=lambda each: each.index)
    if not figures:
        return Spread(n=0, excluded=excluded, why="there is no figure to judge")
    middle, mean = statistics.median(figures), statistics.fmean(figures)
    deviation = statistics.stdev(figures) if len(figures) > 1 else None
    reason = ""
    if deviation is None:
        reason = "one figure has no spread"
    elif mean <= 0:
        reason = f"the mean is {mean:g}: the spread is no share of it"
    return Spread(
        n=len(figures),
        mean=mean,
        deviation=deviation,
        cv=None if deviation is None or reason else deviation / mean,
        median=middle,
        mad=None
        if deviation is None
        else statistics.median(abs(figure - middle) for figure in figures),
        low=min(figures),
        high=max(figures),
        excluded=excluded,
        why=reason,
    )


def clipped(away: "NDArray[np.floating]", bound: float) -> float:
    """Return the root mean square of distances from a centre, far ones excluded.

    A distance is far if it exceeds ``bound`` times the root mean square of the others. NaN is
    ignored. Use it for figures of which more than half are equal, such as rounded ones: their
    median absolute deviation is 0.
    """
    squares = np.square(away[~np.isnan(away)])
    while squares.size:
        total = float(squares.sum(dtype=float))
        # Solved for the square: square > bound^2 (total - square) / (size - 1).
        kept = squares[squares <= total * bound**2 / (squares.size - 1 + bound**2)]
        if kept.size in (0, squares.size):
            return math.sqrt(total / squares.size)
        squares = kept
    return 0.0


def _outlying(kept: Mapping[int, float], deviations: float) -> list[Excluded]:
    """Return the outliers; none among few figures, nor if more than half are equal."""
    if len(kept) < MIN_FIGURES:
        return []
    middle = statistics.median(kept.values())
    robust = MAD_TO_SIGMA * statistics.median(abs(value - middle) for value in kept.values())
    rule = f"farther than {deviations:g} robust deviations ({robust:.4g} each) from the median"
    bound = deviations * robust
    return [
        Excluded(i, value, rule)
        for i, value in kept.items()
        if bound > 0 and abs(value - middle) > bound
    ]
