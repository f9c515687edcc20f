"""What waits at the scheduler is recalled when it must not start any more; what runs goes on."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from seatrial.decide.conductor import Conductor, Decision, Launch
from seatrial.decide.mix import Mix
from seatrial.decide.once import Waves
from seatrial.journal.events import (
    CompatStarted,
    Event,
    GaugeRead,
    JobEnded,
    JobQueued,
    JobStarted,
    NodeAdmitted,
    NodeExcluded,
    RunJudged,
    RunSubmitted,
    ScriptEnded,
    ScriptStarted,
    TestStopped,
    TrialPaused,
    TrialStarted,
)
from seatrial.model.codes import BOOT_FAILURE, CANCELLED, NODE_FAILURE, PASS, RECALLED, Code
from seatrial.model.policy import (
    Entry,
    Exclusion,
    Kind,
    Limits,
    Policy,
    ThrottleRule,
    WatchLimits,
    Window,
)
from seatrial.model.test import Case

from .world import NS, START, World, a_run

KINDS: tuple[Kind, ...] = ("once", "isolated_then_full", "sustained")


class Table:
    """A conductor, with events told by hand."""

    def __init__(self, *sizes: int, kind: Kind = "once", entry: Any = None, **more: Any) -> None:
        entries = [Entry(name=f"t{n}", weight=1.0, **(entry or {})) for n in range(len(sizes))]
        self.policy = Policy(kind=kind, entries=entries, entry_of=list(range(len(sizes))), **more)
        self.cases = [a_run(n, f"t{n}", size) for n, size in enumerate(sizes)]
        self.conductor = self.new()
        self.events: list[Event] = []
        self.note(0, TrialStarted)

    def new(self) -> Conductor:
        return Conductor("tag", self.cases, Limits(), self.policy)

    def note(
        self, time: float, kind: type[Event], run: str = "", case: int = 0, **more: Any
    ) -> None:
        if run:
            more |= {"run_id": run, "case": self.cases[case].id}
        event = kind(time=START + round(time * NS), **more)
        self.events.append(event)
        self.conductor.apply(event)

    def decide(self, time: float) -> Decision:
        """The decision, which a conductor that read the journal makes as well."""
        decision = self.conductor.decide(START + round(time * NS))
        replayed = self.new()
        for event in self.events:
            replayed.apply(event)
        assert replayed.decide(START + round(time * NS)) == decision
        return decision

    def launch(self, time: float) -> list[Launch]:
        launches = self.decide(time).launches
        for each in launches:
            self.note(time, RunSubmitted, each.run_id, each.case, stage=each.stage)
            self.note(time, JobQueued, each.run_id, each.case)
        return launches

    def recalled(self, time: float) -> set[str]:
        return set(self.decide(time).recalls)

    def end(self, time: float, run: str, case: int, code: Code) -> bool:
        recalled = code is RECALLED
        self.note(time, JobEnded, run, case, code=code.number, recalled=recalled)
        again = self.conductor.state.will_rerun(case, run, code.number)
        self.note(time, RunJudged, run, case, code=code.number, will_rerun=again)
        return again


@pytest.mark.parametrize("kind", KINDS)
def test_a_blackout_takes_back_what_waits_and_it_runs_later(kind: Kind) -> None:
    window = Window(start=10, end=20)
    table = Table(1, 1, kind=kind, duration=60, nodes=2, reserve=2, blackouts=[window])
    first, *others = table.launch(0)
    table.note(1, JobStarted, first.run_id, first.case, nodes="n1")
    assert not table.recalled(9.9)
    wake = table.decide(9.9).wake
    assert wake is not None
    assert wake <= START + 10 * NS or not others
    assert table.recalled(10) == table.recalled(11) == {each.run_id for each in others}
    for each in others:
        assert table.end(12, each.run_id, each.case, RECALLED)
    assert not table.recalled(13)
    assert not table.launch(13)
    state = table.conductor.state
    assert (state.failures, state.finished) == (0, 0)
    again = {(each.case, each.stage) for each in table.launch(20)}
    assert {(each.case, each.stage) for each in others} <= again


def test_one_that_version_0_1_recalled_runs_again_and_is_no_failure() -> None:
    table = Table(1, nodes=1, blackouts=[Window(start=10, end=20)])
    (run,) = table.launch(0)
    cancelled = {"code": CANCELLED.number}
    table.note(11, JobEnded, run.run_id, state="taken back before it started", **cancelled)
    table.note(11, RunJudged, run.run_id, will_rerun=True, **cancelled)
    assert not table.launch(12)
    state = table.conductor.state
    assert (state.failures, state.finished, state.wanted) == (0, 0, 1)
    (again,) = table.launch(20)
    assert again.run_id != run.run_id


def test_one_that_was_cancelled_by_others_is_not_made_good() -> None:
    table = Table(1, nodes=1)
    (run,) = table.launch(0)
    assert not table.end(1, run.run_id, 0, CANCELLED)
    assert table.conductor.state.failures == 1


def test_one_that_started_meanwhile_is_left_alone() -> None:
    table = Table(1, nodes=1, blackouts=[Window(start=10, end=20)])
    (run,) = table.launch(0)
    assert table.recalled(10)
    table.note(10.5, JobStarted, run.run_id, 0, nodes="n1")
    assert not table.recalled(11)
    assert not table.end(30, run.run_id, 0, PASS)
    assert table.conductor.state.finished == 1


def test_a_throttle_takes_back_what_is_not_light() -> None:
    throttle = ThrottleRule(gauge="load", high=5, low=3, stale_after=100)
    entries = [Entry(name="t0", io="normal"), Entry(name="t1", io="light")]
    table = Table(1, 1, nodes=1, throttles=[throttle])
    table.policy = Policy(entries=entries, entry_of=[0, 1], nodes=1, throttles=[throttle])
    table.conductor = table.new()
    table.events = []
    table.note(0, TrialStarted)
    table.note(0, GaugeRead, gauge="load", value=1.0)
    heavy, _ = table.launch(0)
    table.note(50, GaugeRead, gauge="load", value=6.0)
    assert table.recalled(50) == {heavy.run_id}
    table.note(51, GaugeRead, gauge="load", value=1.0)
    assert not table.recalled(52)
    assert table.recalled(151) == {heavy.run_id}, "the gauge is silent"


def test_a_stopped_test_and_an_excluded_node_take_back_what_waits() -> None:
    table = Table(1, 1, nodes=4)
    one, other = table.launch(0)
    table.note(1, TestStopped, test="t0", reason="a person said so")
    assert table.recalled(1) == {one.run_id}
    table.end(2, one.run_id, 0, RECALLED)
    table.note(3, NodeExcluded, nodes="n2", reason="a person said so")
    assert table.recalled(3) == {other.run_id}
    table.end(4, other.run_id, 1, RECALLED)
    (later,) = table.launch(5)
    assert (later.case, later.avoid) == (1, "n2")
    assert not table.recalled(6)
    table.note(7, NodeAdmitted, nodes="n2")
    assert not table.recalled(8)


def test_what_is_to_run_elsewhere_still_is_after_it_was_taken_back() -> None:
    window = Window(start=10, end=20)
    answers = {"answers": {"node failure": "elsewhere"}}
    table = Table(1, nodes=4, entry=answers, blackouts=[window])
    (run,) = table.launch(0)
    table.note(1, JobStarted, run.run_id, nodes="n3")
    assert table.end(2, run.run_id, 0, NODE_FAILURE)
    (second,) = table.launch(3)
    assert second.avoid == "n3"
    assert table.recalled(10)
    table.end(11, second.run_id, 0, RECALLED)
    (third,) = table.launch(20)
    assert third.avoid == "n3"


@pytest.mark.parametrize(
    ("answered", "silent", "avoided"), [(1, "n3", "n3"), (0, "n2,n3", "n[2-3]")]
)
def test_after_a_compat_job_that_could_not_begin_the_next_run_avoids_its_silent_nodes(
    answered: int, silent: str, avoided: str
) -> None:
    answers = {"answers": {"boot failure": "elsewhere"}}
    table = Table(1, nodes=4, entry=answers)
    (run,) = table.launch(0)
    table.note(1, JobStarted, run.run_id, nodes="n[2-3]")
    table.note(2, CompatStarted, run.run_id, answered=answered, asked=2, missing=silent)
    assert table.end(3, run.run_id, 0, BOOT_FAILURE)
    (second,) = table.launch(4)
    assert second.avoid == avoided


@pytest.mark.parametrize(("answered", "blamed"), [(5, ["n3"]), (0, [])])
def test_a_compat_job_blames_silent_nodes_only_if_others_answered(
    answered: int, blamed: list[str]
) -> None:
    table = Table(6, nodes=8, exclusion=Exclusion(after=1, most=0.5))
    (run,) = table.launch(0)
    table.note(1, JobStarted, run.run_id, nodes="n[1-6]")
    table.note(2, CompatStarted, run.run_id, answered=answered, asked=6, missing="n3")
    table.end(3, run.run_id, 0, BOOT_FAILURE)
    stops = [stop for stop in table.decide(4).stops if isinstance(stop, NodeExcluded)]
    assert [stop.nodes for stop in stops] == blamed


def test_a_blackout_of_nodes_keeps_runs_off_them_and_holds_nothing_else() -> None:
    window = Window(start=10, end=20, nodes="n[1-3]")
    table = Table(1, 2, nodes=4, blackouts=[window])
    table.note(1, NodeExcluded, nodes="n1")
    small, wide = table.launch(5)
    assert table.recalled(10) == {small.run_id, wide.run_id}, "they might get these nodes"
    for each in (small, wide):
        table.end(11, each.run_id, each.case, RECALLED)
    (now,) = table.launch(12)
    assert (now.case, now.avoid) == (0, "n[1-3]")
    assert not table.recalled(13)
    (later,) = table.launch(20)
    assert (later.case, later.avoid) == (1, "n1")


def test_a_mix_fills_only_the_nodes_that_a_blackout_leaves() -> None:
    window = Window(start=0, end=600, nodes="n[001-006]")
    policy = Policy(
        kind="sustained",
        entries=[Entry(name="t0", weight=1.0)],
        entry_of=[0],
        duration=900,
        nodes=8,
        blackouts=[window],
        exclusion=Exclusion(),
    )
    world = World([a_run(0, "t0")], Limits(), policy).go()
    early = [when for when, _ in world.launches if when < START + 590 * NS]
    assert early
    started = [e for e in world.events if isinstance(e, JobStarted) and e.time < START + 590 * NS]
    assert {event.nodes for event in started} == {"n007", "n008"}
    assert max(_in_flight(world.events)) == 8


def _in_flight(events: list[Event]) -> Iterator[int]:
    runs = 0
    for event in events:
        runs += isinstance(event, RunSubmitted) - isinstance(event, JobEnded)
        yield runs


def test_what_is_held_back_for_long_is_told_with_what_holds_it() -> None:
    watch = WatchLimits(silent_for=60, again=3600)
    window = Window(start=0, end=1000, reason="maintenance")
    throttle = ThrottleRule(gauge="load", high=5, low=3, stale_after=5000)
    table = Table(1, nodes=1, watch=watch, blackouts=[window], throttles=[throttle])
    table.note(0, GaugeRead, gauge="load", value=9.0)
    assert not table.decide(59).alerts
    (alert,) = table.decide(60).alerts
    assert alert.kind == "silent"
    assert "runs are wanted: gauge load is closed; a blackout (maintenance) ends in" in alert.text
    table.note(60, TrialPaused, reason="a person said so")
    assert not table.decide(70).alerts


def test_a_run_that_nobody_saw_start_has_had_what_it_tells_itself() -> None:
    table = Table(4, 4, kind="sustained", nodes=4, duration=900, reserve=2)
    launches = table.launch(0)
    for each in launches:
        table.note(20, JobEnded, each.run_id, each.case, code=0)
        table.note(5, ScriptStarted, each.run_id, each.case)
        table.note(8, ScriptEnded, each.run_id, each.case)
        table.note(20, RunJudged, each.run_id, each.case, code=0)
    runs = [sum(each.case == case for each in launches) for case in (0, 1)]
    demand = table.conductor.state.demand
    assert isinstance(demand, Mix)
    assert demand._delivered == [3.0 * 4 * n for n in runs]


def test_a_decision_looks_at_no_more_waves_than_it_needs() -> None:
    entries = [Entry(name=f"t{n}") for n in range(300)]
    policy = Policy(kind="isolated_then_full", entries=entries, entry_of=list(range(300)), nodes=4)
    looked = 0

    class Counting(Waves):
        def _missing_now(self, case: int) -> int:
            nonlocal looked
            looked += 1
            return super()._missing_now(case)

    cases: list[Case] = [a_run(n, f"t{n}") for n in range(300)]
    world = World(cases, Limits(), policy, elapsed=lambda case, random: 5.0)
    made = world.conductor.state
    waves = Counting(cases, policy, Limits(), made.requests)
    for number in Random(1).sample(range(300), 300):
        waves.ready(number)
    made.demand = waves
    world.go()
    assert world.finish is not None
    assert world.finish.complete
    assert looked < 20 * len(world.decided)


def test_a_blackout_of_nodes_alone_takes_back_what_might_get_them() -> None:
    window = Window(start=10, end=20, nodes="n1")
    table = Table(1, 1, nodes=4, blackouts=[window])
    waiting = {each.run_id for each in table.launch(0)}
    assert not table.recalled(9.9)
    assert table.recalled(10) == waiting


def test_nodes_that_were_excluded_and_let_back_in_take_nothing_back() -> None:
    table = Table(1, nodes=4)
    (waiting,) = table.launch(0)
    table.note(1, NodeExcluded, nodes="n1")
    assert table.recalled(2) == {waiting.run_id}
    table.note(3, NodeAdmitted, nodes="n1")
    assert not table.recalled(4)
