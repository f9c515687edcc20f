"""The bare batch simulation with EASY backfill: compiled, in the interpreter, and AccaSim's; and
the simulated cluster of a rehearsal, whose nodes have names and whose jobs are told of.

A workload of jobs of 1, 4, 16 and 64 nodes with exponential elapsed times, at load 0.9 of 2,000
nodes. AccaSim gets the same jobs as a log in the Standard Workload Format, fewer of them: its cost
per job does not fall with more.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench import peers
from bench.bare_simulation import compiled_run, simulate
from bench.measuring import Row, scratch
from seatrial.model.machine import Machine, NodeGroup
from seatrial.model.node_set import unfold
from seatrial.plugins.rehearsal.cluster import SimulatedCluster
from seatrial.plugins.rehearsal.queue import SimulatedJob
from seatrial.units import SECOND_NS

NODES = 2000
JOBS = 100_000
MANY = 1_000_000
ONLINE = (10_000, 100_000)
PEER_JOBS = 3_000
LOAD = 0.9
ROUNDS = 5

Jobs = tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]


def workload(jobs: int) -> Jobs:
    """(submit, nodes, elapsed, walltime), in whole seconds as the log has them."""
    random = np.random.default_rng(1)
    nodes = random.choice([1, 4, 16, 64], jobs)
    elapsed = np.ceil(np.minimum(random.exponential(3600, jobs), 86400)) + 1
    walltime = np.ceil(elapsed * random.uniform(1.1, 3, jobs))
    between = (nodes * elapsed).mean() / (LOAD * NODES)
    submit = np.floor(np.cumsum(random.exponential(between, jobs)))
    return submit, nodes, elapsed, walltime


def measure() -> list[Row]:
    jobs = workload(JOBS)
    plain = _seconds(jobs, compiled=False)
    if compiled_run() is None:
        said = f"{plain:.2f} s in the interpreter"
        return [Row("bare simulation: 100,000 jobs in 0.3 s", said, "numba is missing", "")]
    warm_up = _seconds(workload(100), compiled=True)
    ours = min(_seconds(jobs, compiled=True) for _ in range(ROUNDS))
    many = min(_seconds(workload(MANY), compiled=True) for _ in range(2))
    rows = [
        Row(
            f"bare simulation: {JOBS:,} jobs on {NODES:,} nodes, EASY, load {LOAD}, in 0.3 s",
            f"{ours:.3f} s, {JOBS / ours:,.0f} jobs/s",
            f"the same source in the interpreter: {plain:.2f} s; warm-up {warm_up:.1f} s",
            f"{ours / 0.3:.2f}",
        ),
        Row(
            f"bare simulation: cost per job flat up to {MANY:,}",
            f"{JOBS:,}: {1e6 * ours / JOBS:.2f} us",
            f"{MANY:,}: {1e6 * many / MANY:.2f} us",
            f"{many / MANY / (ours / JOBS):.2f}",
        ),
    ]
    return [*rows, _beside_accasim(ours), _online()]


def _online() -> Row:
    """What the cluster of a rehearsal takes, without conductor and journal."""
    costs = [(jobs, min(_cluster_seconds(jobs) for _ in range(3)) / jobs) for jobs in ONLINE]
    said = ", ".join(f"{jobs:,}: {1e6 * cost:.0f} us" for jobs, cost in costs)
    ratio = f"{costs[-1][1] / costs[0][1]:.2f}"
    return Row("simulated cluster: a job, told of from queue to end, flat", said, "", ratio)


def _cluster_seconds(count: int) -> float:
    names = f"n[0001-{NODES}]"
    machine = Machine(machine="sim", nodes=[NodeGroup(names=names, cores=1)], scheduler="slurm")
    cluster = SimulatedCluster(machine, unfold(names), seed=1, start_ns=0)
    submit, nodes, elapsed, walltime = (column.tolist() for column in workload(count))
    jobs = [
        (int(submit[n]) * SECOND_NS, SimulatedJob(str(n), nodes[n], walltime[n], elapsed[n]))
        for n in range(count)
    ]
    began = time.perf_counter()
    for now, job in jobs:
        while (following := cluster.next_time()) is not None and following < now:
            cluster.advance(following)
        cluster.submit(now, [job])
    while (following := cluster.next_time()) is not None:
        cluster.advance(following)
    return time.perf_counter() - began


def _seconds(jobs: Jobs, compiled: bool) -> float:
    began = time.perf_counter()
    simulate(*jobs, NODES, compiled=compiled)
    return time.perf_counter() - began


def _beside_accasim(ours: float) -> Row:
    claim = "bare simulation beside AccaSim, jobs a second"
    with scratch() as folder:
        _write_log(folder / "jobs.swf", workload(PEER_JOBS))
        system = {"groups": {"node": {"core": 1}}, "resources": {"node": NODES}}
        (folder / "system.json").write_text(json.dumps(system))
        found = peers.accasim_easy(folder)
    if isinstance(found, str):
        return Row(claim, f"{JOBS / ours:,.0f}", f"AccaSim was not measured: {found}", "")
    rate = PEER_JOBS / found
    said = f"AccaSim {peers.ACCASIM_VERSION}, EASY, first fit, {PEER_JOBS:,} jobs: {rate:,.0f}"
    return Row(claim, f"{JOBS / ours:,.0f}", said, f"{JOBS / ours / rate:,.0f}")


def _write_log(file: Path, jobs: Jobs) -> None:
    lines = [f"; MaxJobs: {PEER_JOBS}", f"; MaxNodes: {NODES}", f"; MaxProcs: {NODES}"]
    lines.append("; UnixStartTime: 0")
    for number, (submit, nodes, elapsed, walltime) in enumerate(zip(*jobs, strict=True), 1):
        lines.append(
            f"{number} {submit:.0f} -1 {elapsed:.0f} {nodes} -1 -1 {nodes} {walltime:.0f}"
            " -1 1 1 1 1 1 1 -1 -1"
        )
    file.write_text("\n".join(lines) + "\n")
