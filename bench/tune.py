"""Tuning: how often is the best of 48 settings found, and at what cost?

True figures are planted as in ``seatrial tune --rehearse``, and the same machine (nodes, drift,
disturbed runs) measures for every method. Beside the race: runs in random order, the full
factorial, successive halving, and Optuna's TPE (``pip install optuna``; left out where it is not).
Those name the setting with the best mean (TPE: its best trial).

    python -m bench.tune 200          these tables, with 200 seeds
    python -m bench.tune drawn 200    machines of another kind, drawn anew by each seed (DrawnWorld)
"""

from __future__ import annotations

import importlib
import math
import random
import sys
from collections.abc import Callable, Iterator
from itertools import combinations, product

import numpy as np

from seatrial.conduct.race_rules import RaceRules
from seatrial.rehearse.tuning import TunedWorld, planted_effects, run_race
from seatrial.statistics.arrays import Floats

SEEDS, TPE_SEEDS = 1000, 100
AXES = (4, 2, 2, 3)
LEVELS = [list(each) for each in product(*map(range, AXES))]
RULES = RaceRules(levels=LEVELS, default=0, runs=144)  # of 576
NOISES = (0.01, 0.02)
Method = Callable[[TunedWorld, int], tuple[int, int]]  # -> the setting that is named, the runs


def race(world: TunedWorld, seed: int) -> tuple[int, int]:
    found = run_race(RaceRules(levels=LEVELS, default=0, runs=RULES.runs, seed=seed), world)
    named = found.answer().advised
    assert named is not None
    return named, sum(found.runs)


def halving(world: TunedWorld, seed: int) -> tuple[int, int]:
    rules = RaceRules(levels=LEVELS, default=0, runs=RULES.runs, seed=seed, search="halving")
    found = run_race(rules, world)
    named = found.answer().best
    assert named is not None
    return named, sum(found.runs)


def factorial(world: TunedWorld, seed: int) -> tuple[int, int]:
    """Return the best mean of all runs of the grid, in the grid's order."""
    order = [each for each in range(len(LEVELS)) for _ in range(RULES.rounds)]
    return _best_mean(world, order * RULES.allocations, len(order))


def random_order(world: TunedWorld, seed: int) -> tuple[int, int]:
    """Return the best mean of as many runs as the race may have, drawn from the grid's."""
    every = list(range(len(LEVELS))) * (RULES.rounds * RULES.allocations)
    chosen = random.Random(seed).sample(every, RULES.runs)
    return _best_mean(world, chosen, RULES.runs // RULES.allocations)


def _best_mean(world: TunedWorld, order: list[int], allocation: int) -> tuple[int, int]:
    sums, counts = np.zeros(len(LEVELS)), np.zeros(len(LEVELS))
    for number, setting in enumerate(order):
        if number % allocation == 0:
            world.allocate()
        sums[setting] += world.figure(setting)
        counts[setting] += 1
    means = np.where(counts > 0, sums / np.maximum(counts, 1), np.inf)
    return int(means.argmin()), len(order)


def tpe(world: TunedWorld, seed: int) -> tuple[int, int]:
    """Return the best trial of Optuna's tree-structured Parzen estimator."""
    optuna = importlib.import_module("optuna")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
    allocation = RULES.runs // RULES.allocations

    def objective(trial: object) -> float:
        if trial.number % allocation == 0:  # type: ignore[attr-defined]
            world.allocate()
        level = [
            trial.suggest_categorical(f"axis{n}", list(range(size)))  # type: ignore[attr-defined]
            for n, size in enumerate(AXES)
        ]
        return world.figure(LEVELS.index(level))

    study.optimize(objective, n_trials=RULES.runs)
    return LEVELS.index([study.best_params[f"axis{n}"] for n in range(len(AXES))]), RULES.runs


METHODS: dict[str, Method] = {
    "race": race,
    "successive halving": halving,
    "random order": random_order,
    "full factorial": factorial,
    "Optuna's TPE": tpe,
}


def measure(seeds: int = SEEDS) -> Iterator[tuple[str, str, str, str]]:
    for planted, noise in (
        *(("effects", each) for each in NOISES),
        ("one setting", NOISES[0]),
        *(("none", each) for each in NOISES),
    ):
        for name, method in METHODS.items():
            tried = min(seeds, TPE_SEEDS) if method is tpe else seeds
            try:
                found, kept, runs = _tried(method, planted, noise, tried)
            except ModuleNotFoundError:
                yield f"tuning, {planted}, {noise:.1%} noise", name, "is not installed", ""
                continue
            share = kept if planted == "none" else found
            what = "default kept" if planted == "none" else "best, or within 1 %"
            cost = f"{runs / RULES.grid:.1%} of the grid's runs"
            about = f"tuning, {planted}, {noise:.1%} noise, n = {tried}"
            yield about, name, f"{what}: {share:.1%}", cost


def _tried(method: Method, planted: str, noise: float, seeds: int) -> tuple[float, float, float]:
    """Return how often a method named a setting within 1 % of the best, how often the default, and
    its mean runs."""
    found = kept = runs = 0
    for seed in range(seeds):
        effects = planted_effects(RULES, planted, seed)
        named, used = method(TunedWorld(effects, noise, seed), seed)
        found += bool(effects[named] <= effects.min() + math.log(1.01))
        kept += int(named == RULES.default)
        runs += used
    return found / seeds, kept / seeds, runs / seeds


# ---- machines of another kind -----------------------------------------------------------------


class DrawnWorld(TunedWorld):
    """A machine and settings on which no constant of the race was chosen: each seed draws how large
    the effects are, how heavy the tail of the noise is (Student's t of 3 to 10 degrees), and how
    much allocations, drift and disturbed runs, which lose between 2 % and half, matter. All
    figures are logarithms. ``null``: all settings are equal."""

    def __init__(self, seed: int, null: bool) -> None:
        draws = np.random.default_rng([seed, 2])

        def between(low: float, high: float) -> float:
            return float(math.exp(draws.uniform(math.log(low), math.log(high))))

        sizes = [between(*each) for each in ((0.02, 0.15), (0.005, 0.05), (0.002, 0.02))]
        self._freedom = int(draws.integers(3, 11))
        self._nodes, self._own = between(0.005, 0.1), between(0.001, 0.008)
        self._walk = between(0.0002, 0.002)
        self._disturbed = draws.uniform(0, 0.12)
        noise = between(0.005, 0.03)
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
    levels = np.array(LEVELS)
    total = draws.exponential(sizes[2], len(levels))
    for axis, size in enumerate(AXES):
        total += draws.exponential(sizes[0], size)[levels[:, axis]]
    for one, other in combinations(range(len(AXES)), 2):
        pairs = draws.exponential(sizes[1], (AXES[one], AXES[other]))
        total += pairs[levels[:, one], levels[:, other]]
    return np.asarray(total)


def measure_drawn(seeds: int) -> Iterator[tuple[str, str, str, str]]:
    """Measure the methods on drawn machines, and by how much what they name is worse than the
    best."""
    for null in (False, True):
        for name, method in METHODS.items():
            if method is tpe:
                continue
            found, kept, lost = 0, 0, 0.0
            for seed in range(seeds):
                world = DrawnWorld(seed, null)
                named, _ = method(world, seed)
                lost += math.expm1(world.effects[named] - world.effects.min()) / seeds
                found += bool(world.effects[named] <= world.effects.min() + math.log(1.01))
                kept += int(named == RULES.default)
            about = f"tuning, drawn machines, {'none' if null else 'effects'}, n = {seeds}"
            share = kept if null else found
            what = "default kept" if null else "best, or within 1 %"
            yield about, name, f"{what}: {share / seeds:.1%}", f"worse than the best by {lost:.2%}"


def main(words: list[str]) -> None:
    drawn = words[:1] == ["drawn"]
    seeds = int(words[drawn]) if len(words) > drawn else SEEDS
    for row in measure_drawn(seeds) if drawn else measure(seeds):
        print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
