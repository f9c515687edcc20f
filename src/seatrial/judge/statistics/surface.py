"""The surface of figures over a grid of settings, from those that ran.

    surface = Surface(levels, ordered)
    fit = surface.fit(settings, logarithms, blocks)     # of each run: its setting, figure and block
    fit.mean, fit.deviation              # of each setting, those that never ran included
    fit.noise                            # the standard deviation of one figure

The logarithm of a figure is taken as a Gaussian process (kriging: Sacks, Welch, Mitchell and Wynn
1989): a sum of one smooth function of each axis, and one of all axes together. Along an ordered
axis (nodes, sizes) neighbours are alike, and the less so the further apart they are (Matern 5/2 in
steps of the grid); along another one any two values are alike to the same degree. A block of runs
may be faster or slower as a whole, as a file system has other users. How far likeness reaches along
each axis, how large each part is, and the noise, are those of the largest likelihood.

A run that was disturbed is far from what the others tell: it is given less weight (Student's t by
scale mixture: Lange, Little and Taylor 1989).
"""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from seatrial.lazy import Floats, Ints, np

_REACHES = (0.5, 1.0, 2.0, 4.0, 8.0)  # steps of the grid
_LIKENESS = (0.0, 0.5, 0.8, 0.95)  # of two values of an axis without order
_JOINT = (0.01, 0.1, 0.4, 1.0)  # variance of all axes together, beside that of each axis
# standard deviations of one figure
_NOISE = (0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 0.095, 0.11, 0.16, 0.25, 0.4, 0.7, 1.2)
_BLOCK = (0.0, 2e-4, 1e-3, 4e-3)  # variances of a block
_AXIS = (0.05, 0.2, 1.0, 4.0)  # variance of an axis, beside that of the figures
_FREEDOM = 4.0  # of Student's t
_REWEIGHTED = 2
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


class SurfaceFit(NamedTuple):
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
    noise = [each**2 for each in _NOISE]
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
