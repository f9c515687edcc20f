"""What a conductor knows by its events, and what it then decides and tells."""

from __future__ import annotations

from typing import Any

import pytest

from seatrial.decide.conductor import Decision
from seatrial.decide.state import MAX_REFUSED
from seatrial.journal.events import (
    AlertRaised,
    BuildEnded,
    BuildStarted,
    Event,
    GaugeRead,
    JobEnded,
    JobQueued,
    JobStarted,
    MetricRecorded,
    NodeAdmitted,
    NodeDown,
    NodeExcluded,
    NodeUp,
    OutputQuiet,
    OutputRemoved,
    PolicyChanged,
    RunCancelAsked,
    RunJudged,
    RunSubmitted,
    ScriptEnded,
    ScriptStarted,
    TestAdmitted,
    TestStopped,
    TrialAbandoned,
    TrialCancelled,
    TrialEnded,
    TrialExtended,
    TrialPaused,
    TrialResumed,
    TrialStarted,
)
from seatrial.model.codes import LAUNCH_FAILED, PASS
from seatrial.model.policy import Entry, Limits, Policy

from .world import NS, World, a_run


def begun(kind: Any = "once", **more: Any) -> World:
    """A trial of one test that has just started."""
    duration = 3600.0 if kind == "sustained" else 0.0
    policy = Policy(
        kind=kind,
        entries=[Entry(name="t0", copies=1, **more)],
        entry_of=[0],
        duration=duration,
        nodes=4,
    )
    world = World([a_run(0, "t0", repeat=100)], Limits(jobs=1), policy)
    world.note(TrialStarted)
    return world


def decided(world: World) -> Decision:
    world.now += NS
    return world.conductor.decide(world.now)


def refuse(world: World) -> None:
    """The scheduler does not take the next run."""
    (launch, *_) = decided(world).launches
    world.note(RunSubmitted, launch.run_id, launch.case)
    why = "no such account"
    world.note(RunJudged, launch.run_id, launch.case, code=LAUNCH_FAILED.number, reason=why)


@pytest.mark.parametrize("kind", ["once", "sustained"])
def test_where_time_decides_launches_that_fail_in_a_row_stop_a_test(kind: str) -> None:
    world = begun(kind)
    for _ in range(MAX_REFUSED):
        assert not decided(world).stops
        refuse(world)
    stops = [stop for stop in decided(world).stops if isinstance(stop, TestStopped)]
    found = [(stop.test, "no such account" in stop.reason) for stop in stops]
    assert found == ([("t0", True)] if kind == "sustained" else [])


def alerts(world: World) -> list[tuple[str, str]]:
    return [(alert.kind, alert.subject) for alert in decided(world).alerts]


@pytest.mark.parametrize("text", ["a person said so", ""])
def test_people_are_told_of_what_was_stopped_or_excluded_and_why(text: str) -> None:
    world = begun()
    world.note(TestStopped, test="t0", reason=text)
    world.note(NodeExcluded, nodes="n001", reason=text)
    found = {(alert.kind, alert.subject): alert.text for alert in decided(world).alerts}
    assert found.keys() == {("stopped", "t0"), ("excluded", "n001")}
    for (_, subject), words in found.items():
        assert words.startswith(subject)
        assert text in words
        assert len(words) > len(subject) + len(text)


def test_a_known_failure_that_passes_is_told_once() -> None:
    world = begun()
    for _ in range(2):
        (launch, *_) = decided(world).launches
        world.note(RunSubmitted, launch.run_id, launch.case)
        world.note(RunJudged, launch.run_id, launch.case, code=PASS.number, known="bug 7")
    (alert,) = decided(world).alerts
    assert (alert.kind, alert.subject) == ("known", f"t0@{world.cases[0].toolchain}")
    assert "bug 7" in alert.text
    world.note(AlertRaised, kind=alert.kind, subject=alert.subject, text=alert.text)
    (launch, *_) = decided(world).launches
    world.note(RunSubmitted, launch.run_id, launch.case)
    world.note(RunJudged, launch.run_id, launch.case, code=PASS.number, known="bug 7")
    assert not alerts(world)


@pytest.mark.parametrize("ends", [False, True])
def test_a_hung_run_is_told_once(ends: bool) -> None:
    world = begun(quiet_after=60.0, end_quiet=ends)
    (launch, *_) = decided(world).launches
    for event in (RunSubmitted, JobQueued, JobStarted):
        world.note(event, launch.run_id, launch.case)
    world.note(OutputQuiet, launch.run_id, launch.case, seconds=60.0)
    (alert,) = decided(world).alerts
    assert (alert.kind, alert.subject) == ("hung", launch.run_id)
    assert ("is ended" in alert.text) == ends
    world.note(AlertRaised, kind=alert.kind, subject=alert.subject, text=alert.text)
    assert not alerts(world)


CHANGES: list[tuple[type[Event], dict[str, Any]]] = [
    (TestStopped, {"test": "t0"}),
    (TestAdmitted, {"test": "t0"}),
    (NodeDown, {"nodes": "n001"}),
    (NodeUp, {"nodes": "n001"}),
    (NodeExcluded, {"nodes": "n001"}),
    (NodeAdmitted, {"nodes": "n001"}),
    (GaugeRead, {"gauge": "load", "value": 1.0}),
    (TrialPaused, {}),
    (TrialCancelled, {}),
    (TrialAbandoned, {}),
    (TrialResumed, {}),
    (TrialEnded, {"failed": 0}),
    (AlertRaised, {"kind": "stopped", "subject": "t0"}),
]


@pytest.mark.parametrize(("event", "about"), CHANGES)
def test_after_what_people_or_the_machine_did_it_is_asked_again(
    event: type[Event], about: dict[str, Any]
) -> None:
    world = begun()
    world.conductor.state.changed = False
    world.note(event, **about)
    assert world.conductor.state.changed


@pytest.mark.parametrize(
    ("seconds", "extended"),
    [(60, True), (0, False), (-1, False), (float("inf"), False), ("x", False)],
)
def test_only_a_time_that_can_be_added_extends_a_trial(seconds: Any, extended: bool) -> None:
    world = begun("sustained")
    world.conductor.state.changed = False
    over = world.conductor.state.over_at
    world.note(TrialExtended, seconds=seconds)
    assert world.conductor.state.changed == extended
    assert over is not None
    assert world.conductor.state.over_at == over + (60 * NS if extended else 0)


@pytest.mark.parametrize(("word", "about"), [(ScriptStarted, {}), (ScriptEnded, {"exit_code": 0})])
def test_a_run_that_nobody_saw_start_has_started_by_its_own_word(
    word: type[Event], about: dict[str, Any]
) -> None:
    world = begun()
    state = world.conductor.state
    (launch, *_) = decided(world).launches
    for event in (RunSubmitted, JobQueued):
        world.note(event, launch.run_id, launch.case)
    assert (state.counts.queued, state.counts.running) == (1, 0)
    told: list[tuple[type[Event], dict[str, Any]]]
    told = [(word, about), (JobStarted, {}), (word, about)]
    for kind, more in told:
        world.note(kind, launch.run_id, launch.case, **more)
        assert not state.queued
        assert (state.counts.queued, state.counts.running) == (0, 1)
    world.note(JobEnded, launch.run_id, launch.case, code=PASS.number)
    assert (state.counts.total, state.counts.running) == (0, 0)


HAPPENS: list[tuple[type[Event], dict[str, Any], bool]] = [
    (JobQueued, {}, True),
    (JobStarted, {}, True),
    (MetricRecorded, {"metric": "rate"}, True),
    (JobEnded, {"code": PASS.number}, True),
    (RunJudged, {"code": PASS.number}, True),
    (OutputQuiet, {"seconds": 60.0}, False),
    (OutputRemoved, {"files": 1}, False),
    (RunCancelAsked, {}, False),
]


@pytest.mark.parametrize(("event", "about", "happens"), HAPPENS)
def test_the_latest_that_happened_to_a_run_is_known(
    event: type[Event], about: dict[str, Any], happens: bool
) -> None:
    world = begun()
    (launch, *_) = decided(world).launches
    world.note(RunSubmitted, launch.run_id, launch.case)
    submitted = world.now
    world.now += 5 * NS
    world.note(event, launch.run_id, launch.case, **about)
    assert world.conductor.state.watchdogs.latest == submitted + 5 * NS * happens
    world.now -= 9 * NS  # by the clock of a node
    world.note(event, launch.run_id, launch.case, **about)
    assert world.conductor.state.watchdogs.latest == submitted + 5 * NS * happens


def test_the_latest_that_happened_to_a_build_is_known_and_that_of_a_node_is_not() -> None:
    world = begun()
    latest: list[int] = []
    told: list[tuple[type[Event], dict[str, Any]]] = [
        (BuildStarted, {"key": "k"}),
        (BuildEnded, {"key": "k", "code": PASS.number}),
        (NodeDown, {"nodes": "n001"}),
        (GaugeRead, {"gauge": "load", "value": 1.0}),
    ]
    for event, about in told:
        world.now += NS
        world.note(event, **about)
        latest.append(world.now - world.conductor.state.watchdogs.latest)
    assert latest == [0, 0, NS, 2 * NS]


def test_a_cap_on_a_file_system_that_comes_later_counts_what_is_in_flight() -> None:
    world = begun(file_system="fs", bytes=7)
    state = world.conductor.state
    (launch, *_) = decided(world).launches
    world.note(RunSubmitted, launch.run_id, launch.case)
    assert (state.counts.on_file_system, state.counts.bytes) == ({}, {})
    world.note(PolicyChanged, parts={"caps": {"file_systems": {"fs": 1}}})
    assert (state.counts.on_file_system, state.counts.bytes) == ({"fs": 1}, {"fs": 7})
