"""Trials of the probe pingpong whose figures follow the levels of a made machine."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path

from seatrial.model.machine import Machine, NetworkModel, NodeGroup
from tests.results.store.trials import NOON, TrialMaker, a_case
from tests.show.web.frost import describe

NODES = 8
LEVELS: list[str | dict[str, int | dict[str, str]]] = [{"router": 2}, {"chassis": 4}]
ALL_LEVELS = ["router", "chassis", "system"]
PLACED = Machine(
    machine="placed",
    scheduler="slurm",
    nodes=[NodeGroup(names=f"n[1-{NODES}]", cores=4)],
    topology=NetworkModel(kind="dragonfly", levels=LEVELS),
)
Latency = Callable[[int, int, int, int], float]


def by_level(a: int, b: int, x: int, y: int) -> float:
    """Return us between cores x and y of nodes a and b, by level alone."""
    return 50 if a // 2 == b // 2 else 100 if a // 4 == b // 4 else 200


def output(latency: Latency = by_level, cores: int = 1, seed: int = 5, noise: float = 0.02) -> str:
    """Return what the probe prints of all pairs of cores of different nodes."""
    rng, lines = random.Random(seed), []
    for a in range(NODES):
        for b in range(a + 1, NODES):
            for x in range(cores):
                for y in range(cores):
                    us = latency(a, b, x, y) * rng.gauss(1, noise)
                    ends = f"pair {a * cores + x} {b * cores + y} nodes n{a + 1} n{b + 1}"
                    figures = f"latency {us:.3f} us bandwidth {1e6 / us:.1f} MiB/s"
                    lines.append(f"{ends} cpus {x} {y} {figures}")
    return "\n".join([*lines, "pingpong finished, all messages correct", ""])


def tell(
    trials: Path, tag: str, outputs: Sequence[str], at: int = NOON, machine: Machine = PLACED
) -> None:
    """A trial on a machine with a run for each output."""
    case = a_case(800, test="pingpong", nodes=NODES)
    trial = TrialMaker(trials, tag, [case], created=at, machine=machine.machine)
    describe(trial, machine)
    trial.start()
    for number, text in enumerate(outputs):
        trial.run(case, f"p{number}{tag}", files={"stdout": text.encode()})
    trial.end()
