"""Series with a known truth: six noises, and what may happen in them.

Each noise has a standard deviation of 1 (the outliers come on top) and is scaled to 2.5 % of the
level: a step of 5 % is two standard deviations high, one of 3 % is 1.2.
"""

from __future__ import annotations

import math
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


def null(noise: str, rng: Random, count: int = POINTS, scale: float = SCALE) -> Array:
    """A series in which nothing happens."""
    return LEVEL * (1 + scale * NOISES[noise](rng, count))


def stepped(
    noise: str, rng: Random, size: float, at: int, count: int = POINTS, scale: float = SCALE
) -> Array:
    """The level goes up or down by a share of itself, from a point on."""
    series = null(noise, rng, count, scale)
    series[at:] *= 1 + size * rng.choice([-1, 1])
    return series


def drifting(noise: str, rng: Random) -> Array:
    """10 % lost evenly over the whole series."""
    return null(noise, rng) * np.linspace(1, 0.9, POINTS)


SHAPES: dict[str, Callable[[Array], Array]] = {
    "even": lambda times: times,
    "in the last third": lambda times: np.clip(3 * times - 2, 0, 1),
    "ever faster": np.square,
    "ever slower": lambda times: 1 - np.exp(-6 * times),
    "10 steps": lambda times: np.floor(times * 10.99) / 10,
}


def lost(shape: str, rng: Random, noise: float, count: int) -> Array:
    """10 % lost over the whole series, in normal noise of a share of the level."""
    level = 1 - 0.1 * SHAPES[shape](np.linspace(0, 1, count))
    return LEVEL * level * (1 + noise * rng.normal(size=count))


def _weekly(rng: Random, count: int, wave: Callable[[Array], Array]) -> Array:
    days: Array = np.arange(count, dtype=np.float64) + float(rng.integers(7))
    values: Array = 1 + 0.03 * wave(days) + 0.006 * rng.normal(size=count)
    return LEVEL * values


def _spiked(rng: Random, count: int, spikes: int, noise: float) -> Array:
    series = LEVEL * (1 + noise * rng.normal(size=count))
    series[rng.choice(count, spikes, replace=False)] *= rng.choice((0.7, 1.3), spikes)
    return series


def _strayed(rng: Random, count: int, r: float) -> Array:
    values = np.zeros(count + 100)
    for i in range(1, len(values)):
        values[i] = r * values[i - 1] + rng.normal(0, math.sqrt(1 - r * r))
    return LEVEL * (1 + 0.02 * values[100:])


def _alternating(rng: Random, count: int) -> Array:
    return LEVEL + np.resize(np.array([0.0, 1.0]), count)


def _rounded(rng: Random, count: int) -> Array:
    values: Array = (rng.normal(0, 0.4, count) + rng.random()).round()
    return LEVEL + 2 * values


def _rarely_elsewhere(rng: Random, count: int) -> Array:
    return LEVEL + np.where(rng.random(count) < 0.05, 5.0, 0.0)


# What happens in series without a change; how often it is told as one is in the tables, too.
NO_CHANGE: dict[str, Callable[[Random, int], Array]] = {
    "one spike of 30 %": lambda rng, count: _spiked(rng, count, 1, 0.02),
    "the same, without noise": lambda rng, count: _spiked(rng, count, 1, 0.0),
    "three spikes": lambda rng, count: _spiked(rng, count, 3, 0.02),
    "a wave each week": lambda rng, count: _weekly(rng, count, lambda d: np.sin(d / 3.5 * np.pi)),
    "slow week-ends": lambda rng, count: _weekly(
        rng, count, lambda d: np.where(d % 7 > 4, -1.0, 0.0)
    ),
    "up and down by turns": _alternating,
    "rounded to two or three values": _rounded,
    "one point in twenty on another level": _rarely_elsewhere,
    "Student's t of 3 degrees": lambda rng, count: LEVEL * (1 + 0.01 * rng.standard_t(3, count)),
    "AR(1) with 0.3": lambda rng, count: _strayed(rng, count, 0.3),
    "AR(1) with 0.7": lambda rng, count: _strayed(rng, count, 0.7),
    "AR(1) with 0.8": lambda rng, count: _strayed(rng, count, 0.8),
}


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
