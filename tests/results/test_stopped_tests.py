from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial.journal.events import TestAdmitted, TestStopped, TrialEnded
from seatrial.model.codes import PASS, WRONG_ANSWER
from seatrial.model.policy import Entry

from .stories import Story, cases_of, sustained


def two_tests(hours: int, share: float = 0.5) -> Story:
    cases = cases_of(1, 1)
    entries = [Entry(name="a", weight=share), Entry(name="b", weight=1 - share)]
    return Story(cases, sustained(cases, hours, entries=entries))


def pass_rates(story: Story) -> tuple[float, float, float]:
    """The rates of both tests together, of the worst one, and of b."""
    (pooled,) = story.judged("pass_rate", at_least="90%", pooled=True)
    first, _, b = story.judged("pass_rate", at_least="90%")
    assert pooled.value is not None and first.value is not None
    return pooled.value, first.value, b.value or 0.0


def test_the_runs_that_a_stopped_test_did_not_make_did_not_pass() -> None:
    story = two_tests(10)
    for hour in range(10):
        story.run(0, hour, hour + 1)
    story.run(1, 0, 1, WRONG_ANSWER)
    story.run(1, 1, 2, WRONG_ANSWER)
    story.tell(2, TestStopped, test="b", reason="2 wrong answers in a row")
    story.tell(10, TrialEnded, failed=1)
    first, a, b = story.judged("pass_rate", at_least="90%")
    assert first.numbers["not made"] == 8
    # 8 of a's runs began while b was stopped, and count for the half of the machine that is a's
    assert first.numbers["of all tests together"] == (2 + 8 / 2) / (2 + 8 / 2 + 2 + 8)
    assert (first.value, a.value, b.value, b.n) == (0.0, 1.0, 0.0, 2)
    assert first.state == "not met"


def test_the_time_in_which_a_test_was_admitted_again_counts_as_it_was() -> None:
    story = two_tests(10)
    for hour in range(10):
        story.run(0, hour, hour + 1)
        if not 2 <= hour < 4:
            story.run(1, hour, hour + 1)
    story.tell(2, TestStopped, test="b")
    story.tell(4, TestAdmitted, test="b")
    story.tell(10, TrialEnded, failed=1)
    first, _, b = story.judged("pass_rate", at_least="90%")
    assert b.numbers["not made"] == 2
    assert b.value == 8 / 10
    assert first.value == 8 / 10
    assert pass_rates(story)[0] == (8 + 2 / 2 + 8) / (8 + 2 / 2 + 8 + 2)


def test_of_a_component_with_a_number_of_runs_the_planned_ones_count() -> None:
    cases = cases_of(1, 1)
    story = Story([cases[0], *cases[1:]])
    story.run(0, 0, 1)
    story.tell(1, TestStopped, test="b")
    (first, _, b) = story.judged("pass_rate", at_least="90%")
    assert (first.value, first.numbers["not made"], b.value) == (0.0, 1, 0.0)
    assert first.numbers["of all tests together"] == 0.5
    story.run(1, 0, 0.5, WRONG_ANSWER)
    (first, _, b) = story.judged("pass_rate", at_least="90%")
    assert (first.value, "not made" in first.numbers, b.value) == (0.0, False, 0.0)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.booleans(), min_size=12, max_size=12),
    st.lists(st.booleans(), min_size=12, max_size=12),
    st.integers(1, 11),
    st.sampled_from([0.25, 0.5, 0.75]),
    st.integers(0, 3),
)
def test_to_stop_a_failing_test_never_improves_the_rate(
    a: list[bool], b: list[bool], stop: int, share: float, more: int
) -> None:
    """Of two trials that are the same up to the stop, the one that goes on with wrong answers is no
    worse; in the other one the other test has up to all of the nodes that are free."""
    gained = share / (1 - share) if more else 0.0
    going, stopped = two_tests(12, 1 - share), two_tests(12, 1 - share)
    for hour in range(12):
        for story in (going, stopped):
            story.run(0, hour, hour + 1, PASS if a[hour] else WRONG_ANSWER)
        extra = round(gained * more / 3 * (hour + 1)) - round(gained * more / 3 * hour)
        for _ in range(extra if hour >= stop else 0):
            stopped.run(0, hour, hour + 1, PASS if a[hour] else WRONG_ANSWER)
        if hour < stop:
            for story in (going, stopped):
                story.run(1, hour, hour + 1, PASS if b[hour] else WRONG_ANSWER)
        else:
            going.run(1, hour, hour + 1, WRONG_ANSWER)
    stopped.tell(stop, TestStopped, test="b")
    for story in (going, stopped):
        story.tell(12, TrialEnded, failed=1)
    # Gained nodes are whole runs here, so the planned share of them is off by one run at most.
    rounding = 1 / 12 if more else 1e-9
    assert pass_rates(stopped)[0] <= pass_rates(going)[0] + rounding
    if not more:  # with more runs in the hours after the stop, a's own rate may be any
        assert pass_rates(stopped)[1] <= pass_rates(going)[1] + 1e-9
    assert pass_rates(stopped)[2] <= pass_rates(going)[2] + 1e-9
