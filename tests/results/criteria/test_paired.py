from __future__ import annotations

import random
from statistics import median
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from seatrial.journal.events import TrialEnded
from seatrial.model.codes import FAILED, TIMEOUT, WRONG_ANSWER
from seatrial.results.criteria.speed import waves_of
from tests.results.stories import Story, cases_of


def compared(alone: list[float], *waves: list[float], **bounds: Any) -> Any:
    """One case, its hours alone and those in each wave at full machine."""
    story = Story(cases_of(1))
    for i, hours in enumerate(alone):
        story.run(0, 10 * i, 10 * i + hours, stage="alone")
    for i, wave in enumerate(waves, len(alone)):
        for hours in wave:
            story.run(0, 10 * i, 10 * i + hours, stage="full")
    story.tell(1000, TrialEnded, failed=0)
    return story.result("slowdown", **bounds)


def test_it_is_positive_where_full_is_faster() -> None:
    slower = compared([1, 1, 1], [1.1, 1.06, 1.2], at_most="5%")
    assert slower.value == pytest.approx(-10)
    assert (slower.state, slower.bound, slower.n) == ("not met", "at most 5 % loss", 6)
    assert slower.numbers["low"] == pytest.approx(-20)
    assert slower.numbers["high"] == pytest.approx(-6)
    assert slower == compared([1, 1, 1], [1.1, 1.06, 1.2], at_most="5%")  # its chance is seeded
    assert slower.reason == (
        "median 3600 alone (n 3), 3960 at full machine (n 3, one wave); 95 % interval -20 to -6 %"
    )
    faster = compared([1, 1], [0.9, 0.9], at_least="5%")
    assert (faster.state, faster.value) == ("met", pytest.approx(10))
    assert compared([1, 1], [1.02, 1.02], at_least="-5%").state == "met"
    assert compared([1, 1], at_most="5%").state == "undecided"


def test_a_bound_inside_the_interval_of_few_runs_is_not_decided() -> None:
    found = compared([1, 1, 1], [1.1, 1.04, 1.2], at_most="5%")
    assert (found.state, found.value) == ("undecided", pytest.approx(-10))
    assert found.reason.endswith(
        "the bound is inside it, and 3 runs alone with 1 wave cannot tell on which side "
        "(from 5 of each the median decides)"
    )
    waves = [[1.1, 1.1], [1.04, 1.04], [1.1, 1.1], [1.04, 1.04]]
    assert compared([1] * 5, *waves, at_most="6%").state == "undecided"
    enough = compared([1] * 5, *waves, [1.1, 1.1], at_most="6%")
    assert (enough.state, enough.numbers["waves"]) == ("not met", 5)
    assert enough.numbers["low"] < -6 < enough.numbers["high"]
    assert compared([1] * 5, *waves, [1.04, 1.04], at_most="6%").state == "met"


@pytest.mark.parametrize(("alone", "waves"), [([1.0], [[0.5, 0.5]]), ([1.0, 1.0], [[0.5]])])
def test_one_run_on_a_side_has_no_interval(alone: list[float], waves: list[list[float]]) -> None:
    found = compared(alone, *waves, at_most="5%")
    assert (found.state, found.value) == ("undecided", pytest.approx(50))
    assert "low" not in found.numbers
    assert found.reason.endswith("has no interval: raise alone or full")


def test_copies_of_a_wave_are_no_independent_runs() -> None:
    alone, slow, fast = [1.0] * 5, [1.2] * 30, [1.1] * 30
    in_waves = compared(alone, slow, fast, [1.1] * 30, at_most="15%")
    at_once = compared(alone, slow + fast + fast, at_most="15%")
    assert in_waves.value == at_once.value == pytest.approx(-10)
    assert (in_waves.numbers["waves"], in_waves.state) == (3, "undecided")
    assert in_waves.numbers["low"] == pytest.approx(-20)  # two waves of three as the slow one
    assert at_once.numbers["low"] == pytest.approx(-10)
    assert (at_once.numbers["waves"], at_once.state) == (1, "met")
    assert "(n 90, one wave)" in at_once.reason


def test_the_interval_covers_what_waves_vary_by() -> None:
    """The machine is in another mood in each wave: with eight of them the interval of whole waves
    has the truth in about 19 of 20; that of runs had it in far fewer."""
    luck = random.Random(7)
    covered = 0
    for _ in range(30):
        alone = [1 + luck.gauss(0, 0.001) for _ in range(8)]
        moods = [1.1 + luck.gauss(0, 0.02) for _ in range(8)]
        waves = [[mood + luck.gauss(0, 0.002) for _ in range(10)] for mood in moods]
        numbers = compared(alone, *waves, at_most="5%").numbers
        covered += float(numbers["low"]) <= -10 <= float(numbers["high"])
    assert covered >= 25


def test_a_run_that_is_made_good_belongs_to_its_wave() -> None:
    story = Story(cases_of(1))
    story.run(0, 0, 1, stage="full")
    story.run(0, 0, 2, TIMEOUT, stage="full", again=True)
    story.run(0, 3, 4, stage="full")  # in place of it
    story.run(0, 4, 5, stage="full")  # begins as all others have their verdicts
    story.run(0, 4.5, 6, stage="full")
    story.run(0, 5.5, 0, None, stage="full")  # under way
    story.run(0, 9, 9.5, FAILED, stage="full")
    story.run(0, 20, 21, stage="alone")
    waves = [[run.id for run in wave] for wave in waves_of(story.history().runs)]
    assert waves == [["r1", "r2", "r3"], ["r4", "r5", "r6", "r7"]]


def test_cases_that_differ_in_their_node_are_each_compared_with_themselves() -> None:
    one, two = cases_of(1, 1)
    story = Story([replace(one, node="n1"), replace(one, id=two.id, node="n2")])
    for case, hours in ((0, 1.0), (1, 4.0)):
        for i in range(3):
            story.run(case, 20 * i, 20 * i + hours, stage="alone")
        for i in range(3, 5):
            story.run(case, 20 * i, 20 * i + 1.1 * hours, stage="full")
    story.tell(200, TrialEnded, failed=0)
    found: Any = story.result("slowdown", at_most="12%")
    assert (found.state, found.value) == ("met", pytest.approx(-10))
    numbers = found.numbers
    assert (numbers["cases"], numbers["alone n"], numbers["full n"]) == (2, 6, 4)
    assert numbers["low"] == numbers["high"] == pytest.approx(-10)


@pytest.mark.parametrize(("better", "expected"), [("higher", -20), ("lower", 20)])
def test_a_metric_goes_by_its_direction(better: str, expected: float) -> None:
    story = Story(cases_of(1))
    for _ in range(2):
        story.run(0, 0, 1, stage="alone", figures={"triad": 100}, better=better)
        story.run(0, 0, 1, stage="full", figures={"triad": 80}, better=better)
    story.run(0, 0, 1, WRONG_ANSWER, stage="full", figures={"triad": 1}, better=better)
    story.tell(9, TrialEnded, failed=0)
    found = story.result("slowdown", at_most="5%", metric="triad")
    assert (found.value, found.n) == (expected, 4)
    assert found.state == ("met" if expected > 0 else "not met")


def test_the_case_that_lost_most_is_the_worst_beside_one_that_lost_nothing() -> None:
    story = Story(cases_of(1, 1))
    for case, figure in ((0, 100.5), (1, 100)):
        for _ in range(2):
            story.run(case, 0, 1, stage="alone", figures={"triad": 100})
            story.run(case, 0, 1, stage="full", figures={"triad": figure})
    story.tell(9, TrialEnded, failed=0)
    worst = story.result("slowdown", at_most="5%", metric="triad")
    assert worst.numbers["worst"] == story.cases[1].name


def test_figures_of_0_among_those_alone_give_an_interval() -> None:
    story = Story(cases_of(1))
    for figure in (0, 0, 2, 2, 2):
        story.run(0, 0, 1, stage="alone", figures={"triad": figure})
        story.run(0, 0, 1, stage="full", figures={"triad": 2})
    story.tell(9, TrialEnded, failed=0)
    found = story.result("slowdown", at_most="5%", metric="triad")
    assert (found.state, found.numbers["low"], found.numbers["high"]) == ("met", 0, 0)


def test_a_metric_without_a_direction_is_not_decided() -> None:
    story = Story(cases_of(1))
    for stage in ("alone", "alone", "full", "full"):
        story.run(0, 0, 1, stage=stage, figures={"triad": 100}, better="none")
    story.tell(9, TrialEnded, failed=0)
    found = story.result("slowdown", at_most="5%", metric="triad")
    assert (found.state, found.value) == ("undecided", None)
    assert found.reason == "triad has no direction (better: none)"


TIMES = st.lists(st.floats(0.5, 2), min_size=2, max_size=5)


@settings(deadline=None, max_examples=25)
@given(TIMES, st.lists(TIMES, min_size=1, max_size=3), st.floats(-0.5, 0.5))
def test_what_is_decided_is_clear_and_the_value_is_that_of_the_medians(
    alone: list[float], waves: list[list[float]], loss: float
) -> None:
    found = compared(alone, *waves, at_most=loss)
    full = [hours for wave in waves for hours in wave]
    assert found.value == pytest.approx(100 * (1 - median(full) / median(alone)), abs=1e-6)
    low, high = float(found.numbers["low"]), float(found.numbers["high"])
    assert low <= high
    assert (found.state == "met") == (low >= -100 * loss)
    assert (found.state == "not met") == (high < -100 * loss)
