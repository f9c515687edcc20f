"""What launchers are told of cores; PRRTE and hydra, each on a machine that is not there, do what
Seatrial expects of them."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from seatrial.execute.geometry import NoGeometry, TaskGeometry, geometry_of
from seatrial.execute.launchers import RANKFILE, launch_of
from seatrial.model.machine import Launcher, Machine, NodeGroup
from seatrial.model.nodes import spans
from seatrial.model.schedulers import Slurm
from seatrial.model.test import Case, JobOptions, RunSpec, TaskPlacement, Test
from tests.execute.helpers import a_case
from tests.model.hwloc import xml_of
from tests.mpich import MPIEXEC
from tests.programs import Workplace
from tests.slurm.cluster import ClusterOptions, SlurmCluster

HOPPER = "pack:2 numa:2 core:6 pu:1"
SMT = "pack:2 numa:2 core:4 pu:2(indexes=2*16:1*2)"
OPENMPI = Launcher(kind="mpirun", flavour="openmpi")
MPICH = Launcher(kind="mpiexec", flavour="mpich")
SRUN = Launcher(kind="srun")
APRUN = Launcher(kind="aprun")
PALS = Launcher(kind="mpiexec", flavour="cray")
TEST = Test(name="t", folder="/t", app="t", run=RunSpec(script="true"))


def a_machine_of(launcher: Launcher, layout: str | None = HOPPER, **keys: Any) -> Machine:
    kind = NodeGroup(names="n[1-4]", cores=24, sockets=2, numa_domains=4, layout=layout)
    usual: dict[str, Any] = {"scheduler": "slurm", "slurm": Slurm(whole_nodes=True)}
    return Machine(machine="m", nodes=[kind], launcher=launcher, **{**usual, **keys})


def of_shape(tasks: int, threads: int, nodes: int = 1, **placement: Any) -> Case:
    asked = TaskPlacement(**placement)
    return msgspec.structs.replace(
        a_case(),
        nodes=nodes,
        tasks=tasks * nodes,
        tasks_per_node=tasks,
        threads=threads,
        placement=asked,
        exclusive=asked.needs_whole_nodes,
    )


def line(machine: Machine, case: Case) -> str:
    return launch_of(machine, TEST, case).line.replace(" --allow-run-as-root", "")


def geometry(machine: Machine, case: Case) -> TaskGeometry:
    found = geometry_of(machine, TEST, case)
    assert isinstance(found, TaskGeometry), found
    return found


# ---- golden lines -------------------------------------------------------------------------

LINES = {
    "srun": "srun --nodes=1 --ntasks=4 --ntasks-per-node=4"
    " --cpu-bind=mask_cpu:0x7,0x1c0,0x7000,0x1c0000",
    "openmpi": "mpirun -n 4 --map-by ppr:1:numa:PE=3 --bind-to core",
    "mpich": "mpiexec -n 4 -ppn 4 -bind-to user:0+1+2,6+7+8,12+13+14,18+19+20",
    "pals": "mpiexec -n 4 --ppn 4 --depth 3 --cpu-bind list:0-2:6-8:12-14:18-20",
    "aprun": "aprun -n 4 -N 4 -S 1 -d 3 -cc cpu",
}
LAUNCHERS = {"pals": PALS, "srun": SRUN, "openmpi": OPENMPI, "mpich": MPICH, "aprun": APRUN}


@pytest.mark.parametrize("name", LINES)
def test_a_node_that_is_not_full_is_spread_over_its_domains(name: str) -> None:
    assert line(a_machine_of(LAUNCHERS[name]), of_shape(4, 3)) == LINES[name]


@pytest.mark.parametrize(
    ("launcher", "end"),
    [
        (SRUN, "--cpus-per-task=3 --cpu-bind=cores --distribution=block:cyclic"),
        (OPENMPI, "--map-by ppr:1:numa:PE=3 --bind-to core"),
        (MPICH, "-bind-to core:3 -map-by numa"),
        (APRUN, "-S 1 -d 3 -cc cpu"),
        (PALS, "--ppn 4 --depth 3 --cpu-bind depth"),
    ],
)
def test_words_alone_where_the_numbers_of_cpus_are_not_known(launcher: Launcher, end: str) -> None:
    assert line(a_machine_of(launcher, None), of_shape(4, 3)).endswith(end)


@pytest.mark.parametrize(
    ("shape", "placement", "end"),
    [
        ((4, 3), {}, "-N 4 -S 1 -d 3 -cc cpu"),
        ((8, 3), {"spread": "numa"}, "-N 8 -S 2 -d 3 -cc cpu"),
        ((4, 3), {"spread": "pack"}, "-N 4 -S 2 -d 3 -cc cpu"),
        ((4, 3), {"spread": "socket"}, "-N 4 -d 3 -cc 0-2:3-5:12-14:15-17"),
        ((6, 1), {}, "-N 6 -d 1 -cc 0:1:6:12:13:18"),
        ((4, 3), {"bind": "numa", "numa_policy": "local"}, "-S 1 -d 3 -ss -cc numa_node"),
        ((4, 3), {"bind": "none"}, "-N 4 -d 3 -cc none"),
        ((20, 1), {"spare_cores": 4, "spread": "numa"}, "-N 20 -S 5 -d 1 -cc cpu -r 4"),
        ((4, 1), {"tasks_per_numa": 2}, "-N 4 -S 2 -d 1 -cc cpu"),
        ((24, 1), {}, "-n 24 -N 24 -d 1"),
    ],
)
def test_lines_of_aprun(shape: tuple[int, int], placement: dict[str, Any], end: str) -> None:
    assert line(a_machine_of(APRUN), of_shape(*shape, **placement)).endswith(end)


@pytest.mark.parametrize(
    ("placement", "end"),
    [
        ({}, "-ppn 24 -bind-to core:1"),
        ({"bind": "core"}, "-ppn 24 -bind-to core:1"),
        ({"bind": "numa"}, "-ppn 24 -bind-to numa"),
        ({"bind": "none"}, "-ppn 24"),
    ],
)
def test_lines_of_mpich_on_a_full_node(placement: dict[str, Any], end: str) -> None:
    assert line(a_machine_of(MPICH), of_shape(24, 1, **placement)).endswith(end)


@pytest.mark.parametrize(
    ("job", "options", "expected"),
    [
        ({}, [], "-n 8 -a 1 -c 3 -g 0 -r 4 -d packed -b packed:3"),
        ({"gpus_per_task": 1}, [], "-n 8 -a 1 -c 3 -g 1 -r 4 -d packed -b packed:3"),
        ({"gpus_per_node": 6}, [], "-n 2 -a 4 -c 12 -g 6 -r 1 -d packed -b packed:3"),
        ({}, ["-b", "rs"], "-n 8 -a 1 -c 3 -g 0 -r 4 -d packed -b rs"),
        ({}, ["-n", "2", "-a4", "-c", "12"], "-n 2 -a4 -c 12"),
    ],
)
def test_lines_of_jsrun(job: dict[str, Any], options: list[str], expected: str) -> None:
    """By its manual: no jsrun is here."""
    case = msgspec.structs.replace(of_shape(4, 3, 2), job=JobOptions(**job))
    launcher = Launcher(kind="jsrun", options=options)
    assert line(a_machine_of(launcher), case) == f"jsrun {expected}"


@pytest.mark.parametrize(
    ("launcher", "placement", "end"),
    [
        (SRUN, {"bind": "numa"}, "--cpu-bind=mask_cpu:0x3f,0xfc0,0x3f000,0xfc0000"),
        (SRUN, {"bind": "none"}, "--cpus-per-task=3 --cpu-bind=none"),
        (SRUN, {"numa_policy": "local"}, "0x1c0000 --mem-bind=local"),
        (SRUN, {"numa_policy": "interleave"}, "0x1c0000 numactl --interleave=all"),
        (OPENMPI, {"numa_policy": "local"}, "--bind-to core numactl --localalloc"),
        (OPENMPI, {"bind": "numa"}, "--map-by ppr:1:numa --bind-to numa"),
        (OPENMPI, {"bind": "none"}, "--map-by ppr:4:node --bind-to none"),
        (OPENMPI, {"spread": "socket", "bind": "socket"}, "--map-by ppr:2:socket --bind-to socket"),
        (MPICH, {"spread": "socket"}, "user:0+1+2,3+4+5,12+13+14,15+16+17"),
        (MPICH, {"bind": "none"}, "-ppn 4"),
        (PALS, {"bind": "none"}, "--depth 3 --cpu-bind none"),
        (PALS, {"bind": "numa"}, "--cpu-bind list:0-5:6-11:12-17:18-23"),
        (Launcher(kind="none"), {"numa_policy": "local"}, "numactl --localalloc"),
    ],
)
def test_binding_and_memory(launcher: Launcher, placement: dict[str, Any], end: str) -> None:
    assert line(a_machine_of(launcher), of_shape(4, 3, **placement)).endswith(end)


@pytest.mark.parametrize(
    ("launcher", "options"),
    [(SRUN, ["--cpu-bind=none"]), (OPENMPI, ["--bind-to", "none"]), (MPICH, ["-bind-to", "none"])],
)
def test_what_the_machine_says_of_binding_replaces_it(
    launcher: Launcher, options: list[str]
) -> None:
    said = line(a_machine_of(msgspec.structs.replace(launcher, options=options)), of_shape(4, 3))
    assert "mask" not in said
    assert "numa" not in said
    assert said.endswith(" ".join(options))


# ---- where nothing is said ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("case", "keys", "reason"),
    [
        (of_shape(4, 3), {"slurm": Slurm()}, "other jobs may have cores of its nodes"),
        (of_shape(8, 3), {}, "its tasks fill the node"),
        (of_shape(25, 1), {}, "25 threads are more than the 24 cores of a node"),
        (of_shape(4, 3, bind="none"), {}, "`bind: none` asks for no cores"),
        (of_shape(4, 3, spread="pack"), {"slurm": Slurm()}, ""),
        (of_shape(4, 3), {"slurm": Slurm(options=["--exclusive"])}, ""),
        (of_shape(4, 3), {"slurm": Slurm(), "scheduler": "local"}, ""),
        (of_shape(8, 3, spread="pack"), {}, ""),
    ],
)
def test_only_what_is_known_is_said(case: Case, keys: dict[str, Any], reason: str) -> None:
    found = geometry_of(a_machine_of(SRUN, **keys), TEST, case)
    assert isinstance(found, NoGeometry) == bool(reason)
    if isinstance(found, NoGeometry):
        assert found.reason.startswith(reason)


def test_nodes_that_differ_in_layout_or_have_one_domain() -> None:
    machine = a_machine_of(SRUN)
    other = NodeGroup(names="g[1-4]", cores=24, layout="pack:2 numa:1 core:12 pu:1", gpus=1)
    differ = msgspec.structs.replace(machine, nodes=[*machine.nodes, other])
    assert geometry_of(differ, TEST, of_shape(4, 3)) == NoGeometry("its nodes differ in layout")
    one = a_machine_of(SRUN, "pack:1 core:24 pu:1")
    found = geometry_of(one, TEST, of_shape(4, 3))
    assert isinstance(found, NoGeometry) and found.reason.startswith(
        "the node has one NUMA domain;"
    )


# ---- oracles ------------------------------------------------------------------------------

SHAPES: list[tuple[tuple[int, int], dict[str, Any]]] = [
    ((4, 3), {}),
    ((4, 3), {"spread": "socket"}),
    ((4, 3), {"spread": "pack"}),
    ((6, 1), {"spread": "numa"}),
    ((2, 5), {"bind": "numa"}),
    ((2, 8), {"spread": "socket"}),
    ((20, 1), {"spare_cores": 4}),
]


def prrte(tmp_path: Path, machine: Machine, case: Case) -> list[str]:
    """The cores that Open MPI's own runtime gives to each task, by their logical numbers."""
    (tmp_path / "node.xml").write_text(xml_of(str(machine.nodes[0].layout)))
    launch = launch_of(machine, TEST, case)
    subprocess.run(["bash", "-c", launch.before], cwd=tmp_path, check=True, timeout=30)
    program, *words = shlex.split(launch.line)
    topology = ["--prtemca", "hwloc_use_topo_file", "node.xml"]
    shown = [*topology, "--do-not-launch", "--display", "map-devel"]
    done = subprocess.run(
        [str(Path(sys.executable).with_name(program)), *shown, *words, "true"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    found = re.findall(r"Binding: (.*)", done.stdout)
    return [",".join(re.findall(r"core:L([\d,-]+)", each)) for each in found]


@pytest.mark.parametrize(("shape", "placement"), SHAPES)
@pytest.mark.parametrize("notation", [HOPPER, SMT])
def test_prrte_binds_as_seatrial_says(
    tmp_path: Path, shape: tuple[int, int], placement: dict[str, Any], notation: str
) -> None:
    if notation == SMT:
        shape = (min(shape[0], 12), min(shape[1], 4))
    kind = NodeGroup(names="n1", cores=24 if notation == HOPPER else 16, layout=notation)
    machine = Machine(machine="m", nodes=[kind], launcher=OPENMPI)
    case = of_shape(*shape, **placement)
    expected = [spans(cores) for cores in geometry(machine, case).bound]
    assert prrte(tmp_path, machine, case) == expected


# What MPICH 5.0.2's hydra bound tasks to, by its arguments and the notation of the machine.
HYDRA_SAID = Path(__file__).parent / "data" / "hydra.json"


def hydra(tmp_path: Path, notation: str, words: list[str]) -> list[str]:
    """The mask that MPICH's hydra shows for each task: a digit a CPU."""
    (tmp_path / "node.xml").write_text(xml_of(notation))
    topology = {"HWLOC_XMLFILE": str(tmp_path / "node.xml"), "HWLOC_THISSYSTEM": "0"}
    done = subprocess.run(
        [MPIEXEC, *words, "sleep", "0.1"],  # of programs that end at once, it may die of SIGPIPE
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        env={**os.environ, **topology, "HYDRA_TOPO_DEBUG": "1"},
    )
    found = re.findall(r"process (\d+) binding: ([01]+)", done.stdout)
    return [mask for _, mask in sorted((int(rank), mask) for rank, mask in found)]


@pytest.mark.parametrize("notation", [HOPPER, SMT])
def test_hydra_binds_as_seatrial_says(tmp_path: Path, notation: str) -> None:
    captured = json.loads(HYDRA_SAID.read_text()) if HYDRA_SAID.exists() else {}
    kind = NodeGroup(names="n1", cores=24 if notation == HOPPER else 16, layout=notation)
    machine = Machine(machine="m", nodes=[kind], launcher=MPICH)
    for (tasks, threads), placement in SHAPES:
        tasks, threads = (
            (tasks, threads) if notation == HOPPER else (min(tasks, 12), min(threads, 4))
        )
        case = of_shape(tasks, threads, **placement)
        _, *words = shlex.split(line(machine, case))
        key = " ".join([notation, *words])
        if Path(MPIEXEC).is_file():
            said = hydra(tmp_path, notation, words)
            if os.environ.get("SEATRIAL_REGENERATE"):
                captured[key] = said
                HYDRA_SAID.write_text(json.dumps(captured, indent=1) + "\n")
            assert said == captured[key]
        found = [[cpu for cpu, bit in enumerate(mask) if bit == "1"] for mask in captured[key]]
        assert found == geometry(machine, case).cpus


def test_a_rankfile_of_several_nodes(tmp_path: Path) -> None:
    launch = launch_of(a_machine_of(OPENMPI), TEST, of_shape(3, 2, nodes=2))
    assert launch.line.endswith(f"--rankfile {RANKFILE}")
    subprocess.run(["bash", "-c", f"set -u; {launch.before}"], cwd=tmp_path, check=True)
    assert (tmp_path / RANKFILE).read_text().splitlines() == [
        "rank 0=+n0 slot=0-1",
        "rank 1=+n0 slot=6-7",
        "rank 2=+n0 slot=12-13",
        "rank 3=+n1 slot=0-1",
        "rank 4=+n1 slot=6-7",
        "rank 5=+n1 slot=12-13",
    ]


# ---- a real Slurm, which binds ------------------------------------------------------------

ASK = """\
$LAUNCH bash -c 'while read -r key list; do
  [ "$key" = Cpus_allowed_list: ] && echo "rank $SLURM_LOCALID on $list"
done < /proc/self/status; true'
"""


@pytest.mark.slurm
def test_slurm_binds_tasks_to_the_masks(place: Workplace, tmp_path: Path) -> None:
    """A node of two domains, each with one of the two cores of this host."""
    kind = {"names": "n001", "cores": 2, "layout": "pack:1 numa:2 core:1 pu:1"}
    expected = {
        "one": {"rank 0 on 0"},
        "two": {"rank 0 on 0", "rank 1 on 1"},
        "wide": {"rank 0 on 0-1"},
        "free": {"rank 0 on 0-1", "rank 1 on 0-1"},
    }
    with SlurmCluster(tmp_path / "cluster", ClusterOptions(nodes=1, cores=2, bind=True)) as cluster:
        place.slurm(cluster, nodes=[kind], launcher={"kind": "srun"})
        place.test("one", ASK, run={"spare_cores": 1})
        place.test("two", ASK, run={"tasks_per_node": 2, "spread": "numa"})
        place.test("wide", ASK, run={"spread": "pack", "bind": "socket"})
        place.test("free", ASK, run={"tasks_per_node": 2, "spread": "numa", "bind": "none"})
        done = place.run("--name", "t")
    assert done.code == 0, done.said
    for test, ranks in expected.items():
        said = (place.run_folder(test) / "stdout").read_text().splitlines()
        assert set(said) == ranks, test
