"""What the best order for a halo exchange is worth beside round robin, on an emulated cluster whose
messages take longer from level to level.

Eight emulated nodes, two ranks on each, exchange messages over a grid of 4 x 4 ranks. A library
delays each message by the level of its two nodes (``tests/suites/data/hops.c``: 1, 2 and 4 ms), so
a network is there that this host has not. The order is found by ``seatrial order best``, and both
orders take turns in one allocation. A rank pays for each message that it sends, one after the
other, so the sum over its neighbours counts.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import yaml
from tests.slurm.cluster import ClusterOptions, SlurmCluster, available

from bench.measuring import ROOT, SEATRIAL, Row, scratch, timed
from seatrial.execute.detect import detect

REPEAT = "6"
NODES = "n[001-008]"
HALO = r"""
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    int dims[2] = {4, 4}, periods[2] = {1, 1}, rank, near[4], sent = 0, got[4];
    MPI_Comm grid;
    MPI_Request requests[8];
    MPI_Init(&argc, &argv);
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid);
    MPI_Comm_rank(grid, &rank);
    MPI_Cart_shift(grid, 0, 1, &near[0], &near[1]);
    MPI_Cart_shift(grid, 1, 1, &near[2], &near[3]);
    MPI_Barrier(grid);
    double began = MPI_Wtime();
    for (int step = 0; step < 50; step++) {
        for (int i = 0; i < 4; i++)
            MPI_Irecv(&got[i], 1, MPI_INT, near[i], 0, grid, &requests[i]);
        for (int i = 0; i < 4; i++)
            MPI_Isend(&sent, 1, MPI_INT, near[i], 0, grid, &requests[4 + i]);
        MPI_Waitall(8, requests, MPI_STATUSES_IGNORE);
    }
    MPI_Barrier(grid);
    if (!rank) printf("step: %f ms\n", (MPI_Wtime() - began) * 20);
    MPI_Finalize();
    return 0;
}
"""


def measure() -> list[Row]:
    claim = "A halo of 4 x 4 ranks on 8 nodes: the best order is faster than round robin"
    if missing := available():
        return [Row(claim, "not measured", missing, "")]
    options = ClusterOptions(nodes=8, cores=2, hosts=True)
    with scratch() as folder, SlurmCluster(folder / "cluster", options) as cluster:
        env = {**os.environ, **cluster.env, "OMPI_MCA_mpi_yield_when_idle": "1"}
        _write(folder)
        for name, words in {
            "rr": ["round-robin", "-n", "16", "-N", "2"],
            "best": ["best", "halo 4x4", "-m", "emu.yaml", "--nodes", NODES],
        }.items():
            line = [*SEATRIAL, "order", *words]
            order = subprocess.run(line, cwd=folder, env=env, capture_output=True, check=True)
            (folder / "suite" / "halo" / name).write_bytes(order.stdout)
        run = ["run", "suite", "-m", "emu.yaml", "--name", "orders", "--repeat", REPEAT]
        timed([*SEATRIAL, *run], folder, env)
        words = ["ratio", "orders", "--of", "which=best,rr", "--x", "nodes", "--metric", "step"]
        output = timed([*SEATRIAL, *words, "--format", "json"], folder, env).output
    (table,) = json.loads(output)
    (cell,) = table["cells"]
    times = [f"{cell[side]['median']:.3g} {table['unit']}" for side in ("first", "second")]
    ratio = f"{cell['ratio']:.2f} times as long (95 %: {cell['low']:.2f} to {cell['high']:.2f})"
    return [Row(claim, times[0], f"round robin: {times[1]}", ratio)]


def _write(folder: Path) -> None:
    """Write the machine, with the library of delays, and the suite."""
    chain = next(iter(detect("here").toolchains.values()))
    assert chain.launcher is not None
    library, hops = folder / "hops.so", ROOT / "tests" / "suites" / "data" / "hops.c"
    subprocess.run([chain.mpicc, "-O2", "-shared", "-fPIC", "-o", library, hops], check=True)
    launcher = {
        "kind": "mpirun",
        "flavour": chain.launcher.flavour,
        "command": chain.launcher.command,
        "options": ["--bind-to", "none"],
    }
    environment = {**chain.environment, "LD_PRELOAD": str(library)}
    tools = {"mpicc": chain.mpicc, "launcher": launcher, "environment": environment}
    levels = [{"router": 2}, {"chassis": 4}, {"group": 8}]
    machine: dict[str, Any] = {
        "machine": "emu",
        "scheduler": "slurm",
        "slurm": {"poll": "1s"},
        "nodes": [{"names": NODES, "cores": 2}],
        "topology": {"kind": "tree", "levels": levels},
        "toolchains": {"mpi": tools},
    }
    (folder / "emu.yaml").write_text(yaml.safe_dump(machine))
    test = {
        "app": "halo",
        "parameters": {"which": ["best", "rr"]},
        "build": {"sources": ["halo.c"], "script": "$MPICC -O2 -o halo halo.c"},
        "run": {
            "nodes": 8,
            "tasks_per_node": 2,
            "order": "file {which}",
            "within": "allocation",
            "script": "$LAUNCH $BUILD/halo",
        },
        "metrics": {"step": {"find": r"step: (\S+) ms", "unit": "ms", "better": "lower"}},
    }
    (folder / "suite" / "halo").mkdir(parents=True)
    (folder / "suite" / "halo" / "halo.c").write_text(HALO)
    (folder / "suite" / "halo" / "test.yaml").write_text(yaml.safe_dump(test))
