"""MPI natively and in a compat job, side by side, by `seatrial ratio` itself.

Latency and bandwidth are of the probe `ring`, a rank on each of two emulated nodes, by MPICH's
wheel: natively under `srun --mpi=pmi2`, and by hydra over the job's rsh. LAMMPS is Debian's, with
its Open MPI 4: by Slurm's own way, and over rsh with TCP. All nodes are this host, so a network
costs nothing but the loopback; compared are the ways of starting, and the transports.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml
from tests.slurm.cluster import ClusterOptions, SlurmCluster, available

from bench.measuring import ROOT, SEATRIAL, Row, scratch, timed

REPEAT = "5"
OPENMPI = {"flavour": "openmpi", "command": "mpirun.openmpi", "options": ["--bind-to", "none"]}


def measure() -> list[Row]:
    if missing := available():
        return [Row("MPI in compat jobs", "not measured", missing, "")]
    with scratch() as folder, SlurmCluster(folder / "cluster", ClusterOptions(nodes=2)) as cluster:
        rows = []
        bench = _Trials(cluster, folder)
        if mpich := _mpich(folder):
            for way, toolchain in _mpich_toolchains(mpich).items():
                sizes = ("--set", "hosts=2", "--set", "ranks=1")
                bench.run(f"mpich-{way}", toolchain, "probes", "-k", "ring", *sizes)
            claim = "MPICH in a compat job (hydra over rsh) beside `srun --mpi=pmi2`"
            rows += [
                bench.row(f"{claim}: {of}", "mpich", f"natural_{of}")
                for of in ("latency", "bandwidth")
            ]
        else:
            rows.append(Row("MPICH in a compat job", "not measured", "its wheel is not there", ""))
        if shutil.which("lmp") and shutil.which("mpirun.openmpi"):
            for way, kind in (("native", "mpirun"), ("compat", "compat")):
                small = ("--set", "hosts=2", "--set", "copies=1", "--set", "steps=400")
                toolchain = {"launcher": {"kind": kind, **OPENMPI}}
                bench.run(f"lammps-{way}", toolchain, "recipes", "-k", "lj", *small)
            claim = "LAMMPS over rsh and TCP beside Open MPI's own way in Slurm"
            rows.append(bench.row(f"{claim}: loop time", "lammps", "loop_time{run=1}"))
        return rows


def _mpich(folder: Path) -> Path | None:
    """Return the folder of MPICH's programs, in an environment of its own; None without them."""
    place = folder / "mpich"
    made = subprocess.run([sys.executable, "-m", "venv", str(place)], check=False)
    words = [str(place / "bin" / "pip"), "install", "--quiet", "mpich"]
    if made.returncode or subprocess.run(words, check=False).returncode:
        return None
    return place / "bin"


def _mpich_toolchains(mpich: Path) -> dict[str, Any]:
    tools = {"mpicc": str(mpich / "mpicc")}
    hydra = {"kind": "compat", "flavour": "mpich", "command": str(mpich / "mpiexec")}
    native = {"kind": "srun", "options": ["--mpi=pmi2"]}
    return {
        "native": {**tools, "launcher": native},
        "compat": {**tools, "launcher": {**hydra, "options": ["-bind-to", "none"]}},
    }


class _Trials:
    """Trials on machines that are the same cluster, with a toolchain each."""

    def __init__(self, cluster: SlurmCluster, folder: Path) -> None:
        self.folder = folder
        self._env = {**os.environ, **cluster.env, "OMPI_MCA_mpi_yield_when_idle": "1"}

    def run(self, tag: str, toolchain: dict[str, Any], suite: str, *words: str) -> None:
        machine = {"machine": tag, "scheduler": "slurm", "slurm": {"poll": "1s"}}
        nodes = [{"names": "n[001-002]", "cores": 1}]
        about = {**machine, "nodes": nodes, "toolchains": {"one": toolchain}}
        (self.folder / f"{tag}.yaml").write_text(yaml.safe_dump(about))
        asked = ("-m", f"{tag}.yaml", "--name", tag, "--repeat", REPEAT)
        suites = str(ROOT / "suites" / suite)
        timed([*SEATRIAL, "run", suites, *asked, *words], self.folder, self._env)

    def row(self, claim: str, code: str, metric: str) -> Row:
        """Return the ratio of times with its interval, and both medians."""
        ways = [f"{code}-native", f"{code}-compat"]
        asked = ("--of", f"machine={','.join(ways)}", "--x", "nodes", "--metric", metric)
        words = [*SEATRIAL, "ratio", *ways, *asked, "--format", "json"]
        (table,) = json.loads(timed(words, self.folder, self._env).output)
        (cell,) = table["cells"]
        first, second = cell["first"], cell["second"]
        unit = table["unit"]
        return Row(
            claim,
            f"{second['median']:.4g} {unit}, {second['n']} runs",
            f"{first['median']:.4g} {unit}, {first['n']} runs",
            f"{cell['ratio']:.2f} times as long (95 %: {cell['low']:.2f} to {cell['high']:.2f})",
        )
