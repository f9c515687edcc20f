"""MPI natively and in a compat job, side by side, by `seatrial ratio` itself.

Latency and bandwidth are of the probe `pingpong`, a rank on each of two emulated nodes, by MPICH's
wheel: natively under `srun --mpi=pmi2`, and by hydra over the job's rsh; both by the same transport
(ch4, between hosts). They are the best of a run, which other work disturbs least, and ranks are not
pinned: each would be to the first core of its node, which is the same core here.
LAMMPS is Debian's, with its Open MPI 4: over rsh and TCP, beside Open MPI's own way in Slurm with
the same transport, and with that of its choice. The ways take turns in one trial: on a host with
other work, two trials one after the other compare what else it did. All nodes are this host, so a
network costs nothing but the loopback.
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

REPEAT = "8"
OPENMPI = {"flavour": "openmpi", "command": "mpirun.openmpi", "options": ["--bind-to", "none"]}
TCP = "export OMPI_MCA_pml=ob1 OMPI_MCA_btl=tcp,self"
WAYS = {"native": ("mpirun", "true"), "native-tcp": ("mpirun", TCP), "compat": ("compat", "true")}
PINGPONG: dict[str, Any] = {
    "app": "pingpong",
    "build": {
        "sources": ["pingpong.c", str(ROOT / "suites/probes/common/probe.h")],
        "script": "$MPICC $CFLAGS -o pingpong pingpong.c $LDLIBS",
    },
    "run": {
        "nodes": 2,
        "tasks_per_node": 1,
        "exclusive": True,
        "script": "$LAUNCH $BUILD/pingpong -u",
    },
    "metrics": {
        "latency": {"find": r"^latency min (\S+)", "unit": "us", "better": "lower"},
        "bandwidth": {"find": r"^bandwidth .* max (\S+)", "unit": "MiB/s", "better": "higher"},
    },
}
LJ = "recipes/lammps/lj/in.lj"
LAMMPS: dict[str, Any] = {
    "app": "lammps",
    "parameters": {
        "way": [*WAYS],
        "launched": [launcher for launcher, _ in WAYS.values()],
        "before": [before for _, before in WAYS.values()],
    },
    "zip": [["way", "launched", "before"]],
    "inputs": ["in.lj"],
    "run": {
        "nodes": 2,
        "tasks_per_node": 1,
        "exclusive": True,
        "launcher": "launched",
        "script": 'eval "$before"; $LAUNCH lmp -in in.lj -var r 1 -var steps 400',
    },
    "metrics": {"loop": {"find": r"^Loop time of (\S+) on", "unit": "s", "better": "lower"}},
}


def measure() -> list[Row]:
    if missing := available():
        return [Row("MPI in compat jobs", "not measured", missing, "")]
    with scratch() as folder, SlurmCluster(folder / "cluster", ClusterOptions(nodes=2)) as cluster:
        rows = []
        bench = _Trials(cluster, folder)
        if mpich := _mpich(folder):
            suite = _suite(folder, "pingpong", PINGPONG, "probes/pingpong/pingpong.c")
            bench.run("mpich", _mpich_toolchains(mpich), suite)
            claim = "MPICH in a compat job (hydra over rsh) beside `srun --mpi=pmi2`"
            rows += [
                bench.row(f"{claim}: {of}", "mpich", "toolchain=native,compat", of)
                for of in ("latency", "bandwidth")
            ]
        else:
            rows.append(Row("MPICH in a compat job", "not measured", "its wheel is not there", ""))
        if shutil.which("lmp") and shutil.which("mpirun.openmpi"):
            chain = {"launcher": {"kind": "mpirun", **OPENMPI}}
            bench.run("lammps", {"one": chain}, _suite(folder, "lammps", LAMMPS, LJ))
            claim = "LAMMPS over rsh and TCP beside Open MPI in Slurm"
            rows += [
                bench.row(f"{claim}, by TCP: loop time", "lammps", "way=native-tcp,compat", "loop"),
                bench.row(
                    f"{claim}, as it likes: loop time", "lammps", "way=native,compat", "loop"
                ),
            ]
        return rows


def _suite(folder: Path, name: str, test: dict[str, Any], file: str) -> Path:
    """Write a suite of one test with a file of the shipped suites; return its folder."""
    suite = folder / f"suite-{name}"
    (suite / name).mkdir(parents=True)
    shutil.copy(ROOT / "suites" / file, suite / name)
    (suite / name / "test.yaml").write_text(yaml.safe_dump(test))
    return suite


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
    """Trials on the emulated cluster whose cases take turns."""

    def __init__(self, cluster: SlurmCluster, folder: Path) -> None:
        self.folder = folder
        self._env = {**os.environ, **cluster.env, "OMPI_MCA_mpi_yield_when_idle": "1"}
        self._load: dict[str, float] = {}

    def run(self, tag: str, toolchains: dict[str, Any], suite: Path, *words: str) -> None:
        machine = {"machine": tag, "scheduler": "slurm", "slurm": {"poll": "1s"}}
        nodes = [{"names": "n[001-002]", "cores": 1}]
        about = {**machine, "nodes": nodes, "toolchains": toolchains}
        (self.folder / f"{tag}.yaml").write_text(yaml.safe_dump(about))
        asked = ("-m", f"{tag}.yaml", "--name", tag, "--repeat", REPEAT)
        self._load[tag] = os.getloadavg()[0]
        timed([*SEATRIAL, "run", str(suite), *asked, *words], self.folder, self._env)

    def row(self, claim: str, tag: str, of: str, metric: str) -> Row:
        """Return the ratio of times with its interval, both medians, and the load before."""
        words = [*SEATRIAL, "ratio", tag, "--of", of, "--x", "nodes", "--metric", metric]
        output = timed([*words, "--format", "json"], self.folder, self._env).output
        (table,) = json.loads(output)
        (cell,) = table["cells"]
        first, second = cell["first"], cell["second"]
        unit = table["unit"]
        return Row(
            claim,
            f"{second['median']:.4g} {unit}, {second['n']} runs, load {self._load[tag]:.1f}",
            f"{first['median']:.4g} {unit}, {first['n']} runs",
            f"{cell['ratio']:.2f} times as long (95 %: {cell['low']:.2f} to {cell['high']:.2f})",
        )
