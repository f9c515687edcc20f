from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from seatrial.decide.conductor import Conductor, Decision, Finish
from seatrial.decide.nodes import placing_of
from seatrial.journal.events import (
    AlertRaised,
    BuildEnded,
    BuildStarted,
    Event,
    GaugeRead,
    JobQueued,
    JobStarted,
    MetricRecorded,
    NodeAdmitted,
    NodeDown,
    NodeExcluded,
    OutputQuiet,
    RunJudged,
    RunSubmitted,
    TestAdmitted,
    TestStopped,
    TrialAbandoned,
    TrialPaused,
    TrialResumed,
    TrialStarted,
)
from seatrial.model.codes import CANCELLED, FAILED, HUNG
from seatrial.model.machine import Machine, NetworkModel, NodeGroup
from seatrial.model.policy import Entry, Limits, Policy, ThrottleRule, WatchLimits, Window
from seatrial.model.test import Case, RunSpec, Test
from seatrial.model.topology import NodeWish

from .world import a_run

NS = 10**9


class Told:
    """A sustained trial of one test on 8 nodes, and what it tells."""

    def __init__(
        self,
        copies: int = 2,
        watch: WatchLimits | None = None,
        case: Case | None = None,
        **more: Any,
    ) -> None:
        entry = Entry(name="t", copies=copies, most=copies, **more.pop("entry", {}))
        policy = Policy(
            kind="sustained",
            entries=[entry],
            entry_of=[0],
            nodes=8,
            watch=watch or WatchLimits(),
            **{"duration": 1e6, **more},
        )
        self.conductor = Conductor("tag", [case or a_run(0, "t")], Limits(), policy)
        self.note(1, TrialStarted)

    def note(self, time: float, kind: type[Event], /, run_id: str = "", **more: Any) -> None:
        if run_id:
            more |= {"run_id": run_id, "case": "case0"}
        self.conductor.apply(kind(time=round(time * NS), **more))

    def alerts(self, time: float) -> list[tuple[str, str, str]]:
        found = self.conductor.decide(round(time * NS))
        alerts = [(each.kind, each.subject, each.text) for each in found.alerts]
        for kind, subject, _ in alerts:
            self.note(time, AlertRaised, kind=kind, subject=subject)
        return alerts

    def wake(self, time: float) -> float | None:
        found = self.conductor.decide(round(time * NS))
        return None if found.wake is None else found.wake / NS


def test_a_test_that_is_short_for_long_is_told_and_again_after_a_while() -> None:
    told = Told(watch=WatchLimits(short_for=60, again=100))
    told.note(10, RunSubmitted, "r1")
    assert told.wake(11) == 61
    assert told.alerts(60.9) == []
    assert told.alerts(61) == [("short", "t", "t: 1 in flight instead of 2 for more than 1 m 0 s")]
    assert told.wake(62) == 161
    assert [kind for kind, _, _ in told.alerts(161)] == ["short"]
    told.note(170, RunSubmitted, "r2")
    assert told.alerts(400) == []


def test_what_a_blackout_holds_back_is_not_short() -> None:
    told = Told(watch=WatchLimits(short_for=60), blackouts=[Window(start=20, end=500)])
    assert told.wake(2) == 21, "what is launched now may still wait then, and is recalled"
    assert told.wake(21) == 501
    assert told.alerts(560.9) == []
    assert told.alerts(561)


def test_after_a_pause_what_is_there_is_not_short() -> None:
    told = Told(copies=1, watch=WatchLimits(short_for=60))
    told.note(2, RunSubmitted, "r1")
    told.note(50, TrialPaused)
    told.note(500, TrialResumed)
    assert told.alerts(700) == []


def test_after_a_pause_it_counts_anew_for_how_long_a_test_is_short() -> None:
    told = Told(watch=WatchLimits(short_for=60))
    told.note(2, RunSubmitted, "r1")
    told.note(50, TrialPaused)
    told.note(500, TrialResumed)
    assert told.alerts(559.9) == []
    assert [kind for kind, _, _ in told.alerts(560)] == ["short"]


def test_a_gauge_that_fails_is_told_with_its_name() -> None:
    told = Told(copies=1, throttles=[ThrottleRule(gauge="load", high=10, low=5)])
    told.note(2, RunSubmitted, "r1")
    told.note(3, GaugeRead, gauge="load", reason="it gave no number")
    ((kind, subject, text),) = told.alerts(4)
    assert (kind, subject) == ("gauge", "load")
    assert "it gave no number" in text


def test_silence_is_told_but_not_in_a_planned_outage() -> None:
    told = Told(copies=1, watch=WatchLimits(silent_for=60), outages=[Window(start=100, end=200)])
    told.note(2, RunSubmitted, "r1")
    told.note(30, MetricRecorded, "r1")
    text = "nothing has happened for 1 m 0 s, though 1 run are under way"
    assert told.alerts(90) == [("silent", "", text.replace("are", "is"))]
    told.note(95, MetricRecorded, "r1")
    quiet = Told(copies=1, watch=WatchLimits(silent_for=60), outages=[Window(start=49, end=199)])
    quiet.note(2, RunSubmitted, "r1")
    assert (quiet.alerts(259), len(quiet.alerts(260))) == ([], 1)


def test_a_place_that_is_short_of_nodes_is_told_while_runs_may_start() -> None:
    case = replace(a_run(0, "t", 4), place=NodeWish(within="switch"))
    test = Test(name="t", folder="/t", app="a", run=RunSpec(script="a"))
    network = NetworkModel(kind="tree", levels=[{"switch": 4}])
    nodes = NodeGroup(names="n[1-8]", cores=4)
    machine = Machine(machine="m", nodes=[nodes], topology=network)
    placing = placing_of(machine, {"t": test}, [case])
    told = Told(case=case, placing=placing, duration=1000)
    told.note(2, RunSubmitted, "r1", nodes="n[1-4]")
    for node in ("n1", "n5"):
        told.note(10, NodeDown, nodes=node)
    (alert,) = told.alerts(20)
    assert alert[:2] == ("place", "t") and "no switch has 4 nodes" in alert[2]
    assert told.alerts(30_000) == [], "the time of the trial is over"


def test_a_wait_out_of_proportion_is_told() -> None:
    told = Told(copies=3, watch=WatchLimits(wait_factor=5, wait_least=30))
    for run, queued, started in (("a", 10, 20), ("b", 10, 20), ("c", 20, None)):
        told.note(queued, RunSubmitted, run)
        told.note(queued, JobQueued, run)
        if started:
            told.note(started, JobStarted, run)
    assert told.alerts(69) == []
    ((kind, subject, text),) = told.alerts(70)
    assert (kind, subject) == ("wait", "t")
    assert "run c has waited in the queue for more than 50.0 s; usual is 10.0 s" in text


def test_a_wait_in_a_planned_outage_is_not_told() -> None:
    watch = WatchLimits(wait_factor=5, wait_least=30)
    told = Told(copies=2, watch=watch, outages=[Window(start=29, end=129)])
    for run in ("a", "b"):
        told.note(10, RunSubmitted, run)
        told.note(10, JobQueued, run)
    told.note(20, JobStarted, "a")
    assert told.alerts(179) == []
    assert [kind for kind, _, _ in told.alerts(180)] == ["wait"]


def test_a_hung_run_is_told_once_and_ended_if_so_wanted() -> None:
    for ends in (True, False):
        told = Told(copies=1, entry={"end_quiet": ends})
        told.note(2, RunSubmitted, "r1")
        told.note(3, OutputQuiet, "r1", seconds=100.0)
        assert told.conductor.decide(4 * NS).cancels == ["r1"] * ends
        assert told.conductor.state.ended_for("r1") == (HUNG.number if ends else None)
        assert [kind for kind, _, _ in told.alerts(4)] == ["hung"]
        told.note(5, OutputQuiet, "r1", seconds=200.0)
        assert not ends or told.alerts(6) == []
        told.note(7, RunJudged, "r1", code=CANCELLED.number)
        assert not told.conductor.decide(8 * NS).cancels


def test_stops_and_exclusions_are_told_once_and_again_after_they_were_taken_back() -> None:
    told = Told()
    for _ in range(2):
        told.note(2, TestStopped, test="t", reason="broken")
        told.note(2, NodeExcluded, nodes="n[1-2]", reason="bad")
        assert sorted(each[:2] for each in told.alerts(3) if each[0] != "idle") == [
            ("excluded", "n[1-2]"),
            ("stopped", "t"),
        ]
        assert [kind for kind, _, _ in told.alerts(99999)] in ([], ["idle"])
        told.note(4, TestAdmitted, test="t")
        told.note(4, NodeAdmitted, nodes="n[1-2]")


def test_a_test_that_fails_is_told_and_again_while_it_does() -> None:
    told = Told(watch=WatchLimits(silent_for=1e6, again=3600))
    for n in range(1, 9):
        told.note(n, RunSubmitted, f"r{n}")
        told.note(n, JobStarted, f"r{n}")
        told.note(n, RunJudged, f"r{n}", code=FAILED.number, reason="exit code 3")
    ((kind, subject, text),) = told.alerts(9)
    assert (kind, subject) == ("failing", "t")
    assert text.startswith("t: 8 of the latest 8 runs ended badly (8 failed)")
    assert told.alerts(100) == []
    assert told.wake(100) == 9 + 3600
    assert [kind for kind, *_ in told.alerts(9 + 3600)] == ["failing"]
    silent = Told(watch=WatchLimits(silent_for=1e6, failing=False))
    assert not silent.conductor.state.failing.watched
    assert not Told().conductor.state.failing.watched, "nothing is watched"


def test_a_test_that_was_stopped_for_what_it_did_is_told_again_and_again() -> None:
    told = Told(watch=WatchLimits(silent_for=1e6, again=100))
    policy = told.conductor.state.policy
    two = replace(policy, entries=[*policy.entries, Entry(name="u", copies=1)], entry_of=[0, 1])
    told.conductor = Conductor("tag", [a_run(0, "t"), a_run(1, "u")], Limits(), two)
    told.note(1, TrialStarted)
    told.note(2, TestStopped, test="t", reason="3 wrong answers in a row")
    assert told.alerts(3) == [("stopped", "t", "t is launched no more: 3 wrong answers in a row")]
    assert told.alerts(50) == []
    ((kind, subject, text),) = told.alerts(103)
    assert (kind, subject) == ("stopped", "t")
    assert "is still stopped: 3 wrong answers in a row" in text
    assert "`seatrial accept admit PLAN t`" in text
    assert told.alerts(202) == []
    assert [kind for kind, *_ in told.alerts(203)] == ["stopped"]
    told.note(204, TestAdmitted, test="t")
    assert told.alerts(1000) == []
    told.note(1001, TestStopped, test="t", reason="no licence", by="amy")
    assert len(told.alerts(1002)) == 1
    assert told.alerts(5000) == [], "a person knows"


def built(*, good: str = "", stop: str = "") -> Told:
    """A sustained trial of the tests a and b; each has a build of its own, which fails unless it
    is ``good``. The test to ``stop`` is stopped then."""
    told = Told()
    entries = [Entry(name=name, copies=1) for name in "ab"]
    policy = Policy(kind="sustained", entries=entries, entry_of=[0, 1], duration=1e6, nodes=8)
    cases = [a_run(number, name, build=name) for number, name in enumerate("ab")]
    told.conductor = Conductor("tag", cases, Limits(), policy)
    told.note(1, TrialStarted)
    for number, name in enumerate("ab"):
        told.note(2, BuildStarted, key=name)
        value = 0 if name == good else 1
        told.note(3, BuildEnded, key=name, code=value, log="cc ...\nno such file: mpi.h\n")
        if value:
            event = RunJudged(time=4 * NS, case=f"case{number}", code=31)
            told.conductor.apply(event)
    if stop:
        told.note(5, TestStopped, test=stop, reason="3 wrong answers in a row")
    return told


def test_where_no_build_is_good_that_is_told_and_the_trial_ends() -> None:
    told = built()
    ((kind, subject, text),) = told.alerts(6)
    assert (kind, subject) == ("idle", "")
    assert "the build of a, b failed: no such file: mpi.h; the trial ends" in text
    assert "--name" in text
    why = "the build of a, b failed: no such file: mpi.h"
    assert told.conductor.decide(7 * NS) == Decision(finish=Finish(True, why))
    told.note(8, TrialAbandoned)
    given_up = told.conductor.decide(9 * NS).finish
    assert given_up is not None
    assert not given_up.complete


def test_where_all_that_is_left_is_stopped_that_is_told_at_once_and_waits_for_people() -> None:
    assert built(good="a").alerts(6) == [], "one can run"
    told = built(good="a", stop="a")
    found = {kind: text for kind, _, text in told.alerts(6)}
    assert found.keys() == {"stopped", "idle"}
    assert "a is stopped: 3 wrong answers in a row" in found["idle"]
    assert "the build of b failed: no such file: mpi.h" in found["idle"]
    assert "accept admit PLAN TEST" in found["idle"]
    assert told.alerts(7) == []
    assert told.wake(7) == 6 + 3600, "it does not end: a person may let the test back in"
    assert [kind for kind, _, _ in told.alerts(6 + 3600)] == ["idle"]
    told.note(4000, TestAdmitted, test="a")
    launches = told.conductor.decide(4001 * NS).launches
    assert {launch.case for launch in launches} == {0}


def test_a_build_that_may_come_yet_ends_nothing() -> None:
    told = built(good="a", stop="a")
    policy = told.conductor.state.policy
    told.conductor = Conductor("tag", told.conductor.state.cases, Limits(), policy)
    told.note(1, TrialStarted)
    told.note(2, BuildEnded, key="a", code=1, log="log")
    assert not told.conductor.unbuildable
    assert told.conductor.decide(3 * NS).finish is None
