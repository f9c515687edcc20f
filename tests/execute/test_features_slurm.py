"""Tests that require features, in a plan on the emulated Slurm: two of four nodes have them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from seatrial.journal.events import JobEnded, JobStarted, RunSubmitted
from tests.execute.plans import accept, write_plan
from tests.programs import Workplace
from tests.slurm.cluster import ClusterOptions, SlurmCluster

pytestmark = pytest.mark.slurm

NODES = [
    {"names": "n[001-002]", "cores": 4},
    {"names": "n[003-004]", "cores": 4, "features": ["big"]},
]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmCluster]:
    options = ClusterOptions(nodes=4, features={"n003": "big", "n004": "big"})
    with SlurmCluster(tmp_path_factory.mktemp("features") / "cluster", options) as cluster:
        yield cluster


@pytest.fixture
def place(tmp_path: Path, cluster: SlurmCluster) -> Workplace:
    place = Workplace(tmp_path)
    place.slurm(cluster, nodes=NODES)
    run = {"walltime": "5s", "exclusive": True}
    place.test("large", "sleep 1\necho ok", run=run, requires={"features": ["big"]})
    place.test("any", "sleep 1\necho ok", run=run)
    return place


def test_copies_that_no_nodes_fit_are_refused_before_anything_runs(place: Workplace) -> None:
    write_plan(place, "20s", tests={"large": {"copies": 3}, "any": {"copies": 1}})
    done = accept(place)
    assert done.code == 2
    assert "components[0].tests.large.copies" in done.err
    assert "3 of large take 3 nodes, and 2 have what they require" in done.err


def test_a_mix_has_no_more_in_flight_than_fit(place: Workplace) -> None:
    write_plan(place, "10s", tests={"large": {"weight": 3}, "any": {"weight": 1}})
    done = accept(place)
    assert done.code == 0, done.said
    tag = "p-mix"
    on = {each.run_id: each.nodes for each in place.events(tag, JobStarted)}
    large = [each.run_id for each in place.events(tag, RunSubmitted) if each.test == "large"]
    assert {on[run] for run in large if run in on} == {"n003", "n004"}
    now = most = 0
    for event in place.events(tag, RunSubmitted, JobEnded):
        if event.test == "large":
            now += 1 if isinstance(event, RunSubmitted) else -1
            most = max(most, now)
    assert most <= 3, "two on nodes, and one that waits"
    ran = {each.nodes for each in place.events(tag, JobStarted) if each.test == "any"}
    assert {"n001", "n002"} <= ran, "the other nodes have work"


def test_more_tasks_than_cores_run_where_that_is_asked(
    place: Workplace, cluster: SlurmCluster
) -> None:
    place.slurm(cluster, nodes=NODES, launcher={"kind": "srun"})
    place.test("told", "$LAUNCH echo task", run={"tasks": 6, "oversubscribe": True})
    place.test("not-told", "$LAUNCH echo task", run={"tasks": 6})
    done = place.run("-k", "told", "--name", "crowded")
    assert done.code == 0, done.said
    assert (place.run_folder("told", "crowded") / "stdout").read_text().count("task") == 6
    assert "left out: not-told@plain: needs 6 CPUs of a node for 6 tasks" in done.err
