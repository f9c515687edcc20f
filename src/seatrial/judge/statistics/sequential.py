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
import statistics
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from seatrial.judge.statistics import two_samples
from seatrial.judge.statistics.significance import (
    CONFIDENCE,
    confirmed,
    student_p,
    student_quantile,
    twice,
    unshuffled,
)
from seatrial.judge.statistics.spread import MAD_TO_SIGMA
from seatrial.judge.statistics.two_samples import MIN_RELATIVE_CHANGE, RatioEstimate
from seatrial.lazy import Floats, Ints, np
from seatrial.units import Better

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
    ran = runs > 0
    for _ in range(_MOST_SWEEPS):
        before = effects.copy()
        means[ran] = centres(figures[ran] - effects, scale)
        left = np.where(counted, figures - means[:, None], np.nan)
        used = counted.any(axis=0)
        effects[used] = centres(left[:, used].T, scale)
        effects -= effects[used].mean() if used.any() else 0.0
        if np.abs(effects - before).max() < LEAST_SCALE:
            break
    return means, runs


def centres(values: Floats, scale: float) -> Floats:
    """Return Huber's M-estimate of each row, NaN left out; the mean for an infinite scale."""
    centre = medians_of_rows(values)
    counts = np.isfinite(values).sum(axis=1)
    bend = BEND * scale
    for _ in range(_STEPS_TO_CENTRE):
        steps = np.clip(values - centre[:, None], -bend, bend)
        centre = centre + np.where(np.isfinite(steps), steps, 0.0).sum(axis=1) / counts
    return centre


def medians_of_rows(values: Floats) -> Floats:
    """Return the median of each row, NaN left out. For some tens of figures, this is several times
    as fast as ``median_polish.medians``, which is faster for thousands."""
    ordered = np.sort(values, axis=1)  # NaN last
    counts = np.isfinite(values).sum(axis=1)
    rows = np.arange(len(values))
    medians: Floats = (ordered[rows, (counts - 1) // 2] + ordered[rows, counts // 2]) / 2
    return medians


def residuals_of(figures: Floats) -> tuple[Floats, int]:
    """Return what is left of figures, shape (settings, rounds), without the medians of settings and
    rounds (Tukey's median polish, 1977), and how many of the residuals are free."""
    left = figures.copy()
    ran = np.isfinite(figures)
    often = ran.sum(axis=1) > 1  # the residual of one figure is 0 whatever it is
    left[~often] = np.nan
    rounds = np.isfinite(left).sum(axis=0) > 1
    left[:, ~rounds] = np.nan
    known = np.isfinite(left)
    rows, columns = known.any(axis=1), known.any(axis=0)
    left = left[rows][:, columns]
    if not left.size:
        return left, 0
    for _ in range(_MOST_SWEEPS):  # many where few settings link the allocations
        before = left
        left = left - medians_of_rows(left)[:, None]
        left = left - medians_of_rows(left.T)
        if np.nanmax(np.abs(left - before)) < LEAST_SCALE:
            break
    freedom = int(known.sum()) - int(rows.sum()) - int(columns.sum()) + 1
    return left, freedom


def _differences(residuals: Floats) -> Floats:
    """Return the differences of residuals within rounds, of all pairs of settings."""
    differences = []
    for column in residuals.T:
        own = column[np.isfinite(column)]
        first, second = np.triu_indices(len(own), 1)
        differences.append(own[first] - own[second])
    pairs: Floats = np.concatenate(differences)
    return pairs


def evidence(differences: Floats, noise: BlockNoise, mean: float = 0.0) -> Floats:
    """Return log M against "the mean of the differences is at most ``mean``". ``differences``: of
    one or more pairs of settings, shape (..., rounds), NaN where a pair has none."""
    scaled = np.clip((differences - mean) / noise.scale, -CLIP, CLIP)
    known = np.isfinite(scaled)
    totals = np.where(known, scaled, 0.0).sum(axis=-1)
    logs = np.multiply.outer(totals, noise.gains)
    logs -= np.multiply.outer(known.sum(axis=-1), noise.cumulants)
    log_m: Floats = np.log(np.exp(logs).mean(axis=-1))
    return log_m


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


# ---- confirmation --------------------------------------------------------------------------------
#
# Intervals of ratios by the last allocation alone, whose rounds did not choose what is compared.
#
#     noise = AllocationNoise.of(blocks)       # None if two allocations cannot be compared
#     found = noise.contrast(differences, 0.05)         # Contrast(centre, low, high)
#
# Settings that were chosen because their figures are good look better than they are (the winner's
# curse), and an interval that allows for it is wide. Figures that came after the choice need no
# such allowance: what was explored is confirmed by new data (Cox 1975, data splitting).
#
# A setting may be faster on the nodes of one allocation than of another, so its rounds there are
# not independent. The variance of a mean has two parts, one of runs and one of allocations. That
# of runs is the asymptotic variance of Huber's M-estimate (1964) by the residuals of all settings;
# that of allocations is what the changes of settings from one allocation to the next have above it
# (an analysis of variance; degrees of freedom by Satterthwaite 1946).


_LEAST_SHARED = 3  # settings that two allocations have in common


class Contrast(Struct, frozen=True):
    """The mean difference of the logarithms of two settings, with its interval."""

    centre: float
    low: float
    high: float


class AllocationNoise(Struct, frozen=True):
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
        several = [block for block in blocks if block.shape[1] > 1]
        parts = [(left, freedom) for left, freedom in map(residuals_of, several) if freedom]
        if not parts:
            return None
        freedom = sum(freedom for _, freedom in parts)
        scale, of_run = _noise_of_runs(np.concatenate([_as_wide(*part) for part in parts]), freedom)
        all_changes = (_changes(one, other, scale) for one, other in pairwise(several))
        changes = [each for each in all_changes if len(each[0]) >= _LEAST_SHARED]
        if not changes:
            return None
        shared = sum(len(moved) - 1 for moved, _ in changes)
        squares = sum(float(moved @ moved) - (len(moved) - 1) * of_run * n for moved, n in changes)
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


def _noise_of_runs(left: Floats, freedom: int) -> tuple[float, float]:
    """Return the robust standard deviation of a run by residuals, and the variance of a run as it
    counts in a mean."""
    scale = max(MAD_TO_SIGMA * float(np.median(np.abs(left))), LEAST_SCALE)
    scale *= 1 + 1.5 / freedom
    away = np.abs(left) / scale
    inside = float((away < BEND).mean())
    bent = np.minimum(away, BEND)
    of_run = scale**2 * float(bent @ bent) / len(away)
    return scale, of_run / inside**2


def _as_wide(left: Floats, freedom: int) -> Floats:
    """Return residuals as wide as the noise: a fit pulls them to 0."""
    known: Floats = left[np.isfinite(left)]
    return known * math.sqrt(len(known) / freedom)


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


# ---- together ------------------------------------------------------------------------------------
#
# Judge several comparisons of two samples together: of many rows some differ by chance.
#
#     found = judged([(first, second, "lower"), (third, fourth, "higher")], least=0.02)
#     found[0].verdict, found[0].reason
#
# Each row is compared by ``two_samples.compare``. Of those that are told to differ, the ones stand
# that a false discovery rate of 5 % leaves (Benjamini and Hochberg 1995), and where figures are
# few, noise of any shape, too (``multiple_testing.unshuffled``). A row alone has the verdict of
# that rule.


FEW = 8  # figures of a side, below which two modes may well pass for a difference

Row = tuple[Sequence[float], Sequence[float], Better]


def judged(rows: Sequence[Row], least: float = MIN_RELATIVE_CHANGE) -> list[RatioEstimate]:
    """Return the comparison of each row, with its verdict among all of them."""
    results = [_with_least_p(two_samples.compare(*row, least), row) for row in rows]
    tested = [i for i, result in enumerate(results) if result.p is not None]
    stand = _standing(rows, results, tested, least)
    reason = f"among {len(tested)} rows chance may make such a difference: repeat"
    for i, result in enumerate(results):
        if result.told and i not in stand:
            needed = twice(_least_n(rows[i]))
            results[i] = replace(result, verdict="unclear", reason=reason, needed=needed)
    return results


def _standing(
    rows: Sequence[Row], results: Sequence[RatioEstimate], tested: Sequence[int], least: float
) -> set[int]:
    """Return the rows whose differences stand among all that were tested."""
    told = [i for i in tested if results[i].told]
    stand = {told[i] for i in confirmed([results[i].p or 0.0 for i in told], len(tested))}
    few = [i for i in tested if _least_n(rows[i]) < FEW]
    return stand - _by_chance(rows, few, stand, least)


def _by_chance(rows: Sequence[Row], few: Sequence[int], stand: set[int], least: float) -> set[int]:
    """Return the rows of few figures that stand, and whose difference noise of any shape makes."""
    places = [place for place, i in enumerate(few) if i in stand]
    if not places:
        return set()
    kept = unshuffled([rows[i][:2] for i in few], places, least)
    return {few[place] for place in places} - {few[place] for place in kept}


def _with_least_p(one: RatioEstimate, row: Row) -> RatioEstimate:
    """Return a comparison that tells a difference with the p-value of Welch's test, where it is
    smaller: that of ranks cannot be small for few figures."""
    student = student_p(*row[:2]) if one.told else None
    return one if student is None else replace(one, p=min(student, one.p or 1.0))


def _least_n(row: Row) -> int:
    return min(len(row[0]), len(row[1]))


# ---- subset selection ----------------------------------------------------------------------------
#
# Select the samples that may be the best of several (subset selection, Gupta 1965).
#
# found = select_best({"a": [10.1, 10.2, 10.0], "b": [12.0, 12.1, 12.2]}, "lower") found.best,
# found.told # "a", {"b"}: b is told to be worse
#
# Each sample is compared with the one of the best median by ``two_samples.compare``, at 5 % divided
# among the others (Holm 1979). So with 95 % a best one is among those that are not told to be
# worse. Of two samples the answer is that of the rule.


class BestOfSeveral(Struct, frozen=True):
    """The sample with the best median, by its name, and what the others are beside it: ``beside``,
    by their names, is the ratio of each to the best, and its verdict."""

    best: str
    beside: dict[str, RatioEstimate]

    @property
    def told(self) -> set[str]:
        """The names of those that are told to be worse."""
        return {name for name, one in self.beside.items() if one.verdict == "worse"}


def select_best(
    samples: Mapping[str, Sequence[float]], better: Better, least: float = MIN_RELATIVE_CHANGE
) -> BestOfSeveral:
    """Compare samples of figures above 0. Raises ValueError if there is none."""
    sign = 1 if better == "higher" else -1
    best = max(samples, key=lambda name: sign * statistics.median(samples[name]))
    return BestOfSeveral(best, beside(samples, best, better, least))


def beside(
    samples: Mapping[str, Sequence[float]], best: str, better: Better, least: float
) -> dict[str, RatioEstimate]:
    """Return what each other sample is beside the one that is taken for the best."""
    others = [name for name in samples if name != best]
    alone = {name: judged([(samples[best], samples[name], better)], least)[0] for name in others}
    ordered = sorted((one.p or 0.0, name) for name, one in alone.items() if one.told)
    for i, (p, _) in enumerate(ordered):
        if p > (1 - CONFIDENCE) / (len(others) - i):
            reason = f"among {len(samples)} settings chance may make such a difference: repeat"
            for _, name in ordered[i:]:
                needed = twice(min(len(samples[best]), len(samples[name])))
                alone[name] = replace(alone[name], verdict="unclear", reason=reason, needed=needed)
            break
    return alone
