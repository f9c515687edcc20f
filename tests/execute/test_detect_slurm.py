"""A cluster as sinfo and scontrol describe it, with programs that only answer, and a real one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from seatrial.errors import UsageError
from seatrial.execute import detect
from seatrial.execute.detect import detect_cluster
from seatrial.model.machine import Launcher, Machine, Memory, NodeGroup
from seatrial.model.machine_file import load_machine
from seatrial.model.node_set import unfold
from seatrial.model.schedulers import Slurm
from tests.model.fakes import program
from tests.slurm.cluster import SlurmCluster

PARTITIONS = "debug\nbatch*\ngpu"
CONFIG = "Configuration data as of 2026\nAccountingStorageType = x\nClusterName             = alps"


def node(name: str, **fields: str) -> str:
    """A line of ``scontrol show node --oneliner``, as Slurm 23 writes it."""
    values = {
        "Arch": "x86_64", "CoresPerSocket": "64", "CPUAlloc": "0", "CPUEfctv": "256",
        "CPUTot": "256", "CPULoad": "0.10", "AvailableFeatures": "(null)", "Gres": "(null)",
        "NodeAddr": name, "OS": "Linux 5.14.21 #1 SMP Cores=3 ", "RealMemory": "515000",
        "Sockets": "2", "Boards": "1", "State": "IDLE", "ThreadsPerCore": "2",
        "Partitions": "debug,batch", "Reason": "Sockets=9 is wrong [root@2026]", **fields,
    }  # fmt: skip
    return " ".join([f"NodeName={name}", *(f"{key}={value}" for key, value in values.items())])


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder as the whole PATH, with a Slurm of three partitions and no compiler."""
    folder = tmp_path / "bin"
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    answers(folder, node("n001"))
    return folder


def answers(folder: Path, *nodes: str, partitions: str = PARTITIONS) -> None:
    program(folder, "sinfo", {"'--noheader --format=%P'": partitions})
    shown = {"'show node --oneliner'": "\n".join(nodes), "'show config'": CONFIG}
    program(folder, "scontrol", shown)


def test_a_cluster_of_like_nodes(path: Path) -> None:
    answers(path, *(node(f"n{i:03}") for i in (1, 2, 3, 5)))
    assert detect_cluster(None)[0] == Machine(
        machine="alps",
        about="As Slurm describes it; other partitions: debug, gpu",
        nodes=[
            NodeGroup(
                names="n[001-003,005]", cores=128, sockets=2, numa_domains=2, threads_per_core=2,
                memory=Memory("515000MiB"),
            )
        ],
        scheduler="slurm",
        slurm=Slurm(partition="batch"),
        launcher=Launcher(kind="srun"),
    )  # fmt: skip
    assert detect_cluster("mine")[0].machine == "mine"


def test_nodes_that_differ_are_kinds_of_their_own(path: Path) -> None:
    gpu = {"Gres": "gpu:a100:4(S:0-1),gpu:h100:2,nvme:1", "AvailableFeatures": "ib,gpu"}
    answers(
        path,
        node("c1"), node("g1", **gpu), node("c2"), node("g2", **gpu), node("c3", RealMemory="1000"),
    )  # fmt: skip
    assert [
        (n.names, n.gpus, n.features, str(n.memory)) for n in detect_cluster(None)[0].nodes
    ] == [
        ("c[1-2]", 0, [], "515000MiB"),
        ("g[1-2]", 6, ["ib", "gpu"], "515000MiB"),
        ("c3", 0, [], "1000MiB"),
    ]


@pytest.mark.parametrize(
    ("fields", "cores", "threads"),
    [
        ({"CPUEfctv": "252"}, 126, 2),  # two cores are kept for the system
        ({"CPUTot": "128", "CPUEfctv": "126"}, 126, 2),  # where a CPU is a core
        ({"ThreadsPerCore": "1", "CPUTot": "128", "CPUEfctv": "128"}, 128, 1),
        ({"CPUTot": "nonsense", "CPUEfctv": "128"}, 128, 2),
        ({"CoresPerSocket": "0", "Sockets": "", "CPUTot": "1", "CPUEfctv": "1"}, 1, 2),
    ],
)
def test_cores(path: Path, fields: dict[str, str], cores: int, threads: int) -> None:
    answers(path, node("n1", **fields))
    (kind,) = detect_cluster(None)[0].nodes
    assert (kind.cores, kind.threads_per_core) == (cores, threads)


@pytest.mark.parametrize(
    ("gres", "gpus"), [("gpu:4", 4), ("gpu", 1), ("gpu:a100:2(S:0,1)", 2), ("mps:400", 0)]
)
def test_accelerators(path: Path, gres: str, gpus: int) -> None:
    answers(path, node("n1", Gres=gres))
    assert detect_cluster(None)[0].nodes[0].gpus == gpus


def test_which_nodes_start_jobs_now(path: Path) -> None:
    present = ["IDLE", "MIXED+PLANNED", "ALLOCATED+COMPLETING", "IDLE+CLOUD+DYNAMIC_NORM"]
    away = ["IDLE+INVALID_REG", "IDLE*", "IDLE+CLOUD+POWERED_DOWN", "UNKNOWN", "IDLE+FROZEN", ""]
    shown = [node(f"n{i}", State=state) for i, state in enumerate([*present, *away])]
    answers(path, *shown)
    assert [state.away for state in detect.states().values()] == [False] * 4 + [True] * 6


def test_nodes_that_slurm_knows_by_their_cpus_alone(path: Path) -> None:
    alone = {"Sockets": "64", "CoresPerSocket": "1", "ThreadsPerCore": "1", "CPUTot": "64"}
    answers(path, *(node(f"n{i}", **alone, CPUEfctv="64") for i in (1, 2)), node("n3"))
    machine, hint = detect_cluster(None)
    assert [(n.names, n.cores, n.sockets, n.numa_domains) for n in machine.nodes] == [
        ("n[1-2]", 64, 1, 1),
        ("n3", 128, 2, 2),
    ]
    assert "# Slurm does not know the sockets of n[1-2]\n" in hint
    answers(path, node("n1", Sockets="1", CoresPerSocket="1", ThreadsPerCore="1", CPUTot="1"))
    assert "sockets" not in detect_cluster(None)[1]


def test_only_nodes_that_jobs_can_get_to(path: Path) -> None:
    answers(path, node("n1"), node("n2", Partitions="gpu"), node("n3", Partitions=""))
    assert [kind.names for kind in detect_cluster(None)[0].nodes] == ["n1"]


def test_all_nodes_where_no_partition_is_the_default(path: Path) -> None:
    answers(path, node("n1"), node("n2", Partitions="gpu"), partitions="batch\ngpu")
    machine = detect_cluster(None)[0]
    assert (machine.slurm.partition, machine.nodes[0].names) == ("", "n[1-2]")
    assert machine.about == "As Slurm describes it; other partitions: batch, gpu"


def test_chassis_are_groups_where_there_are_several(path: Path) -> None:
    answers(path, *(node(f"x1000c{chassis}s0b0n0") for chassis in (0, 1)))
    assert detect_cluster(None)[0].groups == {
        "x1000c0": "x1000c0s0b0n0",
        "x1000c1": "x1000c1s0b0n0",
    }
    answers(path, *(node(f"x1000c0s{slot}b0n0") for slot in (0, 1)))
    assert detect_cluster(None)[0].groups == {}


def test_the_command_prints_what_can_be_read_back(path: Path, tmp_path: Path) -> None:
    answers(path, node("n1"), node("n2"))
    command = [str(Path(sys.executable).with_name("seatrial")), "machine", "c", "--detect"]
    done = subprocess.run([*command, "--scheduler", "slurm"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    (tmp_path / "c.yaml").write_text(done.stdout)
    machine = load_machine(tmp_path / "c.yaml").machine
    assert (machine.machine, machine.nodes) == ("c", detect_cluster(None)[0].nodes)


def test_no_slurm_here(path: Path) -> None:
    (path / "sinfo").unlink()
    with pytest.raises(UsageError, match=r"^sinfo is not on PATH, so there is no Slurm here; "):
        detect_cluster(None)[0]


def test_a_slurm_that_does_not_answer(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(path, "sinfo", {}, otherwise="exec /bin/sleep 60")
    monkeypatch.setattr(detect, "ANSWER_SECONDS", 0.2)
    with pytest.raises(UsageError, match=r"^sinfo .*: no answer within 0\.2 s; is slurmctld up\?"):
        detect_cluster(None)[0]


def test_a_slurm_that_refuses(path: Path) -> None:
    program(path, "scontrol", {}, otherwise="echo 'slurm_load_node error: no' >&2; exit 3")
    with pytest.raises(UsageError) as raised:
        detect_cluster(None)[0]
    assert str(raised.value) == (
        "scontrol show node --oneliner: ended with code 3: slurm_load_node error: no"
    )


@pytest.mark.parametrize("said", ["", "No nodes in the system", "\x00\xff garbage = x"])
def test_a_slurm_without_nodes(path: Path, said: str) -> None:
    answers(path, said)
    with pytest.raises(UsageError, match="Slurm has no node here"):
        detect_cluster(None)[0]


def test_a_program_that_cannot_be_started(path: Path) -> None:
    (path / "sinfo").write_bytes(b"\x7fELFnonsense")
    with pytest.raises(UsageError, match=r"^sinfo .*: cannot be started: Exec format error"):
        detect_cluster(None)[0]


@pytest.mark.slurm
def test_a_real_cluster(cluster: SlurmCluster) -> None:
    command = [str(Path(sys.executable).with_name("seatrial")), "machine", "--detect"]
    done = subprocess.run(
        [*command, "--scheduler", "slurm"],
        env={**os.environ, **cluster.env}, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    machine = yaml.safe_load(done.stdout)
    (kind,) = machine["nodes"]
    assert list(unfold(kind["names"])) == cluster.node_names
    partitions = cluster.run("sinfo", "--noheader", "--format=%P").split()
    assert f"{machine['slurm']['partition']}*" in partitions
