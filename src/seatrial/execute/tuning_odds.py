"""Rehearse a tuning: the race itself, over settings whose true figures are planted.

    odds = rehearse_tuning(rules, seeds=100, noise=0.01)
    odds.cases[0].found         # how often it advised the best setting, or one near it

The effects are of three kinds: large ones of levels with smaller ones of pairs of levels and of
single settings (``effects``); one setting that is 5 % better than all others, which are equal
(``one setting``); and none at all (``none``). Each allocation has its nodes, which are faster or
slower for all settings and a little for each of its own, and drifts; one run in twenty is
disturbed.
"""

import math
from collections.abc import Callable
from itertools import combinations

from msgspec import Struct

from seatrial.decide.race import Race
from seatrial.lazy import Floats, np
from seatrial.model.policy import RaceRules

NODES = 0.03  # standard deviation of the factor of an allocation
_OWN = 0.003  # of a setting on the nodes of an allocation
_DRIFT = 0.0005  # of each run beside the one before
_DISTURBED, _DISTURBANCE = 0.05, 0.1  # how many runs, and their mean loss
_LEVELS, _PAIRS, _SINGLE = 0.08, 0.03, 0.01  # standard deviations of planted effects
_ONE = 0.05  # by which one setting is better


class PlantedOdds(Struct, frozen=True):
    """Of tunings with planted effects: the share in which the setting advised was the best or one
    near it (None where all are equal), that in which the default was kept, and the mean runs."""

    planted: str
    found: float | None
    kept: float
    runs: float


class TuningOdds(Struct, frozen=True):
    """What a rehearsal found; ``noise`` and ``nodes`` are standard deviations of logarithms."""

    seeds: int
    noise: float
    nodes: float
    cases: list[PlantedOdds]


def rehearse_tuning(rules: RaceRules, seeds: int, noise: float) -> TuningOdds:
    """Return how likely a tuning finds the best setting. A search for the largest size, which
    measures nothing, has no cases."""
    cases = []
    for planted in PLANTED if rules.search != "largest" else ():
        right, kept, runs = 0, 0, 0
        for seed in range(seeds):
            effects = planted_effects(rules, planted, seed)
            race = run_race(rules, TunedWorld(effects, noise, seed))
            advised = race.answer().advised
            assert advised is not None  # no run fails
            kept += int(advised == rules.default)
            right += bool(effects[advised] <= effects.min() + math.log1p(rules.min_effect))
            runs += sum(race.runs)
        share = None if planted == "none" else right / seeds
        cases.append(PlantedOdds(planted, share, kept / seeds, runs / seeds))
    return TuningOdds(seeds, noise, NODES, cases)


class TunedWorld:
    """What runs of settings would measure, drawn from a seed. ``effects`` are the true logarithms
    of figures, of which less is better."""

    def __init__(self, effects: Floats, noise: float, seed: int) -> None:
        self.effects = effects
        self._noise = noise
        self._rng = np.random.default_rng([seed, 1])
        self.allocate()

    def allocate(self) -> None:
        """Begin another allocation."""
        self._base = self._rng.normal(0, NODES) + self._rng.normal(0, _OWN, len(self.effects))
        self._slope = self._rng.normal(0, _DRIFT)
        self._drift = 0.0

    def figure(self, setting: int) -> float:
        """Return the logarithm that a run of a setting measures."""
        rng = self._rng
        self._drift += self._slope + rng.normal(0, _DRIFT)
        measured = self.effects[setting] + self._base[setting] + self._drift
        measured += rng.normal(0, self._noise)
        if rng.random() < _DISTURBED:
            measured += rng.exponential(_DISTURBANCE)
        return float(measured)


def run_race(rules: RaceRules, world: TunedWorld) -> Race:
    """Run a race to its end in a world."""
    sign = 1 if rules.better == "lower" else -1
    race = Race(rules)
    while block := race.next_block():
        world.allocate()
        for number, order in enumerate(block, race.rounds_begun):
            for setting in order:
                race.record(setting, number, math.exp(sign * world.figure(setting)))
        race.end_block()
    return race


# ---- what is planted --------------------------------------------------------------------------


def planted_effects(rules: RaceRules, planted: str, seed: int) -> Floats:
    """Return the true logarithm of each setting's figure."""
    return PLANTED[planted](rules, np.random.default_rng([seed, 0]))


def _effects(rules: RaceRules, rng: "np.random.Generator") -> Floats:
    levels = np.array(rules.levels).reshape(len(rules.levels), -1)
    sizes = levels.max(axis=0) + 1
    total = rng.normal(0, _SINGLE, len(levels))
    for axis, size in enumerate(sizes):
        total += rng.normal(0, _LEVELS, size)[levels[:, axis]]
    for one, other in combinations(range(len(sizes)), 2):
        pairs = rng.normal(0, _PAIRS, (sizes[one], sizes[other]))
        total += pairs[levels[:, one], levels[:, other]]
    return np.asarray(total)


def _one_setting(rules: RaceRules, rng: "np.random.Generator") -> Floats:
    total = np.zeros(len(rules.levels))
    others = [each for each in range(len(total)) if each != rules.default] or [0]
    total[rng.choice(others)] = -_ONE
    return total


def _none(rules: RaceRules, rng: "np.random.Generator") -> Floats:
    return np.zeros(len(rules.levels))


PLANTED: "dict[str, Callable[[RaceRules, np.random.Generator], Floats]]" = {
    "effects": _effects,
    "one setting": _one_setting,
    "none": _none,
}
