"""Events of a rehearsal: spans in which runs turn out otherwise."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from seatrial.errors import InvalidFiles
from seatrial.journal.events import (
    AlertRaised,
    JobEnded,
    JobQueued,
    JobStarted,
    RunJudged,
    TestStopped,
)
from tests.plugins.rehearsal.stage import SECOND, START, Played, Stage, since


def play(stage: Stage, *events: dict[str, Any], reserve: int = 0, **behaviour: Any) -> Played:
    """Four runs of a test at a time, of 1 min on 2 of the 8 nodes, for 20 min, and what happens
    to them."""
    stage.test("work", nodes=2)
    stage.behave("work", elapsed="1m", **behaviour)
    stage.component(
        "c", kind="sustained", duration="20m", reserve=reserve, tests={"work": {"copies": 4}}
    )
    stage.plan["rehearsal"]["events"] = list(events)
    return stage.play()


def spans(played: Played) -> list[tuple[float, float, str]]:
    """Start and end (s) of each job, and the verdict of its run."""
    started = {e.run_id: since(e) for e in played.of(JobStarted)}
    verdict = {e.run_id: e.verdict for e in played.of(RunJudged)}
    return [
        (started[e.run_id], round(since(e), 6), verdict[e.run_id])
        for e in played.of(JobEnded)
        if e.run_id in started
    ]


def test_runs_that_start_in_the_span_are_slower(stage: Stage) -> None:
    played = play(stage, {"from": "5m", "to": "10m", "slow_by": 2})
    times = {(300 <= start < 600): end - start for start, end, _ in spans(played) if end < 1200}
    assert times == {False: 60, True: 120}
    assert set(played.verdicts()) == {"pass"}


@pytest.mark.parametrize(
    ("effect", "verdict", "takes"),
    [
        ({"fails": "100%"}, "failed", 60),
        ({"hangs": "100%"}, "timeout", 600),
        ({"keeps": "walltime"}, "pass", 600),
        ({"keeps": "30s"}, "pass", 90),
    ],
)
def test_what_happens_in_the_span_happens_there_alone(
    stage: Stage, effect: dict[str, Any], verdict: str, takes: float
) -> None:
    found = spans(play(stage, {"from": "1m", "to": "2m", **effect}))
    inside = [each for each in found if 60 <= each[0] < 120]
    outside = [each for each in found if not 60 <= each[0] < 120]
    assert {each[2] for each in inside} == {verdict}
    assert all(end - start <= takes for start, end, _ in inside)
    assert verdict == "failed" or {end - start for start, end, _ in inside} == {takes}
    assert {(round(end - start, 6), what) for start, end, what in outside} == {(60, "pass")}


def test_held_jobs_wait_until_its_end(stage: Stage) -> None:
    played = play(stage, {"from": "90s", "to": "10m", "held": True, "tests": ["work"]})
    starts = sorted(since(each) for each in played.of(JobStarted))
    assert [start for start in starts if start < 600] == [0] * 4 + [60] * 4
    assert starts[8:12] == [600] * 4
    queued = sorted(since(each) for each in played.of(JobQueued))
    assert queued[8:12] == [120] * 4, "they are submitted, and wait"


def test_a_held_job_can_be_cancelled(stage: Stage) -> None:
    blackout = {"from": "3m", "to": "15m"}
    stage.test("work", nodes=2)
    stage.behave("work", elapsed="1m")
    stage.component(
        "c",
        kind="sustained",
        duration="20m",
        reserve=0,
        tests={"work": {"copies": 4}},
        blackouts=[blackout],
    )
    stage.plan["rehearsal"]["events"] = [{"from": "90s", "to": "10m", "held": True}]
    played = stage.play()
    starts = [since(each) for each in played.of(JobStarted)]
    assert not [start for start in starts if 120 <= start < 900], "recalled while they were held"
    assert starts.count(900) == 4


def test_refused_launches_stop_the_test_and_people_are_told(stage: Stage) -> None:
    played = play(stage, {"from": "5m", "to": "6m", "refused": 1, "why": "QOS is full"})
    (stopped,) = played.of(TestStopped)
    assert 300 <= since(stopped) <= 360
    assert stopped.reason.endswith("launches in a row failed: QOS is full")
    told = {(each.kind, since(each)) for each in played.of(AlertRaised)}
    assert ("stopped", since(stopped)) in told


def test_an_event_concerns_its_tests_and_nodes_alone(stage: Stage) -> None:
    for name in ("one", "other"):
        stage.test(name, nodes=4)
        stage.behave(name, elapsed="1m")
    tests = {"one": {"copies": 1}, "other": {"copies": 1}}
    stage.component("c", kind="sustained", duration="10m", reserve=0, tests=tests)
    events = [
        {"from": 0, "to": "5m", "tests": ["on*"], "fails": 1},
        {"from": "5m", "to": "10m", "nodes": "n[7-8]", "fails": 1},
    ]
    stage.plan["rehearsal"]["events"] = events
    played = stage.play()
    nodes = {each.run_id: each.nodes for each in played.of(JobEnded)}
    begun = {each.run_id: since(each) for each in played.of(JobStarted)}
    for each in played.of(RunJudged):
        first = begun[each.run_id] < 300
        fails = each.test == "one" if first else nodes[each.run_id] == "n[5-8]"
        assert (each.verdict == "failed") == fails, each


def test_other_runs_turn_out_as_without_events(stage: Stage) -> None:
    chance = {"elapsed": {"mean": "1m", "sd": "10s"}, "fails": "20%"}
    for name in ("one", "other"):
        stage.test(name, nodes=4)
        stage.behave(name, **chance)
    tests = {"one": {"copies": 1}, "other": {"copies": 1}}
    stage.component("c", kind="sustained", duration="10m", reserve=0, tests=tests)

    def ends() -> list[tuple[int, str]]:
        played = stage.play()
        return [(e.time, e.verdict) for e in played.of(RunJudged) if e.test == "other"]

    before = ends()
    stage.plan["rehearsal"]["events"] = [
        {"from": "1m", "to": "8m", "tests": ["one"], "slow_by": 3, "fails": 0.5, "hangs": 0.3}
    ]
    assert ends() == before


def test_a_span_may_be_by_the_calendar(stage: Stage) -> None:
    def at(seconds: int) -> str:
        return datetime.fromtimestamp(START / SECOND + seconds, UTC).isoformat()

    played = play(stage, {"from": at(300), "to": at(600), "slow_by": 2})
    slow = [start for start, end, _ in spans(played) if end - start == 120]
    assert (min(slow), max(slow)) == (300, 540)


@pytest.mark.parametrize(
    ("event", "place", "said"),
    [
        ({"from": "1h", "to": "1h", "held": True}, "to", "is not after from"),
        ({"from": "1h", "to": "2h"}, "events[0]", "changes nothing; give slow_by"),
        ({"from": "1h", "to": "2h", "tests": ["wrok"], "held": True}, "tests[0]", "no"),
        ({"from": "1h", "to": "2h", "fails": "60%", "hangs": "50%"}, "events[0]", "add up to 1.1"),
        ({"from": "1h", "to": "2h", "refused": "110%"}, "events[0]", "the maximum is 1"),
        ({"from": "1h", "to": "2h", "keeps": "long"}, "keeps", "long"),
        ({"from": "1h", "to": "2h", "slow_by": 0}, "slow_by", "0"),
        ({"from": "1h", "to": "2h", "nodes": "x[1-3]", "held": True}, "nodes", "x1 is not a node"),
        ({"from": "1h", "held": True}, "events[0]", "to"),
        ({"from": "x", "to": "2h", "held": True}, "from", "x"),
    ],
)
def test_faults_are_told_with_their_place(
    stage: Stage, event: dict[str, Any], place: str, said: str
) -> None:
    with pytest.raises(InvalidFiles) as caught:
        play(stage, event)
    (fault,) = caught.value.faults
    assert "rehearsal" in fault
    assert place in fault
    assert said in fault
