"""Runs whose ranks are placed by an order: what launchers are told, and where ranks really are."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from seatrial.execute.geometry import prepare
from seatrial.execute.launchers import launch_of
from seatrial.model.machine import Launcher, Machine, NodeGroup
from seatrial.model.orders import nodes_of_ranks, parse_order, slots_of_ranks
from seatrial.model.schedulers import Slurm
from seatrial.model.test import Case, RunSpec, TaskPlacement, Test
from tests.execute.helpers import a_case
from tests.mpich import MPIEXEC, NEEDS_MPICH
from tests.programs import Workplace
from tests.slurm.cluster import ClusterOptions, SlurmCluster

SPLIT = "pack:1 numa:2 core:1 pu:1"
"""Two cores, each in a domain of its own: then Seatrial says which task has which."""

DOWN = "5,4\n0,1\n3,2\n"
"""An order in which ranks do not go up with the slots."""


def a_machine(launcher: Launcher, layout: str | None = SPLIT) -> Machine:
    kind = NodeGroup(names="n[1-3]", cores=2, numa_domains=2, layout=layout)
    return Machine(
        machine="m",
        scheduler="slurm",
        slurm=Slurm(whole_nodes=True),
        nodes=[kind],
        launcher=launcher,
    )


def ordered(order: str, **placement: Any) -> Case:
    return msgspec.structs.replace(
        a_case(),
        nodes=3,
        tasks=6,
        tasks_per_node=2,
        threads=1,
        order=order,
        placement=TaskPlacement(**placement),
    )


TEST = Test(name="t", folder="/t", app="t", run=RunSpec(script="true"))
AT_THE_HOSTS = "--nodelist=./job.nodefile --distribution=arbitrary"


@pytest.mark.parametrize(
    ("launcher", "end"),
    [
        (Launcher(kind="srun"), AT_THE_HOSTS),
        (Launcher(kind="srun", options=["--mpi=pmi2", "-m", "cyclic"]), AT_THE_HOSTS),
        (Launcher(kind="srun", flavour="cray"), "--cpus-per-task=1"),
        (Launcher(kind="aprun"), "aprun -n 6 -N 2 -d 1"),
        (Launcher(kind="mpirun", flavour="openmpi"), "--rankfile job.rankfile"),
        (
            Launcher(kind="mpirun", flavour="openmpi", options=["--bind-to", "none"]),
            "--hostfile job.nodefile --map-by seq --bind-to none",
        ),
        (
            Launcher(kind="mpiexec", flavour="mpich"),
            "-ppn 2 -rankmap 0,1,2,2,1,0 -bind-to core:1",
        ),
        (
            Launcher(kind="compat", flavour="openmpi", options=["--bind-to", "none"]),
            "--hostfile job.nodefile --mca plm ^slurm --mca ras ^slurm --mca plm_ssh_agent rsh "
            "--mca plm_rsh_agent rsh --mca pml ob1 --mca btl tcp,self --map-by seq --bind-to none",
        ),
        (
            Launcher(kind="compat", flavour="mpich"),
            "-f job.machinefile -ppn 2 -rankmap 0,1,2,2,1,0 -bind-to core:1",
        ),
    ],
)
def test_what_launchers_are_told(launcher: Launcher, end: str) -> None:
    line = launch_of(a_machine(launcher), TEST, ordered("folded")).line
    assert line.replace(" --allow-run-as-root", "").endswith(end)


def test_cray_mpich_orders_ranks_itself(tmp_path: Path) -> None:
    machine = a_machine(Launcher(kind="srun", flavour="cray"))
    before = launch_of(machine, TEST, ordered("folded")).before
    script = f"_run={tmp_path}\n{before}env | grep ^MPICH_RANK | sort"
    said = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert said.stdout.splitlines() == [
        f"MPICH_RANK_REORDER_FILE={tmp_path}/job.order",
        "MPICH_RANK_REORDER_METHOD=3",
    ]
    prepare(machine, TEST, ordered("folded"), tmp_path)
    assert (tmp_path / "job.order").read_text() == "0,5\n1,4\n2,3\n"
    assert not (tmp_path / "job.bind").exists()


def test_a_rank_keeps_the_cores_of_its_slot(tmp_path: Path) -> None:
    """Where the ranks of a node do not go up, a rankfile or a program of the run binds them."""
    (tmp_path / "down").write_text(DOWN)
    test = msgspec.structs.replace(TEST, folder=str(tmp_path))
    case = ordered("file down", spread="numa")
    openmpi = a_machine(Launcher(kind="mpirun", flavour="openmpi"))
    prepare(openmpi, test, case, tmp_path)
    launch = launch_of(openmpi, test, case)
    subprocess.run(["bash", "-c", f"set -u; {launch.before}"], cwd=tmp_path, check=True)
    assert (tmp_path / "job.rankfile").read_text().splitlines() == [
        "rank 0=+n1 slot=0",
        "rank 1=+n1 slot=1",
        "rank 2=+n2 slot=1",
        "rank 3=+n2 slot=0",
        "rank 4=+n0 slot=1",
        "rank 5=+n0 slot=0",
    ]
    assert not (tmp_path / "job.bind").exists()
    for launcher, bind in (
        (Launcher(kind="srun"), f"--cpu-bind=none {AT_THE_HOSTS} ./job.bind"),
        (Launcher(kind="mpiexec", flavour="mpich"), "-rankmap 1,1,2,2,0,0 ./job.bind"),
    ):
        assert launch_of(a_machine(launcher), test, case).line.endswith(bind)
        prepare(a_machine(launcher), test, case, tmp_path)
    shown = tmp_path / "taskset"
    shown.write_text('#!/bin/sh\necho "$@"\n')
    shown.chmod(0o700)
    for rank, cpu in enumerate("011010"):
        env = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "PMI_RANK": str(rank)}
        said = subprocess.run(
            [tmp_path / "job.bind", "a", "b c"],
            env=env,
            capture_output=True,
            text=True,
            check=True,
        )
        assert said.stdout == f"-c {cpu} a b c\n"
    line = launch_of(a_machine(Launcher(kind="srun"), None), test, case).line
    assert line.endswith(f"--cpu-bind=cores {AT_THE_HOSTS}"), "numbers of CPUs are not known"


# ---- on nodes that were chosen ------------------------------------------------------------


@pytest.mark.parametrize(
    ("launcher", "order", "lines", "end"),
    [
        (Launcher(kind="srun"), "", "4,5\n0,1\n2,3\n", AT_THE_HOSTS),
        (Launcher(kind="srun"), "folded", "2,3\n0,5\n1,4\n", AT_THE_HOSTS),
        (
            Launcher(kind="mpiexec", flavour="mpich"),
            "",
            "4,5\n0,1\n2,3\n",
            "1,1,2,2,0,0 -bind-to core:1",
        ),
        (Launcher(kind="srun", flavour="cray"), "", "4,5\n0,1\n2,3\n", "--cpus-per-task=1"),
    ],
)
def test_ranks_follow_the_nodes_that_were_chosen(
    tmp_path: Path, launcher: Launcher, order: str, lines: str, end: str
) -> None:
    """Slurm lists n1, n2, n3; ranks go to n2, n3, n1."""
    machine, case, chosen = a_machine(launcher), ordered(order), "n2,n3,n1"
    prepare(machine, TEST, case, tmp_path, chosen)
    assert (tmp_path / "job.order").read_text() == lines
    launch = launch_of(machine, TEST, case, chosen)
    assert launch.line.endswith(end)

    def started(hosts: str) -> subprocess.CompletedProcess[str]:
        script = f"_run={tmp_path} _hosts=({hosts})\n{launch.before}echo started"
        line = ["bash", "-uc", script]
        return subprocess.run(line, capture_output=True, text=True, check=False)

    assert started("n1 n2 n3").stdout == "started\n"
    other = started("n2 n1 n3")
    assert (other.returncode, other.stdout) == (1, "")
    assert "nodes n1 n2 n3 were chosen; Slurm gave n2 n1 n3" in other.stderr


def test_the_last_node_that_was_chosen_has_fewer_ranks(tmp_path: Path) -> None:
    case = msgspec.structs.replace(ordered(""), tasks=5)
    machine = a_machine(Launcher(kind="srun"))
    prepare(machine, TEST, case, tmp_path, "n3,n2,n1")
    assert (tmp_path / "job.order").read_text() == "4\n2,3\n0,1\n"


# ---- really -------------------------------------------------------------------------------

XTHI = """\
mask=$(while read -r name list; do
  [ "$name" = Cpus_allowed_list: ] && echo "$list"; done < /proc/self/status)
rank=${OMPI_COMM_WORLD_RANK:-$SLURM_PROCID}
echo "Hello from rank $rank, thread 0, on $(uname -n). (core affinity = $mask)"
"""
WORDS = ["random 5", "file down"]  # to launchers, every order is a list of ranks


@pytest.fixture(scope="module")
def binding(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmCluster]:
    options = ClusterOptions(nodes=3, cores=2, hosts=True, bind=True)
    with SlurmCluster(tmp_path_factory.mktemp("ordered"), options) as cluster:
        yield cluster


def expected(words: str) -> dict[int, tuple[str, str]]:
    """The node and the CPU of each rank."""
    sizes = [2, 2, 2]
    order = [5, 4, 0, 1, 3, 2] if words == "file down" else parse_order(words).order(sizes)
    nodes, slots = nodes_of_ranks(order, sizes), slots_of_ranks(order, sizes)
    return {r: (f"n{nodes[r] + 1:03}", str(slots[r])) for r in range(6)}


def told(text: str) -> dict[int, tuple[str, str]]:
    xthi = re.findall(r"rank (\d+), thread 0, on (\S+)\. \(core affinity = (\S+)\)", text)
    hello = re.findall(r"^rank (\d+) of 6 thread 0 .* node (\S+) .* mask (\S+)", text, re.MULTILINE)
    return {int(rank): (node, cpus) for rank, node, cpus in xthi or hello}


def ordered_suite(
    place: Workplace, cluster: SlurmCluster, words: list[str], run: dict[str, Any], **more: Any
) -> None:
    place.slurm(cluster, {"poll": "0.5s", "whole_nodes": True}, **more)
    text = place.machine.read_text().replace("cores: 2", f'cores: 2\n  layout: "{SPLIT}"')
    place.machine.write_text(text)
    script = run.pop("script")
    shape = {"nodes": 3, "tasks": 6, "spread": "numa", "within": "allocation"}
    folder = place.test(
        "t",
        script,
        parameters={"how": words},
        run={**shape, "order": "how", **run},
        verify=[{"placement": {}}] if not run.get("prove") else [],
        build={"script": "true"},
    )
    (folder / "down").write_text(DOWN)


def audited(place: Workplace, file: str) -> None:
    done = place.run("--name", "t")
    assert done.code == 0, done.said
    assert set(place.verdicts().values()) == {"pass"}
    for run_id in place.ran():
        case = next(e.case for e in place.events("t") if getattr(e, "run_id", "") == run_id)
        (words,) = (c.parameters["how"] for c in place.trial().cases() if c.id == case)
        text = (place.trial().run("t", run_id) / file).read_text()
        assert told(text) == expected(str(words)), f"{words}:\n{text}"


OPENMPI_4 = "/usr/bin/mpirun.openmpi"
UNDER = {
    "srun": {"kind": "srun"},
    "Open MPI 4": {"kind": "mpirun", "flavour": "openmpi", "command": OPENMPI_4},
}


@pytest.mark.slurm(hosts=True)
@pytest.mark.parametrize("name", UNDER)
def test_ranks_under_a_launcher(place: Workplace, binding: SlurmCluster, name: str) -> None:
    """A task tells its rank, its node and its CPUs; Debian's Open MPI 4 is without a compiler."""
    if name != "srun" and not Path(OPENMPI_4).exists():
        pytest.skip(f"{name} is not installed")
    (place.folder / "xthi").write_text(XTHI)
    script = f"$LAUNCH bash {place.folder}/xthi"
    ordered_suite(place, binding, WORDS, {"script": script}, launcher=UNDER[name])
    audited(place, "stdout")


OPENMPI = str(Path(sys.executable).with_name("mpirun"))
MPIS = {
    "Open MPI 5": ("mpirun", "openmpi", OPENMPI),
    "Open MPI 5 over rsh": ("compat", "openmpi", OPENMPI),
    "MPICH": ("mpirun", "mpich", MPIEXEC),
    "MPICH over rsh": ("compat", "mpich", MPIEXEC),
}


@pytest.mark.slurm(hosts=True)
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=NEEDS_MPICH if n.startswith("MPICH") else ()) for n in MPIS]
)
def test_ranks_under_an_mpi(place: Workplace, binding: SlurmCluster, name: str) -> None:
    """The probe hello tells where ranks are, and the check compares that with the order."""
    kind, flavour, command = MPIS[name]
    launcher = {"kind": kind, "flavour": flavour, "command": command}
    mpicc = str(Path(command).with_name("mpicc"))
    chain = {"cc": "cc", "mpicc": mpicc, "cflags": "-O0", "launcher": launcher}
    run = {"script": "true", "prove": True}
    words = WORDS[1:] if "rsh" in name else WORDS
    ordered_suite(place, binding, words, run, toolchains={"mpi": chain})
    audited(place, "placement.txt")
