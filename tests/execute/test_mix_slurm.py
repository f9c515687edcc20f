"""The mix that a plan promises is what runs on the emulated Slurm: 6 nodes, half of them for one
test, two copies of another, and a third that fills what is left. Before, it was 83, 16 and 0 %.

Runs take about a second, so that there are more than fifty in half a minute.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from seatrial.journal.events import NodeDown, TrialStarted
from seatrial.journal.journal import read
from seatrial.journal.trial import RunLife
from seatrial.model.codes import PASS
from seatrial.units import SECOND_NS
from tests.execute.disturbed import options
from tests.execute.plans import TAG, passed, start, write_plan
from tests.programs import Workplace
from tests.slurm.cluster import SlurmCluster

pytestmark = pytest.mark.slurm

SECONDS = 26
RESERVE = 9  # so many runs end between two polls
MIX = {"climate": {"share": "50%"}, "waves": {"copies": 2}, "filler": {"fill": True}}
PLANNED = {"climate": 1 / 2, "waves": 1 / 3, "filler": 1 / 6}
A_SECOND = "sleep 1.$((RANDOM % 6))\necho ok"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmCluster]:
    with SlurmCluster(tmp_path_factory.mktemp("mix") / "cluster", options(nodes=6)) as cluster:
        yield cluster


def write_mix(
    folder: Path, cluster: SlurmCluster, seconds: int, script: str, **run: Any
) -> Workplace:
    """The suite, the machine and the plan of a mix."""
    place = Workplace(folder)
    for test, nodes in {"climate": 2, "waves": 1, "filler": 1}.items():
        place.test(test, script, run={"nodes": nodes, "walltime": "5s", **run})
    place.slurm(cluster, {"poll": "1s"})
    write_plan(place, f"{seconds}s", tests=MIX, reserve=RESERVE)
    return place


def shares_of(place: Workplace) -> dict[str, Any]:
    """What `accept status` says of the shares of a trial that has come to its end."""
    done = start(place, "-q").end(120)
    assert done.code == 0, done.said
    status = place.seatrial("accept", "status", "plan.yaml", "--format", "json")
    (trial,) = json.loads(status.out)["trials"]
    runs = sum(part["accepted"] for part in trial["parts"])
    print(runs, trial["node_shares"])
    return {"runs": runs, **trial["node_shares"]}


def test_the_achieved_shares_are_those_of_the_plan(tmp_path: Path, cluster: SlurmCluster) -> None:
    found = shares_of(write_mix(tmp_path, cluster, SECONDS, A_SECOND, exclusive=True))
    had = {each["test"]: each["achieved"] for each in found["tests"]}
    assert {each["test"]: each["planned"] for each in found["tests"]} == pytest.approx(PLANNED)
    assert had == pytest.approx(PLANNED, abs=0.05)
    assert found["runs"] >= 45  # how many there are is the host's matter
    assert (found["unclaimed"], found["shared"]) == (0, 0)


def test_it_is_said_when_runs_share_nodes(tmp_path: Path, cluster: SlurmCluster) -> None:
    """Runs of one core, not exclusive, on nodes with four: Slurm puts several on one."""
    place = write_mix(tmp_path, cluster, 6, "sleep 3\necho ok")
    warned = place.seatrial("accept", "plan.yaml", "--dry-run")
    assert "climate (1 of 4 cores), filler (1 of 4 cores), waves (1 of 4 cores)" in warned.said
    found = shares_of(place)
    assert found["shared"] > 0.1
    assert found["occupied"] > sum(each["achieved"] for each in found["tests"]) <= 1
    said = place.seatrial("accept", "status", "plan.yaml").out
    print(said)
    assert "runs shared nodes" in said


def test_utilisation_is_of_nodes_where_jobs_share_them_and_one_dies(
    tmp_path: Path, cluster: SlurmCluster
) -> None:
    """The last test of this cluster: a node of it dies. Jobs of one core leave nodes empty, and two
    jobs on one node must not stand for one that is dead."""
    place = Workplace(tmp_path)
    place.test("small", "sleep 3\necho ok", run={"walltime": "5s"})
    place.slurm(cluster, {"poll": "1s"})
    criteria = [
        {"criterion": "utilisation", "at_least": "99%"},
        {"criterion": "availability", "at_least": "99%"},
    ]
    write_plan(place, "12s", tests={"small": {"copies": 6}}, reserve=4, criteria=criteria)
    with start(place, "-q") as driving:
        driving.until(lambda: passed(place) > 2, "runs that passed")
        cluster.kill_node(cluster.node_names[-1], declare_down=True)
        done = driving.end(120)
    assert done.code == 1, done.said
    status = place.seatrial("accept", "status", "plan.yaml", "--format", "json")
    (trial,) = json.loads(status.out)["trials"]
    use = trial["criteria"][0][0]
    node_s = {name: hours * 3600 for name, hours in use["numbers"].items() if "hours" in name}
    assert use["value"] == pytest.approx(by_node(place, trial), abs=0.01)
    assert node_s["down node-hours"] > 1
    jobs = sum(run.elapsed or 0 for run in lives(place).values() if run.code == PASS.number)
    assert node_s["accepted node-hours"] < 0.9 * jobs, "some jobs ran side by side"


def by_node(place: Workplace, trial: dict[str, Any]) -> float:
    """The share of the node time in which a run that passed had the node, tenth by tenth of a
    second, and it was not down."""
    events = list(read(place.trial(TAG).journal))
    begin = next(event.time for event in events if isinstance(event, TrialStarted))
    (down,) = [(event.nodes, event.time) for event in events if isinstance(event, NodeDown)]
    runs = [run for run in lives(place).values() if run.code == PASS.number]
    tenth, used = SECOND_NS // 10, 0
    steps = round(trial["clock"] * 10)
    for name in [f"n{number:03}" for number in range(1, trial["nodes"] + 1)]:
        for step in range(steps):
            time = begin + step * tenth + tenth // 2
            there = any(
                run.nodes == name and (run.script_started or 0) <= time < (run.script_ended or 0)
                for run in runs
            )
            used += there and not (name == down[0] and time >= down[1])
    return used / float(steps * trial["nodes"])


def lives(place: Workplace) -> dict[str, RunLife]:
    found: dict[str, RunLife] = {}
    for event in read(place.trial(TAG).journal):
        if event.run_id:
            found.setdefault(event.run_id, RunLife()).apply(event)
    return found
