"""Runs alone and runs at full machine are never of one figure; runs that both sides excluded."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial.journal.events import RunReviewed, TrialEnded
from seatrial.judge.references import loads
from seatrial.model.codes import FAILED, PASS, PERFORMANCE
from seatrial.model.file_model import Share, typed
from seatrial.model.kinds import criterion_kinds
from seatrial.model.plan import Component, Criterion
from seatrial.model.policy import Entry, Policy
from seatrial.model.test import Stage
from seatrial.results.status import judge, judged
from tests.results.stories import Story, cases_of

STAGES = get_args(Stage)
# Of two tests, so many runs alone and at full machine; those at full machine are far slower.
RUNS = st.lists(
    st.tuples(
        st.sampled_from([0, 1]),
        st.sampled_from(STAGES),
        st.floats(0, 1),
        st.sampled_from([PASS, PERFORMANCE, FAILED]),
    ),
    min_size=1,
    max_size=30,
)
FAR = 100.0  # between figures of runs alone, at most 11, and those at full machine, 1000 or more


def story_of(runs: Any, kind: Any = "isolated_then_full") -> Story:
    cases = cases_of(2, 2)
    entries = [Entry(name=case.test) for case in cases]
    story = Story(cases, Policy(kind=kind, entries=entries, entry_of=[0, 1]))
    for number, (case, stage, part, verdict) in enumerate(runs):
        value = (1000 if stage == "full" else 10) + part
        story.run(case, number, number + value / 3600, verdict, figures={"v": value}, stage=stage)
    story.tell(len(runs) + 1, TrialEnded, failed=0)
    return story


@settings(deadline=None)
@given(RUNS, st.sampled_from([None, *STAGES]))
def test_each_group_is_of_one_stage_and_each_run_of_one_group(
    runs: Any, stage: Stage | None
) -> None:
    view = story_of(runs).view()
    for name in criterion_kinds():
        criterion = Criterion(criterion=name, stage=stage)
        groups = view.groups(criterion)
        assert {run.stage for group in groups for run in group.runs} <= set(STAGES)
        for group in groups:
            assert {run.stage for run in group.runs} <= {group.stage}
        found = [run.id for group in groups for run in group.runs]
        assert sorted(found) == sorted(run.id for run in view.runs(criterion))
        assert stage is None or {group.stage for group in groups} == {stage}


@settings(deadline=None)
@given(RUNS, st.sampled_from(STAGES), st.sampled_from(["v", "elapsed"]))
def test_no_figure_is_of_both_stages(runs: Any, stage: Stage, metric: str) -> None:
    story = story_of(runs)
    asked: list[dict[str, Any]] = [
        {"criterion": "figure_of_merit", "metric": metric, "at_least": 0},
        {"criterion": "within_expected", "metric": metric, "within": "10%", "at_least": "1%"},
        {"criterion": "variability", "at_most": "10%"},
    ]
    for keys in asked:
        for result in judge(typed({**keys, "stage": stage}, Criterion), story.view()):
            numbers = [result.numbers.get(key) for key in ("least", "largest", "mean", "expected")]
            if keys["criterion"] == "figure_of_merit":
                numbers.append(result.value)
            for number in numbers:
                assert number is None or (float(number) > FAR) == (stage == "full")
    both = judge(Criterion(criterion="variability", at_most="10%"), story.view())
    assert all(result.value is None or result.value < 0.1 for result in both)


@pytest.mark.parametrize("name", ["figure_of_merit", "within_expected"])
def test_what_is_compared_with_an_expectation_is_of_runs_alone(name: str) -> None:
    runs = [(0, stage, 0.5, PASS) for stage in STAGES for _ in range(5)]
    view = story_of(runs).view()
    criterion = Criterion(criterion=name, metric="v", within=Share("1%"), at_least=0)
    assert [group.stage for group in view.groups(criterion)] == ["alone", "alone"]
    assert view.groups(criterion)[0].name.endswith(" [alone]")


def test_without_stages_a_criterion_is_about_all_runs() -> None:
    view = story_of([(0, "", 0.5, PASS), (1, "", 0.5, PASS)], kind="once").view()
    groups = view.groups(Criterion(criterion="figure_of_merit", metric="v"))
    assert [(group.stage, len(group.runs)) for group in groups] == [("", 1), ("", 1)]


def test_a_run_that_was_never_submitted_is_not_lost() -> None:
    story = story_of([(0, "", 0.5, FAILED), *[(0, "alone", 0.5, PASS)] * 5])
    result = story.result("within_expected", metric="v", within="1%", at_least="90%", tests=["a"])
    assert (result.state, result.n) == ("not met", 6)
    for stage in STAGES:
        assert story.result("pass_rate", at_least="90%", stage=stage).state == "not met"


@pytest.mark.parametrize(("stage", "state"), [("alone", "met"), ("full", "not met")])
def test_references_are_of_one_stage(stage: Stage, state: str) -> None:
    text = "references:\n"
    for of, value in (("alone", 10), ("full", 900)):
        about = f"test: a, metric: elapsed, unit: s, value: {value}, upper: 0.06, stage: {of}"
        text += f"  - {{{about}}}\n"
    story = story_of([(0, of, 0.5, PASS) for of in STAGES])
    references = loads(text, Path("references.yaml"))
    criterion = Criterion(criterion="figure_of_merit", metric="elapsed", tests=["a"], stage=stage)
    (result,) = judge(criterion, story.view(references=references))
    assert result.state == state, result.reason


def test_excluded_runs_count_for_nodes_and_beside_the_result_alone() -> None:
    story = Story(cases_of(2, 2))
    story.run(0, 0, 1)
    bad = story.run(0, 1, 2, FAILED)
    story.run(1, 0, 2)
    story.tell(3, RunReviewed, run_id=bad, case=story.cases[0].id, is_excluded=1)
    story.tell(4, TrialEnded, failed=0)
    asked = [
        Criterion(criterion="pass_rate", at_least="90%"),
        Criterion(criterion="jobs_in_flight", at_most=2),
    ]
    view = story.view()
    assert view.timeline is view.as_whole().timeline, "it is computed once"
    rate, jobs, _ = judged(Component(component="c", criteria=asked), view)
    whole, of_a, of_b = rate
    assert (whole.state, whole.value, whole.n) == ("met", 1, 2)
    assert whole.with_excluded is not None and of_a.with_excluded is not None
    other = whole.with_excluded
    assert (other.state, other.value, other.n) == ("not met", 0.5, 3)
    assert (of_a.with_excluded.value, of_b.with_excluded) == (0.5, None)
    assert (jobs[0].n, jobs[0].with_excluded) == (3, None)
