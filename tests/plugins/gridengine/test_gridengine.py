"""The Grid Engine backend, through the command, on a real one: arrays, end states, outages."""

from __future__ import annotations

import os
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
from tests.gridengine.server import CORES, NODES, PARALLEL, GridEngineCell
from tests.mpich import MPIEXEC, NEEDS_MPICH
from tests.programs import LONG_S, Workplace, until

pytestmark = pytest.mark.gridengine

HELLO = Path(__file__).parents[3] / "suites" / "probes" / "hello" / "hello.c"


@pytest.fixture
def quick(gridengine_place: Workplace) -> Workplace:
    gridengine_place.constants = {**QUICK, "plugins.gridengine.client.PATIENCE": 0.5}
    return gridengine_place


def nodes_of(place: Workplace, test: str) -> str:
    """The nodes of the first job of a test, as its start tells them."""
    return next(event.nodes for event in place.events("t", JobStarted) if event.test == test)


def first_verdicts(place: Workplace) -> dict[str, str]:
    return {event.test: event.verdict for event in reversed(place.events("t", RunJudged))}


def test_the_cluster_is_detected(quick: Workplace) -> None:
    about = yaml.safe_load(quick.seatrial("machine", "--detect", "--scheduler", "gridengine").out)
    assert [kind["names"] for kind in about["nodes"]] == ["n[001-004]"]
    assert about["gridengine"]["parallel"] == PARALLEL


def test_cases_of_one_shape_are_an_array_and_each_run_has_its_end(quick: Workplace) -> None:
    for i in range(3):
        quick.test(f"t{i}", f"echo run {i}; exit {i % 2}")
    quick.test("wide", "cat $NODEFILE", run={"nodes": 2, "tasks": 4})
    done = quick.run("--name", "t")
    assert done.code == 1, done.said
    assert Counter(quick.verdicts().values()) == {"pass": 3, "failed": 1}, done.said
    ids = {event.job_id for event in quick.events("t", JobQueued)}
    assert len(ids) == 4 and len({each.partition(".")[0] for each in ids}) == 2
    hosts = (quick.run_folder("wide") / "stdout").read_text().split()
    assert sorted(Counter(hosts).values()) == [2, 2], hosts
    assert all(event.nodes for event in quick.events("t", JobEnded) if event.test != "wide")
    quick.audit()


def test_ends_that_grid_engine_or_people_make(quick: Workplace, cell: GridEngineCell) -> None:
    for name in ("again", "deleted", "fine"):
        quick.test(name, wait_script(quick), logs=False)
    quick.test("wide", wait_script(quick), logs=False, run={"nodes": 2, "tasks": 4})
    quick.test("long", "exec sleep 100", logs=False, run={"walltime": "2s"})
    with quick.start_run("--name", "t") as driving:
        driving.until(lambda: quick.count(JobStarted) == 5, "5 runs start")
        driving.until(lambda: len(claimed(quick)) == 5, "5 scripts start")
        cell.run("qdel", job_of(quick, "deleted"))
        cell.run("qmod", "-f", "-rj", job_of(quick, "again"))
        driving.until(lambda: quick.count(RunJudged) == 3, "three ends", 2 * LONG_S)
        go(quick)
        driving.end()
    assert first_verdicts(quick) == {
        "again": "requeued",
        "deleted": "cancelled",
        "fine": "pass",
        "wide": "pass",
        "long": "timeout",
    }
    assert re.fullmatch(r"n\[?00\d,?-?00\d\]?", nodes_of(quick, "wide"))


def test_what_qsub_refuses_and_what_no_parallel_environment_fits(
    quick: Workplace, cell: GridEngineCell
) -> None:
    quick.gridengine(cell, {"queue": "nope", "parallel": {"smp": "$pe_slots"}})
    quick.test("t", "true", logs=False)
    quick.test("wide", "true", logs=False, run={"nodes": 2, "tasks": 4})
    assert quick.run("--name", "t").code == 1
    assert quick.verdicts() == {"t": "launch failed", "wide": "launch failed"}
    assert 'requests unknown queue "nope"' in quick.why("t")
    assert "no parallel environment for 2 slots on each of 2 nodes" in quick.why("wide")


def test_jobs_that_are_deleted_while_they_wait_or_are_in_error(
    quick: Workplace, cell: GridEngineCell
) -> None:
    quick.gridengine(cell, {"options": ["-h"]})
    for name in ("deleted", "released"):
        quick.test(name, "true", logs=False)
    with quick.start_run("--name", "t") as driving:
        driving.until(lambda: quick.count(JobQueued) == 2, "both wait")
        cell.run("qdel", job_of(quick, "deleted"))
        cell.run("qrls", job_of(quick, "released").partition(".")[0])
        driving.end()
    assert quick.verdicts() == {"deleted": "cancelled", "released": "pass"}
    quick.gridengine(cell, {"options": ["-wd", "/nonexistent"]})
    quick.run("--name", "error")
    assert set(quick.verdicts("error").values()) == {"launch failed"}
    assert cell.run("qstat") == ""


def test_a_driver_that_is_killed_while_the_master_is_dead_finds_its_jobs_again(
    quick: Workplace, cell: GridEngineCell
) -> None:
    for i in range(3):
        quick.test(f"t{i}", wait_script(quick))
    with quick.start_run("--name", "t") as driving:
        driving.until(lambda: quick.count(JobStarted) == 3, "3 runs start")
        cell.kill_master()  # which has heard by now that they run
        driving.until(lambda: "Grid Engine: " in quick.alerts(), "the outage is told")
        driving.kill()
    go(quick)
    with quick.start("resume", "t") as driving:
        driving.until(lambda: "got send error" in driving.said, "the outage is told again")
        until(lambda: all(job_events(run).end for run in claimed(quick)), "the jobs end")
        cell.start_master()
        done = driving.end(2 * LONG_S)
    assert done.code == 0, done.said
    quick.audit()


def test_jobs_whose_ids_were_not_noted_are_found_by_another_path_of_the_trial(
    quick: Workplace,
) -> None:
    """qsub submits and answers nothing; the driver is killed before it asks again."""
    folder = quick.folder / "mute"
    folder.mkdir()
    told = folder / "told"
    real = shutil.which("qsub", path=quick.env.get("PATH"))
    (folder / "qsub").write_text(
        f'#!/bin/bash\n[ -e {told} ] && exec {real} "$@"\n{real} "$@" > /dev/null && : > {told}\n'
    )
    (folder / "qsub").chmod(0o755)
    quick.env["PATH"] = f"{folder}:{quick.env.get('PATH', os.environ['PATH'])}"
    quick.constants["execute.batch.submitter.SHORTEST_BACK_OFF"] = 100.0
    quick.test("t", "echo ok", parameters={"n": [1, 2, 3]})
    with quick.start_run("--name", "t") as driving:
        driving.until(lambda: "no job id" in quick.alerts(), "qsub to have answered nothing")
        runs = quick.trial().path / "runs/t"
        until(lambda: sum(1 for run in runs.iterdir() if job_events(run).end) == 3, "the ends")
        driving.kill()
    assert quick.count(JobQueued) == 0
    (quick.folder / "scratch").symlink_to("trials")
    done = quick.seatrial("--trials", "scratch", "resume", "t")
    assert done.code == 0, done.said
    assert {event.verdict for event in quick.events("t", RunJudged)} == {"pass"}
    quick.audit()


def test_a_node_that_fails_and_a_job_that_is_deleted_by_force(
    quick: Workplace, cell: GridEngineCell
) -> None:
    quick.gridengine(cell, {"visible_after": "1s"})
    once = f"[ -e {quick.folder}/go ] && exit; "
    for name in ("forced", "fails"):
        quick.test(name, once + wait_script(quick), logs=False, run={"tasks": 2})
    with quick.start_run("--name", "t") as driving:
        driving.until(lambda: quick.count(JobStarted) == 2, "both start")
        driving.until(lambda: len(claimed(quick)) == 2, "both scripts start")
        nodes = [nodes_of(quick, name) for name in ("forced", "fails")]
        for node in nodes:
            cell.kill_node(node)
        cell.run("qdel", "-f", job_of(quick, "forced"))
        go(quick)
        driving.until(lambda: "forced" in quick.verdicts(), "it is known to be lost")
        for node in nodes:
            cell.start_node(node)
        driving.end(2 * LONG_S)
    assert first_verdicts(quick) == {"forced": "lost", "fails": "node failure"}


def test_a_master_that_answers_nonsense_ends_no_run(quick: Workplace, cell: GridEngineCell) -> None:
    quick.test("t", wait_script(quick))
    programs = quick.folder / "programs"
    programs.mkdir()
    for name in ("qstat", "qacct"):
        real = shutil.which(name, path=cell.env["PATH"])
        lie = f"[ ! -e {programs}/lie ] || {{ echo '<html>502</html>'; exit 0; }}"
        (programs / name).write_text(f'#!/bin/sh\n{lie}\nexec {real} "$@"\n')
        (programs / name).chmod(0o755)
    quick.env["PATH"] = f"{programs}:{cell.env['PATH']}"
    with quick.start_run("--name", "t") as driving:
        driving.until(lambda: quick.count(JobStarted) == 1, "it starts")
        (programs / "lie").touch()
        driving.until(lambda: "which Grid Engine does not" in quick.alerts(), "it is told")
        go(quick)
        until(lambda: cell.run("qstat") == "", "the job ends")
        assert quick.count(RunJudged) == 0
        (programs / "lie").unlink()
        assert driving.end().code == 0
    assert quick.verdicts() == {"t": "pass"}


def test_runs_share_an_allocation(quick: Workplace) -> None:
    quick.test("tuned", "echo $v", parameters={"v": ["a", "b", "c"]})
    done = quick.run("--name", "t", "--together")
    assert done.code == 0, done.said
    assert len({event.job_id for event in quick.events("t", JobQueued)}) == 1
    quick.audit()


def test_cancelling_a_trial_deletes_its_jobs(quick: Workplace, cell: GridEngineCell) -> None:
    for i in range(2):
        quick.test(f"t{i}", wait_script(quick))
    with quick.start_run("--name", "t") as driving:
        driving.until(lambda: len(quick.ran()) == 2, "2 runs start")
        quick.seatrial("cancel", "t")
        driving.end()
    assert set(quick.verdicts().values()) == {"cancelled"}
    assert cell.run("qstat") == ""


@pytest.mark.parametrize("name", ["openmpi", pytest.param("mpich", marks=NEEDS_MPICH)])
def test_mpi_starts_its_ranks_on_every_host_of_a_job(
    name: str, quick: Workplace, cell: GridEngineCell
) -> None:
    """No host lets ssh in."""
    programs = Path(MPIEXEC if name == "mpich" else sys.executable).parent
    toolchain = {"cc": "cc", "mpicc": str(programs / "mpicc")}
    launcher = {"kind": "mpiexec", "flavour": name, "command": str(programs / "mpiexec")}
    quick.gridengine(cell, toolchains={"mpi": toolchain}, launcher=launcher, environment=OF_MPI)
    build = {"sources": ["hello.c"], "script": "$MPICC -o hello hello.c"}
    run = {"nodes": 2, "tasks": 4}
    shutil.copy(
        HELLO, quick.test("hello", "$LAUNCH $BUILD/hello", logs=False, run=run, build=build)
    )
    done = quick.run("--name", "t", timeout=2 * LONG_S)
    assert done.code == 0, done.said
    said = (quick.run_folder("hello") / "stdout").read_text()
    counts = Counter(re.findall(r"node (\w+)", said))
    assert sorted(counts.values()) == [2, 2] and set(counts) <= set(NODES), said
    assert CORES == 2
