"""Predict settings of a grid from those that ran: main effects first, then what they do not tell.

    prediction = predict(levels, means, runs)
    prediction.mean, prediction.deviation     # of each setting, those that never ran included
    prediction.without                        # of each setting by the others alone

The logarithm of a figure is taken as the sum of an effect for each level of each axis, one for each
pair of levels of two axes, and one of its own (a random-effects analysis of variance: Henderson
1975; the same as a Gaussian process over the levels). How large each of the three kinds is, and the
noise, is estimated by maximum likelihood (Patterson and Thompson 1971 call for the restricted one;
with tens of settings the two agree). Effects that are not there are estimated as 0, so that a
single run of a setting is judged by all runs with the same levels.

A setting of which a run was disturbed would be lost. So a figure that the others cannot explain is
given less weight (Student's t by scale mixture: Lange, Little and Taylor 1989), and ``without``
tells what the others say of it.
"""

import math
from itertools import combinations
from typing import NamedTuple

from seatrial.arrays import Floats, Ints
from seatrial.lazy import np

_SWEEPS = 2
_SHARES = (0.0, 0.003, 0.03, 0.3, 3.0)  # of the variance of the figures
_NOISE = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
_FREEDOM = 4.0  # of Student's t
_REWEIGHTED = 2


class SettingPrediction(NamedTuple):
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
    found: Floats = -0.5 * (halves * halves).sum(axis=1) - logs
    return found
