from __future__ import annotations

import math
from pathlib import Path
from statistics import mean, median, stdev
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from seatrial.journal.events import (
    Event,
    MetricRecorded,
    NodeDown,
    NodeUp,
    PolicyChanged,
    TestStopped,
    TrialAbandoned,
    TrialEnded,
)
from seatrial.judge.references import References, loads
from seatrial.model.codes import (
    BOOT_FAILURE,
    CANCELLED,
    FAILED,
    HUNG,
    LOST,
    MISPLACED,
    NO_FIGURE,
    NODE_FAILURE,
    PASS,
    PERFORMANCE,
    RECALLED,
    TIMEOUT,
    WRONG_ANSWER,
    Code,
)
from seatrial.model.kinds import criterion_kinds
from seatrial.model.plan import Component, Criterion, Waiver
from seatrial.model.policy import Entry, Policy, Window
from seatrial.results.criteria.mix import overall
from seatrial.results.criteria.view import (
    Bounds,
    Reach,
    TrialView,
    label,
    largest_listed,
    show_value,
)
from seatrial.results.status import judge, judged
from tests.results.stories import Story, at, cases_of, sustained


def a_day(hours: float = 24, **more: Any) -> Story:
    """A sustained trial of two tests, of two nodes each, on four nodes."""
    cases = cases_of(2, 2)
    return Story(cases, sustained(cases, hours, **more))


# ---- all of them --------------------------------------------------------------------------


@pytest.mark.parametrize("name", criterion_kinds())
@pytest.mark.parametrize("ended", [False, True])
def test_a_trial_without_a_run_breaks_nothing(name: str, ended: bool) -> None:
    for policy in (None, sustained(cases_of(2, 2), 1)):
        story = Story(cases_of(2, 2), policy)
        if ended:
            story.tell(0, TrialEnded, failed=0)
        criterion = Criterion(criterion=name, at_least=1, metric="triad")
        for nodes in (0, 4):
            history = story.history(nodes)
            for now in (0.0, 1.0):
                for result in judge(criterion, TrialView(history, at(now))):
                    assert result.n == 0
                    assert result.reason
                    assert result.state != "met" or name == "availability"
        assert TrialView(Story([], policy).history(()), 0).timeline.total.available == 0


def test_a_waived_criterion_keeps_its_numbers() -> None:
    story = a_day(1)
    story.run(0, 0, 1, FAILED)
    story.tell(1, TrialEnded, failed=0)
    waiver = Waiver(reason="known bug", by="both", on="2026-05-01", criteria=["pass_rate"])
    component = Component(
        component="c",
        kind="sustained",
        criteria=[
            Criterion(criterion="pass_rate", at_least="90%"),
            Criterion(criterion="utilisation", at_least="90%"),
        ],
        waivers=[waiver],
    )
    results = judged(component, story.view())
    (rate, *_), (use,), (every, *_) = results
    assert (every.state, every.value) == ("not met", 0)
    assert (rate.state, rate.value, rate.n) == ("waived", 0.0, 1)
    assert rate.reason.startswith(
        "waived by both on 2026-05-01: known bug; 1 of 1 run did not pass"
    )
    assert use.state == "not met"
    assert overall(results).words == (
        "not met: utilisation 0 % (at least 90 %); every test 0 tests (all 2); "
        "1 waived: pass rate 0 % (at least 90 %)"
    )
    assert overall(results).short == "not met, 1 waived"
    assert overall([[rate]]).state == "waived"
    everything = Waiver(reason="r", by="b", on="2026-05-01")
    assert judge(component.criteria[1], story.view(), [everything])[0].state == "waived"


def test_what_was_abandoned_or_ended_early_is_not_decided_but_by_what_is_certain() -> None:
    ends: list[tuple[type[Event], dict[str, int], str]] = [
        (TrialAbandoned, {}, "was abandoned"),
        (TrialEnded, {"failed": 1}, "has ended"),
    ]
    for kind, more, word in ends:
        story = a_day(10)
        story.run(0, 0, 2)
        story.tell(2, kind, **more)
        assert story.result("pass_rate", at_least="90%").state == "undecided"
        assert story.result("accepted_runs", at_least=1, tests=["a"]).state == "met"
        why = story.result("pass_rate", at_least="90%").reason
        assert why == f"the trial {word} after 2 h 0 m of 10 h 0 m"


def in_order(reach: tuple[float | None, float | None]) -> bool:
    return reach[0] is None or reach[1] is None or reach[0] <= reach[1]


REACHES = st.tuples(st.floats(0, 10) | st.none(), st.floats(0, 10) | st.none()).filter(in_order)


@settings(deadline=None)
@given(
    REACHES.filter(lambda found: found != (None, None)), REACHES, st.floats(0, 1), st.floats(0, 10)
)
def test_what_is_decided_early_holds_for_every_value_that_can_come(
    limits: Reach, reach: Reach, part: float, span: float
) -> None:
    bounds = Bounds(*limits, "")
    least = reach[0] if reach[0] is not None else (reach[1] or 0) - span
    most = reach[1] if reach[1] is not None else least + span
    value = least + part * (most - least)
    if bounds.contains(reach):
        assert bounds.holds(value)
    if bounds.excludes(reach):
        assert not bounds.holds(value)


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("utilisation", 0.92, "92 %"),
        ("utilisation", 0.99996, "99.996 %"),
        ("utilisation", 1.0, "100 %"),
        ("slowdown", -3.14159, "-3.14 %"),
        ("mtbf", 7200.0, "2 h 0 m"),
        ("accepted_runs", 12.0, "12 runs"),
        ("pass_rate", None, ""),
    ],
)
def test_values_are_shown_in_their_units(name: str, value: float | None, shown: str) -> None:
    assert show_value(name, value) == shown


# ---- verdicts -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("verdict", "n"),
    [
        (FAILED, 2),
        (WRONG_ANSWER, 2),
        (MISPLACED, 2),
        (PERFORMANCE, 2),
        (HUNG, 1),
        (LOST, 1),
        (BOOT_FAILURE, 1),
    ],
)
def test_a_retry_makes_up_for_no_fault_of_the_test(verdict: Code, n: int) -> None:
    story = a_day(10)
    story.run(0, 0, 1, verdict, again=True)
    story.run(0, 1, 2)
    story.tell(10, TrialEnded, failed=0)
    found = story.result("pass_rate", at_least="90%", tests=["a"])
    assert (found.n, found.value, found.state) == (n, 1 / n, "met" if n == 1 else "not met")


def test_pass_rate_leaves_out_what_was_cancelled_or_made_good() -> None:
    story = a_day(10)
    story.run(0, 0, 1)
    story.run(0, 1, 2)
    story.run(0, 2, 3, CANCELLED)
    story.run(0, 3, 4, NODE_FAILURE, again=True)
    story.run(1, 4, 5, TIMEOUT)
    story.run(1, 5, 6, RECALLED)
    story.run(1, 6, 7, RECALLED)
    story.tell(10, TrialEnded, failed=0)
    found = story.result("pass_rate", at_least="60%", pooled=True)
    assert (found.state, found.value, found.n) == ("met", 2 / 3, 3)
    assert found.numbers["rate of all attempts"] == 0.5
    assert (found.numbers["retried"], found.numbers["timeout"]) == (1, 1)
    assert (found.numbers["cancelled"], found.numbers["recalled"]) == (1, 2)
    assert story.result("pass_rate", at_least="100%", tests=["a"]).state == "met"
    assert found.numbers["rate if cancelled runs had failed"] == 0.5
    missed = story.result("pass_rate", at_least="70%", pooled=True)
    assert missed.reason == (
        "1 of 3 runs did not pass: 1 timeout (1 of b); 1 retried run not counted; "
        "1 cancelled run not counted (50 % had they failed); the lowest is b, 0 %"
    )


def test_a_missed_pass_rate_names_the_node_of_the_failures() -> None:
    story = Story(cases_of(1, 1), sustained(cases_of(1, 1), 10))
    for hour in range(10):
        story.run(
            0, hour, hour + 0.5, FAILED if hour % 2 else PASS, nodes="n3" if hour % 2 else "n1"
        )
        story.run(1, hour, hour + 0.5, PASS, nodes="n2")
    story.tell(10, TrialEnded, failed=5)
    why = story.result("pass_rate", at_least="90%").reason
    assert why == "a: 5 of 10 runs did not pass: 5 failed, all on n3; of all tests together 75 %"
    story.run(0, 9.5, 10, FAILED, nodes="n4")
    why = story.result("pass_rate", at_least="90%", tests=["a"]).reason
    assert why == "6 of 11 runs did not pass: 6 failed (6 of a), 5 of 6 on n3"
    for hour in range(8):  # it passes there, too
        story.run(0, hour, hour + 0.5, nodes="n3")
    assert story.result("pass_rate", at_least="90%", tests=["a"]).reason.endswith("(6 of a)")


def test_criteria_on_nodes_say_of_how_many_of_the_machine_they_speak() -> None:
    story = a_day(10)
    history = story.history()
    history.machine_nodes = 9660
    about = Criterion(criterion="availability", at_least="75%")
    (going,) = judge(about, TrialView(history, at(5)))
    assert going.reason == "the trial goes on: 5 h 0 m of 10 h 0 m, of 4 of 9,660 nodes"
    story.tell(10, TrialEnded, failed=0)
    history = story.history()
    history.machine_nodes = 9660
    bounds: dict[str, str] = {"availability": "75%", "utilisation": "75%", "mtbf": "1h"}
    for name, least in bounds.items():
        asked = Criterion(criterion=name, at_least=least, tests=["a"] * (name == "utilisation"))
        found, *_ = judge(asked, TrialView(history, at(10)))
        assert ", of 4 of 9,660 nodes" in found.reason
    history.machine_nodes = 4
    found, *_ = judge(about, TrialView(history, at(10)))
    assert found.reason == "0 node-hours down in 0 failures of nodes"


def mixed(*failed: int) -> Story:
    """Ten hours of a, b and, on idle nodes, c: ten runs of a and b and a hundred of c, of which so
    many failed."""
    entries = [Entry(name="a", copies=1), Entry(name="b", copies=1), Entry(name="c")]
    cases = cases_of(1, 1, 1)
    policy = Policy(kind="sustained", entries=entries, entry_of=[0, 1, 2], duration=36000, nodes=4)
    story = Story(cases, policy)
    for number, (runs, bad) in enumerate(zip((10, 10, 100), failed, strict=True)):
        for n in range(runs):
            story.run(number, n * 10 / runs, (n + 1) * 10 / runs, FAILED if n < bad else PASS)
    story.tell(10, TrialEnded, failed=sum(failed))
    return story


@pytest.mark.parametrize("name", ["pass_rate", "correct_answers"])
def test_the_worst_test_decides_a_share_of_runs(name: str) -> None:
    verdict = FAILED if name == "pass_rate" else WRONG_ANSWER
    story = a_day(10)
    for hour in range(10):
        story.run(0, hour, hour + 1)
        story.run(1, hour, hour + 1, verdict if hour < 4 else PASS)
    story.tell(10, TrialEnded, failed=4)
    first, a, b = story.judged(name, at_least="80%")
    assert (first.state, first.value, first.n) == ("not met", 0.6, 20)
    assert first.reason.startswith("b: 4 of 10 ")
    assert first.reason.endswith("; of all tests together 80 %")
    assert (first.numbers["worst"], first.numbers["of all tests together"]) == ("b", 0.8)
    assert [(one.subject, one.state, one.value) for one in (a, b)] == [
        ("a", "met", 1.0),
        ("b", "not met", 0.6),
    ]
    assert first.bound == a.bound
    (pooled,) = story.judged(name, at_least="80%", pooled=True)
    assert (pooled.state, pooled.value, pooled.subject) == ("met", 0.8, "")
    assert pooled.reason.endswith("; the lowest is b, 60 %")


def test_fillers_never_dilute_a_pass_rate() -> None:
    (first, *rest) = mixed(2, 0, 0).judged("pass_rate", at_least="85%")
    assert (first.state, first.value, len(rest)) == ("not met", 0.8, 3)
    pooled, claimed, fills = mixed(4, 0, 0).judged("pass_rate", at_least="90%", pooled=True)
    assert (pooled.state, pooled.value, pooled.n) == ("not met", 0.8, 120)
    assert (claimed.subject, claimed.n) == ("tests with a part of the machine", 20)
    assert (fills.subject, fills.state, fills.n) == ("c", "met", 100)
    bad = mixed(0, 0, 30).judged("pass_rate", at_least="90%", pooled=True)
    assert [one.state for one in bad] == ["not met", "met", "not met"]
    assert bad[0].reason.startswith("c: 30 of 100 runs did not pass")


def test_a_filler_that_had_no_turn_leaves_a_pass_rate_as_it_is() -> None:
    entries = [Entry(name="a", copies=4), Entry(name="b")]
    policy = Policy(kind="sustained", entries=entries, entry_of=[0, 1], duration=36000, nodes=4)
    story = Story(cases_of(1, 1), policy)
    story.run(0, 0, 1)
    story.tell(10, TrialEnded, failed=0)
    first = story.result("pass_rate", at_least="90%")
    assert (first.state, first.reason) == ("met", "all of 1 run passed")
    story = a_day(10)
    story.run(0, 0, 1)
    story.tell(10, TrialEnded, failed=0)
    first = story.result("pass_rate", at_least="90%")
    assert (first.state, first.reason) == (
        "undecided",
        "b: no run has ended; of all tests together 100 %",
    )


def test_nothing_is_met_by_runs_that_others_cancelled_where_each_counts() -> None:
    story = Story(cases_of(1, 1))
    story.run(0, 0, 1)
    story.run(1, 0, 1, CANCELLED, again=True)
    story.run(1, 1, 2, CANCELLED)
    story.tell(3, TrialEnded, failed=0)
    for name in ("pass_rate", "correct_answers"):
        found = story.result(name, at_least="100%", pooled=True)
        assert (found.state, found.value, found.n) == ("undecided", 1.0, 1)
        assert found.reason.startswith("1 run was cancelled by others, and not retried (1 of b)")
        assert story.result(name, at_least="100%").state == "undecided"
        assert story.result(name, at_least="100%", tests=["a"]).state == "met"


def test_pass_rate_is_decided_early_where_the_number_of_runs_is_known() -> None:
    cases = cases_of(1, 1, 1, 1)
    story = Story(cases)
    story.run(0, 0, 1)
    story.run(1, 1, 2, FAILED)
    assert story.result("pass_rate", at_least="75%", pooled=True).state == "undecided"
    assert story.result("pass_rate", at_least="76%", pooled=True).state == "not met"
    assert story.result("pass_rate", at_least="25%", pooled=True).state == "met"
    story.run(2, 2, 3, FAILED)
    assert story.result("pass_rate", at_least="75%", pooled=True).state == "not met"
    assert story.result("pass_rate", at_least="25%").reason.startswith("b: 1 of 1 run did not pass")


def test_a_rate_of_100_per_cent_is_lost_with_the_first_failure() -> None:
    story = a_day(10)
    story.run(0, 0, 1)
    assert story.result("correct_answers", at_least="100%").state == "undecided"
    story.run(0, 1, 2, WRONG_ANSWER)
    assert story.result("correct_answers", at_least="100%").state == "not met"
    assert story.result("pass_rate", at_least="100%").state == "not met"
    assert story.result("pass_rate", at_least="99.9%").state == "undecided"


def test_correct_answers_counts_all_that_gave_one() -> None:
    story = a_day(10)
    for verdict in (PASS, PERFORMANCE, NO_FIGURE, FAILED, TIMEOUT):
        story.run(0, 0, 1, verdict)
    story.run(1, 1, 2, WRONG_ANSWER, again=True)
    story.tell(10, TrialEnded, failed=0)
    found = story.result("correct_answers", at_least="100%", pooled=True)
    assert (found.state, found.value, found.n) == ("not met", 0.75, 4)
    assert found.numbers == {"wrong": 1, "without an answer": 2}
    assert found.reason == "1 of 4 answers were wrong: 1 of b; the lowest is b, 0 %"
    of_a = story.result("correct_answers", at_least="100%", tests=["a"])
    assert (of_a.state, of_a.reason) == ("met", "all of 3 answers were right")


def test_accepted_runs_of_each_test_and_the_one_that_has_fewest() -> None:
    story = a_day(10)
    for hour in range(3):
        story.run(0, hour, hour + 1)
    story.run(1, 0, 1)
    story.tell(1, TestStopped, test="b", reason="wrong twice")
    worst, a, b = story.judged("accepted_runs", at_least=2)
    assert (a.state, a.value, a.subject) == ("met", 3, "a")
    assert (b.state, b.value, b.subject) == ("undecided", 1, "b")
    assert (worst.state, worst.value, worst.subject, worst.n) == ("undecided", 1, "", 4)
    assert worst.numbers == {"subjects": 2, "worst": "b", "met": 1, "not met": 0, "undecided": 1}
    story.tell(10, TrialEnded, failed=0)
    worst = story.result("accepted_runs", at_least=2)
    assert worst.state == "not met"
    assert worst.reason == "b: 1 run passed of 1 that ended; the test was stopped: wrong twice"


def test_of_accepted_runs_none_has_ended_that_goes_on_or_runs_again() -> None:
    story = a_day(10)
    story.run(0, 0, 1)
    story.run(0, 1, 2, FAILED)
    story.run(0, 2, 3, NODE_FAILURE, again=True)
    story.run(0, 3, 0, None)
    found = story.result("accepted_runs", at_least=3, tests=["a"])
    assert (found.numbers, found.n) == ({"passed": 1, "ended": 2}, 2)


# ---- nodes and time -----------------------------------------------------------------------


def test_utilisation_is_accepted_over_available_node_hours() -> None:
    story = a_day(10, outages=[Window(start=8 * 3600, end=9 * 3600)])
    story.run(0, 0, 6)
    story.run(1, 1, 5, FAILED)
    story.tell(10, TrialEnded, failed=0)
    found = story.result("utilisation", at_least="30%")
    assert (found.state, found.value) == ("met", 12 / 36)
    assert found.numbers["failed node-hours"] == 8
    missed = story.result("utilisation", at_least="50%")
    assert missed.state == "not met"
    assert missed.numbers["cause"] == "drained"
    assert missed.reason.startswith("idle 38.9 % of node-hours at the end")


@pytest.mark.parametrize(
    ("verdict", "hours"),
    [(PASS, {"accepted": 40.0}), (FAILED, {"accepted": 0.0, "failed": 40.0})],
)
def test_utilisation_has_the_hours_of_the_uses_that_there_were(
    verdict: Any, hours: dict[str, float]
) -> None:
    story = a_day(10)
    story.run(0, 0, 10, verdict)
    story.run(1, 0, 10, verdict)
    story.tell(10, TrialEnded, failed=0)
    numbers = story.result("utilisation", at_least="30%").numbers
    numbers.pop("cause", None)
    assert numbers == {f"{use} node-hours": of for use, of in ({"available": 40.0} | hours).items()}


def test_utilisation_of_some_tests_is_of_the_hours_of_their_runs() -> None:
    story = a_day(10)
    story.run(0, 0, 4)
    story.run(1, 0, 8)
    story.tell(10, TrialEnded, failed=0)
    found = story.result("utilisation", at_least="10%", tests=["a"])
    assert (found.state, found.value, found.n) == ("met", 8 / 40, 1)
    assert (found.numbers["accepted node-hours"], found.numbers["of all tests"]) == (8, 0.6)
    assert found.reason == "8 of 40 node-hours, by all tests together 60 %"


def test_utilisation_is_decided_once_nothing_can_change_it() -> None:
    story = a_day(10)
    story.run(0, 0, 5)
    story.run(1, 0, 5, FAILED)
    # five of ten hours: 10 node-hours accepted, 10 lost, 20 to come
    assert story.result("utilisation", at_least="75%").state == "undecided"
    assert story.result("utilisation", at_least="76%").state == "not met"
    assert story.result("utilisation", at_least="25%").state == "met"
    assert story.result("utilisation", at_least="26%").state == "undecided"
    story.run(1, 5, 0, None)  # under way: it may yet pass
    assert story.result("utilisation", 6, at_least="70%").state == "undecided"


def test_availability_is_the_share_of_node_hours_up() -> None:
    story = a_day(10, outages=[Window(start=4 * 3600, end=5 * 3600, nodes="n1")])
    story.run(0, 1, 9, nodes="n1,n2")
    story.tell(2, NodeDown, nodes="n1")
    story.tell(5, NodeUp, nodes="n1")
    found = story.result("availability", at_least="99%", now=5)
    assert (found.value, found.n, found.state) == (1 - 2 / 19, 1, "not met")
    story.tell(10, TrialEnded, failed=0)
    found = story.result("availability", at_least="94%")
    assert (found.state, found.value) == ("met", 1 - 2 / 39)
    assert found.numbers["down node-hours"] == 2


def test_availability_is_decided_once_nothing_can_change_it() -> None:
    """Of 40 node-hours 3 were down and 17 up after five of ten hours: 42.5 % to 92.5 %."""
    story = a_day(10)
    story.tell(2, NodeDown, nodes="n1")
    story.tell(5, NodeUp, nodes="n1")
    for bound, state in (
        *(("42.4%", "met"), ("42.6%", "undecided")),
        *(("92.4%", "undecided"), ("92.6%", "not met")),
    ):
        assert story.result("availability", at_least=bound).state == state, bound


def test_availability_is_not_met_by_a_time_that_nobody_watched() -> None:
    """The driver died after an hour of ten, and its clock runs: nodes may have been down since."""
    story = a_day(10)
    story.run(0, 0, 1)
    found = story.result("availability", at_least="99%", now=10)
    assert (found.value, found.state) == (1.0, "undecided")
    assert story.result("availability", at_least="5%", now=10).state == "met"
    story.tell(10, TrialEnded, failed=0)
    assert story.result("availability", at_least="99%").state == "met"


def test_mtbf_is_time_over_failures() -> None:
    story = a_day(12, outages=[Window(start=8 * 3600, end=9 * 3600)])
    for hour in (1, 5, 8.5):
        story.tell(hour, NodeDown, nodes="n1")
        story.tell(hour + 0.4, NodeUp, nodes="n1")
    story.run(0, 4, 5.05, NODE_FAILURE)  # the one that was told
    story.run(0, 10, 11, NODE_FAILURE)  # a node that was back before it was missed
    assert story.result("mtbf", 3, at_least="13h").state == "not met"
    assert story.result("mtbf", 3, at_least="12h").state == "undecided"
    story.tell(12, TrialEnded, failed=0)
    found = story.result("mtbf", at_least="4h")
    assert (found.state, found.value, found.n) == ("met", 4 * 3600, 3)
    assert found.numbers["not told by the scheduler"] == 1


def test_mtbf_without_a_failure_is_a_lower_bound() -> None:
    story = a_day(24)
    story.tell(24, TrialEnded, failed=0)
    found = story.result("mtbf", at_least="10h")
    assert found.value is not None
    assert math.exp(-24 * 3600 / found.value) == pytest.approx(0.1)
    assert (found.state, found.n) == ("met", 0)
    assert "90 % confidence" in found.reason
    longer = story.result("mtbf", at_least="11h")
    assert longer.state == "undecided"  # nothing speaks against it
    assert longer.reason.endswith("too short a time to show at least 11 h 0 m")


def test_jobs_in_flight_is_the_least_since_the_bound_was_reached() -> None:
    story = a_day(10)
    story.run(0, 1, 4)
    story.run(1, 2, 5)
    story.run(0, 4, 10)  # begins as another ends: no dip
    story.run(1, 6, 10)
    found = story.result("jobs_in_flight", 3, at_least=2)
    assert (found.state, found.value) == ("undecided", 2)
    found = story.result("jobs_in_flight", 6, at_least=2)
    assert (found.state, found.value) == ("not met", 1)  # whatever comes
    story.tell(10, TrialEnded, failed=0)
    found = story.result("jobs_in_flight", at_least=2)
    assert found.numbers == {
        "share of time below": 1 / 8,
        "longest below": 3600,
        "shortest counted": 60,
        "reached after": 7200,
    }
    assert found.reason == (
        "only 1 ran 5 h 0 m after the start; at least 2 jobs was missed for 1 h 0 m, 12.5 % of the "
        "time"
    )
    never = story.result("jobs_in_flight", at_least=3)
    assert (never.state, never.value, never.reason) == ("not met", 2, "never more than 2 ran")


def test_jobs_in_flight_is_counted_to_now_while_a_trial_without_a_duration_runs() -> None:
    story = a_day(10)
    story.policy = replace(story.policy, duration=0.0)
    story.run(0, 1, 4)
    story.run(1, 2, 5)
    assert story.result("jobs_in_flight", 5, at_least=2).state == "not met", "1 ran since 4 h"
    story.tell(5, TrialEnded, failed=0)
    found = story.result("jobs_in_flight", at_least=1)
    assert (found.state, found.value) == ("met", 1), "what ends after the last start is no dip"


def test_jobs_in_flight_asks_for_no_more_than_the_changed_plan_keeps() -> None:
    story = a_day(10)
    first, second = story.policy.entries
    entries = [replace(first, copies=2, weight=1.0), replace(second, weight=0.0)]
    story.policy = replace(story.policy, entries=entries)
    test = story.cases[0].test
    story.run(0, 0, 10)
    story.run(0, 0, 4)
    missed = story.result("jobs_in_flight", 8, at_least=2, tests=[test])
    assert (missed.state, missed.value) == ("not met", 1)
    fewer = {"entries": {test: {"copies": 1, "weight": 0.5}}}
    story.tell(4, PolicyChanged, parts=fewer, by="mara", reason="its code has a fault")
    story.tell(10, TrialEnded, failed=0)
    found = story.result("jobs_in_flight", at_least=2, tests=[test])
    assert (found.state, found.value) == ("met", 2)
    assert found.reason.endswith("; the changed plan kept fewer: 1 from 4 h 0 m on")
    more = story.result("jobs_in_flight", at_least=3, tests=[test])
    assert more.state == "not met", "no plan kept as many"


def test_jobs_in_flight_is_missed_where_fewer_ran_than_the_changed_plan_keeps() -> None:
    story = a_day(10)
    first, second = story.policy.entries
    entries = [replace(first, copies=3, weight=1.0), replace(second, weight=0.0)]
    story.policy = replace(story.policy, entries=entries)
    test = story.cases[0].test
    for hours in (10, 4, 4):
        story.run(0, 0, hours)
    fewer = {"entries": {test: {"copies": 2, "weight": 0.5}}}
    story.tell(4, PolicyChanged, parts=fewer, by="mara", reason="its code has a fault")
    story.tell(10, TrialEnded, failed=0)
    found = story.result("jobs_in_flight", at_least=3, tests=[test])
    assert (found.state, found.value) == ("not met", 2), "one ran of the two that it keeps"


def test_jobs_in_flight_bears_the_moment_between_two_runs() -> None:
    """From the end of one run to the start of the next; a minute counts, or 1 % of the duration."""
    moment = 4.5e-3 / 3600
    for hours, gap, state in (
        (10, moment, "met"),
        (10, 0.9 / 60, "met"),
        (10, 1.1 / 60, "not met"),
        (1, 0.5 / 60, "met"),
        (1, 0.7 / 60, "not met"),
    ):
        story = a_day(hours)
        story.run(0, 0, hours)
        story.run(1, 0, hours / 2)
        story.run(1, hours / 2 + gap, hours)
        story.tell(hours, TrialEnded, failed=0)
        found = story.result("jobs_in_flight", at_least=2)
        assert (found.state, found.value) == (state, 2 if state == "met" else 1), gap
        assert found.numbers["longest below"] == pytest.approx(gap * 3600)
        assert found.numbers["shortest counted"] == min(60, 36 * hours)
        assert "hour 0." not in found.reason
    assert found.reason.startswith(
        "only 1 ran 30 m 0 s after the start; at least 2 jobs was missed for 42"
    )


def test_a_criterion_is_named_with_what_it_is_about() -> None:
    story = a_day(1)
    story.run(0, 0, 1)
    assert story.result("accepted_runs", at_least=1, tests=["a"]).label == "accepted runs of a"
    named = Criterion(criterion="slowdown", at_most="5%", metric="speed", tests=["a", "b"])
    assert label(named) == "slowdown of speed, a, b"
    assert label(Criterion(criterion="utilisation", at_least="5%")) == "utilisation"


# ---- speed --------------------------------------------------------------------------------


def test_variability_is_that_of_the_worst_test() -> None:
    story = a_day(240)
    hours = [1.0, 1.1, 0.9, 1.3]
    for hour in hours:
        story.run(0, 0, hour, PERFORMANCE if hour > 1.2 else PASS)
    story.run(0, 0, 9, TIMEOUT)
    story.run(1, 0, 1)
    story.tell(240, TrialEnded, failed=0)
    worst, a, b = story.judged("variability", at_most="20%")
    assert a.value == pytest.approx(stdev(hours) / mean(hours))
    off = median(abs(hour - median(hours)) for hour in hours)
    assert a.numbers["robust"] == pytest.approx(1.4826 * off / median(hours))
    assert [a.numbers[name] for name in ("least", "largest")] == [0.9 * 3600, 1.3 * 3600]
    assert (a.state, a.n, b.state, b.value) == ("met", 4, "undecided", None)
    assert b.reason == "needs 2 runs with a right answer, has 1"
    assert worst.state == "undecided" and worst.numbers["worst"] == "b"


def test_a_test_whose_runs_do_not_vary_is_not_the_worst() -> None:
    story = a_day(240)
    for case, hours in ((0, [1.0, 1.0]), (1, [1.0, 1.1])):
        for end in hours:
            story.run(case, 0, end)
    story.tell(240, TrialEnded, failed=0)
    worst, a, b = story.judged("variability", at_most="20%")
    assert (worst.numbers["worst"], a.value, b.numbers["mean"]) == ("b", 0, 1.05 * 3600)


def test_variability_says_how_many_cases_have_too_few_runs() -> None:
    cases = [replace(case, test="a", parameters={"n": i}) for i, case in enumerate(cases_of(1, 1))]
    story = Story(cases, Policy(entries=[Entry(name="a")], entry_of=[0, 0]))
    for case, end in ((0, 1.0), (0, 1.1), (1, 1.0)):
        story.run(case, 0, end)
    story.tell(2, TrialEnded, failed=0)
    found = story.result("variability", at_most="20%")
    assert (found.state, found.n, found.numbers["cases left out"]) == ("undecided", 2, 1)
    assert found.reason.endswith("; 1 case with fewer than 2 right runs left out")


def test_cases_of_a_test_are_compared_with_their_own_mean() -> None:
    cases = [*cases_of(1), cases_of(1, 1)[1]]
    cases[1] = type(cases[1])(
        **{name: getattr(cases[1], name) for name in cases[1].__struct_fields__ if name != "test"},
        test="a",
    )
    story = Story(cases)
    for factor, case in ((1, 0), (10, 1)):
        story.run(case, 0, 1 * factor)
        story.run(case, 0, 1.2 * factor)
    story.tell(20, TrialEnded, failed=0)
    (found,) = story.judged("variability", at_most="20%")
    assert found.value == pytest.approx(stdev([1, 1.2]) / 1.1)
    assert found.n == 4


REFERENCES = """\
references:
  - {test: a, metric: triad, unit: MB/s, value: 100, lower: -0.05}
"""


def figures(*values: float, **bounds: Any) -> Any:
    story = Story(cases_of(1, 1))
    for value in values:
        story.run(0, 0, 1, figures={"triad": value})
    story.run(0, 0, 1, WRONG_ANSWER, figures={"triad": 1})
    story.tell(9, TrialEnded, failed=0)
    criterion = Criterion(criterion="figure_of_merit", metric="triad", tests=["a"], **bounds)
    history = story.history()
    held: References = loads(REFERENCES, Path("references.yaml"))
    return judge(criterion, TrialView(history, history.last, held))[0]


def test_a_figure_of_merit_is_judged_by_its_bound_or_its_reference() -> None:
    assert (figures(95, 99, 96).state, figures(95, 99, 96).value) == ("met", 96)
    missed = figures(94, 80)
    assert (missed.state, missed.n, missed.bound) == ("not met", 2, "at least 95 MB/s")
    assert (
        missed.reason == "triad 87 MB/s is 13.0 % below its reference 100 MB/s (at most 5 % below)"
    )
    assert figures(94, at_least=90).state == "met"
    assert figures(94, at_least=95).state == "not met"
    assert "94 MB/s" in figures(94, at_least=95).reason
    assert figures(94, at_least=95).shown == "94 MB/s"
    numbers = figures(94, 90, at_least=95).numbers
    assert numbers == {"unit": "MB/s", "least": 90, "largest": 94}
    assert figures(94, at_least="95%").state == "not met"
    assert figures(94, at_least="94%").bound == "at least 94 MB/s"
    assert figures(at_least=90).state == "undecided"


def test_a_figure_without_a_reference_is_not_decided() -> None:
    story = Story(cases_of(1))
    story.run(0, 0, 1, figures={"triad": 100})
    story.tell(9, TrialEnded, failed=0)
    wanted: list[tuple[dict[str, Any], str]] = [
        ({}, "there is no reference for triad"),
        ({"at_least": "95%"}, "'95%' is of a reference in the same unit, and there is none"),
    ]
    for bounds, why in wanted:
        found = story.result("figure_of_merit", metric="triad", **bounds)
        assert (found.state, found.reason) == ("undecided", why)


def test_a_figure_of_no_case_is_not_decided() -> None:
    found = Story(cases_of(1)).result("figure_of_merit", metric="triad", tests=["z"])
    assert (found.state, found.reason) == ("undecided", "no run has given triad")


def test_a_figure_in_another_unit_than_its_reference_is_not_decided() -> None:
    story = Story(cases_of(1))
    story.run(0, 0, 1, figures={"triad": 100})
    story.tell(9, TrialEnded, failed=0)
    criterion = Criterion(criterion="figure_of_merit", metric="triad")
    held = loads(REFERENCES.replace("MB/s", "GB"), Path("references.yaml"))
    (found,) = judge(criterion, story.view(references=held))
    assert (found.state, found.subject) == ("undecided", story.cases[0].name)
    assert found.bound == "at least 95 GB"
    held = loads(REFERENCES.replace("MB/s", "GB/s"), Path("references.yaml"))
    share = Criterion(criterion="figure_of_merit", metric="triad", at_least="95%")
    own = Criterion(criterion="figure_of_merit", metric="triad", at_least="0.2 GB/s")
    for each, told in (
        (criterion, "at least 95000 MB/s = 95 GB/s"),
        (share, "95000 MB/s"),
        (own, "at least 0.2 GB/s = 200 MB/s"),
    ):
        (found,) = judge(each, story.view(references=held))
        assert found.state == "not met"
        assert told in found.bound
    for written, state in (("100000 kB/s", "met"), ("0.2 GB", "undecided"), ("2 EB/s", "not met")):
        own = Criterion(criterion="figure_of_merit", metric="triad", at_least=written)
        (found,) = judge(own, story.view(references=held))
        assert found.state == state


# ---- what is near a bound -------------------------------------------------------------------


@pytest.mark.parametrize(("value", "bound"), [(0.1 + 0.2, 0.3), (1 - 0.9, 0.1), (1e9 / 3, 1e9 / 3)])
def test_a_value_that_equals_its_bound_but_for_rounding_keeps_it(
    value: float, bound: float
) -> None:
    least, most = Bounds(bound, None, ""), Bounds(None, bound, "")
    for near in (value, math.nextafter(bound, 0), math.nextafter(bound, math.inf)):
        assert least.holds(near) and most.holds(near)
        assert not least.excludes((None, near)) and not most.excludes((near, None))
    below, above = bound * (1 - 1e-9), bound * (1 + 1e-9)
    assert not least.holds(below) and not most.holds(above)
    assert least.excludes((None, below)) and most.excludes((above, None))


def test_several_criteria_are_as_the_worst_of_them() -> None:
    story = a_day(10)
    story.run(0, 0, 1)
    met, undecided = (
        story.judged("accepted_runs", at_least=1, tests=["a"]),
        story.judged("mtbf", at_least="1h"),
    )
    missed = story.judged("pass_rate", at_most="50%")
    assert [one[0].state for one in (met, undecided, missed)] == ["met", "undecided", "undecided"]
    story.tell(10, TrialEnded, failed=0)
    missed = story.judged("pass_rate", at_most="50%")
    waived = judge(
        Criterion(criterion="pass_rate", at_most="50%"),
        story.view(),
        [Waiver(reason="r", by="b", on="2026-05-01")],
    )
    assert overall([met, undecided]).words == "undecided"
    assert overall([met, undecided, missed]).words == (
        "not met: pass rate 100 %, by a (at most 50 %)"
    )
    by_clause = [replace(missed[0], clause="5.1"), *missed[1:]]
    assert overall([met, by_clause]).words.startswith("not met: clause 5.1, pass rate 100 %, by a")
    assert overall([missed] * 6).words.endswith("; and 2 more")
    assert overall([[]]).words == "no criteria"
    both = overall([met, waived])
    assert (both.state, both.short) == ("met with waivers", "met, 1 waived")
    assert both.words == "met, 1 waived: pass rate 100 % (at most 50 %)"
    assert overall([waived, []]).words == "waived: pass rate 100 % (at most 50 %)"
    assert overall([missed, waived]).short == "not met, 1 waived"


def test_a_waiver_covers_what_is_not_met_and_is_not_needed_for_the_rest() -> None:
    story = Story(cases_of(1, 1))
    story.run(0, 0, 1)
    story.run(1, 1, 2, FAILED)
    story.tell(10, TrialEnded, failed=1)
    waivers = [Waiver(reason="r", by="b", on="2026-05-01")]
    criterion = Criterion(criterion="accepted_runs", at_least=1)
    both, *each = judge(criterion, story.view(), waivers)
    assert [(one.state, one.words) for one in (both, *each)] == [
        ("waived", "waived (not met)"),
        ("met", "met (waiver not needed)"),
        ("waived", "waived (not met)"),
    ]
    assert both.reason.startswith("waived by b on 2026-05-01: r; ")
    assert not any("waived by" in one.reason for one in each)
    met = judge(
        Criterion(criterion="pass_rate", at_least="50%", pooled=True), story.view(), waivers
    )
    assert overall([met]).words == "met"
    assert met[0].words == "met (waiver not needed)"


# ---- trials without a duration --------------------------------------------------------------


def test_without_a_duration_jobs_in_flight_count_to_the_last_start() -> None:
    """What ends after the last start is followed by nothing: that is no dip."""
    story = Story(cases_of(1, 1))
    story.run(0, 0, 4)
    story.run(1, 1, 3)
    story.run(1, 3, 5)
    story.tell(6, TrialEnded, failed=0)
    found = story.result("jobs_in_flight", at_least=2)
    assert (found.state, found.value, found.n) == ("met", 2, 3)
    assert found.numbers["share of time below"] == 0
    story.run(0, 4.5, 5.5)
    missed = story.result("jobs_in_flight", at_least=2)
    assert (missed.state, missed.value, missed.n) == ("not met", 1, 4)
    assert missed.numbers["longest below"] == 1800
    assert missed.numbers["share of time below"] == pytest.approx(0.5 / 3.5)
    story = Story(cases_of(1, 1))
    story.run(0, 0, 2)
    story.run(1, 0, 1)
    story.run(1, 2, 3)  # the last start, as another ends
    story.tell(6, TrialEnded, failed=0)
    missed = story.result("jobs_in_flight", at_least=2)
    assert missed.numbers["longest below"] == 3600


def test_an_upper_bound_of_jobs_in_flight_is_of_the_largest_number() -> None:
    story = a_day(10)
    story.run(0, 0, 4)
    story.run(1, 1, 3)
    story.run(1, 3, 3.5)
    for most, state in ((1, "not met"), (2, "undecided")):
        found = story.result("jobs_in_flight", at_most=most)
        assert (found.state, found.value, found.n) == (state, 2, 3)
    story.tell(10, TrialEnded, failed=0)
    assert story.result("jobs_in_flight", at_most=2).state == "met"
    assert story.result("jobs_in_flight", at_most=1).state == "not met"


def test_without_a_duration_utilisation_and_availability_are_decided_at_the_end() -> None:
    story = Story(cases_of(2))
    story.run(0, 0, 5)
    story.tell(4, NodeDown, nodes="n1")
    assert story.result("utilisation", at_least="40%").state == "undecided"
    assert story.result("availability", at_least="90%").state == "undecided"
    story.tell(5, TrialEnded, failed=0)
    found = story.result("utilisation", at_least="40%")
    assert (found.state, found.value, found.n) == ("met", 0.5, 1)
    assert story.result("utilisation", at_least="60%").state == "not met"
    found = story.result("availability", at_least="90%")
    assert (found.state, found.value, found.n) == ("met", 0.95, 1)
    assert story.result("availability", at_least="96%").state == "not met"


# ---- figures and times of every kind --------------------------------------------------------


def test_runs_of_less_than_a_second_have_a_variability() -> None:
    story = a_day(1)
    for part in (0.2, 0.4):
        story.run(0, 0, part / 3600)
    (found,) = story.judged("variability", at_most="20%", tests=["a"])
    assert found.value == pytest.approx(stdev([0.2, 0.4]) / 0.3, rel=1e-6)


LOWER = """\
references:
  - {test: a, metric: latency, unit: MB/s, value: 100}
"""


@pytest.mark.parametrize(("value", "state"), [(104.0, "met"), (106.0, "not met"), (50.0, "met")])
def test_of_a_metric_of_which_less_is_better_more_is_missed(value: float, state: str) -> None:
    story = Story(cases_of(1))
    story.run(0, 0, 1, figures={"latency": value}, better="lower")
    story.tell(9, TrialEnded, failed=0)
    criterion = Criterion(criterion="figure_of_merit", metric="latency")
    history = story.history()
    held = loads(LOWER, Path("references.yaml"))
    assert judge(criterion, TrialView(history, history.last, held))[0].state == state


def test_of_tests_with_an_upper_bound_the_one_with_most_runs_is_the_worst() -> None:
    story = a_day(10)
    for hour in range(3):
        story.run(0, hour, hour + 1)
    story.run(1, 0, 1)
    story.tell(10, TrialEnded, failed=0)
    for most, state in ((5, "met"), (2, "not met"), (0, "not met")):
        worst = story.judged("accepted_runs", at_most=most)[0]
        assert (worst.state, worst.value, worst.numbers["worst"]) == (state, 3, "a")


def test_upper_bounds_may_be_of_a_reference() -> None:
    assert figures(104, at_most="105%").state == "met"
    assert figures(106, at_most="105%").state == "not met"
    assert (
        figures(97, at_least="95%", at_most="105%").bound == "at least 95 MB/s and at most 105 MB/s"
    )


def test_the_slowdown_of_all_cases_is_named_as_that_of_each() -> None:
    results = a_day(10).judged("slowdown", at_most="5%")
    assert [one.subject for one in results] == ["", *(case.name for case in cases_of(2, 2))]
    assert {(one.criterion, one.label) for one in results} == {("slowdown", "slowdown")}


def test_a_slowdown_s_bounds_are_said_as_they_were_written() -> None:
    story = a_day(10)
    for bounds, words in (
        ({"at_least": "5%"}, "at least +5 %"),
        ({"at_most": "3%"}, "at most 3 % loss"),
        ({"at_least": "-1%", "at_most": "3%"}, "at least -1 % and at most 3 % loss"),
    ):
        assert story.result("slowdown", **bounds).bound == words  # type: ignore[arg-type]


def test_what_is_listed_is_ordered_by_number_and_then_by_name() -> None:
    parts = {"d": 1, "b": 2, "c": 2, "a": 1, "e": 1}
    assert largest_listed(parts) == "2 b, 2 c, 1 a, 2 others"
    assert largest_listed(dict(reversed(parts.items()))) == largest_listed(parts)
    assert largest_listed(parts, 5) == "2 b, 2 c, 1 a, 1 d, 1 e"


OF_CASES = """\
references:
  - {test: a, metric: triad, unit: "1", value: 100, lower: -0.05, where: {threads: 0}}
  - {test: a, metric: triad, unit: "1", value: 10, lower: -0.05, where: {threads: 1}}
"""


def test_a_figure_is_judged_by_the_reference_of_its_own_case() -> None:
    cases = cases_of(1)
    story = Story(cases)
    story.run(0, 0, 1, figures={"triad": 50.0})
    story.events = [
        replace(event, unit="1") if isinstance(event, MetricRecorded) else event
        for event in story.events
    ]
    story.tell(9, TrialEnded, failed=0)
    history = story.history()
    held = loads(OF_CASES, Path("references.yaml"))
    (found,) = judge(
        Criterion(criterion="figure_of_merit", metric="triad"),
        TrialView(history, history.last, held),
    )
    assert (found.state, found.bound) == ("not met", "at least 95")
    assert found.reason.startswith("triad 50 is 50.0 % below its reference 100 ("), "without a unit"


# ---- mix -----------------------------------------------------------------------------------


def a_mix_of_three() -> Story:
    """Half of four nodes, one copy, and fill, for ten hours."""
    cases = cases_of(2, 1, 1)
    parts: list[dict[str, Any]] = [{"weight": 0.5}, {"copies": 1}, {}]
    entries = [Entry(name=c.test, **part) for c, part in zip(cases, parts, strict=True)]
    story = Story(cases, sustained(cases, 10, entries=entries))
    story.run(0, 0, 9)
    story.run(1, 0, 10)
    story.run(2, 0, 10)
    return story


def test_the_test_furthest_from_its_share_decides_about_the_mix() -> None:
    story = a_mix_of_three()
    story.tell(10, TrialEnded, failed=0)
    whole, *each = story.judged("mix", at_most="4 points")
    assert [one.value for one in each] == pytest.approx([0.05, 0, 0])
    assert [one.state for one in each] == ["not met", "met", "met"]
    assert (whole.state, whole.shown, whole.bound) == ("not met", "5 points", "at most 4 points")
    assert whole.numbers["worst"] == story.cases[0].test
    assert each[0].numbers == pytest.approx({"planned": 0.5, "achieved": 0.45, "node-hours": 18})
    assert each[0].n == 1
    assert story.result("mix", at_most="5 points").state == "met"
    assert story.result("mix", at_most="4%", tests=[story.cases[1].test]).state == "met"


def test_fill_may_have_what_others_did_not_take() -> None:
    story = a_mix_of_three()
    story.run(2, 0, 5)
    story.tell(10, TrialEnded, failed=0)
    *_, fill = story.judged("mix", at_most="4 points")
    assert (fill.value, fill.state) == (0, "met")
    assert fill.numbers["achieved"] == pytest.approx(0.375)


def test_a_mix_is_undecided_before_the_end() -> None:
    assert a_mix_of_three().result("mix", at_most="5 points").state == "undecided"


def test_criteria_say_when_runs_shared_nodes() -> None:
    story = a_mix_of_three()
    story.run(1, 0, 10, nodes="n1")
    story.run(2, 0, 10, nodes="n1")
    story.tell(10, TrialEnded, failed=0)
    history = story.history(cores=8)
    view = TrialView(history, history.last)
    for name in ("utilisation", "mix"):
        (result, *_) = judge(Criterion(criterion=name, at_most="90%"), view)
        assert "runs shared nodes" in result.reason
        assert "in 25 % of the node time" in result.reason
