"""What fails more often than is usual: of a test, on nodes, in all."""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction
from math import comb, factorial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.decide.watchdogs import FailureWatch, chance
from seatrial.model.codes import (
    CANCELLED,
    FAILED,
    HUNG,
    KNOWN,
    LAUNCH_FAILED,
    NODE_FAILURE,
    PASS,
    PREEMPTED,
    RECALLED,
    TIMEOUT,
    WRONG_ANSWER,
    Code,
)
from seatrial.model.node_set import unfold


def rising(start: int, steps: int) -> Fraction:
    return Fraction(factorial(start + steps - 1), factorial(start - 1))


@given(st.integers(1, 40), st.integers(0, 40), st.integers(0, 300), st.integers(0, 300))
def test_the_chance_is_that_of_a_beta_binomial(runs: int, bad: int, s: int, right: int) -> None:
    bad = min(bad, runs)
    a, b = 2 + s, 38 + right
    exact = sum(
        comb(runs, k) * rising(a, k) * rising(b, runs - k) / rising(a + b, runs)
        for k in range(bad, runs + 1)
    )
    found = chance(bad, runs, (s, s + right), (2.0, 38.0))
    assert found == pytest.approx(float(exact), rel=1e-9)


@given(st.integers(1, 40), st.integers(0, 40), st.integers(0, 300), st.floats(1e-9, 1))
def test_a_chance_is_summed_until_it_is_enough(runs: int, bad: int, s: int, enough: float) -> None:
    whole = chance(min(bad, runs), runs, (s, 2 * s), (2.0, 38.0))
    found = chance(min(bad, runs), runs, (s, 2 * s), (2.0, 38.0), enough)
    assert found == whole if whole <= enough else enough < found <= whole


class Watched:
    """Runs of tests, one after the other."""

    def __init__(self, tests: Sequence[str] = ("a", "b"), nodes: int = 0) -> None:
        self.watch = FailureWatch(tests, nodes)
        self.tests = list(tests)
        self.number = 0

    def run(self, test: str, *codes: Code, nodes: str = "", reason: str = "") -> None:
        for code in codes:
            self.number += 1
            entry = self.tests.index(test)
            if code is not LAUNCH_FAILED:
                self.watch.started(str(self.number), entry)
            self.watch.ended(str(self.number), entry, code.number, nodes, reason)

    def found(self) -> dict[str, str]:
        return self.watch.subjects((), ())

    def usual(self, runs: int, share: float = 0.055, seed: int = 1) -> None:
        luck = random.Random(seed)
        for _ in range(runs):
            for test in self.tests:
                self.run(test, FAILED if luck.random() < share else PASS)


def test_a_test_that_fails_from_its_first_runs_on_is_noticed() -> None:
    found = Watched()
    for number in range(6):
        assert not found.found(), number
        found.run("a", FAILED, reason="exit code 3")
        found.run("b", PASS)
    assert found.found() == {
        "a": "a: 6 of the latest 6 runs ended badly (6 failed), and none before; the latest: "
        "exit code 3"
    }


@pytest.mark.parametrize("code", [FAILED, TIMEOUT, HUNG, WRONG_ANSWER])
def test_a_test_that_always_fails_after_it_was_well_is_noticed_by_any_cause(code: Code) -> None:
    found = Watched()
    found.usual(200)
    assert not found.found()
    for _ in range(7):
        found.run("a", code)
        found.run("b", PASS)
    assert list(found.found()) == ["a"]
    assert f"7 {code.name}" in found.found()["a"]
    assert "usual is" in found.found()["a"]


def test_failures_of_many_causes_are_one_change() -> None:
    found = Watched()
    found.usual(200)
    found.run("a", *[FAILED, TIMEOUT, HUNG, WRONG_ANSWER] * 2)
    assert "8 of the latest 8 runs ended badly" in found.found()["a"]


def test_runs_that_go_on_count_as_right_in_the_order_of_their_starts() -> None:
    found = Watched(["a"])
    found.usual(200)
    for number in range(40):
        found.watch.started(f"r{number}", 0)
    for number in range(0, 40, 7):
        found.watch.ended(f"r{number}", 0, FAILED.number, "", "")
    assert not found.found(), "those that end first are those that fail"
    for number in range(1, 40, 3):
        found.watch.ended(f"r{number}", 0, FAILED.number, "", "")
    assert found.found()


def test_launches_hardly_ever_fail() -> None:
    found = Watched()
    found.usual(200)
    found.run("a", LAUNCH_FAILED, PASS)
    assert not found.found()
    found.run("a", LAUNCH_FAILED, LAUNCH_FAILED, reason="no such partition")
    assert "launch failed), usual is 0 %" in found.found()["a"]
    assert found.found()["a"].endswith("no such partition")


@pytest.mark.parametrize(("code", "least"), [(FAILED, 4), (LAUNCH_FAILED, 2)])
def test_so_few_bad_ends_are_told_where_there_were_none_before(code: Code, least: int) -> None:
    found = Watched(["a"])
    found.usual(2000, share=0)
    found.run("a", *[code] * (least - 1))
    assert not found.found()
    found.run("a", code)
    assert f"{least} of the latest {least} runs" in found.found()["a"]


def test_what_is_not_the_fault_of_a_test_counts_as_nothing() -> None:
    found = Watched()
    found.run("a", *[CANCELLED, RECALLED, KNOWN, NODE_FAILURE, PREEMPTED] * 20)
    assert not found.found()
    found.run("a", *[FAILED, KNOWN, NODE_FAILURE] * 7)
    assert "7 of the latest 7 runs" in found.found()["a"]


def test_it_is_over_when_runs_are_as_usual_again_and_failing_never_is_usual() -> None:
    found = Watched()
    found.usual(200)
    found.run("a", *[FAILED] * 500)
    assert "usual is" in found.found()["a"]
    assert "64 of the latest 64 runs" in found.found()["a"]
    found.run("a", *[PASS] * 10)
    assert found.found()
    found.run("a", *[PASS] * 6)
    assert not found.found()
    found.run("a", *[FAILED] * 7)
    assert list(found.found()) == ["a"]


def test_one_alert_speaks_where_all_tests_fail() -> None:
    tests = [f"t{number}" for number in range(8)]
    found = Watched(tests)
    found.usual(100)
    for test in [*tests, *tests]:
        found.run(test, FAILED)
    (subject,) = found.found()
    assert subject == ""
    assert "runs of all tests ended badly" in found.found()[""]
    assert found.found()[""].count(" of t") == 4


def test_one_test_that_fails_is_no_failure_of_all() -> None:
    found = Watched()
    found.usual(200)
    for _ in range(100):
        found.run("a", FAILED)
        found.run("b", PASS)
    assert list(found.found()) == ["a"]
    assert not found.watch.subjects({0}, ()), "it is stopped, and told as such"


def test_a_test_that_people_admit_again_is_looked_at_afresh() -> None:
    found = Watched()
    found.run("a", *[FAILED] * 20)
    found.watch.forget(0)
    assert not found.found()


def test_a_node_on_which_all_fails_is_named_and_cleared_by_a_run_that_passes() -> None:
    found = Watched(nodes=8)
    found.usual(100)
    for round_ in range(15):
        for node in range(1, 9):
            test = "ab"[round_ % 2]
            found.run(test, FAILED if node == 8 else PASS, nodes=f"n00{node}")
    assert "n008" in found.found()
    assert found.found()["n008"].startswith("n008: the latest 15 runs there ended badly")
    assert not found.watch.subjects((), {"n008"}).get("n008"), "it is excluded"
    found.run("a", PASS, nodes="n008")
    assert "n008" not in found.found()


@pytest.mark.parametrize(("nodes", "of"), [("n[001-020]", 100), ("n[001-005]", 8)])
def test_a_run_on_many_nodes_speaks_against_none_of_them(nodes: str, of: int) -> None:
    found = Watched(nodes=of)
    for _ in range(15):
        found.run("b", PASS, nodes="n050")
        found.number += 1
        found.watch.started(str(found.number), 1)
        found.watch.ended(str(found.number), 1, FAILED.number, nodes, "", size=len(unfold(nodes)))
    assert list(found.found()) == ["b"]


def test_a_test_that_fails_everywhere_accuses_no_node() -> None:
    found = Watched(nodes=8)
    for _ in range(30):
        for node in range(1, 9):
            found.run("a", FAILED, nodes=f"n00{node}")
    assert list(found.found()) == ["a"]


@pytest.mark.parametrize("seed", range(3))
def test_ten_usual_days_raise_nothing(seed: int) -> None:
    found, luck = Watched([f"t{number}" for number in range(9)], nodes=64), random.Random(seed)
    for _ in range(900):
        for test in found.tests:
            code = FAILED if luck.random() < 0.04 else HUNG if luck.random() < 0.015 else PASS
            first = luck.randrange(1, 57)
            found.run(test, code, nodes=f"n[{first:03d}-{first + 7:03d}]")
        assert not found.found()
