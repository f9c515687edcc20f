"""The PBS backend, through the command, on a real OpenPBS: arrays, end states, outages."""

from __future__ import annotations

import re
import shutil
import sys
from collections import Counter
from pathlib import Path

import pytest
import yaml

from seatrial.execute.directory import job_events
from seatrial.journal.events import JobEnded, JobQueued, JobStarted, RunJudged
from tests.execute.batch.waiting_jobs import OF_MPI, QUICK, claimed, go, job_of, wait_script
from tests.mpich import MPIEXEC, NEEDS_MPICH
from tests.pbs.server import CORES, NODES, PbsServer
from tests.programs import LONG_S, Workplace, until

pytestmark = pytest.mark.pbs

ROOT = Path(__file__).parents[3]
HELLO = ROOT / "suites" / "probes" / "hello" / "hello.c"


@pytest.fixture
def quick(pbs_place: Workplace) -> Workplace:
    pbs_place.constants = dict(QUICK)
    return pbs_place


def test_a_shipped_probe_runs_with_what_is_detected(quick: Workplace, pbs: PbsServer) -> None:
    about = yaml.safe_load(quick.seatrial("machine", "--detect", "--scheduler", "pbs").out)
    assert [(kind["names"], kind["cores"]) for kind in about["nodes"]] == [("n[001-008]", CORES)]
    nodes = [{"names": ",".join(NODES), "cores": 2}]  # MPI looks for the cores of this host
    chains = {name: {**chain, "cflags": "-O0"} for name, chain in about["toolchains"].items()}
    quick.pbs(pbs, nodes=nodes, toolchains=chains, environment=OF_MPI)
    suite = str(ROOT / "suites" / "probes")
    words = ("-m", str(quick.machine), "-k", "hello", "--name", "t")
    done = quick.seatrial("run", suite, *words, timeout=2 * LONG_S)
    assert done.code == 0, done.said
    assert set(quick.verdicts().values()) == {"pass"}


def test_cases_of_one_shape_are_an_array_and_each_run_has_its_end(quick: Workplace) -> None:
    for i in range(3):
        quick.test(f"t{i}", f"echo run {i}; exit {i % 2}")
    quick.test("wide", "true", run={"nodes": 2, "tasks": 4})
    done = quick.run("--name", "t")
    assert done.code == 1, done.said
    ended = Counter(quick.verdicts().values())
    assert ended == {"pass": 3, "failed": 1}, done.said
    ids = {event.job_id for event in quick.events("t", JobQueued)}
    arrays = {each.partition("[")[0] for each in ids if "[" in each}
    assert len(ids) == 4 and len(arrays) == 1
    nodes = {event.run_id: event.nodes for event in quick.events("t", JobEnded)}
    assert all(nodes.values())
    quick.audit()


def test_a_queue_that_does_not_exist_is_told_with_the_words_of_qsub(
    quick: Workplace, pbs: PbsServer
) -> None:
    quick.pbs(pbs, {"queue": "nope"})
    quick.test("t", "true", logs=False)
    done = quick.run("--name", "t")
    assert done.code == 1
    assert quick.verdicts() == {"t": "launch failed"}
    why = quick.why("t")
    assert why.startswith("Unknown queue; asked for: -l select=1:ncpus=1"), "as qsub says it"
    assert why.endswith(" -q nope")


def test_ends_that_pbs_or_people_make(quick: Workplace, pbs: PbsServer) -> None:
    script = wait_script(quick)
    for name in ("deleted", "again", "fine"):
        quick.test(name, script, logs=False)
    quick.test("long", "exec sleep 100", logs=False, run={"walltime": "2s"})
    with quick.start_run("--name", "t") as driving:
        driving.until(lambda: quick.count(JobStarted) == 4, "4 runs start")
        driving.until(lambda: len(claimed(quick)) == 4, "4 scripts start")
        pbs.run("qdel", job_of(quick, "deleted"))
        assert pbs.run("qrerun", job_of(quick, "again")) == ""
        driving.until(lambda: quick.count(RunJudged) == 3, "three ends", 2 * LONG_S)
        go(quick)
        driving.end()
    first = {event.test: event.verdict for event in reversed(quick.events("t", RunJudged))}
    assert first == {
        "deleted": "cancelled",
        "again": "requeued",
        "fine": "pass",
        "long": "timeout",
    }
    assert "root@pbs" in quick.why("deleted")


def test_a_driver_that_is_killed_while_the_server_is_dead_finds_its_jobs_again(
    quick: Workplace, pbs: PbsServer
) -> None:
    for i in range(3):
        quick.test(f"t{i}", wait_script(quick))
    with quick.start_run("--name", "t") as driving:
        driving.until(lambda: len(quick.ran()) == 3, "3 runs start")
        # A server that stops before a MOM has told it of a start queues the job again.
        driving.until(
            lambda: pbs.run("qstat", "-t", "-f").count("substate = 42") == 3, "the server knows it"
        )
        pbs.stop()
        driving.until(lambda: "PBS: " in quick.alerts(), "the outage is told")
        driving.kill()
    until(lambda: "Connection refused" in pbs.run("qstat", "-B"), "the server ends")
    go(quick)
    with quick.start("resume", "t") as driving:
        driving.until(lambda: "cannot connect" in driving.said, "the outage is told again")
        until(lambda: all(job_events(run).end for run in claimed(quick)), "the jobs end")
        pbs.start()
        done = driving.end()
    assert done.code == 0, done.said
    quick.audit()


def test_without_history_runs_are_judged_by_their_own_events(
    quick: Workplace, pbs: PbsServer
) -> None:
    pbs.run("qmgr", "-c", "set server job_history_enable = False")
    try:
        quick.pbs(pbs, {"lost_after": "2s"})
        quick.test("ends", "echo ok")
        once = f"[ -e {quick.folder}/lost ] || {{ touch {quick.folder}/lost; exec sleep 100; }}"
        quick.test("lost", once, logs=False)
        with quick.start_run("--name", "t") as driving:
            driving.until(lambda: quick.count(JobStarted) == 2, "both start")
            driving.until((quick.folder / "lost").exists, "the script that is to be lost starts")
            driving.until(lambda: len(pbs.run("qselect").split()) <= 1, "the other one ends")
            pbs.run("qdel", "-W", "force", *pbs.run("qselect").split())
            driving.end()
    finally:
        pbs.run("qmgr", "-c", "set server job_history_enable = True")
    lost = [event for event in quick.events("t", RunJudged) if event.test == "lost"]
    assert [event.verdict for event in lost] == ["lost", "pass"]
    assert quick.verdicts()["ends"] == "pass"


def test_cancelling_a_trial_deletes_its_jobs(quick: Workplace, pbs: PbsServer) -> None:
    for i in range(2):
        quick.test(f"t{i}", wait_script(quick))
    with quick.start_run("--name", "t") as driving:
        driving.until(lambda: len(quick.ran()) == 2, "2 runs start")
        quick.seatrial("cancel", "t")
        driving.end()
    assert set(quick.verdicts().values()) == {"cancelled"}
    assert pbs.run("qselect") == ""


@pytest.fixture(scope="module")
def hosts(_pbs: PbsServer) -> list[str]:
    """Two more hosts, for the jobs of the queue mpi alone."""
    names = ["m001", "m002"]
    _pbs.add_hosts(names, "mpi")
    return names


@pytest.mark.parametrize("name", ["openmpi", pytest.param("mpich", marks=NEEDS_MPICH)])
def test_mpi_starts_its_ranks_on_every_host_of_a_job(
    name: str, quick: Workplace, pbs: PbsServer, hosts: list[str]
) -> None:
    """Both are built without support for PBS; no host lets ssh in."""
    programs = Path(MPIEXEC if name == "mpich" else sys.executable).parent
    toolchain = {"cc": "cc", "mpicc": str(programs / "mpicc")}
    launcher = {"kind": "mpiexec", "flavour": name, "command": str(programs / "mpiexec")}
    quick.pbs(
        pbs,
        {"queue": "mpi"},
        nodes=[{"names": ",".join(hosts), "cores": 2}],  # MPI looks for the cores of this host
        toolchains={"mpi": toolchain},
        launcher=launcher,
        environment=OF_MPI,
    )
    build = {"sources": ["hello.c"], "script": "$MPICC -o hello hello.c"}
    run = {"nodes": 2, "tasks": 4}
    shutil.copy(
        HELLO, quick.test("hello", "$LAUNCH $BUILD/hello", logs=False, run=run, build=build)
    )
    done = quick.run("--name", "t", timeout=2 * LONG_S)
    assert done.code == 0, done.said
    said = (quick.run_folder("hello") / "stdout").read_text()
    assert Counter(re.findall(r"node (\w+)", said)) == {"m001": 2, "m002": 2}, said


def test_a_compat_job_reaches_every_host(
    quick: Workplace, pbs: PbsServer, hosts: list[str]
) -> None:
    quick.pbs(pbs, {"queue": "mpi"}, nodes=[{"names": ",".join(hosts), "cores": 2}])
    ask = "for host in $(cut -d' ' -f1 $HOSTFILE); do ssh $host 'hostname; exit 3'; echo $?; done"
    run = {"nodes": 2, "tasks_per_node": 1, "launcher": "compat"}
    quick.test("asks", ask, logs=False, run=run)
    done = quick.run("--name", "t", timeout=2 * LONG_S)
    assert done.code == 0, done.said
    said = (quick.run_folder("asks") / "stdout").read_text()
    assert said.split() == ["m001", "3", "m002", "3"]
