from __future__ import annotations

from typing import Literal

import pytest
from msgspec.structs import replace

from seatrial.journal.events import BuildEnded, TestAdmitted, TestStopped, TrialEnded
from seatrial.model.codes import BUILD_FAILED, FAILED, PERFORMANCE, TIMEOUT, WRONG_ANSWER
from seatrial.model.plan import Component, Criterion, Waiver
from seatrial.model.policy import Entry, Policy
from seatrial.results.criteria.mix import overall
from seatrial.results.criteria.view import Result, TrialView
from seatrial.results.status import judged
from tests.results.stories import Story, cases_of, sustained

COMPONENT = Component(component="c", kind="sustained")


def a_story(hours: float = 2) -> Story:
    """A test with two toolchains, and two others; all but c@gcc gave a right answer."""
    a, b, c, d = cases_of(1, 1, 1, 1)
    cases = [
        replace(a, toolchain="gcc"),
        replace(b, test="a", toolchain="oneapi"),
        replace(c, toolchain="gcc", build="key"),
        replace(d, toolchain="gcc"),
    ]
    story = Story(cases, sustained(cases, hours))
    for case in (0, 1, 3):
        story.run(case, 0, 1)
    return story


def every(story: Story, component: Component = COMPONENT) -> list[Result]:
    history = story.history()
    return judged(component, TrialView(history, history.last))[-1]


def test_it_is_undecided_until_the_end_and_names_who_is_missing() -> None:
    story = a_story()
    first, *rest = every(story)
    assert (first.state, first.value, first.bound) == ("undecided", 3.0, "all 4")
    assert {(one.criterion, one.label) for one in (first, *rest)} == {("every_test", "every test")}
    assert [one.subject for one in rest] == ["c"]
    story.run(2, 1, 2)
    story.tell(2, TrialEnded, failed=0)
    (first,) = every(story)
    assert (first.state, first.value, first.n) == ("met", 4.0, 4)


@pytest.mark.parametrize(
    ("verdict", "why"),
    [
        (WRONG_ANSWER, "never gave a right answer: 1 wrong answer"),
        (TIMEOUT, "never gave a right answer: 1 timeout"),
        (PERFORMANCE, ""),  # slow, but right
        (None, "never ran"),
    ],
)
def test_a_test_without_a_right_answer_is_not_met(verdict: object, why: str) -> None:
    story = a_story()
    if verdict is not None:
        story.run(2, 1, 2, verdict)  # type: ignore[arg-type]
    story.tell(2, TrialEnded, failed=1)
    first, *rest = every(story)
    assert first.state == ("not met" if why else "met")
    assert [(one.subject, one.reason) for one in rest] == ([("c", why)] if why else [])


def test_each_toolchain_counts() -> None:
    story = a_story()
    story.events = [event for event in story.events if event.run_id != "r2"]
    story.run(1, 1, 2, FAILED)
    story.run(2, 1, 2)
    story.tell(2, TrialEnded, failed=1)
    first, one = every(story)
    assert (first.state, one.subject) == ("not met", "a@oneapi")
    waiver = Waiver(reason="bug", by="both", on="2026-05-01", toolchains=["one*"])
    waived = replace(COMPONENT, waivers=[waiver])
    first, one = every(story, waived)
    assert (first.words, one.words) == ("waived (not met)", "waived (not met)")
    other = replace(waiver, toolchains=["gcc"])
    assert every(story, replace(COMPONENT, waivers=[other]))[0].state == "not met"


def test_a_test_that_was_never_built_is_told_with_the_reason() -> None:
    story = a_story()
    story.tell(0.1, BuildEnded, key="key", code=1, log="make\ncc: no licence\n")
    story.run(2, 1, 1, BUILD_FAILED)
    story.tell(2, TrialEnded, failed=1)
    assert every(story)[1].reason == "was never built: cc: no licence"


def test_a_test_of_which_some_cases_were_built_never_gave_a_right_answer() -> None:
    story = a_story()
    story.cases.append(replace(story.cases[2], id="other", build="good"))
    story.policy = replace(story.policy, entry_of=[0, 1, 2, 3, 2])
    story.tell(0.1, BuildEnded, key="key", code=1, log="cc: no licence")
    story.run(4, 0, 1, FAILED)
    story.tell(2, TrialEnded, failed=1)
    assert every(story)[1].reason == "never gave a right answer: 1 failed"


def test_a_test_that_was_stopped_counts_unless_it_was_admitted_again() -> None:
    story = a_story()
    story.run(2, 1, 2)
    story.tell(1.5, TestStopped, test="d", reason="3 wrong answers in a row")
    story.tell(2, TrialEnded, failed=1)
    first, one = every(story)
    assert (first.state, one.reason) == ("not met", "was stopped: 3 wrong answers in a row")
    story.tell(1.6, TestAdmitted, test="d")
    assert every(story)[0].state == "met"


def test_a_component_without_criteria_has_none_unless_a_test_is_at_fault() -> None:
    story = a_story()
    story.tell(2, TrialEnded, failed=0)
    assert overall([every(story)]).state == "not met"
    story.run(2, 1, 2)
    assert overall([every(story)]).state == "no criteria"


def test_a_plan_may_ask_for_it_of_some_tests() -> None:
    story = a_story()
    story.tell(2, TrialEnded, failed=0)
    asked = [Criterion(criterion="every_test", tests=["a"])]
    component = replace(COMPONENT, criteria=asked)
    first, second = judged(component, story.view())
    assert (first[0].state, second[0].state) == ("met", "not met")
    component = replace(COMPONENT, criteria=[Criterion(criterion="every_test")])
    assert len(judged(component, story.view())) == 1


@pytest.mark.parametrize("left", [True, False])
def test_a_test_that_fills_gaps_need_not_run_where_there_are_none(left: bool) -> None:
    """Where the others leave it a share, it is asked as they are."""
    cases = cases_of(1, 1)
    policy = sustained(cases, 2)
    first, second = policy.entries
    entries = [replace(first, weight=0.5 if left else 1.0), replace(second, copies=0)]
    story = Story(cases, replace(policy, entries=entries))
    story.run(0, 0, 1)
    story.tell(2, TrialEnded, failed=0)
    assert every(story)[0].state == ("not met" if left else "met")


def test_a_test_that_fills_gaps_must_be_built() -> None:
    cases = [replace(case, build=case.test) for case in cases_of(1, 1)]
    policy = sustained(cases, 2)
    entries = [replace(policy.entries[0], weight=1.0), replace(policy.entries[1], copies=0)]
    story = Story(cases, replace(policy, entries=entries))
    story.run(0, 0, 1)
    story.tell(0, BuildEnded, key="b", code=1, log="cc: no licence")
    story.tell(2, TrialEnded, failed=0)
    first, one = every(story)
    assert (first.state, one.reason) == ("not met", "was never built: cc: no licence")


@pytest.mark.parametrize("kind", ["once", "sustained"])
def test_each_case_of_a_test_gave_a_right_answer(kind: Literal["once", "sustained"]) -> None:
    """The first case is right, the second wrong, the third never ran."""
    cases = [
        replace(case, test="a", parameters={"size": size})
        for size, case in enumerate(cases_of(1, 1, 1))
    ]
    story = Story(cases, Policy(kind=kind, entries=[Entry(name="a")], entry_of=[0, 0, 0]))
    story.run(0, 0, 1)
    story.run(1, 0, 1, WRONG_ANSWER)
    story.tell(2, TrialEnded, failed=1)
    first = every(story)[0]
    assert first.state == "not met"
    assert first.reason == "a never gave a right answer with size=1: 1 wrong answer"
    story.run(1, 1, 2)
    first = every(story)[0]
    if kind == "once":
        assert (first.state, first.reason) == ("not met", "a never ran with size=2")
    else:  # its turn did not come
        assert first.state == "met"
