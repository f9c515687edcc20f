"""Series with a known truth: six noises, and what may happen in them.

Each noise has a standard deviation of 1 (the outliers come on top) and is scaled to 2.5 % of the
level: a step of 5 % is two standard deviations high, one of 3 % is 1.2.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Random = np.random.Generator

LEVEL = 100.0
SCALE = 0.025
POINTS = 120


def gauss(rng: Random, count: int) -> Array:
    return rng.normal(0, 1, count)


def skew(rng: Random, count: int) -> Array:
    """Gamma of shape 2: a long tail on one side."""
    values: Array = (rng.gamma(2, 1, count) - 1.68) / np.sqrt(2)
    return values


def bimodal(rng: Random, count: int) -> Array:
    """Two modes of equal share, 1.8 apart (4.5 % of the level), each 0.44 wide."""
    return np.where(rng.random(count) < 0.5, -0.9, 0.9) + rng.normal(0, 0.4359, count)


def tight(rng: Random, count: int) -> Array:
    """Two modes of equal share, 2 apart (5 % of the level), each 0.05 wide: which cores talk."""
    return rng.choice((-1.0, 1.0), count) + rng.normal(0, 0.05, count)


def outlier(rng: Random, count: int) -> Array:
    """Gauss, and one point in twenty off by an exponential of mean 6 (15 % of the level)."""
    off = (rng.random(count) < 0.05) * rng.exponential(6, count)
    return rng.normal(0, 1, count) + off


def autocorrelated(rng: Random, count: int) -> Array:
    """AR(1) with 0.5: noise that strays."""
    fresh = rng.normal(0, np.sqrt(0.75), count + 50)
    values = np.zeros(count + 50)
    for i in range(1, len(values)):
        values[i] = 0.5 * values[i - 1] + fresh[i]
    return values[50:]


NOISES: dict[str, Callable[[Random, int], Array]] = {
    "gauss": gauss,
    "skew": skew,
    "bimodal": bimodal,
    "tight": tight,
    "outlier": outlier,
    "AR(1)": autocorrelated,
}


def null(noise: str, rng: Random, count: int = POINTS) -> Array:
    """A series in which nothing happens."""
    return LEVEL * (1 + SCALE * NOISES[noise](rng, count))


def stepped(noise: str, rng: Random, size: float, at: int, count: int = POINTS) -> Array:
    """The level goes up or down by a share of itself, from a point on."""
    series = null(noise, rng, count)
    series[at:] *= 1 + size * rng.choice([-1, 1])
    return series


def drifting(noise: str, rng: Random) -> Array:
    """10 % lost evenly over the whole series."""
    return null(noise, rng) * np.linspace(1, 0.9, POINTS)


def outage(noise: str, rng: Random, at: int, length: int = 5) -> Array:
    """Five points at 70 %."""
    series = null(noise, rng)
    series[at : at + length] *= 0.7
    return series


def two_steps(noise: str, rng: Random, at: int, apart: int = 12) -> Array:
    """Down by 8 %, and twelve points later back."""
    series = null(noise, rng)
    series[at : at + apart] *= 0.92
    return series
