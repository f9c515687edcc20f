"""Sweeps: how often is the best of a planted surface found, and by how much of the grid?

Surfaces of five kinds (``seatrial.execute.tuning_odds``) on three grids of 500 to 960 points:
nodes, tasks, api, files, transfer, stripes. A run has noise of 2 to 10 %; blocks of runs differ by
3 %, and one run in twenty is disturbed. Each method has a quarter of the grid as runs, repeats
included, and is right if the true figure of the point that it names is within 3 % of the true best.
Beside the sweep: a random quarter of the grid (each point once, the best figure), and the race and
successive halving of ``seatrial tune``, which take axes as having no order.

    python -m bench.sweep 40                    this table, with 40 seeds a kind
    python -m bench.sweep 40 5000               from this seed on; constants were chosen below 2000
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from itertools import product
from typing import NamedTuple

import numpy as np

from bench.measuring import Row
from seatrial.execute.tuning_odds import (
    PLANTED_SURFACES,
    TunedWorld,
    planted_surface,
    run_race,
    run_sweep,
)
from seatrial.model.policy import RaceRules, Search

SEEDS, FEW_SEEDS, FIRST_SEED = 40, 10, 5000
NOISES = (0.02, 0.05, 0.1)
WITHIN = math.log(0.97)
_AXES = (
    ((8, 5, 2, 2, 4), (True, True, False, False, True)),  # nodes, tasks, api, files, transfer
    ((8, 4, 2, 5, 3), (True, True, False, True, True)),  # nodes, tasks, files, transfer, stripes
    ((10, 5, 2, 5), (True, True, False, True)),  # nodes, tasks, files, transfer
)


class Tried(NamedTuple):
    """What a method named in a world, the runs and the different points that it took, and whether
    the interval that it tells holds the true figure."""

    named: int
    runs: int
    points: int
    holds: bool = True


def rules_of(seed: int, search: Search) -> RaceRules:
    """Return the rules on the grid of a seed."""
    sizes, ordered = _AXES[seed % len(_AXES)]
    levels = [list(each) for each in product(*map(range, sizes))]
    return RaceRules(
        levels=levels,
        ordered=list(ordered),
        sizes=[(2 ** each[0], 2 ** (each[0] + each[1])) for each in levels],
        default=0,
        metric="write",
        better="higher",
        search=search,
        rounds=2 if search != "sweep" else 1,
        runs=len(levels) // 4,
        min_effect=0.02,
        seed=seed,
    )


def sweep(world: TunedWorld, seed: int) -> Tried:
    found = run_sweep(rules_of(seed, "sweep"), world)
    answer = found.answer("write")
    assert answer is not None
    low, high = found.interval("write", answer)
    holds = low <= -world.effects[answer.best] <= high
    return Tried(answer.best, sum(found.runs), sum(map(bool, found.runs)), bool(holds))


def race(world: TunedWorld, seed: int) -> Tried:
    return _by_race(world, seed, "race")


def halving(world: TunedWorld, seed: int) -> Tried:
    return _by_race(world, seed, "halving")


def _by_race(world: TunedWorld, seed: int, search: Search) -> Tried:
    found = run_race(rules_of(seed, search), world)
    best = found.answer().best
    assert best is not None
    return Tried(best, sum(found.runs), sum(map(bool, found.runs)))


def random_quarter(world: TunedWorld, seed: int) -> Tried:
    count = len(world.effects)
    chosen = np.random.default_rng([seed, 9]).choice(count, count // 4, replace=False)
    figures = [world.figure(int(each)) for each in chosen]
    return Tried(int(chosen[int(np.argmin(figures))]), len(chosen), len(chosen))


METHODS: dict[str, Callable[[TunedWorld, int], Tried]] = {
    "sweep": sweep,
    "random quarter": random_quarter,
    "race": race,
    "halving": halving,
}


def measure() -> Iterator[Row]:
    """Yield a row for each noise: the sweep beside a random quarter of the grid."""
    for noise in NOISES:
        both = []
        for method in (sweep, random_quarter):
            tried = [
                _tried(method, kind, noise, seed)
                for kind in PLANTED_SURFACES
                for seed in range(FIRST_SEED, FIRST_SEED + FEW_SEEDS)
            ]
            both.append(np.mean(tried, axis=0))
        (right, _, runs, *_), (beside, *_) = both
        claim = f"sweep: within 3 % of the best, by 25 % of the grid, noise {noise:.0%}"
        ours = f"{right:.1%}, by {runs:.0%} of it"
        yield Row(claim, ours, f"a random quarter: {beside:.1%}", f"{0.95 / right:.2f}")


def table(seeds: int = SEEDS, first: int = FIRST_SEED) -> Iterator[tuple[str, ...]]:
    """Yield a row for each method, noise and kind of surface, then one for all kinds."""
    for name, method in METHODS.items():
        for noise in NOISES:
            rows = []
            for kind in PLANTED_SURFACES:
                began = time.process_time()
                tried = [_tried(method, kind, noise, seed) for seed in range(first, first + seeds)]
                rows.append((*np.mean(tried, axis=0), (time.process_time() - began) / seeds))
                yield _row(name, noise, kind, seeds, rows[-1])
            yield _row(name, noise, "all kinds", len(rows) * seeds, np.mean(rows, axis=0))


def _row(name: str, noise: float, kind: str, n: int, means: tuple[float, ...]) -> tuple[str, ...]:
    right, loss, runs, points, holds, seconds = means
    return (
        name,
        f"{noise:.0%}",
        f"{kind}, n = {n}",
        f"{right:.1%}",
        f"{loss:.2%}",
        f"{runs:.1%}",
        f"{points:.1%}",
        f"{holds:.0%}" if name == "sweep" else "",
        f"{seconds:.2f} s",
    )


def _tried(
    method: Callable[[TunedWorld, int], Tried], kind: str, noise: float, seed: int
) -> tuple[float, ...]:
    """Return whether a method was right, what it lost, its runs and points as shares of the grid,
    and whether its interval holds."""
    rules = rules_of(seed, "sweep")
    surface = planted_surface(kind, np.array(rules.levels), rules.ordered, seed)
    tried = method(TunedWorld(-surface, noise, seed), seed)
    loss = surface[tried.named] - surface.max()
    count = len(surface)
    assert tried.runs <= count // 4, f"{tried.runs} runs of {count} points"
    right = float(loss >= WITHIN)
    lost = -math.expm1(float(loss))
    return right, lost, tried.runs / count, tried.points / count, float(tried.holds)


def main(words: list[str]) -> None:
    numbers = [int(word) for word in words]
    print(
        "| method | noise | surface | within 3 % of the best | lost | runs of the grid "
        "| points of the grid | 95 % interval holds | CPU a sweep |\n" + "| --- " * 9 + "|"
    )
    for row in table(*numbers[:2]):
        print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
