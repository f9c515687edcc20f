from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)
from msgspec.structs import replace

from seatrial.decide.conductor import Conductor, Decision, Finish, Launch
from seatrial.decide.state import MAX_LOSSES
from seatrial.journal.encoding import decode
from seatrial.journal.events import (
    EVENT_KINDS,
    BuildEnded,
    BuildStarted,
    JobEnded,
    JobStarted,
    RunJudged,
    RunSubmitted,
    TrialAbandoned,
    TrialCancelled,
    TrialPaused,
)
from seatrial.model.codes import BUILD_FAILED, CANCELLED, FAILED, LOST, NODE_FAILURE, PASS, TIMEOUT
from seatrial.model.policy import Answer, Entry, Limits, Policy
from seatrial.model.test import Case

from .model import Model, a_case, replayed

CODES = [code.number for code in (PASS, FAILED, TIMEOUT, NODE_FAILURE, LOST, CANCELLED)]

cases_strategy = st.lists(
    st.builds(
        lambda *drawn: drawn,
        st.integers(1, 6),
        st.integers(1, 3),
        st.sampled_from(["", "", "b1", "b2", "b3"]),
        st.booleans(),
        st.sampled_from([0, 0, 1, 2]),
    ),
    min_size=1,
    max_size=8,
)
limits_strategy = st.builds(
    Limits,
    cores=st.sampled_from([0, 1, 4]),
    jobs=st.integers(0, 5),
    builds=st.integers(1, 2),
    refill=st.integers(1, 4),
    max_failures=st.integers(0, 4),
    gpus=st.sampled_from([0, 2, 3]),
)


class AnyTrial(RuleBasedStateMachine):
    """Every order of facts that a driver, builds, jobs and people can give."""

    @initialize(cases=cases_strategy, limits=limits_strategy)
    def begin(self, cases: list[tuple[int, int, str, bool, int]], limits: Limits) -> None:
        written = [
            a_case(n, cores, repeat=repeat, build=build, exclusive=exclusive, gpus=gpus)
            for n, (cores, repeat, build, exclusive, gpus) in enumerate(cases)
        ]
        self.model = Model(written, limits)

    @rule()
    def step(self) -> None:
        self.model.step()

    @precondition(lambda self: self.model.running)
    @rule(data=st.data())
    def a_job_ends(self, data: st.DataObject) -> None:
        self.model.end_job(data.draw(st.sampled_from(sorted(self.model.running))))

    @precondition(lambda self: self.model.unjudged)
    @rule(data=st.data(), code=st.sampled_from(CODES))
    def a_run_is_judged(self, data: st.DataObject, code: int) -> None:
        self.model.judge(data.draw(st.sampled_from(sorted(self.model.unjudged))), code)

    @precondition(lambda self: self.model.running)
    @rule(data=st.data(), code=st.sampled_from(CODES))
    def a_run_is_refused_or_lost(self, data: st.DataObject, code: int) -> None:
        self.model.judge(data.draw(st.sampled_from(sorted(self.model.running))), code)

    @precondition(lambda self: self.model.building)
    @rule(data=st.data(), code=st.sampled_from([0, 0, 1, 23]))
    def a_build_ends(self, data: st.DataObject, code: int) -> None:
        self.model.end_build(data.draw(st.sampled_from(sorted(self.model.building))), code)

    @rule()
    def pause(self) -> None:
        self.model.pause()

    @rule()
    def cancel(self) -> None:
        self.model.cancel()

    @rule()
    def resume(self) -> None:
        self.model.resume()

    @invariant()
    def replay_gives_the_same_conductor(self) -> None:
        if hasattr(self, "model"):
            assert replayed(self.model).decide() == self.model.conductor.decide()

    def teardown(self) -> None:
        """From wherever it is, a trial whose runs now pass comes to its end."""
        if not hasattr(self, "model"):
            return
        model = self.model
        for _ in range(500):
            if model.held:
                model.resume()
            if model.step().finish is not None:
                break
            for key in sorted(model.building):
                model.end_build(key, 0)
            for run_id in [*model.running, *model.unjudged]:
                model.judge(run_id, PASS.number)
        else:
            raise AssertionError("the trial never comes to an end")
        model.check_complete()


TestAnyTrial = AnyTrial.TestCase
TestAnyTrial.settings = settings(
    max_examples=40,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)


def drive(model: Model, code: int = PASS.number) -> Finish:
    """See a trial through: every build is good, every run comes to that verdict."""
    for _ in range(1000):
        if (finish := model.step().finish) is not None:
            return finish
        for key in sorted(model.building):
            model.end_build(key, 0)
        for run_id in list(model.running):
            model.judge(run_id, code)
    raise AssertionError("the trial never comes to an end")


def launches(decision: Decision) -> list[int]:
    return [launch.case for launch in decision.launches]


def test_every_case_gets_its_repeats_and_their_ids_are_distinct() -> None:
    model = Model([a_case(n, 1 + n % 4, repeat=1 + n % 3) for n in range(30)], Limits(cores=4))
    assert drive(model) == Finish(True, "")
    model.check_complete()
    assert len(model.launched) == model.wanted


def test_ids_differ_between_trials_and_are_short_plain_words() -> None:
    case = a_case(1)
    ids = {Conductor(tag, [case], Limits()).state.run_id(0) for tag in ("a", "b")}
    assert len(ids) == 2
    assert all(len(run_id) == 12 and run_id.isalnum() and run_id.islower() for run_id in ids)


def test_a_lost_case_is_run_again_but_not_for_ever() -> None:
    model = Model([a_case(0)], Limits(cores=1))
    assert drive(model, LOST.number) == Finish(True, "")
    assert len(model.launched) == 1 + MAX_LOSSES


@pytest.mark.parametrize(("answer", "runs"), [("again", 3), ("never", 1)])
def test_what_others_cancel_is_made_good_as_the_policy_says(answer: Answer, runs: int) -> None:
    entry = Entry(name="t", answers={"cancelled": answer}, attempts=3)
    case = a_case(0)
    conductor = Conductor("tag", [case], Limits(cores=1), Policy(entries=[entry], entry_of=[0]))
    launched = 0
    for time in range(1, 10):
        for launch in conductor.decide(time).launches:
            launched += 1
            about: Any = {"time": time, "case": case.id, "run_id": launch.run_id}
            conductor.apply(RunSubmitted(**about))
            conductor.apply(JobStarted(**about))
            conductor.apply(JobEnded(code=CANCELLED.number, **about))
            conductor.apply(RunJudged(code=CANCELLED.number, **about))
    assert launched == runs
    assert conductor.decide(10).finish is not None


def test_a_failed_build_fails_its_cases_once_and_the_rest_goes_on() -> None:
    cases = [a_case(0, build="bad", repeat=2), a_case(1, build="good"), a_case(2)]
    model = Model(cases, Limits(cores=4))
    first = model.step()
    launch = Launch(2, model.conductor.state.run_id(2, -1))
    assert first == Decision(builds=["bad", "good"], launches=[launch])
    model.end_build("bad", 1)
    rejected = model.step().by_build
    assert [(r.case, r.code, r.reason) for r in rejected] == [(0, BUILD_FAILED.number, "log")] * 2
    assert len({r.run_id for r in rejected}) == 2
    assert drive(model) == Finish(True, "")
    assert model.done == {0: 2, 1: 1, 2: 1}
    assert model.built == {"bad": 1, "good": 1}


def only_built(number: int, build: str) -> Case:
    return replace(a_case(number, build=build), nodes=0, tasks=0, tasks_per_node=0, threads=0)


def test_a_case_without_a_job_gets_its_verdict_from_its_build() -> None:
    model = Model([only_built(0, "good"), only_built(1, "bad"), a_case(2)], Limits(cores=4))
    assert launches(model.step()) == [2]
    model.end_build("good", 0)
    model.end_build("bad", 1)
    judged = model.step().by_build
    assert [(r.case, r.code, r.reason) for r in judged] == [
        (0, PASS.number, ""),
        (1, BUILD_FAILED.number, "log"),
    ]
    assert drive(model) == Finish(True, "")
    assert model.done == {0: 1, 1: 1, 2: 1}


def test_builds_that_pass_count_as_no_failures() -> None:
    cases = [only_built(0, "a"), only_built(1, "b"), only_built(2, "c"), a_case(3, build="d")]
    model = Model(cases, Limits(cores=4, builds=4, max_failures=2))
    model.step()
    for key, code in (("a", 1), ("b", 0), ("c", 0)):
        model.end_build(key, code)
    assert [r.case for r in model.step().by_build] == [0, 1, 2]
    model.end_build("d", 0)
    assert launches(model.step()) == [3]


def test_a_wave_passes_by_what_is_only_built() -> None:
    entries = [Entry(name="lib"), Entry(name="t", alone=1, full=1)]
    policy = Policy(kind="isolated_then_full", entries=entries, entry_of=[0, 1], nodes=2)
    cases = [only_built(0, "b"), a_case(1)]
    conductor = Conductor("tag", cases, Limits(jobs=10), policy)
    assert conductor.state.wanted == 1 + 1 + 2
    conductor.apply(BuildStarted(time=1, key="b"))
    assert [launch.case for launch in conductor.decide(1).launches] == [1]
    conductor.apply(BuildEnded(time=2, key="b", code=0))
    (verdict,) = conductor.decide(2).by_build
    assert (verdict.case, verdict.code) == (0, PASS.number)
    judged = RunJudged(time=3, case="case0", run_id=verdict.run_id, code=0)
    conductor.apply(judged)
    assert conductor.state.finished == 1
    assert not conductor.decide(3).by_build


def test_gpus_of_a_shared_node_are_given_once_and_cpu_runs_pass_by() -> None:
    cases = [a_case(n, gpus=1 + n % 2) for n in range(6)] + [a_case(n) for n in range(6, 8)]
    model = Model(cases, Limits(cores=8, gpus=3))
    assert launches(model.step()) == [0, 1, 6, 7]
    assert drive(model) == Finish(True, "")
    assert set(model.done.values()) == {1}


def test_gpus_of_a_queue_are_the_schedulers() -> None:
    cases = [a_case(n, gpus=4) for n in range(3)]
    assert launches(Model(cases, Limits(jobs=10)).step()) == [0, 1, 2]


def test_waves_at_full_machine_have_as_many_copies_as_there_are_gpus() -> None:
    policy = Policy(kind="isolated_then_full", entries=[Entry(name="t")], entry_of=[0], nodes=1)
    conductor = Conductor("tag", [a_case(0, gpus=2)], Limits(cores=16, gpus=4), policy)
    assert conductor.state.wanted == 1 + 2


def test_builds_are_made_once_and_a_few_at_a_time() -> None:
    cases = [a_case(n, build=f"b{n % 7}") for n in range(70)]
    model = Model(cases, Limits(cores=8, builds=3))
    assert model.step() == Decision(builds=["b0", "b1", "b2"])
    assert drive(model) == Finish(True, "")
    assert set(model.built.values()) == {1}


def test_a_build_that_a_driver_left_is_started_again_by_the_next() -> None:
    model = Model([a_case(0, build="b")], Limits(cores=1))
    model.step()
    model.resume()
    assert model.step() == Decision(builds=["b"])


def test_a_queue_is_topped_up_in_portions() -> None:
    limits = Limits(jobs=100, refill=25)
    model = Model([a_case(n) for n in range(300)], limits)
    assert len(launches(model.step())) == 100
    sizes = []
    while model.running:
        model.judge(next(iter(model.running)), PASS.number)
        if portion := len(launches(model.step())):
            sizes.append(portion)
    assert sizes == [25] * 8  # 200 in all, a full portion each
    model.check_complete()


def test_the_last_portion_is_not_waited_for() -> None:
    model = Model([a_case(n) for n in range(103)], Limits(jobs=100, refill=25))
    model.step()
    for run_id in list(model.running)[:3]:
        model.judge(run_id, PASS.number)
    assert len(launches(model.step())) == 3


def test_max_failures_stops_at_that_many_also_where_a_build_fails_them_all() -> None:
    cases = [a_case(n, build="b") for n in range(100)]
    model = Model(cases, Limits(cores=4, max_failures=5))
    model.step()
    model.end_build("b", 1)
    assert len(list(model.step().acts())) == 5
    finish = model.step().finish
    assert finish == Finish(False, "5 runs did not pass, the most that was allowed")
    model.resume()  # a person has seen them, and goes on
    assert len(list(model.step().acts())) == 5


def test_runs_that_a_cancel_ended_run_again_though_their_end_is_seen_after_a_restart() -> None:
    model = Model([a_case(0), a_case(1)], Limits(cores=2))
    model.step()
    first, second = model.running
    model.cancel()
    assert model.step() == Decision(cancels=[first, second])
    model.judge(first, CANCELLED.number)
    model.resume()  # the driver was killed before it saw the second one end
    assert launches(model.step()) == [0]
    model.judge(second, CANCELLED.number)
    assert launches(model.step()) == [1]
    assert drive(model) == Finish(True, "")
    model.check_complete()


def test_a_run_that_the_scheduler_cancelled_has_that_verdict() -> None:
    model = Model([a_case(0)], Limits(cores=1))
    model.step()
    model.judge(next(iter(model.running)), CANCELLED.number)
    assert model.step() == Decision(finish=Finish(True, ""))


def test_an_exclusive_case_and_one_larger_than_the_node_take_all_of_it() -> None:
    model = Model([a_case(0, 1, exclusive=True), a_case(1, 64), a_case(2)], Limits(cores=4))
    for number in range(3):
        assert launches(model.step()) == [number]
        model.judge(next(iter(model.running)), PASS.number)


@pytest.mark.parametrize("name", [*EVENT_KINDS, "of_a_later_version"])
def test_events_about_unknown_runs_and_cases_change_nothing(name: str) -> None:
    conductor = Conductor("tag", [a_case(0)], Limits(cores=1))
    before = conductor.decide()
    event = decode(b'{"time":1,"event":"%s","case":"other","run_id":"other"}' % name.encode())
    conductor.apply(event)
    held = isinstance(event, TrialPaused | TrialCancelled | TrialAbandoned)
    assert (conductor.decide() == before) is not held


def test_a_trial_of_no_cases_is_complete_at_once() -> None:
    cases: list[Case] = []
    assert Conductor("tag", cases, Limits()).decide() == Decision(finish=Finish(True, ""))


def test_builds_take_a_core_of_a_node_and_nothing_of_a_queue() -> None:
    cases = [a_case(0, build="b"), a_case(1, 4), a_case(2, exclusive=True), a_case(3, 3)]
    node = Model(cases, Limits(cores=4))
    assert launches(node.step()) == [3]
    node.end_build("b", 0)
    node.judge(next(iter(node.running)), PASS.number)
    assert launches(node.step()) == [1]
    assert launches(Model(cases, Limits(jobs=10)).step()) == [1, 2, 3]


def test_a_node_of_one_core_builds_first() -> None:
    model = Model([a_case(0, build="b"), a_case(1)], Limits(cores=1))
    assert model.step() == Decision(builds=["b"])
    assert drive(model) == Finish(True, "")
