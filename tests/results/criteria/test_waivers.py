"""Waivers of the runs of some tests and toolchains."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from seatrial.journal.events import TrialEnded
from seatrial.model.codes import FAILED, PASS
from seatrial.model.plan import Criterion, Waiver
from seatrial.results.criteria.view import Result, covered, is_unneeded
from seatrial.results.status import judge
from tests.results.stories import Story, cases_of, sustained

RATE = Criterion(criterion="pass_rate", at_least="90%")


def waiver(**about: Any) -> Waiver:
    return Waiver(reason="bug 7", by="both", on="2026-05-01", **about)


def rate(bad: str, *waivers: Waiver, criterion: Criterion = RATE) -> list[Result]:
    """The pass rate of three tests with ten runs each; all runs of those in ``bad`` fail."""
    chains = zip(cases_of(1, 1, 1), "xyy", strict=True)
    cases = [replace(case, toolchain=chain) for case, chain in chains]
    story = Story(cases, sustained(cases, 10))
    for number, name in enumerate("abc"):
        for hour in range(10):
            story.run(number, hour, hour + 1, FAILED if name in bad else PASS)
    story.tell(10, TrialEnded, failed=1)
    return judge(criterion, story.view(), waivers)


@pytest.mark.parametrize(
    ("bad", "about", "words"),
    [
        ("a", {"tests": ["a"]}, "waived (not met)"),
        ("a", {"toolchains": ["x"]}, "waived (not met)"),
        ("a", {"tests": ["a"], "criteria": ["pass_rate"]}, "waived (not met)"),
        ("a", {"tests": ["a"], "criteria": ["variability"]}, "not met"),
        ("a", {"tests": ["a"], "toolchains": ["y"]}, "not met"),
        ("a", {"tests": ["b"]}, "not met"),
        ("ab", {"tests": ["a"]}, "not met"),
        ("ab", {"tests": ["a", "b"]}, "waived (not met)"),
        ("bc", {"toolchains": ["y"]}, "waived (not met)"),
        ("abc", {"tests": ["*"]}, "waived (not met)"),
        ("", {"tests": ["a"]}, "met (waiver not needed)"),
    ],
)
def test_failing_runs_of_others_still_make_it_not_met(
    bad: str, about: dict[str, Any], words: str
) -> None:
    first, *subjects = rate(bad, waiver(**about))
    assert first.words == words
    assert [one.subject for one in subjects] == ["a", "b", "c"]
    for one in subjects:
        if one.subject not in bad:
            assert one.state == "met"


def test_each_test_says_whether_its_waiver_was_needed() -> None:
    first, a, b, c = rate("a", waiver(tests=["a"]), waiver(tests=["b"]))
    assert first.words == "waived (not met)"
    assert first.reason.startswith("a waived by both on 2026-05-01: bug 7; b waived by both")
    assert [one.words for one in (a, b, c)] == [
        "waived (not met)",
        "met (waiver not needed)",
        "met",
    ]


def test_the_rest_is_told_beside_the_whole() -> None:
    first, *_ = rate("ab", waiver(tests=["a"]))
    assert (first.value, first.n) == (0.0, 20)
    assert first.reason.startswith("b: 10 of 10 runs did not pass")
    assert first.reason.endswith("; of all tests together 50 %; with waived runs 0 %, not met")


def test_a_waiver_of_what_was_met_was_not_needed() -> None:
    of_a, whole = waiver(tests=["a"]), waiver()
    for bad, waivers, unneeded in [
        ("", [of_a], True),
        ("", [whole], True),
        ("a", [of_a], False),
        ("ab", [of_a], False),
    ]:
        results = [rate(bad, *waivers)]
        assert is_unneeded(waivers[0], results) is unneeded, bad
        assert not is_unneeded(waiver(criteria=["slowdown"]), results), "it covers none"


def test_a_waiver_of_tests_covers_no_criterion_on_the_whole_machine() -> None:
    jobs = Criterion(criterion="jobs_in_flight", at_most=2)
    assert rate("", waiver(tests=["a"]), criterion=jobs)[0].words == "not met"
    use = Criterion(criterion="utilisation", at_least="99%")
    assert rate("a", waiver(tests=["a"]), criterion=use)[0].words == "not met"
    assert rate("a", waiver(), criterion=use)[0].words == "waived (not met)"


@pytest.mark.parametrize(
    ("about", "words"),
    [
        ({}, "the whole component"),
        ({"criteria": ["pass_rate", "mix"]}, "pass rate, mix"),
        ({"tests": ["a", "b"]}, "a, b"),
        ({"toolchains": ["x"], "criteria": ["pass_rate"]}, "runs with x in pass rate"),
        ({"tests": ["a"], "toolchains": ["x", "y"]}, "a with x, y"),
    ],
)
def test_a_waiver_says_what_it_covers(about: dict[str, Any], words: str) -> None:
    assert covered(waiver(**about)) == words
