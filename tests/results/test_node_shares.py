"""The shares of node-hours of tests: planned and achieved, also where runs share nodes."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from seatrial.journal.events import PolicyChanged, TrialEnded, TrialPaused, TrialResumed
from seatrial.model.codes import FAILED, PASS
from seatrial.model.policy import Entry, Policy, Window
from seatrial.results.node_hours import NodeShares, node_shares, sharing
from seatrial.results.utilisation import timeline_of

from .stories import NODES, Story, at, cases_of


def shares_of(story: Story, now: float = 10, **more: Any) -> NodeShares:
    history = story.history(**more)
    found = node_shares(history, timeline_of(history, at(now)), at(now))
    assert found is not None
    return found


def achieved(found: NodeShares) -> list[float]:
    return [each.achieved for each in found.tests]


def a_mix(sizes: tuple[int, ...] = (2, 1, 1), hours: float = 10, **more: Any) -> Story:
    """Half of four nodes, one copy, and fill."""
    cases = [replace(case, tasks_per_node=1, threads=1) for case in cases_of(*sizes)]
    parts: list[dict[str, Any]] = [{"weight": 0.5}, {"copies": 1}, {}]
    entries = [Entry(name=c.test, **part) for c, part in zip(cases, parts, strict=False)]
    given: dict[str, Any] = {"entries": entries, "entry_of": list(range(len(cases)))}
    given |= {"duration": hours * 3600, "nodes": len(NODES)}
    policy = Policy(kind="sustained", **given | more)
    return Story(cases, policy)


def test_scripts_count_whatever_their_verdicts_and_the_rest_is_unused() -> None:
    story = a_mix()
    story.run(0, 0, 10, before=0.5, kept=0.5)  # 2 of 4 nodes, within the trial's time
    story.run(1, 0, 4, FAILED)
    story.run(2, 5, 15, None)  # still runs at hour 10
    found = shares_of(story)
    assert [each.planned for each in found.tests] == [0.5, 0.25, 0.25]
    assert [each.fill for each in found.tests] == [False, False, True]
    assert achieved(found) == pytest.approx([0.5, 0.1, 0.125])
    assert [each.node_hours for each in found.tests] == pytest.approx([20, 4, 5])
    assert found.unused == pytest.approx(1 - 0.725)
    assert (found.unclaimed, found.shared) == (0, 0)
    assert sharing(found) == ""


def test_what_nobody_is_to_have_is_unclaimed() -> None:
    story = a_mix((2, 1))
    found = shares_of(story)
    assert found.unclaimed == 0.25
    assert achieved(found) == [0, 0]
    assert found.unused == 1


def test_pauses_and_outages_of_all_nodes_do_not_count() -> None:
    story = a_mix(outages=[Window(start=0, end=3600)])
    story.run(0, 0, 6)
    story.tell(4, TrialPaused)
    story.tell(5, TrialResumed)
    assert achieved(shares_of(story, 6))[0] == pytest.approx(0.5)  # hours 1 to 4 and 5 to 6


def test_before_any_time_has_passed_there_are_none() -> None:
    history = a_mix().history()
    assert node_shares(history, timeline_of(history, at(0)), at(0)) is None


def test_components_of_other_kinds_have_no_plan() -> None:
    story = Story(cases_of(2))
    story.run(0, 0, 5)
    story.tell(10, TrialEnded, failed=0)
    found = shares_of(story)
    assert [each.planned for each in found.tests] == [None]
    assert found.unclaimed is None
    assert achieved(found) == pytest.approx([0.25])


def sharing_story() -> Story:
    """On one node, from hour 0 to 4, a run with 3 cores, and beside it for 2 hours one with 1."""
    story = a_mix((1, 1, 1))
    story.cases[0] = replace(story.cases[0], tasks_per_node=3)
    story.run(0, 0, 4, PASS, nodes="n1")
    story.run(1, 2, 6, PASS, nodes="n1")
    story.run(2, 0, 1, PASS, nodes="n2")
    return story


def test_the_time_of_a_node_is_divided_among_its_runs_by_their_cores() -> None:
    found = shares_of(sharing_story(), cores=8)
    hours = [each.node_hours for each in found.tests]
    assert hours == pytest.approx([2 + 2 * 3 / 4, 2 * 1 / 4 + 2, 1])
    assert found.occupied == pytest.approx(9 / 40)
    assert found.shared == pytest.approx(2 / 40)
    assert sharing(found) == (
        "runs shared nodes in 5 % of the node time, which is accepted if one of them passed: all "
        "scripts took 22.5 % of the node time, 100 % of that in runs that passed"
    )


def test_where_runs_share_a_host_it_is_told_how_much_of_their_time_was_in_runs_that_passed() -> (
    None
):
    story = a_mix((1, 1, 1))
    story.run(0, 0, 4, PASS, nodes="n1")
    story.run(1, 0, 4, FAILED, nodes="n1")
    story.run(2, 0, 8, FAILED, nodes="n1")
    found = shares_of(story, room=4)
    assert [each.node_hours for each in found.tests] == pytest.approx([1, 1, 2])
    assert (found.passed, found.shared) == pytest.approx((0.25, 0.1))
    assert sharing(found).endswith("took 40 % of the node time, 25 % of that in runs that passed")


@pytest.mark.parametrize("runs", [2, 3])
def test_runs_of_one_case_share_a_node_evenly(runs: int) -> None:
    story = a_mix((1, 1, 1))
    for _ in range(runs):
        story.run(0, 0, 4, nodes="n1")
    found = shares_of(story, cores=8)
    assert found.tests[0].node_hours == pytest.approx(4)
    assert found.occupied == pytest.approx(4 * runs / 40)
    assert found.shared == pytest.approx(0.1)


def test_runs_that_fill_their_nodes_or_are_exclusive_cannot_share_them() -> None:
    """The end of one may be seen late; that is not sharing."""
    story = sharing_story()
    assert shares_of(story, cores=1).shared == 0
    story.cases[:] = [replace(case, exclusive=True) for case in story.cases]
    assert shares_of(story, cores=8).shared == 0


def test_on_a_host_whose_cores_runs_share_they_have_parts_of_it() -> None:
    story = a_mix((1, 1, 1), nodes=1)
    story.cases[0] = replace(story.cases[0], tasks_per_node=4)
    story.run(0, 0, 5)
    story.run(1, 0, 10)
    found = shares_of(story, nodes=1, room=8)
    assert [each.planned for each in found.tests] == [0.5, 1 / 8, 3 / 8]
    assert achieved(found) == pytest.approx([0.25, 1 / 8, 0])
    assert sharing(found) == "", "it is meant"


def test_after_a_change_the_planned_share_is_the_mean_over_the_spans() -> None:
    story = a_mix((2, 1))
    story.tell(4, PolicyChanged, parts={"entries": {story.cases[0].test: {"weight": 0.25}}})
    found = shares_of(story)
    assert [each.planned for each in found.tests] == pytest.approx([0.4 * 0.5 + 0.6 * 0.25, 0.25])
    assert found.unclaimed == pytest.approx(0.4 * 0.25 + 0.6 * 0.5)
    story.tell(5, PolicyChanged, parts={"entries": {"unknown": {"weight": 9}}}, by="mallory")
    again = shares_of(story)
    assert [each.planned for each in again.tests] == [each.planned for each in found.tests]


def test_a_pause_between_two_plans_counts_for_neither() -> None:
    story = a_mix((2, 1), hours=4)
    story.tell(2, TrialPaused)
    story.tell(5, PolicyChanged, parts={"entries": {story.cases[0].test: {"weight": 1.0}}})
    story.tell(8, TrialResumed)
    story.tell(10, TrialEnded, failed=0)
    planned = shares_of(story).tests[0].planned
    assert planned == pytest.approx((0.5 + 1.0 / 1.25) / 2)
