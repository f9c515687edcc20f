"""A share of the runs is right and as fast as expected."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from seatrial.journal.events import TrialEnded
from seatrial.judge.references import References, loads
from seatrial.model.codes import (
    CANCELLED,
    FAILED,
    NODE_FAILURE,
    PERFORMANCE,
    RECALLED,
    TIMEOUT,
    WRONG_ANSWER,
    Code,
)
from seatrial.model.file_model import Share, typed
from seatrial.model.plan import Criterion
from seatrial.results.criteria.view import Result
from seatrial.results.status import judge
from tests.results.stories import Story, cases_of


def story_of(*minutes: float | Code, ended: bool = True, **more: Any) -> Story:
    """Runs of test a that took so many minutes, or that ended otherwise."""
    story = Story(cases_of(2))
    for number, each in enumerate(minutes):
        if isinstance(each, Code):
            story.run(0, number, number + 0.1, each)
        else:
            story.run(0, number, number + each / 60, **more)
    if ended:
        story.tell(len(minutes), TrialEnded, failed=0)
    return story


def reference(value: str, unit: str = "s", metric: str = "elapsed") -> References:
    entry = f"{{test: a, metric: {metric}, unit: {unit}, {value}}}"
    return loads(f"references: [{entry}]", Path("references.yaml"))


def result(story: Story, references: References | None = None, **keys: Any) -> Result:
    asked: dict[str, Any] = {"within": "5%", "at_least": "99%", **keys}
    view = story.view(references=references or References())
    return judge(typed({"criterion": "within_expected", **asked}, Criterion), view)[0]


def test_runs_that_are_slower_than_the_median_by_more_than_that() -> None:
    found = result(story_of(*[70] * 96, 73.5, 73.6, 80, TIMEOUT))
    assert (found.value, found.n, found.state) == (0.97, 100, "not met")
    assert found.numbers["worse"] == 2
    assert found.numbers["timeout"] == 1
    assert found.numbers["expected"] == pytest.approx(4200)
    assert (
        "97 of 100 runs right, with elapsed at most 5 % worse than the median 4200 s"
        in found.reason
    )
    assert result(story_of(*[70] * 96, 73.5, 73.6, 80, TIMEOUT), at_least="97%").state == "met"


def test_a_run_that_is_exactly_as_far_off_is_within() -> None:
    assert result(story_of(*[10] * 5, 10.5)).state == "met"
    assert result(story_of(*[10] * 5, 10.51)).state == "not met"


def test_rounding_does_not_decide() -> None:
    story = Story(cases_of(2))
    for number, value in enumerate([1.0, 1.0, 1.0, 1.0, 1.1]):  # 1.1 - 1 is more than 0.1
        story.run(0, number, number + 0.5, figures={"v": value}, better="lower")
    story.tell(9, TrialEnded, failed=0)
    assert result(story, metric="v", within="10%").state == "met"


def test_a_faster_run_is_within_unless_both_sides_count() -> None:
    story = story_of(*[70] * 9, 30)
    assert result(story).state == "met"
    both = result(story, two_sided=True)
    assert (both.state, both.value, both.numbers["better"]) == ("not met", 0.9, 1)


@pytest.mark.parametrize(
    ("better", "values", "two_sided", "share"),
    [
        ("higher", [100, 100, 100, 100, 80, 120], False, 5 / 6),
        ("lower", [100, 100, 100, 100, 80, 120], False, 5 / 6),
        ("higher", [100, 100, 100, 100, 80, 120], True, 4 / 6),
        ("none", [100, 100, 100, 100, 80, 120], False, 4 / 6),
        ("higher", [-100, -100, -100, -100, -80, -120], False, 5 / 6),
    ],
)
def test_the_direction_is_that_of_the_metric(
    better: str, values: list[float], two_sided: bool, share: float
) -> None:
    story = Story(cases_of(2))
    for number, value in enumerate(values):
        story.run(0, number, number + 0.5, figures={"v": value}, better=better)
    story.tell(9, TrialEnded, failed=0)
    found = result(story, metric="v", two_sided=two_sided)
    assert found.value == pytest.approx(share)
    slow = {"higher": -80, "lower": 120}
    assert found.numbers.get("worse", 0) == (better != "none"), slow
    if better == "none":
        assert (found.numbers["above"], found.numbers["below"]) == (1, 1)


def test_expected_may_be_the_reference() -> None:
    story = story_of(70, 70, 80)
    assert result(story, reference("value: 4200"), of="reference").value == pytest.approx(2 / 3)
    assert result(story, reference("value: 4800"), of="reference").state == "met"
    why = result(story, of="reference").reason
    assert why.startswith("there is no reference for elapsed of a")
    assert "bounds and no value" in result(story, reference("max: 4800"), of="reference").reason
    in_hours = result(story, reference("value: 1.3333333", "h"), of="reference")
    assert in_hours.state == "met" and "the reference 4800 s" in in_hours.reason
    assert "is in s, but" in result(story, reference("value: 1", "MB"), of="reference").reason


def test_the_verdict_performance_is_right_and_may_be_within() -> None:
    story = Story(cases_of(2))
    for number in range(6):
        story.run(0, number, number + 0.5, PERFORMANCE)
    story.tell(9, TrialEnded, failed=0)
    assert result(story).state == "met"


def test_runs_that_do_not_count() -> None:
    story = story_of(*[70] * 6, RECALLED)
    story.run(0, 20, 20.1, NODE_FAILURE, again=True)
    assert result(story).n == 6
    story.run(0, 21, 21.1, FAILED, again=True)
    assert result(story).n == 7, "a retry makes up for no fault of the test"
    assert result(story_of(*[70] * 6, WRONG_ANSWER)).value == pytest.approx(6 / 7)
    cancelled = result(story_of(*[70] * 6, CANCELLED))
    assert cancelled.state == "undecided"
    assert "cancelled by others" in cancelled.reason


def test_a_median_of_few_runs_is_no_expectation() -> None:
    found = result(story_of(70, 70, 70, 70))
    assert found.state == "undecided"
    assert "fewer than 5" in found.reason
    assert result(story_of(70, 70, 70, 70, 70)).state == "met"
    assert result(story_of(70, FAILED)).state == "not met", "whatever the median is"
    nothing = result(story_of())
    assert (nothing.state, nothing.reason) == ("undecided", "no run has ended")
    assert result(story_of(FAILED)).value == 0


def test_what_is_decided_before_the_end() -> None:
    assert result(story_of(*[70] * 6, ended=False)).state == "undecided"
    assert result(story_of(*[70] * 6, 90, ended=False), at_least=1).state == "undecided"
    assert result(story_of(*[70] * 6, FAILED, ended=False), at_least=1).state == "not met"
    of = {"of": "reference", "at_least": 1}
    assert result(story_of(70, 90, ended=False), reference("value: 4200"), **of).state == "not met"


def test_a_metric_that_a_run_did_not_give() -> None:
    story = story_of(*[70] * 6, figures={"v": 1.0})
    story.run(0, 30, 30.5)
    found = result(story, metric="v")
    assert found.value == pytest.approx(6 / 7)
    assert found.numbers["without the figure"] == 1
    assert result(story_of(*[70] * 6, figures={"v": 0.0}), metric="v").reason.endswith("of that")


def test_cases_are_compared_each_with_its_own() -> None:
    story = Story(cases_of(2, 2))
    for number in range(5):
        story.run(0, number, number + 0.1)
        story.run(1, number, number + 0.9)
    story.tell(9, TrialEnded, failed=0)
    view = story.view()
    criterion = Criterion(criterion="within_expected", within=Share("1%"), at_least=1)
    assert [(r.subject, r.state) for r in judge(criterion, view)] == [
        ("", "met"), ("a", "met"), ("b", "met")
    ]  # fmt: skip


def test_a_case_without_runs_is_not_passed_over() -> None:
    story = Story([case := cases_of(2)[0], replace(case, parameters={"n": 4})])
    for number in range(6):
        story.run(0, number, number + 1)
    story.tell(7, TrialEnded, failed=0)
    found = result(story)
    assert (found.state, found.value) == ("undecided", 1.0)
    assert found.reason.startswith("no run of a")
