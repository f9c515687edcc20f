"""Rehearse a tuning, a race or a sweep, over settings whose true figures are planted.

    odds = rehearse_tuning(rules, seeds=100, noise=0.01)
    odds.cases[0].found         # how often it advised the best setting, or one near it

The effects of a race are of three kinds: large ones of levels with smaller ones of pairs of levels
and of single settings (``effects``); one setting that is 5 % better than all others, which are
equal (``one setting``); and none at all (``none``). Each allocation has its nodes, which are faster
or slower for all settings and a little for each of its own, and drifts; one run in twenty is
disturbed.
"""

import math
from collections.abc import Callable, Sequence
from itertools import combinations, pairwise

from msgspec import Struct

from seatrial.decide.race import Race
from seatrial.decide.sweep import Sweep
from seatrial.lazy import Floats, Ints, np
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


# ---- sweeps --------------------------------------------------------------------------------------
#
# Surfaces of figures that are planted, to rehearse sweeps and to measure how good they are.
#
#     surface = planted_surface("two humps", levels, ordered, seed)     # true logarithms
#     odds = rehearse_sweep(rules, seeds=100, noise=0.05)
#
# The first two ordered axes are taken as those that add clients (nodes, then tasks of a node).


def rehearse_sweep(rules: RaceRules, seeds: int, noise: float) -> TuningOdds:
    """Return how likely a sweep finds the best point, on each kind of surface."""
    levels, cases = np.array(rules.levels, dtype=np.int64).reshape(len(rules.levels), -1), []
    for planted in PLANTED_SURFACES:
        right = kept = runs = 0
        for seed in range(seeds):
            surface = planted_surface(planted, levels, rules.ordered, seed)
            sweep = run_sweep(rules, TunedWorld(-surface, noise, seed))
            answer = sweep.answer(rules.metric)
            assert answer is not None  # no run fails
            kept += int(answer.best == rules.default)
            right += bool(surface[answer.best] >= surface.max() + math.log1p(-rules.min_effect))
            runs += sum(sweep.runs)
        cases.append(PlantedOdds(planted, right / seeds, kept / seeds, runs / seeds))
    return TuningOdds(seeds, noise, NODES, cases)


def run_sweep(rules: RaceRules, world: TunedWorld) -> Sweep:
    """Run a sweep to its end in a world, whose effects are logarithms of which less is better."""
    sign = 1 if rules.better == "lower" else -1
    sweep = Sweep(rules)
    others = dict.fromkeys(rules.others, 1.0)  # the same for all
    while block := sweep.next_block():
        world.allocate()
        for number, order in enumerate(block, sweep.rounds_begun):
            for setting in order:
                sweep.record(setting, number, math.exp(sign * world.figure(setting)), others)
        sweep.end_block()
    return sweep


class Grid:
    """A grid with what planted surfaces need of it."""

    def __init__(self, levels: Ints, ordered: Sequence[bool]) -> None:
        self.levels = levels.astype(float)
        self.sizes = levels.max(axis=0) + 1
        axes = range(levels.shape[1])
        self.ordered = [axis for axis in axes if ordered[axis] and self.sizes[axis] > 1]
        self.words = [axis for axis in axes if not ordered[axis]]
        self.clients = self.ordered[:2]
        self.others = self.ordered[2:]

    def at(self, axis: int) -> Ints:
        return self.levels[:, axis].astype(int)


def planted_surface(kind: str, levels: Ints, ordered: Sequence[bool], seed: int) -> Floats:
    """Return the true logarithm of each setting's figure; more is better."""
    draws = np.random.default_rng([seed, 35])
    return PLANTED_SURFACES[kind](Grid(levels, ordered), draws)


def _words(grid: Grid, draws: "np.random.Generator", size: float = 0.2) -> Floats:
    """Return effects of the axes without order: one value of each is better than the others."""
    total = np.zeros(len(grid.levels))
    for axis in grid.words:
        total -= draws.exponential(size, grid.sizes[axis])[grid.at(axis)]
    return total


def _saturated(x: Floats, knee: float, sharp: float) -> Floats:
    """Return the logarithm of what rises by 2 a step up to a knee, and is flat beyond."""
    return np.asarray(-np.log1p(2.0 ** (-sharp * (x - knee))) / sharp)


def _clients(grid: Grid, draws: "np.random.Generator") -> tuple[Floats, float]:
    """Return the logarithm (to 2) of the number of clients, and where servers are saturated."""
    x = sum((grid.levels[:, axis] for axis in grid.clients), np.zeros(len(grid.levels)))
    return x, draws.uniform(0.3, 0.85) * x.max()


def _saturating(grid: Grid, draws: "np.random.Generator") -> Floats:
    x, knee = _clients(grid, draws)
    total = _saturated(x, knee, draws.uniform(0.7, 3)) * draws.uniform(0.7, 1)
    if len(grid.clients) == 2:  # a node has its own limit
        tasks = grid.levels[:, grid.clients[1]]
        total += _saturated(tasks, draws.uniform(-1, tasks.max()), 2) * draws.uniform(0, 0.5)
    for axis in grid.others:
        size = grid.levels[:, axis]
        total += _saturated(size, draws.uniform(-2, 0.8 * size.max()), 1) * draws.uniform(0.2, 1)
    return total + _words(grid, draws)


def _declining(grid: Grid, draws: "np.random.Generator") -> Floats:
    """Beyond the knee more clients are in each other's way."""
    x, knee = _clients(grid, draws)
    knee = min(knee, 0.75 * x.max())
    total = _saturated(x, knee, draws.uniform(1, 3))
    total -= draws.uniform(0.15, 0.6) * np.log1p(2.0 ** (x - knee - 0.5))
    for axis in grid.others:
        size = grid.levels[:, axis]
        total -= draws.uniform(0.02, 0.15) * (size - draws.uniform(0, size.max())) ** 2
    return total + _words(grid, draws)


def _interacting(grid: Grid, draws: "np.random.Generator") -> Floats:
    """Which value of an axis is best depends on the one before, and on the words."""
    total = _words(grid, draws, 0.1)
    shift = np.zeros(len(grid.levels))
    for axis in grid.words:
        shift = shift + draws.uniform(-1.0, 1.0, grid.sizes[axis])[grid.at(axis)]
    for one, other in pairwise(grid.ordered):
        a, b = grid.levels[:, one], grid.levels[:, other]
        top = draws.uniform(0.2, 0.8) * b.max()
        slope = draws.uniform(-0.7, 0.7)
        best = top + slope * (a - draws.uniform(0.2, 0.8) * a.max()) + shift
        total = total - draws.uniform(0.02, 0.12) * (b - best) ** 2
    x, knee = _clients(grid, draws)
    return np.asarray(total + 0.7 * _saturated(x, knee, 2))


def _two_humps(grid: Grid, draws: "np.random.Generator") -> Floats:
    """Two humps that are far apart; the higher one may be the one with more clients or fewer."""
    ends = [
        draws.uniform(0.0, 0.35, len(grid.ordered)),
        draws.uniform(0.65, 1.0, len(grid.ordered)),
    ]
    for place in range(2, len(grid.ordered)):
        if draws.random() < 0.5:
            ends[0][place], ends[1][place] = ends[1][place], ends[0][place]
    heights = [1.0, 1.0 + draws.uniform(0.06, 0.4)]
    if draws.random() < 0.5:
        heights.reverse()
    figure = np.full(len(grid.levels), draws.uniform(0.1, 0.4))
    for end, height in zip(ends, heights, strict=True):
        apart = np.zeros(len(grid.levels))
        for place, axis in enumerate(grid.ordered):
            last = grid.sizes[axis] - 1
            width = max(1.0, draws.uniform(0.2, 0.35) * last)
            apart += ((grid.levels[:, axis] - end[place] * last) / width) ** 2
        figure = figure + height * np.exp(-0.5 * apart)
    return np.asarray(np.log(figure) + _words(grid, draws, 0.1))


def _plateau(grid: Grid, draws: "np.random.Generator") -> Floats:
    """All is equal but for 0.5 %, beyond a least number of clients and a least size."""
    x, knee = _clients(grid, draws)
    total = -draws.uniform(0.3, 1) * np.maximum(0.0, knee - x)
    for axis in grid.others:
        size = grid.levels[:, axis]
        total -= draws.uniform(0.1, 0.5) * np.maximum(
            0.0, draws.uniform(0, 0.6) * size.max() - size
        )
    return np.asarray(total + draws.normal(0, 0.005, len(total)))


PLANTED_SURFACES: "dict[str, Callable[[Grid, np.random.Generator], Floats]]" = {
    "saturating": _saturating,
    "knee and decline": _declining,
    "axes interact": _interacting,
    "two humps": _two_humps,
    "plateau": _plateau,
}
