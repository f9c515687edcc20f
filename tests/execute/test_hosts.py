"""The hosts of a run, in the files that its job script writes."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial.execute.launchers import host_files
from seatrial.model.node_set import fold, unfold
from seatrial.model.test import Case
from tests.waiting import LONG_S

from .helpers import RunFolder, a_case, a_machine, a_test

SHOWN = 'for f in "$HOSTFILE" "$MACHINEFILE" "$NODEFILE"; do echo $(cat "$f"); done; echo $NODELIST'


def of_shape(nodes: int, tasks: int) -> Case:
    return msgspec.structs.replace(
        a_case(), nodes=nodes, tasks=tasks, tasks_per_node=-(-tasks // nodes)
    )


def written(listed: str, nodes: int, tasks: int, folder: Path) -> list[list[str]]:
    """Return the lines of the three files; bash finds no program at all."""
    text = host_files(a_machine(scheduler="slurm"), of_shape(nodes, tasks))
    clean = {"SLURM_JOB_NODELIST": listed, "PATH": "/nowhere", "LC_ALL": "C.UTF-8"}
    subprocess.run(
        ["/bin/bash", "-u", "-c", f"_run='{folder}'\n{text}"],
        env=clean,
        check=True,
        timeout=LONG_S,
    )
    names = ("job.hostfile", "job.machinefile", "job.nodefile")
    return [(folder / name).read_text().splitlines() for name in names]


def test_a_run_knows_its_hosts(tmp_path: Path) -> None:
    machine = a_machine(scheduler="slurm")
    run = RunFolder(tmp_path, a_test(SHOWN), of_shape(3, 5), machine)
    assert run.run(SLURM_JOB_NODELIST="n[1-2,07]", SLURM_JOB_ID="5") == 0
    assert run.stdout.splitlines() == [
        "n1 slots=2 n2 slots=2 n07 slots=1",
        "n1:2 n2:2 n07:1",
        "n1 n1 n2 n2 n07",
        "n[1-2,07]",
    ]


def test_a_host_without_a_scheduler_is_localhost(tmp_path: Path) -> None:
    run = RunFolder(tmp_path, a_test(SHOWN), of_shape(1, 2))
    assert run.run(SLURM_JOB_NODELIST="n[1-2]") == 0, "of the job that seatrial itself is in"
    said = ["localhost slots=2", "localhost:2", "localhost localhost", "localhost"]
    assert run.stdout.splitlines() == said


def test_a_node_of_pbs_is_named_for_each_task(tmp_path: Path) -> None:
    (tmp_path / "nodes").write_text("n3\nn3\n")
    run = RunFolder(tmp_path, a_test(SHOWN), of_shape(1, 2), a_machine(scheduler="pbs"))
    assert run.run(PBS_NODEFILE=str(tmp_path / "nodes")) == 0
    assert run.stdout.splitlines() == ["n3 slots=2", "n3:2", "n3 n3", "n3"]


def test_the_hosts_of_grid_engine_are_those_of_its_file(tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text("n3 2 all.q@n3 UNDEFINED\nn1 2 all.q@n1 UNDEFINED\n")
    run = RunFolder(tmp_path, a_test(SHOWN), of_shape(2, 4), a_machine(scheduler="gridengine"))
    assert run.run(PE_HOSTFILE=str(tmp_path / "hosts"), JOB_ID="7", SGE_TASK_ID="3") == 0
    said = ["n3 slots=2 n1 slots=2", "n3:2 n1:2", "n3 n3 n1 n1", "n3,n1"]
    assert run.stdout.splitlines() == said
    start = run.events.start
    assert start is not None and (start.nodes, start.job_id) == ("n3,n1", "7.3")


def test_a_job_of_grid_engine_without_a_parallel_environment_is_on_its_host(tmp_path: Path) -> None:
    run = RunFolder(tmp_path, a_test(SHOWN), of_shape(1, 1), a_machine(scheduler="gridengine"))
    assert run.run(HOSTNAME="n7", SGE_TASK_ID="1", JOB_ID="7") == 0
    assert run.stdout.splitlines() == ["n7 slots=1", "n7:1", "n7", "n7"]


def test_a_requeued_job_has_the_hosts_that_it_has_now(tmp_path: Path) -> None:
    run = RunFolder(tmp_path, a_test(SHOWN), of_shape(1, 1), a_machine(scheduler="slurm"))
    job = {"SLURM_ARRAY_JOB_ID": "7", "SLURM_ARRAY_TASK_ID": "0"}
    assert run.run(SLURM_JOB_NODELIST="n1", **job) == 0
    assert run.run(SLURM_JOB_NODELIST="n9", SLURM_RESTART_COUNT="1", **job) == 0
    assert run.stdout.splitlines()[:3] == ["n9 slots=1", "n9:1", "n9"]


def test_names_in_several_dimensions_are_in_the_order_of_slurm(tmp_path: Path) -> None:
    hosts, _, _ = written("a,r[0-1]n[08-09]x,k-1,b[2]", 7, 7, tmp_path)
    assert [line.split()[0] for line in hosts] == [
        *("a", "r0n08x", "r0n09x", "r1n08x", "r1n09x", "k-1", "b2")
    ]


names = st.lists(
    st.tuples(
        st.sampled_from(["n", "nid", "r1-"]), st.integers(0, 1200), st.sampled_from([0, 5])
    ).map(lambda one: f"{one[0]}{one[1]:0{one[2]}d}"),
    min_size=1,
    max_size=12,
    unique=True,
)


@settings(max_examples=30, deadline=None)
@given(names, st.integers(1, 40))
def test_every_task_has_a_line_and_every_host_its_share(hosts: list[str], tasks: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        listed = fold(hosts)
        files = written(listed, len(hosts), tasks, Path(folder))
    per_node = -(-tasks // len(hosts))
    slots = {line.split()[0]: int(line.split("slots=")[1]) for line in files[0]}
    assert list(slots) == list(unfold(listed))[: len(slots)]
    assert sum(slots.values()) == tasks == len(files[2])
    assert len(slots) == min(tasks, len(hosts)), "each host has a task, if there are enough"
    assert max(slots.values()) <= per_node
    assert sorted(slots.values(), reverse=True) == list(slots.values()), "the first are full"
    assert files[1] == [f"{host}:{number}" for host, number in slots.items()]
    assert files[2] == [host for host, number in slots.items() for _ in range(number)]
