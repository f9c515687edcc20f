"""Intervals of ratios by the last allocation alone, whose rounds did not choose what is compared.

    noise = AllocationNoise.of(blocks)       # None if two allocations cannot be compared
    found = noise.contrast(differences, 0.05)         # Contrast(centre, low, high)

Settings that were chosen because their figures are good look better than they are (the winner's
curse), and an interval that allows for it is wide. Figures that came after the choice need no such
allowance: what was explored is confirmed by new data (Cox 1975, data splitting).

A setting may be faster on the nodes of one allocation than of another, so its rounds there are not
independent. The variance of a mean has two parts, one of runs and one of allocations. That of runs
is the asymptotic variance of Huber's M-estimate (1964) by the residuals of all settings; that of
allocations is what the changes of settings from one allocation to the next have above it (an
analysis of variance; degrees of freedom by Satterthwaite 1946).
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from seatrial.arrays import Floats
from seatrial.lazy import np
from seatrial.statistics.sequential import BEND, LEAST_SCALE, centres, medians_of_rows, residuals_of
from seatrial.statistics.significance import student_quantile
from seatrial.statistics.spread import MAD_TO_SIGMA

_LEAST_SHARED = 3  # settings that two allocations have in common


class Contrast(NamedTuple):
    """The mean difference of the logarithms of two settings, with its interval."""

    centre: float
    low: float
    high: float


class AllocationNoise(NamedTuple):
    """What chance does to a setting: the robust standard deviation of a run (``scale``), its
    variance as it counts in a mean (``of_run``), that of an allocation (``of_allocation``), and the
    degrees of freedom of both."""

    scale: float
    of_run: float
    of_allocation: float
    run_freedom: int
    allocation_freedom: int

    @classmethod
    def of(cls, blocks: Sequence[Floats]) -> "AllocationNoise | None":
        """Return the noise by the logarithms of figures of each allocation, shape (settings,
        rounds), NaN where a setting has none. None if fewer than two allocations have several
        rounds of some settings in common."""
        several = [each for each in blocks if each.shape[1] > 1]
        parts = [(left, freedom) for left, freedom in map(residuals_of, several) if freedom]
        if not parts:
            return None
        freedom = sum(each for _, each in parts)
        left = np.concatenate([_as_wide(*each) for each in parts])
        scale = max(MAD_TO_SIGMA * float(np.median(np.abs(left))), LEAST_SCALE)
        scale *= 1 + 1.5 / freedom
        away = np.abs(left) / scale
        inside = float((away < BEND).mean())
        of_run = scale**2 * float(np.minimum(away, BEND) @ np.minimum(away, BEND)) / len(away)
        of_run /= inside**2
        changes = [_changes(one, other, scale) for one, other in pairwise(several)]
        changes = [each for each in changes if len(each[0]) >= _LEAST_SHARED]
        if not changes:
            return None
        shared = sum(len(each) - 1 for each, _ in changes)
        squares = sum(float(each @ each) - (len(each) - 1) * of_run * n for each, n in changes)
        return cls(scale, of_run, max(0.0, squares / shared / 2), freedom, shared)

    def contrast(self, differences: Floats, alpha: float) -> Contrast:
        """Return the mean of the differences of two settings in the rounds of one allocation, and
        its interval, each end with error ``alpha``."""
        run, allocation = self.of_run / len(differences), self.of_allocation
        own = run**2 / self.run_freedom + allocation**2 / self.allocation_freedom
        freedom = (run + allocation) ** 2 / own
        centre = float(centres(differences[None, :], self.scale * math.sqrt(2))[0])
        reach = student_quantile(1 - alpha, freedom) * math.sqrt(2 * (run + allocation))
        return Contrast(centre, centre - reach, centre + reach)


def _as_wide(left: Floats, freedom: int) -> Floats:
    """Return residuals as wide as the noise: a fit pulls them to 0."""
    found: Floats = left[np.isfinite(left)]
    return found * math.sqrt(len(found) / freedom)


def _changes(one: Floats, other: Floats, scale: float) -> tuple[Floats, float]:
    """Return by how much each setting changed from one allocation to another, beside the median of
    all, and the mean of 1 / n + 1 / m of the numbers of its figures."""
    counts = [np.isfinite(each).sum(axis=1) for each in (one, other)]
    both = (counts[0] > 1) & (counts[1] > 1)
    if not both.any():
        return np.zeros(0), 0.0
    means = [_means(each[both], scale) for each in (one, other)]
    moved = means[1] - means[0]
    weight = float((1 / counts[0][both] + 1 / counts[1][both]).mean())
    return moved - np.median(moved), weight


def _means(figures: Floats, scale: float) -> Floats:
    """Return the mean of each setting without the medians of the rounds."""
    ran = figures[:, np.isfinite(figures).any(axis=0)]
    return centres(ran - medians_of_rows(ran.T), scale)
