"""Tests that require features: what is launched of them, where only some nodes have these."""

from __future__ import annotations

from typing import Any

import pytest

from seatrial.errors import InvalidFiles
from seatrial.journal.events import JobEnded, JobStarted, NodeExcluded, RunSubmitted
from tests.plugins.rehearsal.stage import Played, Stage

BIG = {"features": ["big"]}


@pytest.fixture
def stage(stage: Stage) -> Stage:
    """Six plain nodes and two big ones; tests of one node and a minute."""
    stage.machine["nodes"] = [
        {"names": "n[1-6]", "cores": 8},
        {"names": "n[7-8]", "cores": 8, "features": ["big"]},
    ]
    stage.test("large", requires=BIG)
    stage.test("any")
    stage.behave("*", elapsed="1m")
    return stage


def faults(stage: Stage) -> list[str]:
    with pytest.raises(InvalidFiles) as caught:
        stage.prepare()
    return caught.value.faults


def mix(stage: Stage, **tests: Any) -> None:
    stage.component("c", kind="sustained", duration="20m", tests=tests)


def most_in_flight(played: Played, test: str) -> int:
    """The highest number of runs of a test that were in flight."""
    changes = [(e.time, 1) for e in played.of(RunSubmitted) if e.test == test]
    changes += [(e.time, -1) for e in played.of(JobEnded) if e.test == test]
    most = now = 0
    for _, change in sorted(changes):
        now += change
        most = max(most, now)
    return most


def test_copies_that_no_nodes_fit_are_refused_with_their_place(stage: Stage) -> None:
    mix(stage, large={"copies": 3}, any={"copies": 1})
    (fault,) = faults(stage)
    assert "components[0].tests.large.copies" in fault
    assert "3 of large take 3 nodes, and 2 have what they require" in fault
    assert "give fewer copies" in fault


def test_tests_that_share_their_nodes_are_counted_together(stage: Stage) -> None:
    stage.test("other", requires=BIG)
    mix(stage, large={"copies": 1}, other={"copies": 2}, any={"copies": 1})
    (fault,) = faults(stage)
    assert "components[0].tests" in fault
    assert "1 of large, 2 of other take 3 nodes, and 2 have" in fault
    stage.plan["components"][0]["tests"]["other"]["copies"] = 1
    stage.prepare()


def test_nested_and_overlapping_sets_of_nodes(stage: Stage) -> None:
    """One test needs what two nodes have, another what these and one more have."""
    stage.machine["nodes"] = [
        {"names": "n[1-5]", "cores": 8},
        {"names": "n6", "cores": 8, "features": ["fast"]},
        {"names": "n[7-8]", "cores": 8, "features": ["big", "fast"]},
    ]
    stage.test("fast", requires={"features": ["fast"]})
    mix(stage, large={"copies": 2}, fast={"copies": 2}, any={"copies": 1})
    (fault,) = faults(stage)
    assert "2 of fast, 2 of large take 4 nodes, and 3 have" in fault


def test_shares_that_the_fitting_nodes_cannot_give_are_refused(stage: Stage) -> None:
    mix(stage, large={"share": "40%"}, any={"share": "60%"})
    (fault,) = faults(stage)
    assert "components[0].tests.large.share" in fault
    assert "large 40%: 25 % of the nodes have what they require" in fault
    stage.plan["components"][0]["tests"] = {"large": {"share": "25%"}, "any": {"share": "75%"}}
    stage.prepare()


def test_in_a_phase_its_own_nodes_count(stage: Stage) -> None:
    stage.plan["phases"] = [{"phase": "first", "nodes": "n[1-7]"}, {"phase": "second"}]
    mix(stage, large={"copies": 2}, any={"copies": 1})
    (fault,) = faults(stage)
    assert "2 of large take 2 nodes, and 1 have what they require in phase first" in fault


def test_a_mix_launches_no_more_than_fit_and_keeps_the_others_going(stage: Stage) -> None:
    """By weight `large` would have half of the machine, of which it can use a quarter."""
    mix(stage, large={"weight": 1}, any={"weight": 1})
    played = stage.play()
    assert most_in_flight(played, "large") <= 3, "two on nodes, and one that waits"
    on = {e.run_id: e.nodes for e in played.of(JobStarted)}
    tests = {e.run_id: e.test for e in played.of(JobStarted)}
    assert {on[run] for run, test in tests.items() if test == "large"} <= {"n7", "n8"}
    assert played.rehearsed.utilisation > 0.94


def test_a_mix_keeps_the_copies_that_fit(stage: Stage) -> None:
    stage.component(
        "c",
        kind="sustained",
        duration="20m",
        reserve=0,
        tests={"large": {"copies": 2}, "any": {"copies": 6}},
    )
    played = stage.play()
    assert most_in_flight(played, "large") == 2
    assert played.verdicts("any")["pass"] == 120


def test_a_wave_has_as_many_copies_as_fit(stage: Stage) -> None:
    stage.component(
        "c", kind="isolated_then_full", tests={"large": {"alone": 1, "full": 2}, "any": {"full": 1}}
    )
    played = stage.play()
    assert played.verdicts("large") == {"pass": 1 + 2 * 2}
    assert played.verdicts("any") == {"pass": 3 + 8}


def test_each_node_runs_on_those_that_have_them(stage: Stage) -> None:
    (stage.folder / "suite/large/test.yaml").write_text(
        "{app: a, requires: {features: [big]}, run: {script: 'true', scope: each_node, "
        "walltime: 10m}}"
    )
    mix(stage, large={"copies": 2})
    played = stage.play()
    assert {e.nodes for e in played.of(JobStarted)} == {"n7", "n8"}
    stage.plan["components"][0]["tests"] = {"large": {"copies": 3}}
    (fault,) = faults(stage)
    assert "3 of large take 3 nodes, and 2 have" in fault


def test_a_run_after_a_failed_one_avoids_its_node_only_where_another_fits(stage: Stage) -> None:
    """Both big nodes fail runs; to avoid them would leave none, so that it would wait for ever."""
    stage.machine["nodes"][1]["names"] = "n7"
    stage.machine["nodes"].append({"names": "n8", "cores": 8})
    stage.behave("*", elapsed="1m", hangs="100%")
    stage.component("c", tests={"large": {}}, exclude={"after": 0})
    stage.plan["components"][0]["retry"] = {"answers": {"timeout": "elsewhere"}, "attempts": 3}
    played = stage.play()
    assert [e.nodes for e in played.of(JobStarted)] == ["n7"] * 3


def test_where_too_few_fitting_nodes_are_left_it_is_said_which(stage: Stage) -> None:
    stage.test("pair", nodes=2, requires=BIG)
    stage.behave("*", elapsed="1m", hangs="100%")
    stage.component(
        "c",
        tests={"large": {}, "pair": {}},
        exclude={"after": 1, "most": "50%"},
        repeat=3,
    )
    played = stage.play()
    assert played.of(NodeExcluded)
    assert "of those that it can use are not excluded" in played.rehearsed.reason
