"""The null experiment: two identical variants under changing load, in rounds and in blocks.

Each experiment has 8 runs of both variants, one after the other; how long a run takes is drawn with
the load of that moment: a drift, a wave and bursts, which are the same for both orders. `compare`
is then asked whether the variants differ. At most 5 % of the experiments may say so.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from math import pi, sin

from bench.measuring import Row
from seatrial.conduct.rounds import Rounds
from seatrial.statistics.two_sample import compare

EXPERIMENTS = 200
REPEATS = 8
NOISE = 0.01


def measure() -> list[Row]:
    rounds = blocks = 0
    for seed in range(EXPERIMENTS):
        loads = _loads(random.Random(seed), 2 * REPEATS)
        order = Rounds(2, f"experiment {seed}")
        turns = [case for number in range(REPEATS) for case in order.order(number)]
        rounds += _differ(turns, loads)
        blocks += _differ([0] * REPEATS + [1] * REPEATS, loads)
    return [
        Row(
            f"identical variants, {REPEATS} runs each, under changing (simulated) load: told to "
            f"differ in at most 5 % of {EXPERIMENTS} experiments",
            f"{rounds} of {EXPERIMENTS}",
            f"the same loads, repeats in blocks: {blocks} of {EXPERIMENTS}",
            f"{rounds / EXPERIMENTS:.1%} and {blocks / EXPERIMENTS:.1%}",
        )
    ]


def _loads(chance: random.Random, runs: int) -> list[float]:
    """Return how long each run takes, in turn, by the load of its moment."""
    drift = chance.uniform(-0.2, 0.2)
    height, length = chance.uniform(0.0, 0.1), chance.uniform(3.0, 40.0)
    phase = chance.uniform(0.0, 2 * pi)
    burst = chance.randrange(-runs, runs)  # from then on another user is there for a while
    loads = []
    for run in range(runs):
        load = 1.0 + drift * run / runs + height * sin(phase + 2 * pi * run / length)
        load *= 1.3 if burst <= run < burst + 3 else 1.0
        loads.append(load * chance.lognormvariate(0.0, NOISE))
    return loads


def _differ(order: Sequence[int], loads: Sequence[float]) -> bool:
    first, second = (
        [load for case, load in zip(order, loads, strict=True) if case == side] for side in (0, 1)
    )
    return compare(first, second, "lower").verdict in ("better", "worse")
