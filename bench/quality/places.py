"""Runs whose time rises with the groups of the network that they touch: planted, and asked for."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np

from seatrial.model.codes import PASS
from seatrial.model.node_set import fold
from seatrial.model.topology import Topology, level_by_size
from seatrial.results.slow_places import PlaceTrend, slow_places
from seatrial.results.store.tables import RunOutcome
from seatrial.units import SECOND_NS

NODES, LEVELS = 192, {"router": 4, "chassis": 16, "group": 64}
SIZES = {"milc": (16, 32), "gtc": (16,), "impact": (8, 16, 32), "paratec": (4, 64)}
RUNS = 62  # of each test
GROUPS = "groups touched"


def network() -> Topology:
    """Return a dragonfly of three groups."""
    levels = [level_by_size(name, size, range(NODES)) for name, size in LEVELS.items()]
    return Topology("dragonfly", tuple(f"n{i:03}" for i in range(NODES)), tuple(levels))


def runs_on(
    topology: Topology, rng: np.random.Generator, per_group: float, noise: float
) -> list[RunOutcome]:
    """Return runs of four tests in cases of one or more sizes, on nodes as a busy machine gives
    them: some in one group, some scattered. Those of ``milc`` take longer by ``per_group`` (0.1 for
    10 %) for each group beyond the first."""
    found: list[RunOutcome] = []
    for number in range(RUNS):
        for test, sizes in SIZES.items():
            size = int(rng.choice(sizes))
            nodes = _nodes(rng, size)
            groups = len({topology.levels[-1].unit_of[node] for node in nodes})
            slower = (1 + per_group) ** (groups - 1) if test == "milc" else 1.0
            elapsed = 100 * size**0.5 * slower * float(np.exp(rng.normal(0, noise)))
            found.append(_run(len(found), test, number, size, nodes, elapsed))
    return found


def _nodes(rng: np.random.Generator, size: int) -> list[int]:
    """Return nodes of one, two or three groups, in a few pieces each."""
    groups = rng.choice(3, rng.integers(1, 4), replace=False)
    pool = [g * 64 + i for g in groups.tolist() for i in range(64)]
    start = rng.integers(0, len(pool))
    if rng.random() < 0.5:
        return sorted(pool[(start + i) % len(pool)] for i in range(size))
    return sorted(rng.choice(pool, size, replace=False).tolist())


def _run(
    row: int, test: str, number: int, size: int, nodes: list[int], elapsed: float
) -> RunOutcome:
    names = fold([f"n{node:03}" for node in nodes])
    start = (300 * number + row % 7) * SECOND_NS
    parameters = json.dumps({"nodes": size})
    return RunOutcome(
        *(row, f"r{row}", "t", "xc", test, f"{test}{{{size}}}", parameters, "gcc", "", 900.0),
        *(PASS.number, "", False, start, elapsed, names),
    )


def trends(per_group: float, noise: float, seed: int, number: int) -> list[PlaceTrend]:
    """Return what is told of one planted machine."""
    topology = network()
    runs = runs_on(topology, np.random.default_rng([seed, number]), per_group, noise)
    return slow_places(runs, topology, runs).trends


def found_and_false(
    per_group: float, noise: float, count: int, seed: int
) -> tuple[float, float, float, float]:
    """Return the shares of machines on which the time of ``milc`` was said to rise with the groups
    touched; with these as the surest covariate; on which its interval then held the planted rise;
    and on which something was named that was not planted."""
    found = surest = held = false = 0
    for number in range(count):
        told = trends(per_group, noise, seed, number)
        own = [one for one in told if one.test == "milc" and one.ratio > 1]
        first = [one for one in own if one.covariate == GROUPS]
        found += any(GROUPS in (one.covariate, *one.also) for one in own)
        surest += bool(first)
        held += any(one.low <= _planted(per_group, one) <= one.high for one in first)
        false += any(one.test != "milc" or per_group == 0 for one in told)
    return found / count, surest / count, held / count, false / count


def _planted(per_group: float, trend: PlaceTrend) -> float:
    """Return the planted ratio between the ends of a trend."""
    return float((1 + per_group) ** (trend.end - trend.start))


def report(count: int = 100, seed: int = 7) -> Iterator[str]:
    yield f"| {RUNS} runs of each of four tests | {GROUPS} named | first | interval | false |"
    yield "| --- | --- | --- | --- | --- |"
    for per_group, noise in ((0.10, 0.05), (0.10, 0.10), (0.05, 0.05), (0.0, 0.05), (0.0, 0.2)):
        told = found_and_false(per_group, noise, count, seed)
        cells = " | ".join(f"{share:.2f}" for share in told)
        yield f"| +{100 * per_group:.0f} % a group, noise {100 * noise:.0f} % | {cells} |"
