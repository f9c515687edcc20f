"""Summarise how much one test varies: a row of a variability table.

spread([100.1, 99.8, ..., 61.2], deviations=5)     # n 20, mean 100.0, cv 0.2 %, 1 excluded
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from seatrial.judge.statistics.significance import CONFIDENCE
from seatrial.lazy import AnyFloats, Floats, np
from seatrial.units import Better, unfit

MAD_TO_SIGMA = 1.4826  # median absolute deviation to standard deviation of normal figures
MIN_FIGURES = 8  # in a sample from which outliers may be excluded


class Excluded(Struct, frozen=True):
    """An excluded figure: its index in the values, and the rule that excluded it."""

    index: int
    value: float
    rule: str


class Spread(Struct, frozen=True, kw_only=True, rename={"reason": "why"}):
    """The variability of ``n`` figures.

    ``deviation``: the standard deviation (n - 1). ``cv``: that over the mean. ``mad``: the median
    absolute deviation; times 1.4826 it estimates the standard deviation of normal figures. A number
    that is not defined is None; ``reason`` says why, or "".
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
    reason: str = ""


def spread(values: Sequence[float], deviations: float | None = None) -> Spread:
    """Return the variability of a sample.

    Figures that cannot be judged are excluded. With ``deviations``, so are those farther than so
    many robust deviations from the median, if there are eight figures or more.
    """
    excluded, kept = [], dict[int, float]()
    for i, value in enumerate(values):
        if rule := unfit(value):
            excluded.append(Excluded(i, value, rule))
        else:
            kept[i] = float(value)
    for outlier in _outlying(kept, deviations) if deviations is not None else ():
        excluded.append(outlier)
        del kept[outlier.index]
    figures = list(kept.values())
    excluded.sort(key=lambda each: each.index)
    if not figures:
        return Spread(n=0, excluded=excluded, reason="there is no figure to judge")
    middle, mean = statistics.median(figures), statistics.fmean(figures)
    result = Spread(
        n=len(figures),
        mean=mean,
        median=middle,
        low=min(figures),
        high=max(figures),
        excluded=excluded,
    )
    if len(figures) == 1:
        return replace(result, reason="one figure has no spread")
    deviation = statistics.stdev(figures)
    mad = statistics.median(abs(figure - middle) for figure in figures)
    result = replace(result, deviation=deviation, mad=mad)
    if mean <= 0:
        return replace(result, reason=f"the mean is {mean:g}: the spread is no share of it")
    return replace(result, cv=deviation / mean)


def clipped(away: AnyFloats, bound: float) -> float:
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


# ---- modes ---------------------------------------------------------------------------------------
#
# Find the modes of a sample, and the share of the figures in each.
#
# find(latencies) # centres 5.46, 6.09 and 6.74, shares 0.33, 0.34, 0.33
#
# The density is estimated with a Gaussian kernel (Silverman 1986). Two peaks are two modes if the
# valley between them is deep (below three quarters of the lower peak) and hardly chance (2.2
# standard errors of the estimate). Each part is searched again, with the finer kernel that its
# smaller spread allows. A part with few figures is outlying. No shape is assumed: a mixture of
# normal distributions would fit several of them, and so report several modes, to one skewed or
# flat mode.
#
# The order of the figures is ignored. Split a series at its confirmed changes first; otherwise the
# levels before and after a change appear as two modes.


MIN_MODE_FIGURES = 20
MIN_SHARE = 0.04  # of the figures in a mode; those of rarer parts are outlying
MIN_MEMBERS = 4
DIP = 0.75  # the highest density between two modes, over that of the lower one
SURE = 2.2  # standard errors of the density by which a valley lies below the lower peak
WIDTH = 0.6  # of the kernel, times that of Silverman's rule of thumb, which is for one mode
ROUGHNESS = 1 / (2 * math.sqrt(math.pi))  # integral of the squared kernel
GRID = 1024
MIN_WIDTH = 1e-150  # of the kernel if the largest figure is 1: its square does not underflow


class Mode(Struct, frozen=True):
    """One mode of ``count`` figures, ``share`` of all.

    ``centre``: their median. ``deviation``: their standard deviation (n - 1), None for one figure.
    ``low`` and ``high``: the least and the greatest.
    """

    centre: float
    share: float
    deviation: float | None
    low: float
    high: float
    count: int


def find(values: Sequence[float]) -> list[Mode]:
    """Return the modes of the finite figures of a sample, in ascending order.

    Those of few figures cannot be told apart: they are one mode.
    """
    given = np.asarray(values, dtype=float).reshape(-1)
    sample = np.sort(given[np.isfinite(given)])
    count = len(sample)
    if count < MIN_MODE_FIGURES:
        return [_mode(sample, count)] if count else []
    power = int(np.frexp(np.abs(sample).max())[1])  # no square overflows after this scaling
    parts = [np.ldexp(part, power) for part in _parts(np.ldexp(sample, -power))]
    least = max(MIN_MEMBERS, MIN_SHARE * count)
    return [_mode(part, count) for part in parts if len(part) >= least]


def _mode(part: Floats, count: int) -> Mode:
    """Return a part of a sorted sample of ``count`` figures as a mode."""
    power = int(np.frexp(np.abs(part).max())[1])
    scaled = np.ldexp(part, -power)
    deviation = math.ldexp(float(scaled.std(ddof=1)), power) if len(part) > 1 else None
    centre = math.ldexp(float(np.median(scaled)), power)
    share = len(part) / count
    return Mode(centre, share, deviation, float(part[0]), float(part[-1]), len(part))


def _parts(sample: Floats) -> list[Floats]:
    """Return the parts of a sorted sample between the valleys of its density."""
    if len(sample) < MIN_MODE_FIGURES or sample[0] == sample[-1]:
        return [sample]
    borders = _valleys(sample)
    if not borders:
        return [sample]
    parts = np.split(sample, np.searchsorted(sample, borders))
    return [inner for part in parts if len(part) for inner in _parts(part)]


def _valleys(sample: Floats) -> list[float]:
    """Return where the density of a sorted sample has valleys that are deep and hardly chance."""
    width = _width(sample)
    edges, density = density_of(sample, width)
    step = float(edges[1] - edges[0])
    inner = density[1:-1]
    peaks = (inner >= density[:-2]) & (inner > density[2:])
    error = ROUGHNESS / (len(sample) * width)
    valleys = _deep(density, (peaks.nonzero()[0] + 1).tolist(), error)
    middles = [float(edges[at] + step / 2) for at in valleys]
    return sorted(at for at in [*middles, *_ends(sample, width)] if sample[0] < at < sample[-1])


def density_of(sample: Floats, width: float) -> tuple[Floats, Floats]:
    """Estimate the density of a sorted sample with a Gaussian kernel of that standard deviation.

    Returns the edges of the bins, shape (GRID + 1,), and the density in each, shape (GRID,)
    (Silverman 1986, section 2.4; binned).
    """
    low, high = _ends(sample, width)
    step = (high - low + 6 * width) / GRID
    edges: Floats = low - 3 * width + step * np.arange(GRID + 1, dtype=np.float64)
    counts, _ = np.histogram(sample, edges)
    offsets = np.arange(-math.ceil(4 * width / step), math.ceil(4 * width / step) + 1) * step
    kernel = np.exp(-0.5 * (offsets / width) ** 2) / (width * math.sqrt(2 * math.pi))
    density: Floats = np.convolve(counts, kernel, mode="same") / len(sample)
    return edges, density


def _ends(sample: Floats, width: float) -> tuple[float, float]:
    """Return the least and the greatest figure that the grid takes in.

    They are at most GRID / 8 widths from the median: farther outliers would make the grid too
    coarse for the kernel.
    """
    middle, reach = float(np.median(sample)), GRID / 8 * width
    return max(float(sample[0]), middle - reach), min(float(sample[-1]), middle + reach)


def _width(sample: Floats) -> float:
    """Return the standard deviation of the kernel for a sorted sample.

    It follows Silverman's rule of thumb (1986, equation 3.31), times ``WIDTH``, but is no less than
    the step of a coarse clock.
    """
    count = len(sample)
    first, third = np.quantile(sample, [0.25, 0.75])
    scales = [float(sample.std()), float(third - first) / 1.349]
    scale = min(scale for scale in scales if scale > 0)
    width: float = WIDTH * 0.9 * scale * float(count) ** -0.2
    return max(width, _grain(sample), 1e-12 * abs(float(sample[-1])), MIN_WIDTH)


def _grain(sample: Floats) -> float:
    """Return the step of a coarse clock, or 0 if there is none.

    There is one if many figures share few values, one step apart. Up to three values count as modes
    of their own.
    """
    levels: Floats = np.unique(sample)
    if not 3 < len(levels) <= len(sample) / 2:
        return 0.0
    gaps = np.diff(levels)
    step = float(gaps.min())
    even = np.abs(gaps / step - np.round(gaps / step)) < 0.01
    return step if even.all() and np.median(gaps) < 1.5 * step else 0.0


def _deep(density: Floats, peaks: list[int], error: float) -> list[int]:
    """Return the indices of the valleys that are deep and sure.

    While a valley is not, the lower of its two peaks is removed, that of the least sure valley
    first. ``error``: the variance of the density, over the density.
    """
    while len(peaks) > 1:
        pairs = list(pairwise(peaks))
        valleys = [a + int(density[a:b].argmin()) for a, b in pairs]
        weak = []
        for (a, b), valley in zip(pairs, valleys, strict=True):
            peak, dip = float(min(density[a], density[b])), float(density[valley])
            sure = (peak - dip) / math.sqrt((peak + dip) * error)
            if dip > DIP * peak or sure < SURE:
                weak.append((sure, a if density[a] < density[b] else b))
        if not weak:
            return valleys
        peaks.remove(min(weak)[1])
    return []


# ---- best of n -----------------------------------------------------------------------------------
#
# The best of n figures, and how far off the best of as many further ones may be.
#
# best_of([10.4, 10.1, 11.0, 10.2, 10.9], "lower") # best 10.1, bound 10.9


class BestOfN(NamedTuple):
    """The best of ``n`` figures. With 95 % the best of n further ones is no worse than ``bound``;
    None for fewer than three figures, which allow no such bound."""

    n: int
    best: float
    bound: float | None


def best_of(values: Sequence[float], better: Better) -> BestOfN:
    """Return the best figure and its bound, whatever the distribution. Raises ValueError if there
    is no figure.

    All orders of two samples of n are equally likely, so the best of the second is worse than the
    k-th best of the first with the probability C(2n - k, n) / C(2n, n) (Gumbel and von Schelling
    1950).
    """
    ordered = sorted(values, reverse=better == "higher")
    if not ordered:
        raise ValueError("no figure has no best one")
    n = len(ordered)
    every = math.comb(2 * n, n)
    worse = (math.comb(2 * n - k, n) / every for k in range(1, n + 1))
    rank = next((k for k, p in enumerate(worse, 1) if p <= 1 - CONFIDENCE + 1e-12), None)
    return BestOfN(n, ordered[0], None if rank is None else ordered[rank - 1])
