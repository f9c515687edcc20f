"""Intervals for the ratio of two settings that ran in the same blocks, which hold at every look.

    noise = BlockNoise.of(figures)             # from all settings: what chance does to a difference
    evidence(differences, noise) >= math.log(1 / 0.001)    # the mean is above 0, at this level
    low, high = interval(differences, noise, 0.05)

``figures`` are logarithms, so that a difference of two settings in one round is the logarithm of
their ratio: node and drift cancel. A race looks at them after every block, and a usual interval
would be wrong far more often than it says. The evidence against "the mean is at most m" is the
supermartingale of Ville (1939) and Robbins (1970)

    M = mean over g of prod exp(g psi(d - m)) / E exp(g psi(e))

where psi clips at ``CLIP`` deviations, so that one wild run proves little (Huber 1965; Wang and
Ramdas 2023), and e is the noise of a difference. By Ville's inequality M reaches 1 / alpha with a
probability of alpha at most, however often one looks. E is taken from the residuals of all settings
together, and one more residual at the clip: the next run may be worse than any so far, as in
conformal prediction (Vovk 2005). So it needs no normal distribution and no bounds, and few figures
of one setting are enough where the others tell how noisy the machine is. The noise of all settings
is taken to be alike; ``bench/tune.py`` measures how often the intervals fail if it is not normal.
"""

import math
from typing import NamedTuple

from seatrial.arrays import Floats, Ints
from seatrial.lazy import np
from seatrial.statistics.spread import MAD_TO_SIGMA

CLIP = 2.5  # deviations
_TARGETS = (1.0, 3.0, 9.0, 27.0)  # numbers of differences for which a g of the mixture is best
_LEVEL = 7.0  # log(1 / alpha) for which they are
_PARTS, _STEPS = 32, 6  # of a search that divides its range by 32 in each step
BEND = 1.5  # deviations, from which on Huber's estimate counts a figure less
_STEPS_TO_CENTRE = 5
_MOST_SWEEPS = 100  # of settings and rounds in turn
LEAST_SCALE = 1e-6  # a millionth: figures that agree to the last digit are rounded


class BlockNoise(NamedTuple):
    """What chance does to the difference of two settings in one round: its ``scale`` (a robust
    standard deviation), the ``gains`` g of the mixture and, for each, the logarithm of E exp(g psi)
    (``cumulants``)."""

    scale: float
    gains: Floats
    cumulants: Floats

    @classmethod
    def of(cls, figures: Floats) -> "BlockNoise | None":
        """Return the noise by the logarithms of figures, shape (settings, rounds), NaN where a
        setting has none. None if no setting ran twice beside another."""
        residuals, freedom = residuals_of(figures)
        if freedom < 1:
            return None
        pairs = _differences(residuals * math.sqrt(np.isfinite(residuals).sum() / freedom))
        scale = max(MAD_TO_SIGMA * float(np.median(np.abs(pairs))), LEAST_SCALE)
        # few residuals, pulled to 0 by the fit, say too little of the scale (Student 1908)
        scale *= 1 + 1.5 / freedom
        gains = np.sqrt(2 * _LEVEL / np.array(_TARGETS))
        clipped = np.clip(pairs / scale, -CLIP, CLIP)
        sums = np.cosh(np.outer(gains, clipped)).mean(axis=1) * freedom
        return cls(scale, gains, np.log((sums + np.cosh(gains * CLIP)) / (freedom + 1)))

    def centre(self, differences: Floats) -> float:
        """Return the location of differences: Huber's M-estimate (1964)."""
        return float(centres(differences[None, :], self.scale)[0])


def means_of(figures: Floats, noise: BlockNoise | None) -> tuple[Floats, Ints]:
    """Return the mean of each setting without the effects of the rounds, NaN where it never ran,
    and of how many figures it is.

    ``figures``: as in ``BlockNoise.of``. Effects of rounds are those of the settings with several
    figures, if there are any. Means are Huber's M-estimates, where the noise is known.
    """
    runs = np.isfinite(figures).sum(axis=1)
    scale = noise.scale / math.sqrt(2) if noise is not None else math.inf
    several = (runs > 1)[:, None] & np.isfinite(figures)
    counted = np.where(several.any(axis=0), several, np.isfinite(figures))
    effects = np.zeros(figures.shape[1])
    means = np.full(len(figures), np.nan)
    there = runs > 0
    for _ in range(_MOST_SWEEPS):
        before = effects.copy()
        means[there] = centres(figures[there] - effects, scale)
        left = np.where(counted, figures - means[:, None], np.nan)
        used = counted.any(axis=0)
        effects[used] = centres(left[:, used].T, scale)
        effects -= effects[used].mean() if used.any() else 0.0
        if np.abs(effects - before).max() < LEAST_SCALE:
            break
    return means, runs


def centres(values: Floats, scale: float) -> Floats:
    """Return Huber's M-estimate of each row, NaN left out; the mean for an infinite scale."""
    found = medians_of_rows(values)
    counts = np.isfinite(values).sum(axis=1)
    bend = BEND * scale
    for _ in range(_STEPS_TO_CENTRE):
        steps = np.clip(values - found[:, None], -bend, bend)
        found = found + np.where(np.isfinite(steps), steps, 0.0).sum(axis=1) / counts
    return found


def medians_of_rows(values: Floats) -> Floats:
    """Return the median of each row, NaN left out. For some tens of figures, this is several times
    as fast as ``median_polish.medians``, which is faster for thousands."""
    ordered = np.sort(values, axis=1)  # NaN last
    counts = np.isfinite(values).sum(axis=1)
    rows = np.arange(len(values))
    found: Floats = (ordered[rows, (counts - 1) // 2] + ordered[rows, counts // 2]) / 2
    return found


def residuals_of(figures: Floats) -> tuple[Floats, int]:
    """Return what is left of figures, shape (settings, rounds), without the medians of settings and
    rounds (Tukey's median polish, 1977), and how many of the residuals are free."""
    left = figures.copy()
    ran = np.isfinite(figures)
    often = ran.sum(axis=1) > 1  # the residual of one figure is 0 whatever it is
    left[~often] = np.nan
    rounds = np.isfinite(left).sum(axis=0) > 1
    left[:, ~rounds] = np.nan
    there = np.isfinite(left)
    rows, columns = there.any(axis=1), there.any(axis=0)
    left = left[rows][:, columns]
    if not left.size:
        return left, 0
    for _ in range(_MOST_SWEEPS):  # many where few settings link the allocations
        before = left
        left = left - medians_of_rows(left)[:, None]
        left = left - medians_of_rows(left.T)
        if np.nanmax(np.abs(left - before)) < LEAST_SCALE:
            break
    freedom = int(there.sum()) - int(rows.sum()) - int(columns.sum()) + 1
    return left, freedom


def _differences(residuals: Floats) -> Floats:
    """Return the differences of residuals within rounds, of all pairs of settings."""
    found = []
    for column in residuals.T:
        own = column[np.isfinite(column)]
        first, second = np.triu_indices(len(own), 1)
        found.append(own[first] - own[second])
    pairs: Floats = np.concatenate(found)
    return pairs


def evidence(differences: Floats, noise: BlockNoise, mean: float = 0.0) -> Floats:
    """Return log M against "the mean of the differences is at most ``mean``". ``differences``: of
    one or more pairs of settings, shape (..., rounds), NaN where a pair has none."""
    scaled = np.clip((differences - mean) / noise.scale, -CLIP, CLIP)
    there = np.isfinite(scaled)
    totals = np.where(there, scaled, 0.0).sum(axis=-1)
    logs = np.multiply.outer(totals, noise.gains)
    logs -= np.multiply.outer(there.sum(axis=-1), noise.cumulants)
    found: Floats = np.log(np.exp(logs).mean(axis=-1))
    return found


def interval(differences: Floats, noise: BlockNoise, alpha: float) -> tuple[float, float]:
    """Return the confidence interval of the mean of the differences, each end with error ``alpha``
    over all looks; infinite ends where the differences are too few to bound it."""
    low, high = _lower(differences, noise, alpha), _lower(-differences, noise, alpha)
    return low, -high


def _lower(values: Floats, noise: BlockNoise, alpha: float) -> float:
    """Return the greatest mean that is too small at this level: evidence falls with the mean."""
    wanted = math.log(1 / alpha)
    if not len(values):
        return -math.inf
    high = float(np.median(values))
    low = float(values.min()) - 2 * CLIP * noise.scale
    if evidence(values, noise, low) < wanted:
        return -math.inf
    for _ in range(_STEPS):
        means = np.linspace(low, high, _PARTS + 1)
        too_small = evidence(values - means[:-1, None], noise) >= wanted
        last = int(np.count_nonzero(too_small)) - 1
        low, high = means[last], means[last + 1]
    return float(low)
