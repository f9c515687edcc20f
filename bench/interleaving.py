"""The null experiment: two identical variants under changing load, in rounds and in blocks.

Each experiment has 8 runs of both variants. `compare` is asked whether the variants differ; at most
5 % of the experiments may say so.

Simulated: how long a run takes is drawn with the load of that moment: a drift, a wave and bursts,
which are the same for both orders.

Real: each experiment is one allocation of this host, whose runs do 20 ms of work each and tell how
long that took, while another process begins and stops to work on every core, at random. In blocks
each variant is an allocation of its own, one after the other.
"""

from __future__ import annotations

import math
import os
import random
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import pi, sin
from pathlib import Path

from bench.measuring import SEATRIAL, Row, scratch, timed
from seatrial.decide.once import Rounds
from seatrial.execute.trial_folder import TrialFolder
from seatrial.journal.events import MetricRecorded
from seatrial.journal.journal import read
from seatrial.judge.statistics.two_samples import compare

EXPERIMENTS = 200
REPEATS = 8
NOISE = 0.01


def measure() -> Iterator[Row]:
    yield _simulated()
    yield _real()


def _row(load: str, rounds: int, blocks: int) -> Row:
    return Row(
        f"identical variants, {REPEATS} runs each, under changing ({load}) load: told to differ in "
        f"at most 5 % of {EXPERIMENTS} experiments",
        f"{rounds} of {EXPERIMENTS}",
        f"repeats in blocks: {blocks} of {EXPERIMENTS}",
        f"{rounds / EXPERIMENTS:.1%} and {blocks / EXPERIMENTS:.1%}",
    )


def _differ(first: Sequence[float], second: Sequence[float]) -> bool:
    return compare(first, second, "lower").verdict in ("better", "worse")


# ---- simulated ----------------------------------------------------------------------------


def _simulated() -> Row:
    rounds = blocks = 0
    for seed in range(EXPERIMENTS):
        loads = _loads(random.Random(seed), 2 * REPEATS)
        order = Rounds(2, f"experiment {seed}")
        turns = [case for number in range(REPEATS) for case in order.order(number)]
        rounds += _differ(*_by_side(turns, loads))
        blocks += _differ(loads[:REPEATS], loads[REPEATS:])
    return _row("simulated", rounds, blocks)


def _by_side(order: Sequence[int], loads: Sequence[float]) -> list[list[float]]:
    return [
        [load for case, load in zip(order, loads, strict=True) if case == side] for side in (0, 1)
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


# ---- real ---------------------------------------------------------------------------------

MACHINE = "machine: here\nnodes: [{names: here, cores: 1}]\n"  # one allocation at a time
TEST = """\
app: work
parameters: {{variant: {variants}}}
repeat: {repeats}
run:
  within: allocation
  walltime: 10s
  script: |
    began=${{EPOCHREALTIME//[!0-9]/}}
    for ((i = 0; i < 8000; i++)); do :; done
    echo "took $((${{EPOCHREALTIME//[!0-9]/}} - began)) us"
metrics:
  time: {{find: 'took (\\d+) us', unit: us, better: lower}}
"""
LOAD = """\
import random, time
chance = random.Random({seed})
while True:
    end = time.monotonic() + chance.expovariate(1 / 1.5)
    while time.monotonic() < end:
        pass
    time.sleep(chance.expovariate(1 / 1.5))
"""


def _real() -> Row:
    with scratch() as folder:
        (folder / "here.yaml").write_text(MACHINE)
        counts = []
        with _changing_load():
            for order in ("rounds", "blocks"):
                figures = _figures(folder, order)
                counts.append(sum(_differ(*sides) for sides in figures))
    return _row("real", *counts)


@contextmanager
def _changing_load() -> Iterator[None]:
    """Let a process on each core work for a while, and then not, for 1.5 s in the mean."""
    lines = [[sys.executable, "-c", LOAD.format(seed=seed)] for seed in range(os.cpu_count() or 1)]
    processes = [subprocess.Popen(line) for line in lines]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def _figures(folder: Path, order: str) -> list[list[list[float]]]:
    """Return the figures of both variants in each experiment."""
    suite = folder / order
    for number in range(EXPERIMENTS):
        for name, variants in _tests(order, number):
            (suite / name).mkdir(parents=True)
            text = TEST.format(variants=variants, repeats=REPEATS)
            (suite / name / "test.yaml").write_text(text)
    timed([*SEATRIAL, "run", str(suite), "-q", "-m", "here.yaml", "--name", order], folder)
    trial = TrialFolder(folder / "trials" / order)
    variant = {case.id: case.parameters["variant"] for case in trial.cases()}
    found: dict[str, list[list[float]]] = defaultdict(lambda: [[], []])
    for event in read(trial.journal):
        if isinstance(event, MetricRecorded) and event.metric == "time":
            found[event.test[:4]][variant[event.case] == "b"].append(event.value or math.nan)
    return list(found.values())


def _tests(order: str, number: int) -> list[tuple[str, str]]:
    """Return the tests of an experiment, each an allocation: name and variants."""
    if order == "rounds":
        return [(f"e{number:03}", "[a, b]")]
    return [(f"e{number:03}-{variant}", f"[{variant}]") for variant in "ab"]
