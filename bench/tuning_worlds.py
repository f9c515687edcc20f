"""Machines and settings on which searches for the best setting are compared.

Each is drawn by its seed: the truth (``effects``, logarithms of figures, less is better) and what a
run measures. ``null``: all settings are equal, and everything else stays as it is.

``DrawnWorld`` was looked at while the race was made better; the other three (``FRESH``) were
written before the race that is measured on them, and no constant was chosen on them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations, product

import numpy as np

from seatrial.execute.tuning_odds import TunedWorld
from seatrial.lazy import Floats

AXES = (4, 2, 2, 3)
LEVELS = [list(each) for each in product(*map(range, AXES))]
_LEVELS = np.array(LEVELS)


def between(draws: np.random.Generator, low: float, high: float) -> float:
    """Draw a number whose logarithm is uniform."""
    return float(math.exp(draws.uniform(math.log(low), math.log(high))))


class DrawnWorld(TunedWorld):
    """Skewed effects of levels, pairs and settings. Each seed draws how large they are, how heavy
    the tail of the noise is (Student's t of 3 to 10 degrees), and how much allocations, drift and
    disturbed runs, which lose between 2 % and half, matter."""

    def __init__(self, seed: int, null: bool) -> None:
        draws = np.random.default_rng([seed, 2])
        ranges = ((0.02, 0.15), (0.005, 0.05), (0.002, 0.02))
        sizes = [between(draws, *each) for each in ranges]
        self._freedom = int(draws.integers(3, 11))
        self._nodes, self._own = between(draws, 0.005, 0.1), between(draws, 0.001, 0.008)
        self._walk = between(draws, 0.0002, 0.002)
        self._disturbed = draws.uniform(0, 0.12)
        noise = between(draws, 0.005, 0.03)
        super().__init__(np.zeros(len(LEVELS)) if null else _skewed(sizes, draws), noise, seed)

    def allocate(self) -> None:
        rng = self._rng
        self._base = rng.normal(0, self._nodes) + rng.normal(0, self._own, len(self.effects))
        self._drift = 0.0

    def figure(self, setting: int) -> float:
        rng = self._rng
        self._drift += rng.normal(0, self._walk)
        scale = math.sqrt((self._freedom - 2) / self._freedom)  # the deviation is that of the noise
        measured = self.effects[setting] + self._base[setting] + self._drift
        measured += self._noise * scale * rng.standard_t(self._freedom)
        if rng.random() < self._disturbed:
            measured += math.log1p(rng.uniform(0.02, 1))
        return float(measured)


def _skewed(sizes: list[float], draws: np.random.Generator) -> Floats:
    """Return effects of levels, pairs of levels and single settings that are exponential: few are
    large, and most of these are losses. ``sizes`` are their standard deviations."""
    total = draws.exponential(sizes[2], len(LEVELS))
    for axis, size in enumerate(AXES):
        total += draws.exponential(sizes[0], size)[_LEVELS[:, axis]]
    for one, other in combinations(range(len(AXES)), 2):
        pairs = draws.exponential(sizes[1], (AXES[one], AXES[other]))
        total += pairs[_LEVELS[:, one], _LEVELS[:, other]]
    return np.asarray(total)


class FreshWorld(TunedWorld):
    """What the fresh worlds share: allocations differ by 0.5 to 6 %, and by 0.05 to 0.5 % for each
    setting; the noise is of 0.3 to 2 %."""

    stream: int  # of its draws

    def __init__(self, seed: int, null: bool) -> None:
        draws = np.random.default_rng([seed, self.stream])
        self._nodes, self._own = between(draws, 0.005, 0.06), between(draws, 0.0005, 0.005)
        noise = between(draws, 0.003, 0.02)
        self._prepare(draws)
        effects = self._truth(draws)
        super().__init__(np.zeros(len(LEVELS)) if null else effects, noise, seed)

    def allocate(self) -> None:
        rng = self._rng
        self._base = rng.normal(0, self._nodes) + rng.normal(0, self._own, len(self.effects))
        self._runs = 0

    def figure(self, setting: int) -> float:
        self._runs += 1
        return float(self.effects[setting] + self._base[setting] + self._chance(setting))

    def _prepare(self, draws: np.random.Generator) -> None:
        """Draw what this kind of chance needs."""
        raise NotImplementedError

    def _truth(self, draws: np.random.Generator) -> Floats:
        """Return the true logarithms."""
        raise NotImplementedError

    def _chance(self, setting: int) -> float:
        """Return what chance adds to a run."""
        raise NotImplementedError


class TimedWorld(FreshWorld):
    """A run's time is a sum of computation, memory traffic and messages. Threads, spread, pages and
    rank order change one part or two, so their effects neither add nor multiply. The noise is
    skewed (a gamma distribution), and load comes in bursts that slow several runs by 3 to 20 %."""

    stream = 3

    def _prepare(self, draws: np.random.Generator) -> None:
        self._shape = draws.uniform(2, 8)
        self._starts, self._slows = draws.uniform(0, 0.02), between(draws, 0.03, 0.2)
        self._burst = False

    def _truth(self, draws: np.random.Generator) -> Floats:
        threads, spread, pages, order = _LEVELS.T
        parts = draws.dirichlet((4, 3, 2))
        best, bend = draws.uniform(0, 3), between(draws, 0.005, 0.08)
        compute = bend * (threads - best) ** 2
        memory = -between(draws, 0.01, 0.3) * pages + draws.uniform(0, 0.5) * spread
        fewer = draws.uniform(-0.1, 0.3) * threads  # messages, as there are fewer ranks
        ordered = draws.exponential(between(draws, 0.02, 0.2), AXES[3])[order]
        messages = ordered - fewer - draws.uniform(0, 0.2) * spread
        logs = np.array([compute, memory, messages])
        own = draws.normal(0, 0.003, len(LEVELS))
        return np.asarray(np.log(parts @ np.exp(logs)) + own)

    def _chance(self, setting: int) -> float:
        rng = self._rng
        self._burst = rng.random() < (0.8 if self._burst else self._starts)
        skewed = (rng.gamma(self._shape) - self._shape) / math.sqrt(self._shape)
        return self._noise * skewed + (math.log1p(self._slows) if self._burst else 0.0)


class SparseWorld(FreshWorld):
    """One to five settings are better than all others by 2 to 12 %, and levels say nothing of them;
    the others differ by 0.2 %, or, in every second world, one level of one axis loses 10 to 50 %,
    too. Some settings are noisier than others (0.5 to 2 times); up to 8 % of the runs lose 3 to
    50 %; the machine drifts."""

    stream = 4

    def _prepare(self, draws: np.random.Generator) -> None:
        self._scales = np.exp(draws.uniform(math.log(0.5), math.log(2), len(LEVELS)))
        self._disturbed = draws.uniform(0, 0.08)
        self._walk, self._drift = between(draws, 0.0002, 0.001), 0.0

    def _truth(self, draws: np.random.Generator) -> Floats:
        effects = draws.normal(0, 0.002, len(LEVELS))
        if draws.random() < 0.5:
            axis = int(draws.integers(len(AXES)))
            lost = _LEVELS[:, axis] == draws.integers(AXES[axis])
            effects += math.log1p(draws.uniform(0.1, 0.5)) * lost
        for setting in draws.choice(len(LEVELS), draws.integers(1, 6), replace=False):
            effects[setting] = math.log1p(-draws.uniform(0.02, 0.12))
        return np.asarray(effects)

    def _chance(self, setting: int) -> float:
        rng = self._rng
        self._drift += rng.normal(0, self._walk)
        found = self._drift + self._noise * self._scales[setting] * rng.normal()
        if rng.random() < self._disturbed:
            found += math.log1p(rng.uniform(0.03, 0.5))
        return float(found)


class RidgeWorld(FreshWorld):
    """The axes are numbers: figures rise from an optimum as a bowl that is long in one direction
    (neighbours of the best differ by 0.3 to 3 %), so many settings are nearly as good. Noise of
    Laplace's distribution; a periodic load of up to 2 %; levels, too, differ by allocation (0.05 to
    0.3 %)."""

    stream = 5

    def _prepare(self, draws: np.random.Generator) -> None:
        self._period, self._load = draws.uniform(20, 200), draws.uniform(0, 0.02)
        self._phase = draws.uniform(0, 2 * math.pi)
        self._of_levels = between(draws, 0.0005, 0.003)

    def _truth(self, draws: np.random.Generator) -> Floats:
        tops = [draws.uniform(0, size - 1) for size in AXES]
        steps = _LEVELS - np.array(tops)
        rotation, _ = np.linalg.qr(draws.normal(size=(len(AXES), len(AXES))))
        curves = np.array([between(draws, 0.003, 0.03) for _ in AXES])
        curves[0] *= 0.1  # the ridge
        bowl = (steps @ rotation) ** 2 @ curves
        return np.asarray(bowl + draws.normal(0, 0.001, len(LEVELS)))

    def allocate(self) -> None:
        super().allocate()
        for axis, size in enumerate(AXES):
            self._base = self._base + self._rng.normal(0, self._of_levels, size)[_LEVELS[:, axis]]

    def _chance(self, setting: int) -> float:
        rng = self._rng
        load = self._load * math.sin(2 * math.pi * self._runs / self._period + self._phase)
        return float(load + rng.laplace(0, self._noise / math.sqrt(2)))


FRESH: dict[str, type[FreshWorld]] = {
    "sums of parts": TimedWorld,
    "sparse": SparseWorld,
    "ridge": RidgeWorld,
}


def near_best(effects: Floats, within: float = 0.01) -> Sequence[int]:
    """Return the settings that are the best or at most ``within`` worse."""
    return list(np.flatnonzero(effects <= effects.min() + math.log1p(within)))
