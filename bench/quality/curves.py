"""Where two curves over message sizes cross: told though they do not, found where they do.

Beside it is the usual rule: the size at which medians change their order.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from seatrial.judge.statistics.sequential import judged
from seatrial.results.sizes import Cell, Meeting, Pair, meeting

SIZES = [2**n for n in range(23)]
Law = Callable[[int], float]


def linear(start: float, rate: float) -> Law:
    """Return a law of time: a start, and bytes at a rate."""
    return lambda size: start + size / rate


def _slower_from(size: int) -> Law:
    return lambda each: linear(2, 1000)(each) * (1.5 if each > size else 1.0)


AT = 2 / (1 / 1000 - 1 / 4000)
CROSSING = (linear(2, 1000), linear(4, 4000))  # at AT bytes
EQUAL = (linear(2, 1000), linear(2, 1000))
IN_PART = (linear(2, 1000), _slower_from(65536))


class World(NamedTuple):
    """Two curves as they are measured: ``noise`` of each figure, and ``shared`` by those of a
    run."""

    laws: tuple[Law, Law]
    runs: int = 5
    noise: float = 0.03
    shared: float = 0.0


def measured(world: World, seed: int) -> list[Pair]:
    """Return what both curves measured at each size."""
    rng = random.Random(seed)
    sides = []
    for law in world.laws:
        runs = [rng.lognormvariate(0, world.shared) for _ in range(world.runs)]
        figures = {
            size: [law(size) * run * rng.lognormvariate(0, world.noise) for run in runs]
            for size in SIZES
        }
        sides.append([Cell(x=x, n=len(v), median=median(v), values=v) for x, v in figures.items()])
    return [Pair(first.x, first, second) for first, second in zip(*sides, strict=True)]


def met(pairs: list[Pair]) -> Meeting:
    """Return what is told of two curves of times."""
    found = judged([(pair.first.values, pair.second.values, "lower") for pair in pairs])
    return meeting(("X", "Z"), pairs, [one.verdict for one in found])


def by_medians(pairs: list[Pair]) -> list[tuple[float, float]]:
    """Return the sizes between which medians change their order."""
    ahead = [(pair.x, (pair.first.median or 0) < (pair.second.median or 0)) for pair in pairs]
    return [(x, later) for (x, here), (later, there) in pairwise(ahead) if here != there]


WORLDS = {
    "equal, 5 runs": World(EQUAL),
    "equal, 10 runs": World(EQUAL, runs=10),
    "equal, runs that are slow as a whole": World(EQUAL, shared=0.03),
    "equal up to 64 KiB, 5 runs": World(IN_PART),
    "equal up to 64 KiB, 10 runs": World(IN_PART, runs=10),
    "equal up to 64 KiB, slow runs": World(IN_PART, shared=0.03),
    "crossing at 2,667 B": World(CROSSING),
    "crossing, noise 10 %": World(CROSSING, noise=0.1),
    "crossing, 3 runs": World(CROSSING, runs=3),
}


def counts(world: World, count: int, seed: int) -> tuple[int, int, int]:
    """Return in how many pairs of curves a crossing is told, a true one is between its sizes, and
    medians change their order."""
    told = right = usual = 0
    for number in range(count):
        pairs = measured(world, 100_000 * seed + number)
        crossings = met(pairs).crossings
        told += bool(crossings)
        right += len(crossings) == 1 and crossings[0].last < AT < crossings[0].first
        usual += bool(by_medians(pairs))
    return told, right, usual


def report(seed: int, count: int = 400) -> Iterator[str]:
    """Yield the table."""
    yield f"| 23 sizes, per 100 of {count} pairs | told to cross | right | medians cross |"
    yield "| --- | --- | --- | --- |"
    for name, world in WORLDS.items():
        told, right, usual = (100 * each / count for each in counts(world, count, seed))
        shown = f"{right:.1f}" if world.laws is CROSSING else ""
        yield f"| {name} | {told:.1f} | {shown} | {usual:.1f} |"
