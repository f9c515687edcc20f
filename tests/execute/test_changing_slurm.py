"""People change a trial on the emulated Slurm while it runs, and its driver is killed between."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from seatrial.journal.events import (
    JobStarted,
    NodeExcluded,
    PolicyChanged,
    RunJudged,
    RunSubmitted,
    TestHeld,
)
from seatrial.model.node_set import unfold
from tests.execute.disturbed import options
from tests.execute.plans import TAG, audit, control, passed, start, write_plan
from tests.programs import Workplace
from tests.slurm.cluster import SlurmCluster

pytestmark = pytest.mark.slurm

HALF_A_SECOND = "sleep 0.$((3 + RANDOM % 6))\necho ok"
FIRST, SECOND = {"a": 0.75, "b": 0.25}, {"a": 0.25, "b": 0.75}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmCluster]:
    with SlurmCluster(tmp_path_factory.mktemp("c") / "cluster", options(nodes=4)) as cluster:
        yield cluster


def write(place: Workplace, shares: dict[str, float], seconds: int) -> None:
    tests = {
        "a": {"share": shares["a"], "io": "heavy"},
        "b": {"share": shares["b"], "io": "light"},
    }
    criteria = [{"criterion": "mix", "at_most": "15%"}]
    write_plan(place, f"{seconds}s", tests=tests, reserve=6, criteria=criteria)


def since(place: Workplace, time: int) -> int:
    return sum(e.time > time and e.verdict == "pass" for e in place.events(TAG, RunJudged))


def test_a_trial_is_changed_held_and_cut_while_it_runs_and_its_driver_dies(
    place: Workplace, cluster: SlurmCluster
) -> None:
    for test in "ab":
        keys = {"nodes": 1, "walltime": "20s", "exclusive": True}
        place.test(test, HALF_A_SECOND, run=keys)
    place.slurm(cluster, {"poll": "0.5s"})
    write(place, FIRST, 600)
    with start(place, "-q") as driving:
        driving.until(lambda: passed(place) > 20, "runs by the first plan", 120)
        write(place, SECOND, 600)
        changed = control(place, "change", "--reason", "b is what matters", "--yes")
        assert changed.code == 0, changed.said
        driving.kill()
    (change,) = place.events(TAG, PolicyChanged)
    with start(place, "-q") as driving:
        driving.until(lambda: since(place, change.time) > 36, "runs by the second plan", 120)
        node = cluster.node_names[-1]
        assert control(place, "exclude", node, "--reason", "the fan is loud").code == 0
        (excluded,) = place.events(TAG, NodeExcluded)
        driving.until(lambda: since(place, excluded.time) > 5, "runs on the other nodes", 120)
        assert control(place, "hold", "heavy", "--reason", "the forecast is late").code == 0
        (held,) = place.events(TAG, TestHeld)
        driving.kill()
    with start(place, "-q") as driving:
        driving.until(lambda: since(place, held.time) > 5, "runs while one test is held", 120)
        run = [event.run_id for event in place.events(TAG, RunSubmitted)][-1]
        place.seatrial("cancel", f"{TAG}/{run}", "--reason", "try it")
        assert control(place, "release", "heavy").code == 0
        assert control(place, "admit", node).code == 0
        before = passed(place, "a")
        driving.until(lambda: passed(place, "a") > before + 2, "the held test again", 120)
        assert control(place, "pause").code == 0
        driving.end(120)

    audit(place)
    tests = {event.run_id: event.test for event in place.events(TAG, RunSubmitted)}
    submitted = {event.run_id: event.time for event in place.events(TAG, RunSubmitted)}
    late = [e for e in place.events(TAG, RunSubmitted) if held.time < e.time and e.test == "a"]
    released = min(event.time for event in late)
    between = [e.test for e in place.events(TAG, JobStarted) if held.time < e.time < released]
    assert between.count("a") <= 4, "those that were starting as it was held"
    there = [e for e in place.events(TAG, JobStarted) if node in unfold(e.nodes)]
    assert not [e for e in there if excluded.time < submitted[e.run_id] < released]
    (one,) = json.loads(control(place, "status", "--format", "json").out)["trials"]
    first = _mix(place, tests, 0, change.time)
    second = _mix(place, tests, change.time, excluded.time)
    print(first, second, one["node_shares"])
    assert first["a"] == pytest.approx(FIRST["a"], abs=0.15)
    assert second["a"] == pytest.approx(SECOND["a"], abs=0.15)
    planned = {each["test"]: each["planned"] for each in one["node_shares"]["tests"]}
    assert SECOND["a"] < planned["a"] < FIRST["a"]
    actions = [each["action"] for each in one["actions"]]
    assert actions[:3] == ["change", "exclude", "hold"]
    assert {"release", "admit", "pause"} <= set(actions)


def _mix(place: Workplace, tests: dict[str, str], start: int, end: int) -> dict[str, Any]:
    """The part of each test of the passed runs in a span: they have one node and one length."""
    found = [
        tests[e.run_id]
        for e in place.events(TAG, RunJudged)
        if e.verdict == "pass" and start < e.time < end
    ]
    return {test: found.count(test) / len(found) for test in "ab"}
