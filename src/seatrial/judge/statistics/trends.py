"""How figures depend on what was set: slopes, correlations, effects of settings, and the surface
over a grid of them. A few figures may be far off.

    theil_sen(hops, latencies)            # Slope(slope=0.053, low=0.049, high=0.057)

The estimate of a slope is the median of the slopes of all pairs of figures (Theil 1950; Sen 1968).
Where figures are in strata (cases of one test), only pairs of one stratum count.
"""

import math
import statistics
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

from msgspec import Struct

from seatrial.judge.statistics.significance import ranks
from seatrial.lazy import Floats, Ints, np

MAX_FIGURES = 1000  # that are used; evenly chosen of more
CONFIDENCE = 0.95


class Slope(NamedTuple):
    """A slope with its interval of 95 % (Sen 1968, by the variance of Kendall's tau with ties)."""

    slope: float
    low: float
    high: float


def theil_sen(
    x: Sequence[float], y: Sequence[float], strata: Sequence[int] | None = None
) -> Slope | None:
    """Return the slope of ``y`` over ``x``; None if no two figures of a stratum differ in ``x``."""
    thin = slice(None, None, max(1, math.ceil(len(x) / MAX_FIGURES)))
    xs, ys = np.asarray(x, dtype=float)[thin], np.asarray(y, dtype=float)[thin]
    groups = np.zeros(len(xs), dtype=int) if strata is None else np.asarray(strata)[thin]
    i, j = np.triu_indices(len(xs), 1)
    apart = (xs[i] != xs[j]) & (groups[i] == groups[j])
    slopes = np.sort((ys[j] - ys[i])[apart] / (xs[j] - xs[i])[apart])
    if not len(slopes):
        return None
    variance = sum(_variance(xs[groups == one].tolist()) for one in np.unique(groups))
    reach = statistics.NormalDist().inv_cdf((1 + CONFIDENCE) / 2) * math.sqrt(variance)
    low = max(0, math.floor((len(slopes) - reach) / 2))
    high = min(len(slopes) - 1, math.ceil((len(slopes) + reach) / 2))
    return Slope(float(np.median(slopes)), float(slopes[low]), float(slopes[high]))


def _variance(x: Sequence[float]) -> float:
    """Return the variance of the concordant less the discordant pairs, with ties in ``x``."""
    n, counts = len(x), np.unique(x, return_counts=True)[1].tolist()
    ties = sum(t * (t - 1) * (2 * t + 5) for t in counts)
    return float(n * (n - 1) * (2 * n + 5) - ties) / 18


# ---- rank correlation ----------------------------------------------------------------------------
#
# Which covariates rise or fall with a figure, beyond chance: "elapsed rises with groups touched".
#
#     found = correlations([CorrelationSample(strata, covariates, figures)])
#     found[0][1]            # of the first sample's second covariate: Correlation(4.2, 0.001)
#
# Figures are ranked within their stratum (the runs of a case), so what differs between cases is no
# evidence. The statistic is the sum over strata of the products of ranks, which are divided by the
# size of the stratum + 1 (van Elteren 1960), as a deviate. Chance is what figures show that are
# dealt to the runs of their stratum anew. p is the share of the deals in which the largest deviate
# of all covariates of all samples is as large (Westfall and Young 1993). So it is corrected for
# how many were looked at, and covariates that are nearly the same do not count twice.


DEALS = 2000
AT_ONCE = 100  # deals
SEED = 20260101


class CorrelationSample(Struct, frozen=True):
    """Figures, shape (n,), the number of the stratum of each, and covariates, shape (k, n)."""

    strata: Sequence[int]
    covariates: Sequence[Sequence[float]]
    figures: Sequence[float]


class Correlation(Struct, frozen=True):
    """A covariate and the figures of a sample: the ``deviate`` is below 0 where figures fall as it
    rises; ``p`` is two-sided and corrected."""

    deviate: float
    p: float


def correlations(samples: Sequence[CorrelationSample]) -> list[list[Correlation | None]]:
    """Return the correlation of each covariate of each sample; None for one that is the same for
    all figures of each stratum, or whose figures are."""
    ranked = [_Ranked(sample) for sample in samples]
    observed = [one.deviates(one.figures[None, :])[0] for one in ranked]
    largest = np.concatenate([_largest(ranked, at) for at in range(0, DEALS, AT_ONCE)])
    largest.sort()

    def told(deviate: float, known: bool) -> Correlation | None:
        as_large = DEALS - int(np.searchsorted(largest, abs(deviate) - 1e-9))
        return Correlation(deviate, (1 + as_large) / (1 + DEALS)) if known else None

    return [
        [*map(told, own.tolist(), one.known.tolist())]
        for own, one in zip(observed, ranked, strict=True)
    ]


def _largest(ranked: "Sequence[_Ranked]", at: int) -> Floats:
    """Return the largest absolute deviate of each of ``AT_ONCE`` deals; shape (AT_ONCE,)."""
    largest = np.zeros(AT_ONCE)
    for number, one in enumerate(ranked):
        if one.known.any():
            rng = np.random.default_rng([SEED, number, at])
            deviates = np.abs(one.deviates(one.dealt(rng)))
            largest = np.maximum(largest, deviates.max(axis=1))
    return largest


class _Ranked:
    """The ranks of a sample in the order of its strata, each with a mean of 0 in its stratum."""

    def __init__(self, sample: CorrelationSample) -> None:
        _, strata, sizes = np.unique(sample.strata, return_inverse=True, return_counts=True)
        order = np.argsort(strata, kind="stable")
        self._strata, ends = strata[order], np.cumsum(sizes)
        self._spans = [*zip((ends - sizes).tolist(), ends.tolist(), strict=True)]
        covariates = np.asarray(sample.covariates, dtype=float).reshape(-1, len(strata))
        self._covariates = np.array([self._ranks(own) for own in covariates[:, order]])
        self.figures = self._ranks(np.asarray(sample.figures, dtype=float)[order])
        variance = np.zeros(len(covariates))
        for (start, end), size in zip(self._spans, sizes.tolist(), strict=True):
            own = np.square(self._covariates[:, start:end]).sum(axis=1)
            variance += own * np.square(self.figures[start:end]).sum() / max(1, size - 1)
        self.known = variance > 1e-12
        self._scale = np.where(self.known, 1 / np.sqrt(np.where(self.known, variance, 1.0)), 0.0)

    def _ranks(self, values: Floats) -> Floats:
        """Return centred ranks within strata, the mean of them for equal values; shape (n,)."""
        centred = np.empty(len(values))
        for start, end in self._spans:
            size = end - start
            centred[start:end] = (ranks(values[start:end]) - (size + 1) / 2) / (size + 1)
        return centred

    def deviates(self, figures: Floats) -> Floats:
        """Return the deviates of deals of the figures, shape (deals, n); shape (deals, k)."""
        deviates: Floats = figures @ self._covariates.T * self._scale
        return deviates

    def dealt(self, rng: "np.random.Generator") -> Floats:
        """Return the figures dealt anew within their strata; shape (AT_ONCE, n)."""
        keys = self._strata + rng.random((AT_ONCE, len(self._strata)))
        dealt: Floats = self.figures[keys.argsort(axis=1)]
        return dealt


# ---- main effects --------------------------------------------------------------------------------
#
# Predict settings of a grid from those that ran: main effects first, then what they do not tell.
#
#     prediction = predict(levels, means, runs)
#     prediction.mean, prediction.deviation     # of each setting, those that never ran included
#     prediction.without                        # of each setting by the others alone
#
# The logarithm of a figure is taken as the sum of an effect for each level of each axis, one for
# each pair of levels of two axes, and one of its own (a random-effects analysis of variance:
# Henderson 1975; the same as a Gaussian process over the levels). How large each of the three
# kinds is, and the noise, is estimated by maximum likelihood (Patterson and Thompson 1971 call for
# the restricted one; with tens of settings the two agree). Effects that are not there are
# estimated as 0, so that a single run of a setting is judged by all runs with the same levels.
#
# A setting of which a run was disturbed would be lost. So a figure that the others cannot explain
# is given less weight (Student's t by scale mixture: Lange, Little and Taylor 1989), and
# ``without`` tells what the others say of it.


_SWEEPS = 2
_SHARES = (0.0, 0.003, 0.03, 0.3, 3.0)  # of the variance of the figures
_NOISE = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
_FREEDOM = 4.0  # of Student's t
_REWEIGHTED = 2


class SettingPrediction(Struct, frozen=True):
    """By setting: the expected logarithm, its standard deviation, and the same by the figures of
    the other settings alone."""

    mean: Floats
    deviation: Floats
    without: Floats
    without_deviation: Floats


def predict(
    levels: Ints, means: Floats, runs: Ints, noise: float | None = None
) -> SettingPrediction:
    """Predict the settings of a grid.

    ``levels``: of each setting on each axis, shape (settings, axes). ``means``: the mean logarithm
    of each, with the rounds' effects removed, NaN where it never ran; ``runs``: of how many figures
    it is. ``noise``: the standard deviation of one figure, None if it is not known.
    """
    ran = np.flatnonzero(np.isfinite(means))
    centre = float(np.median(means[ran]))
    figures = means[ran] - centre
    spread = max(float(np.mean(figures**2)), 1e-12)
    kernels = _kernels(levels)
    own = [kernel[np.ix_(ran, ran)] for kernel in kernels]
    counts = runs[ran].astype(float)
    weights = np.ones(len(ran))
    given = None if noise is None else noise**2 / spread
    shares = np.array([0.3, 0.03, 0.003, given if given is not None else 0.01])
    for _ in range(_REWEIGHTED):
        shares = _fit(own, figures / math.sqrt(spread), counts * weights, shares, given)
        inverse = _inverse(own, counts * weights, shares)
        scaled = inverse @ (figures / math.sqrt(spread))
        gaps = (scaled / np.diag(inverse)) ** 2 * np.diag(inverse)  # squared, in deviations
        weights = np.where(counts > 1, 1.0, (_FREEDOM + 1) / (_FREEDOM + gaps))
    signal = sum(share * kernel for share, kernel in zip(shares[:4], kernels, strict=False))
    signal = signal + 1.0  # the common mean, as wide as the figures themselves
    cross = signal[:, ran]
    inverse = _inverse(own, counts * weights, shares)
    mean = cross @ inverse @ figures
    variance = np.diag(signal) - np.einsum("ij,jk,ik->i", cross, inverse, cross)
    without, apart = mean.copy(), variance.copy()
    precise = np.diag(inverse)
    without[ran] = figures - (inverse @ figures) / precise
    apart[ran] = 1 / precise - shares[3] / (counts * weights)
    return SettingPrediction(
        mean + centre,
        np.sqrt(np.maximum(variance, 0) * spread),
        without + centre,
        np.sqrt(np.maximum(apart, 0) * spread),
    )


def _kernels(levels: Ints) -> list[Floats]:
    """Return what settings have in common: levels, pairs of levels, and all; shape (n, n) each."""
    same = [levels[:, [axis]] == levels[:, axis] for axis in range(levels.shape[1])]
    main = sum(each.astype(float) for each in same)
    pairs = sum((one & other).astype(float) for one, other in combinations(same, 2))
    identity = np.eye(len(levels))
    return [np.asarray(main), np.zeros_like(identity) + pairs, identity]


def _covariances(kernels: list[Floats], weights: Floats, shares: Floats) -> Floats:
    """Return the covariance of the figures for each row of ``shares``; shape (rows, n, n)."""
    size = len(weights)
    total = np.ones((len(shares), size, size))
    total[:, range(size), range(size)] = shares[:, 3:] / weights + 1.0 + 1e-9
    for place, kernel in enumerate(kernels):
        total += shares[:, place, None, None] * kernel
    return total


def _inverse(kernels: list[Floats], weights: Floats, shares: Floats) -> Floats:
    inverse: Floats = np.linalg.inv(_covariances(kernels, weights, shares[None])[0])
    return inverse


def _fit(
    kernels: list[Floats], figures: Floats, weights: Floats, start: Floats, noise: float | None
) -> Floats:
    """Return the variances of the three kinds of effects and the noise, as shares of the variance
    of the figures, by maximum likelihood: coordinate descent over a grid."""
    best, shares = float(_likelihoods(kernels, figures, weights, start[None])[0]), start
    for _ in range(_SWEEPS):
        before = best
        for place in range(4 if noise is None else 3):
            values = _NOISE if place == 3 else _SHARES
            trials = np.tile(shares, (len(values), 1))
            trials[:, place] = values
            likelihoods = _likelihoods(kernels, figures, weights, trials)
            first = int(likelihoods.argmax())
            if likelihoods[first] > best:
                best, shares = float(likelihoods[first]), trials[first]
        if best <= before:
            break
    return shares


def _likelihoods(kernels: list[Floats], figures: Floats, weights: Floats, shares: Floats) -> Floats:
    """Return the logarithm of the likelihood for each row of ``shares``. All are computed at once:
    for some settings, a call of numpy takes longer than what it computes."""
    factors = np.linalg.cholesky(_covariances(kernels, weights, shares))
    halves = np.linalg.solve(factors, figures[:, None])[..., 0]
    logs = np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1)
    logarithms: Floats = -0.5 * (halves * halves).sum(axis=1) - logs
    return logarithms


# ---- surface -------------------------------------------------------------------------------------
#
# The surface of figures over a grid of settings, from those that ran.
#
#     surface = Surface(levels, ordered)
#     fit = surface.fit(settings, logarithms, blocks)    # of each run: setting, figure, block
#     fit.mean, fit.deviation              # of each setting, those that never ran included
#     fit.noise                            # the standard deviation of one figure
#
# The logarithm of a figure is taken as a Gaussian process (kriging: Sacks, Welch, Mitchell and Wynn
# 1989): a sum of one smooth function of each axis, and one of all axes together. Along an ordered
# axis (nodes, sizes) neighbours are alike, and the less so the further apart they are (Matern 5/2
# in steps of the grid); along another one any two values are alike to the same degree. A block of
# runs may be faster or slower as a whole, as a file system has other users. How far likeness
# reaches along each axis, how large each part is, and the noise, are those of the largest
# likelihood.
#
# A run that was disturbed is far from what the others tell: it is given less weight, as a setting
# is.


_REACHES = (0.5, 1.0, 2.0, 4.0, 8.0)  # steps of the grid
_LIKENESS = (0.0, 0.5, 0.8, 0.95)  # of two values of an axis without order
_JOINT = (0.01, 0.1, 0.4, 1.0)  # variance of all axes together, beside that of each axis
# standard deviations of one figure
_NOISES = (0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 0.095, 0.11, 0.16, 0.25, 0.4, 0.7, 1.2)
_BLOCK = (0.0, 2e-4, 1e-3, 4e-3)  # variances of a block
_AXIS = (0.05, 0.2, 1.0, 4.0)  # variance of an axis, beside that of the figures
_WIDE = 10.0  # variance of the common mean
_TINY = 1e-9
_LEAST_SPREAD = 1e-6


class _Shape(NamedTuple):
    """The parameters of the process: of each axis how far likeness reaches (steps, or a degree),
    then the variances of an axis, of all together, of a block and of a figure."""

    reaches: tuple[float, ...]
    axis: float
    joint: float
    block: float
    noise: float


class SurfaceFit(Struct, frozen=True):
    """What is known of each setting: the expected logarithm of its figure and the standard
    deviation of that; ``noise``, the standard deviation of one figure. ``prior`` has the
    covariances of all settings with the runs, shape (settings, runs), ``inverse`` the inverse of
    those of the runs."""

    mean: Floats
    deviation: Floats
    noise: float
    prior: Floats
    inverse: Floats
    shape: _Shape
    surface: "Surface"

    def column(self, setting: int) -> Floats:
        """Return the covariance of a setting with each one, given the figures."""
        cross = self.surface.covariance(self.shape, [setting])[:, 0]
        left: Floats = cross - self.prior @ (self.inverse @ self.prior[setting])
        return left


class Surface:
    """A grid of settings: of each its ``levels`` on the axes, shape (settings, axes), and whether
    each axis is ordered."""

    def __init__(self, levels: Ints, ordered: Sequence[bool]) -> None:
        self.levels = levels
        self.ordered = tuple(ordered)
        self._shape: _Shape | None = None  # of the latest fit, from which the next one starts

    def fit(
        self, settings: Sequence[int], figures: Sequence[float], blocks: Sequence[int]
    ) -> SurfaceFit:
        """Fit the logarithms of figures, each of a run of a setting in a block."""
        values = np.asarray(figures, dtype=float)
        centre = float(np.median(values))
        spread = max(float(np.var(values)), _LEAST_SPREAD)
        runs = _Runs(self.levels[np.asarray(settings)], self.ordered, values - centre, blocks)
        shape = self._shape or _Shape(
            tuple(2.0 if ordered else 0.8 for ordered in self.ordered),
            axis=spread,
            joint=0.1 * spread,
            block=2e-4,
            noise=3.6e-3,
        )
        for again in range(_REWEIGHTED):
            shape = _likeliest(runs, shape, spread, near=bool(self._shape) or again > 0)
            inverse = runs.reweighted(shape)
        self._shape = shape
        prior = self.covariance(shape, settings)
        mean: Floats = prior @ (inverse @ runs.figures) + centre
        before = _WIDE + shape.axis * len(self.ordered) + shape.joint
        variance = before - np.einsum("ij,ij->i", prior @ inverse, prior)
        deviation: Floats = np.sqrt(np.maximum(variance, 0.0))
        return SurfaceFit(mean, deviation, math.sqrt(shape.noise), prior, inverse, shape, self)

    def covariance(self, shape: _Shape, others: Sequence[int]) -> Floats:
        """Return the covariance of each setting with some; shape (settings, len(others))."""
        those = self.levels[np.asarray(others)]
        alike = [
            _alike(self.levels[:, axis], those[:, axis], reach, ordered)
            for axis, (reach, ordered) in enumerate(zip(shape.reaches, self.ordered, strict=True))
        ]
        return _summed(alike, shape)


class _Runs:
    """The runs of a fit: their levels, shape (runs, axes), figures and blocks. ``weights``: what
    each figure counts."""

    def __init__(
        self, levels: Ints, ordered: Sequence[bool], figures: Floats, blocks: Sequence[int]
    ) -> None:
        self.figures = figures
        self.ordered = ordered
        self._levels = levels
        self._same_block = np.equal.outer(np.asarray(blocks), np.asarray(blocks)).astype(float)
        self._weights: Floats = np.ones(len(figures))
        self._known: dict[tuple[int, float], Floats] = {}

    def covariance(self, shape: _Shape) -> Floats:
        """Return the covariance of the figures."""
        total = _summed([self._alike(*each) for each in enumerate(shape.reaches)], shape)
        chance = np.diag(shape.noise / self._weights + _TINY)
        covariance: Floats = total + shape.block * self._same_block + chance
        return covariance

    def _alike(self, axis: int, reach: float) -> Floats:
        if (axis, reach) not in self._known:
            own = self._levels[:, axis]
            self._known[axis, reach] = _alike(own, own, reach, self.ordered[axis])
        return self._known[axis, reach]

    def likelihood(self, shape: _Shape) -> float:
        """Return the logarithm of the likelihood."""
        factor = np.linalg.cholesky(self.covariance(shape))
        half = np.linalg.solve(factor, self.figures)
        return float(-0.5 * half @ half - np.log(np.diag(factor)).sum())

    def reweighted(self, shape: _Shape) -> Floats:
        """Give less weight to figures that the others cannot explain. Return the inverse of the
        covariance."""
        inverse = np.linalg.inv(self.covariance(shape))
        gaps = (inverse @ self.figures) ** 2 / np.diag(inverse)  # squared, in deviations
        self._weights = np.minimum(1.0, (_FREEDOM + 1) / (_FREEDOM + gaps)).astype(np.float64)
        return np.linalg.inv(self.covariance(shape)).astype(np.float64)


def _likeliest(runs: _Runs, shape: _Shape, spread: float, near: bool) -> _Shape:
    """Return the shape of the largest likelihood: each parameter in turn, over a few values.
    ``near``: each over those next to the one before alone, as some more runs change little."""
    best = runs.likelihood(shape)
    for place in range(len(shape.reaches) + 4):
        for trial in _others(shape, place, runs.ordered, spread, near):
            likelihood = runs.likelihood(trial)
            if likelihood > best + _TINY:
                best, shape = likelihood, trial
    return shape


def _others(
    shape: _Shape, place: int, ordered: Sequence[bool], spread: float, near: bool
) -> Iterator[_Shape]:
    """Yield shapes that differ in one parameter: the reach of an axis, or a variance."""
    axes = len(ordered)
    if place < axes:
        values = _REACHES if ordered[place] else _LIKENESS
        for reach in _next_to(shape.reaches[place], values) if near else values:
            reaches = (*shape.reaches[:place], reach, *shape.reaches[place + 1 :])
            yield shape._replace(reaches=reaches)
        return
    name, variances, unit = _variances(spread)[place - axes]
    now = getattr(shape, name) / unit
    for variance in _next_to(now, variances) if near else variances:
        yield shape._replace(**{name: variance * unit})  # type: ignore[arg-type]


def _variances(spread: float) -> list[tuple[str, Sequence[float], float]]:
    """Return the variances of a shape, the values that are tried, and their unit."""
    noise = [each**2 for each in _NOISES]
    return [
        ("axis", _AXIS, spread),
        ("joint", _JOINT, spread),
        ("block", _BLOCK, 1.0),
        ("noise", noise, 1.0),
    ]


def _next_to(now: float, values: Sequence[float]) -> Sequence[float]:
    """Return the value that is nearest to one, and those next to it."""
    nearest = min(range(len(values)), key=lambda place: abs(values[place] - now))
    return values[max(0, nearest - 1) : nearest + 2]


def _alike(these: Ints, those: Ints, reach: float, ordered: bool) -> Floats:
    """Return how alike the values of an axis are, from 0 to 1."""
    apart = np.abs(np.subtract.outer(these, those)).astype(float)
    if not ordered:
        return np.where(apart == 0, 1.0, reach)
    steps = math.sqrt(5) * apart / reach
    alike: Floats = (1 + steps + steps**2 / 3) * np.exp(-steps)
    return alike


def _summed(alike: Sequence[Floats], shape: _Shape) -> Floats:
    """Return the covariance of settings by how alike they are on each axis."""
    total = np.full_like(alike[0], _WIDE)
    product = np.full_like(alike[0], shape.joint)
    for each in alike:
        total += shape.axis * each
        product *= each
    covariance: Floats = total + product
    return covariance
