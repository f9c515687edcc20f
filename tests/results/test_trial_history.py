from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial.journal.encoding import decode
from seatrial.journal.events import (
    EVENT_KINDS,
    AlertRaised,
    NodeAdmitted,
    NodeDown,
    NodeExcluded,
    NodeUp,
    PolicyChanged,
    RunCancelAsked,
    RunEvent,
    RunReviewed,
    TestStopped,
    TrialAbandoned,
    TrialCancelled,
    TrialEnded,
    TrialExtended,
    TrialPaused,
    TrialResumed,
    UnknownEvent,
)
from seatrial.journal.trial import RunLife
from seatrial.model.codes import FAILED, PASS, TIMEOUT, WRONG_ANSWER
from seatrial.model.policy import PolicyTarget, Window
from seatrial.results.node_hours import losses, sentence
from seatrial.results.status import Waits, verdicts, waits
from seatrial.results.trial_history import TrialHistory
from seatrial.results.utilisation import LevelSpan, Use, in_flight, target_loads, timeline_of
from tests.results.store.trials import SECOND

from .stories import HOUR, NODES, Story, at, cases_of, sustained


def hours(use: Use) -> dict[str, float]:
    """The node-hours of each use that has some."""
    return {name: value / HOUR for name, value in use._asdict().items() if value}


# ---- the fold -----------------------------------------------------------------------------


def test_a_run_is_kept_with_its_times() -> None:
    story = Story(cases_of(2))
    story.run(0, 1, 3, TIMEOUT, queued=0.25, before=0.25, kept=0.5, target="fs/m0", stage="full")
    (run,) = story.history().runs
    assert (run.submitted, run.queued, run.job_started) == (at(0.25), at(0.25), at(0.75))
    assert (run.script_started, run.script_ended) == (at(1), at(3))
    assert (run.job_ended, run.judged) == (at(3.5), at(3.5))
    assert (run.size, run.target, run.stage, run.code) == (2, "fs/m0", "full", TIMEOUT.number)
    assert run.elapsed == 7200
    assert run.held_nodes(at(9)) == (at(0.75), at(3.5))
    assert run.waited((at(0.75), at(3.5)), at(9)) == (at(0.25), at(0.75))


def test_a_run_without_an_end_lasts_until_now() -> None:
    story = Story(cases_of(1))
    story.run(0, 1, 0, None)
    (run,) = story.history().runs
    assert run.held_nodes(at(5)) == run.script((at(1), at(5))) == (at(1), at(5))
    assert (run.elapsed, run.over) == (None, False)


def test_a_job_whose_start_was_seen_late_held_its_nodes_from_its_script_on() -> None:
    story = Story(cases_of(1))
    story.run(0, 1, 3, before=-0.5)
    assert story.history().runs[0].held_nodes(at(9)) == (at(1), at(3))


def test_the_clock_ends_with_the_duration() -> None:
    """Jobs may end later: no 5 m 9 s of 5 m 0 s."""
    cases = cases_of(1)
    history = Story(cases, sustained(cases, 5)).history()
    assert [history.clock(at(hour)) for hour in (4, 5, 5.2)] == [4 * 3600, 5 * 3600, 5 * 3600]


def test_the_clock_stands_in_pauses_and_after_the_end() -> None:
    story = Story(cases_of(1))
    story.tell(2, TrialPaused)
    story.tell(5, TrialResumed)
    story.tell(6, TrialResumed)  # a driver that died: jobs went on
    assert story.history().clock(at(9)) == 6 * 3600
    assert story.history().state == "running"
    story.tell(7, TrialEnded, failed=0)
    history = story.history()
    assert (history.clock(at(9)), history.state, history.over) == (4 * 3600, "ended", True)


def test_what_a_person_decided_is_the_state() -> None:
    story = Story(cases_of(1), sustained(cases_of(1), 10))
    story.tell(1, TrialExtended, seconds=7200)
    story.tell(2, TrialCancelled)
    story.tell(2, TrialPaused)
    history = story.history()
    assert (history.state, history.duration, history.over) == ("cancelled", 12 * 3600, False)
    story.tell(3, TrialAbandoned)
    story.tell(3, TrialPaused)
    assert (story.history().state, story.history().over) == ("abandoned", True)


def test_nodes_tests_and_alerts() -> None:
    story = Story(cases_of(1))
    story.tell(1, NodeDown, nodes="n1,elsewhere9")
    story.tell(1.5, NodeDown, nodes="n[1-2]")
    story.tell(2, NodeUp, nodes="n[1-3]")
    story.tell(3, NodeDown, nodes="n4")
    story.tell(3, NodeDown, nodes="not a (node] set")
    story.tell(3, NodeExcluded, nodes="n2,n3", reason="slow")
    story.tell(4, NodeAdmitted, nodes="n3")
    story.tell(4, TestStopped, test="a", reason="3 wrong answers")
    story.tell(4, AlertRaised, kind="short", subject="a", text="0 of 1")
    history = story.history()
    assert sorted(history.downs) == [
        ("n1", at(1), at(2)),
        ("n2", at(1.5), at(2)),
        ("n4", at(3), None),
    ]
    assert history.excluded == {"n2": "slow"}
    assert history.stopped == {"a": "3 wrong answers"}
    assert [alert.text for alert in history.alerts] == ["0 of 1"]


def test_events_of_what_the_trial_does_not_know_are_passed_over() -> None:
    history = TrialHistory(cases_of(1), Story(cases_of(1)).policy, ())
    for name in EVENT_KINDS:
        line = {"time": at(1), "event": name, "case": "none", "run_id": "r", "value": "x"}
        history.apply(decode(json.dumps(line).encode()))
    history.apply(UnknownEvent(time=at(2), kind="of_the_future"))
    assert (history.runs, history.last) == ([], at(2))


def test_verdicts_and_waits_by_test() -> None:
    story = Story(cases_of(1, 1))
    story.run(0, 1, 2, queued=0)
    story.run(0, 3, 4, FAILED, queued=0)
    story.run(0, 5, 6, FAILED, again=True)
    history = story.history()
    assert verdicts(history) == {"a": {"pass": 1, "failed": 1, "again": 1}, "b": {}}
    assert waits(history, at(9)) == {"a": Waits(3, 3600, 3 * 3600, 3 * 3600)}


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=50))
def test_what_most_do_not_exceed_is_no_less_than_the_median(hours: list[float]) -> None:
    story = Story(cases_of(1))
    for wait in hours:
        story.run(0, wait / 3600, wait / 3600 + 1, queued=0)
    found = waits(story.history(), at(1e6))["a"]
    assert found.median <= found.high <= found.longest
    spans = [run.waited(run.held_nodes(0), 0) for run in story.history().runs]
    within = sum((span[1] - span[0]) / SECOND <= found.high for span in spans if span is not None)
    assert within >= 0.95 * len(hours)
    assert (found.high == found.longest) or len(hours) >= 20


def test_of_two_waits_the_longer_is_what_most_did_not_exceed() -> None:
    story = Story(cases_of(1))
    story.run(0, 1, 2, queued=0)
    story.run(0, 2, 3, queued=0)
    assert waits(story.history(), at(9)) == {"a": Waits(2, 1.5 * 3600, 2 * 3600, 2 * 3600)}


# ---- node-hours ---------------------------------------------------------------------------


def test_every_node_hour_has_one_use() -> None:
    story = Story(cases_of(4, 2), sustained(cases_of(4, 2), 20))
    story.run(0, 1, 5, queued=0.5, before=0.5, kept=1)  # 4 nodes: 0.5 h, 4 h, 1 h
    story.run(1, 6, 8, FAILED)  # 2 nodes for 2 h
    story.run(1, 10, 0, None, queued=9)  # waits an hour, runs to now
    story.tell(6, NodeDown, nodes="n4")
    story.tell(7, NodeUp, nodes="n4")
    found = timeline_of(story.history(), at(12))
    assert hours(found.total) == {
        "available": 48,
        "accepted": 16,
        "failed": 4,
        "going": 4,
        "starting": 2,
        "kept": 4,
        "down": 1,
        "idle": 2 + 3 + 4 + 4,  # hours 0-0.5, 6-8 less the down one, 8-9, 10-12
        "unfilled": 4,  # hour 9-10
    }
    assert found.down == HOUR


def test_time_after_the_duration_and_in_pauses_is_not_available() -> None:
    story = Story(cases_of(2), sustained(cases_of(2), 4))
    story.run(0, 1, 9)
    story.tell(2, TrialPaused)
    story.tell(4, TrialResumed)
    total = timeline_of(story.history(), at(10)).total
    assert hours(total) == {"available": 16, "accepted": 6, "idle": 4, "drained": 6}


def test_idle_behind_the_last_start_is_drained_once_nothing_starts() -> None:
    story = Story(cases_of(2))
    story.run(0, 1, 5)
    assert hours(timeline_of(story.history(), at(6)).total)["idle"] == 16
    story.tell(6, TrialEnded, failed=0)
    total = timeline_of(story.history(), at(6)).total
    assert hours(total) == {"available": 24, "accepted": 8, "idle": 4, "drained": 12}


def test_planned_outages_count_for_nothing() -> None:
    outages = [
        Window(start=3600, end=2 * 3600),
        Window(start=3600 * 1.5, end=3 * 3600, nodes="n[1-2]"),
        Window(start=at(4) / 1e9, end=at(5) / 1e9, nodes="n9", absolute=True),
    ]
    story = Story(cases_of(2), sustained(cases_of(2), 6, outages=outages))
    story.run(0, 0, 6, nodes="n[2-3]")
    story.tell(1, NodeDown, nodes="n1")
    story.tell(4, NodeUp, nodes="n1")
    found = timeline_of(story.history(), at(6))
    # 24 less 4 (all, an hour) and 2 (two nodes, an hour)
    assert hours(found.total) == {
        "available": 18,
        "accepted": 2 + 1 + 6,
        "down": 1,
        "drained": 2 + 1 + 1 + 4,
    }
    assert found.down == HOUR


def test_runs_that_share_a_node_never_take_more_than_there_is() -> None:
    story = Story(cases_of(1))
    for _ in range(3):
        story.run(0, 0, 1, PASS)
        story.run(0, 0, 1, FAILED)
    total = timeline_of(story.history(nodes=4), at(1)).total
    assert hours(total) == {"available": 4, "accepted": 3, "failed": 1}


def test_bins_add_up_and_follow_the_clock() -> None:
    story = Story(cases_of(4))
    story.run(0, 0, 2)
    story.tell(2, TrialPaused)
    story.tell(7, TrialResumed)
    story.run(0, 8, 9)
    found = timeline_of(story.history(), at(9))
    shares = [
        (one.start / 3600, one.end / 3600, one.use.share("accepted")) for one in found.bins(4)
    ]
    assert shares == [(0, 1, 1.0), (1, 2, 1.0), (2, 3, 0.0), (3, 4, 1.0)]


def test_the_first_reason_is_the_largest_loss_with_its_span() -> None:
    story = Story(cases_of(4), sustained(cases_of(4), 240))
    for hour in [*range(100), *range(168, 240)]:
        story.run(0, hour, hour + 0.95, before=0.05)
    history = story.history()
    found = timeline_of(history, at(240))
    assert losses(found)[0] == ("idle", 68 / 240)
    text = sentence(history, found, at(240))
    assert text == "idle 28.3 % of node-hours: nothing queued from hour 100 to 168"


def test_the_first_reason_names_whose_jobs_lost_it() -> None:
    story = Story(cases_of(2, 2), sustained(cases_of(2, 2), 10))
    for hour in range(10):
        story.run(0, hour, hour + 1)
        story.run(1, hour, hour + 0.4, kept=0.6)
    history = story.history()
    text = sentence(history, timeline_of(history, at(10)), at(10))
    assert text == (
        "30 % of node-hours were kept by jobs after their test's end throughout;"
        " most by b, 12 node-hours"
    )


# ---- counts over time ---------------------------------------------------------------------


def test_runs_in_flight_are_those_on_nodes() -> None:
    story = Story(cases_of(1, 1))
    story.run(0, 1, 2, queued=0)
    story.run(1, 2, 4)
    story.run(0, 2, 3)
    history = story.history()
    found = [(level.start, level.end, level.value) for level in in_flight(history, at(4))]
    assert found == [
        (at(0), at(1), 0),
        (at(1), at(2), 1),
        (at(2), at(3), 2),
        (at(3), at(4), 1),
    ]
    assert in_flight(history, at(4), ["b"])[0] == LevelSpan(at(0), at(2), 0)


def test_the_load_of_a_target_is_the_sum_of_what_its_runs_open() -> None:
    targets = [
        PolicyTarget(name="fs/m0", file_system="fs"),
        PolicyTarget(name="fs/m1", file_system="fs"),
    ]
    cases = cases_of(1, 1)
    story = Story(cases, sustained(cases, 4, targets=targets))
    story.run(0, 0, 2, target="fs/m0")
    story.run(1, 1, 3, target="fs/m0")
    loads = target_loads(story.history(), at(4))
    assert [level.value for level in loads["fs/m0"]] == [10, 30, 20, 0]
    assert [level.value for level in loads["fs/m1"]] == [0]


# ---- what holds for every trial -----------------------------------------------------------

RUNS = st.lists(
    st.tuples(
        st.integers(0, 1),
        st.integers(0, 20),
        st.integers(0, 9),
        st.integers(0, 3),
        st.sampled_from([PASS, FAILED, WRONG_ANSWER, None]),
    ),
    max_size=12,
)


def a_story(runs: list[tuple[int, int, int, int, object]]) -> Story:
    outages = [Window(start=5 * 3600, end=6 * 3600, nodes="n1"), Window(start=36000, end=39600)]
    cases = cases_of(1, 3)
    story = Story(cases, sustained(cases, 18, outages=outages))
    for case, start, length, kept, verdict in runs:
        story.run(case, start, start + length, verdict, queued=start / 2, kept=kept)  # type: ignore[arg-type]
    story.tell(7, NodeDown, nodes="n2")
    story.tell(12, NodeUp, nodes="n2")
    story.tell(8, TrialPaused)
    story.tell(9, TrialResumed)
    story.events.sort(key=lambda event: event.time)
    return story


def sums(history: TrialHistory, now: int) -> object:
    found = timeline_of(history, now)
    pieces = list(found.starts), list(found.ends), [list(uses) for uses in found.nodes]
    return (
        pieces,
        found.sums,
        found.bins(7),
        in_flight(history, now),
        verdicts(history),
        history.state,
    )


@settings(max_examples=60, deadline=None)
@given(RUNS, st.integers(0, 40))
def test_uses_add_up_to_what_was_available(
    runs: list[tuple[int, int, int, int, object]], now: int
) -> None:
    history = a_story(runs).history()
    found = timeline_of(history, at(now))
    for use in [found.total, *map(Use._make, zip(*found.nodes, strict=True))]:
        assert sum(use[1:]) == use.available >= 0
        assert all(0 <= part <= use.available for part in use[1:])
        assert 0 <= use.share("accepted") <= 1
    assert found.total.available <= len(NODES) * found.end
    totals = [sum(column) for column in zip(*(one.use for one in found.bins(7)), strict=True)]
    assert not totals or Use(*totals) == found.total


@settings(max_examples=60, deadline=None)
@given(RUNS, st.randoms(use_true_random=False), st.integers(0, 200))
def test_neither_pieces_nor_the_order_within_one_time_change_anything(
    runs: list[tuple[int, int, int, int, object]], chance: random.Random, cut: int
) -> None:
    story = a_story(runs)
    now = at(30)
    whole = sums(story.history(), now)
    shuffled = list(story.events)
    for i in range(len(shuffled) - 1):
        one, two = shuffled[i], shuffled[i + 1]
        if not (isinstance(one, RunEvent) and isinstance(two, RunEvent)):
            continue
        alike = one.time == two.time and one.run_id != two.run_id
        if alike and chance.random() < 0.5:
            shuffled[i], shuffled[i + 1] = two, one
    history = TrialHistory(story.cases, story.policy, NODES)
    for event in shuffled[:cut]:
        history.apply(event)
    sums(history, now)  # to look changes nothing
    for event in shuffled[cut:]:
        history.apply(event)
    assert sums(history, now) == whole


def test_what_people_say_of_a_run_makes_none() -> None:
    cases = cases_of(1)
    story = Story(cases, sustained(cases, 2))
    story.run(0, 0, 1)
    ghost = RunReviewed(time=at(9), run_id="ghost", case=cases[0].id, is_excluded=1)
    history = story.history()
    history.fold([ghost])
    assert len(history.runs) == 1 and not history.runs[0].is_excluded
    assert history.last == at(1), "it is no event of the trial"
    history.fold([NodeUp(time=at(0.5), nodes="n1")])
    assert history.last == at(1), "a clock may have stepped back"


OF_RUNS = [name for name, kind in EVENT_KINDS.items() if issubclass(kind, RunEvent)]


@pytest.mark.parametrize("name", OF_RUNS)
def test_a_run_is_what_its_life_says(name: str) -> None:
    cases = cases_of(1)
    line: dict[str, Any] = {"case": cases[0].id, "run_id": "r", "code": 1, "value": 1, "text": "y"}
    for before in ([], ["run_submit"], ["run_submit", "job_start", "check_end"]):
        history, life = TrialHistory(cases, Story(cases).policy, NODES), RunLife()
        for hour, kind in enumerate([*before, name]):
            event = decode(json.dumps(line | {"time": at(hour), "event": kind}).encode())
            history.fold([event])
            life.apply(event)
        for run in history.runs:
            for field in RunLife.__struct_fields__:
                assert getattr(run, field) == getattr(life, field), field
        assert history.runs or not before


def test_what_people_did_is_told_by_the_policy_before_it() -> None:
    cases = cases_of(1)
    story = Story(cases)
    story.run(0, 0, 1)
    run_id = story.history().runs[0].id
    story.tell(0.25, PolicyChanged, parts={"reserve": 1}, by="ann")
    story.tell(0.5, RunCancelAsked, run_id=run_id, case=cases[0].id, by="bob")
    changed, cancelled = story.history().actions
    assert (changed.by, changed.action, len(changed.changes)) == ("ann", "change", 1)
    assert (cancelled.by, cancelled.action, cancelled.subject) == ("bob", "cancel", run_id)
