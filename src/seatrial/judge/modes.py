"""The modes of a sample: a mixture is told as its parts with their shares, not as one mean.

find(latencies).modes      # centres 5.46, 6.09 and 6.74, shares 0.33, 0.34, 0.33

The density is estimated with a Gaussian kernel. Two of its peaks are two modes where the valley
between them is deep (below three quarters of the lower peak) and hardly chance (2.2 standard errors
of the estimate). Each part is looked at again by itself, with the finer kernel that its smaller
spread allows. Parts of few figures are no modes but outlying. No shape is assumed; fitted normal
mixtures would take several normals, and so several modes, for one skewed or flat mode.

The figures are taken as of one time: split a series at its confirmed changes first, else the levels
before and after a change come out as two modes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

LEAST_FIGURES = 20
LEAST_SHARE = 0.04  # of a mode; what is rarer is outlying
LEAST_MEMBERS = 4
DIP = 0.75  # the density between two modes, over that of the lower one, at most
SURE = 2.2  # standard errors of the density by which it dips
WIDTH = 0.6  # of the kernel, in Silverman's rule of thumb, which is for one mode
ROUGHNESS = 1 / (2 * math.sqrt(math.pi))  # integral of the squared kernel
GRID = 1024
LEAST_WIDTH = 1e-150  # of the kernel, when the largest figure is 1: its square is a number


class Mode(Struct, frozen=True):
    """One mode: the median of its figures, their share of all, their standard deviation (None of
    one figure), the least and the greatest of them, and how many they are."""

    centre: float
    share: float
    deviation: float | None
    low: float
    high: float
    count: int


class Modes(Struct, frozen=True):
    """The modes in ascending order. ``outlying`` are figures of no mode, ``left_out`` counts those
    that are not finite. ``why`` says why modes could not be told apart, else it is empty."""

    modes: list[Mode]
    count: int
    outlying: list[float]
    left_out: int
    why: str = ""


def find(values: Sequence[float]) -> Modes:
    """The modes of a sample."""
    import numpy as np

    given = np.asarray(values, dtype=float).reshape(-1)
    sample = np.sort(given[np.isfinite(given)])
    count, left_out = len(sample), len(given) - len(sample)
    if not count:
        return Modes([], 0, [], left_out, "there is no finite figure")
    if count < LEAST_FIGURES:
        why = f"of {count} figures modes cannot be told apart; it takes {LEAST_FIGURES}"
        return Modes([_mode(sample, count)], count, [], left_out, why)
    power = int(np.frexp(np.abs(sample).max())[1])  # so that no square overflows
    parts = [np.ldexp(part, power) for part in _parts(np.ldexp(sample, -power))]
    least = max(LEAST_MEMBERS, LEAST_SHARE * count)
    solid = [part for part in parts if len(part) >= least]
    outlying = [float(x) for part in parts if len(part) < least for x in part]
    return Modes([_mode(part, count) for part in solid], count, outlying, left_out)


def _mode(part: Array, count: int) -> Mode:
    import numpy as np

    power = int(np.frexp(np.abs(part).max())[1])
    scaled = np.ldexp(part, -power)
    deviation = math.ldexp(float(scaled.std(ddof=1)), power) if len(part) > 1 else None
    centre = math.ldexp(float(np.median(scaled)), power)
    share = len(part) / count
    return Mode(centre, share, deviation, float(part[0]), float(part[-1]), len(part))


def _parts(sample: Array) -> list[Array]:
    """A sorted sample, cut in the valleys of its density."""
    import numpy as np

    if len(sample) < LEAST_FIGURES or sample[0] == sample[-1]:
        return [sample]
    borders = _valleys(sample)
    if not borders:
        return [sample]
    parts = np.split(sample, np.searchsorted(sample, borders))
    return [inner for part in parts if len(part) for inner in _parts(part)]


def _valleys(sample: Array) -> list[float]:
    """Return where the density of a sorted sample has valleys that are deep and hardly chance."""
    width = _width(sample)
    edges, density = density_of(sample, width)
    step = float(edges[1] - edges[0])
    inner = density[1:-1]
    peaks = (inner >= density[:-2]) & (inner > density[2:])
    error = ROUGHNESS / (len(sample) * width)
    valleys = _deep(density, (peaks.nonzero()[0] + 1).tolist(), error)
    found = [float(edges[at] + step / 2) for at in valleys]
    return sorted(at for at in [*found, *_ends(sample, width)] if sample[0] < at < sample[-1])


def density_of(sample: Array, width: float) -> tuple[Array, Array]:
    """Estimate the density of a sorted sample with a Gaussian kernel of that standard deviation.

    Returns the edges of the bins, shape (GRID + 1,), and the density in each, shape (GRID,)
    (Silverman 1986, section 2.4; binned).
    """
    import numpy as np

    low, high = _ends(sample, width)
    step = (high - low + 6 * width) / GRID
    edges = low - 3 * width + step * np.arange(GRID + 1)
    counts, _ = np.histogram(sample, edges)
    offsets = np.arange(-math.ceil(4 * width / step), math.ceil(4 * width / step) + 1) * step
    kernel = np.exp(-0.5 * (offsets / width) ** 2) / (width * math.sqrt(2 * math.pi))
    return edges, np.convolve(counts, kernel, mode="same") / len(sample)


def _ends(sample: Array, width: float) -> tuple[float, float]:
    """Return the least and the greatest figure that the grid takes in.

    They are at most GRID / 8 widths from the median: farther outliers would make the grid too
    coarse for the kernel.
    """
    import numpy as np

    middle, reach = float(np.median(sample)), GRID / 8 * width
    return max(float(sample[0]), middle - reach), min(float(sample[-1]), middle + reach)


def _width(sample: Array) -> float:
    """Of the kernel: by Silverman's rule, but no finer than the step of a coarse clock."""
    import numpy as np

    count = len(sample)
    quarter, most = np.quantile(sample, [0.25, 0.75])
    scales = [float(sample.std()), float(most - quarter) / 1.349]
    scale = min(scale for scale in scales if scale > 0)
    width: float = WIDTH * 0.9 * scale * float(count) ** -0.2
    return max(width, _grain(sample), 1e-12 * abs(float(sample[-1])), LEAST_WIDTH)


def _grain(sample: Array) -> float:
    """The step of a coarse clock: many figures share few values that lie one step apart. 0 where
    there is none; up to three values are taken as modes of their own."""
    import numpy as np

    levels: Array = np.unique(sample)
    if not 3 < len(levels) <= len(sample) / 2:
        return 0.0
    gaps = np.diff(levels)
    step = float(gaps.min())
    even = np.abs(gaps / step - np.round(gaps / step)) < 0.01
    return step if even.all() and np.median(gaps) < 1.5 * step else 0.0


def _deep(density: Array, peaks: list[int], error: float) -> list[int]:
    """The valleys between neighbouring peaks that hold; of one that does not, the lower peak goes,
    the shallowest first. ``error`` is the variance of the density, over the density."""
    while len(peaks) > 1:
        pairs = list(pairwise(peaks))
        valleys = [a + int(density[a:b].argmin()) for a, b in pairs]
        failing = []
        for (a, b), valley in zip(pairs, valleys, strict=True):
            peak, dip = float(min(density[a], density[b])), float(density[valley])
            sure = (peak - dip) / math.sqrt((peak + dip) * error)
            if dip > DIP * peak or sure < SURE:
                failing.append((sure, a if density[a] < density[b] else b))
        if not failing:
            return valleys
        peaks.remove(min(failing)[1])
    return []
