"""Tuning: how often is the best of 48 settings found, and at what cost?

True figures are planted as in ``seatrial tune --rehearse``, and the same machine (nodes, drift,
disturbed runs) measures for every method. Beside the race: runs in random order, the full
factorial, successive halving, and Optuna's TPE
(``pip install --require-hashes -r bench/requirements-optuna.lock``; left out where it is not).
Those name the setting with the best mean (TPE: its best trial).

    python -m bench.tune 200                    these tables, with 200 seeds
    python -m bench.tune 200 drawn sparse       machines of other kinds: see tuning_worlds
"""

from __future__ import annotations

import importlib
import math
import random
import sys
from collections.abc import Callable, Iterator

import numpy as np

from bench.tuning_worlds import AXES, FRESH, LEVELS, DrawnWorld, near_best
from seatrial.execute.tuning_odds import TunedWorld, planted_effects, run_race
from seatrial.model.policy import RaceRules

SEEDS, TPE_SEEDS = 1000, 100
FIRST_SEED = 1_000_000  # of the worlds of other kinds
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
        found += named in near_best(effects)
        kept += int(named == RULES.default)
        runs += used
    return found / seeds, kept / seeds, runs / seeds


# ---- machines of other kinds ------------------------------------------------------------------

WORLDS: dict[str, Callable[[int, bool], TunedWorld]] = {"drawn": DrawnWorld, **FRESH}


def measure_world(name: str, seeds: int) -> Iterator[tuple[str, str, str, str]]:
    """Measure the methods in a world, and by how much what they name is worse than the best."""
    for null in (False, True):
        for method_name, method in METHODS.items():
            if method is tpe:
                continue
            found, kept, lost, runs = 0, 0, 0.0, 0
            for seed in range(FIRST_SEED, FIRST_SEED + seeds):
                world = WORLDS[name](seed, null)
                named, used = method(world, seed)
                lost += math.expm1(world.effects[named] - world.effects.min()) / seeds
                found += named in near_best(world.effects)
                kept += int(named == RULES.default)
                runs += used
            about = f"tuning, {name}, {'none' if null else 'effects'}, n = {seeds}"
            share = (kept if null else found) / seeds
            what = f"{'default kept' if null else 'best, or within 1 %'}: {share:.1%}"
            cost = f"{runs / seeds / RULES.grid:.1%} of the grid's runs"
            yield about, method_name, what, f"worse than the best by {lost:.2%}; {cost}"


def main(words: list[str]) -> None:
    """Measure the worlds that are named, or the planted effects."""
    names = [word for word in words if word in WORLDS]
    seeds = next((int(word) for word in words if word.isdigit()), SEEDS)
    for name in names:
        for row in measure_world(name, seeds):
            print(f"| {' | '.join(row)} |", flush=True)
    for row in measure(seeds) if not names else ():
        print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
