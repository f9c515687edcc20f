"""Tasks that do not fit on a node: left out before anything runs, on every scheduler."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.model.suite.helpers import Place
from tests.programs import Workplace


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


SCHEDULERS = ["local", "slurm", "pbs", "gridengine"]


def left_out(place: Place) -> dict[str, str]:
    return dict(place.plan().skipped)


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_more_tasks_than_a_node_has_cores_are_left_out(place: Place, scheduler: str) -> None:
    place.machine(scheduler=scheduler, nodes=[{"names": "here", "cores": 4}])
    place.test("fits", run={"tasks": 4})
    place.test("tasks", run={"tasks": 6})
    place.test("threads", run={"tasks": 3, "threads_per_task": 2})
    place.test("told", run={"tasks": 6, "oversubscribe": True})
    overcommits = scheduler in ("local", "slurm")
    assert place.names() == ["fits@gcc", *(["told@gcc"] if overcommits else [])]
    remedy = "fewer tasks" if scheduler == "local" else "more nodes or fewer tasks"
    remedy += ", or write `oversubscribe: true` below `run`" if overcommits else ""
    wanted = "6 CPUs of a node for"
    assert (
        left_out(place)["tasks@gcc"]
        == f"needs {wanted} 6 tasks, and a node has 4; ask for {remedy}"
    )
    assert left_out(place)["threads@gcc"].startswith(f"needs {wanted} 3 tasks of 2 threads, and a")
    assert ("told@gcc" in left_out(place)) is not overcommits


def test_hardware_threads_and_several_nodes_count(place: Place) -> None:
    place.machine(nodes=[{"names": "n[1-3]", "cores": 4, "threads_per_core": 2}])
    place.test(
        parameters={"nodes": [1, 2, 3], "n": [8, 9, 16, 17]}, run={"nodes": "nodes", "tasks": "n"}
    )
    fit = {(case.nodes, case.tasks) for case in place.cases()}
    assert fit == {(1, 8), *((2, n) for n in (8, 9, 16)), *((3, n) for n in (8, 9, 16, 17))}


def test_only_nodes_that_are_large_enough_count(place: Place) -> None:
    kinds = [{"names": "n[1-4]", "cores": 4}, {"names": "b[1-2]", "cores": 16}]
    place.machine(nodes=kinds)
    place.test("t", parameters={"nodes": [2, 3]}, run={"nodes": "nodes", "tasks_per_node": 8})
    place.test("each", run={"scope": "each_node", "tasks": 8})
    assert place.names() == ["each@gcc%b1", "each@gcc%b2", "t{nodes=2}@gcc"]
    assert left_out(place)["t{nodes=3}@gcc"] == "needs 3 nodes with 8 CPUs; there are 2"
    place.machine(nodes=[kinds[0] | {"partition": "small"}, kinds[1] | {"partition": "big"}])
    assert {case.job.partition for case in place.cases()} == {"big"}


@pytest.mark.parametrize("options", [["--overcommit"], ["-O"]])
def test_what_is_told_to_slurm_itself_counts(place: Place, options: list[str]) -> None:
    place.test("t", run={"tasks": 40, "options": options})
    assert place.names() == ["t@gcc"]
    place.test("t", run={"tasks": 40})
    assert place.plan().skipped
    place.machine(slurm={"options": options})
    assert place.names() == ["t@gcc"]


def test_this_host_runs_what_it_is_told_to(tmp_path: Path) -> None:
    place = Workplace(tmp_path)
    place.local(cores=1)
    place.test("told", run={"tasks": 3, "oversubscribe": True})
    place.test("not-told", run={"tasks": 3})
    done = place.run("--name", "t")
    assert done.code == 0, done.said
    assert place.verdicts() == {"told": "pass"}
    assert (
        "left out: not-told@plain: needs 3 CPUs of a node for 3 tasks, and a node has 1" in done.err
    )
