"""The sweep of a tuning over ordered axes."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial.decide.sweep import Sweep
from seatrial.execute.tuning_odds import PLANTED_SURFACES, TunedWorld, planted_surface, run_sweep
from seatrial.model.policy import RaceRules

ORDERED = [True, True, False]
LEVELS = [list(each) for each in product(range(6), range(4), range(2))]  # 48 points
SIZES = [(2**one, 2 ** (one + other)) for one, other, _ in LEVELS]


def rules(runs: int = 20, **more: Any) -> RaceRules:
    keys: dict[str, Any] = {"metric": "write", "better": "higher", "search": "sweep"}
    keys |= {"levels": LEVELS, "ordered": ORDERED, "sizes": SIZES, "default": 0, "runs": runs}
    return RaceRules(**(keys | more))


def swept(
    about: RaceRules,
    truth: dict[str, list[float]],
    failing: frozenset[int] = frozenset(),
    noise: float = 0.0,
    seconds: float = 0.0,
) -> Sweep:
    """Run a sweep to its end; ``truth`` has the figure of each point by metric."""
    sweep, draws = Sweep(about), np.random.default_rng(1)
    while block := sweep.next_block():
        for number, order in enumerate(block, sweep.rounds_begun):
            assert len(set(order)) == len(order)
            for each in order:
                sweep.spent += seconds
                if each in failing:
                    sweep.fail(each, number, "failed: exit code 7")
                    continue
                found = {
                    name: values[each] * math.exp(noise * draws.normal())
                    for name, values in truth.items()
                }
                sweep.record(each, number, found.pop("write"), found, SIZES[each][0])
        sweep.end_block()
    return sweep


def saturating(knee: int, twice: int = 1) -> list[float]:
    """Return figures that rise with clients up to a knee; the second word is better."""
    return [min(1.0, 2.0 ** (one + other - knee)) * (1, twice)[word] for one, other, word in LEVELS]


@pytest.mark.parametrize("kind", PLANTED_SURFACES)
def test_a_planted_best_is_found_by_a_quarter_of_the_grid(kind: str) -> None:
    ordered = [True, True, False, True]
    levels = [list(each) for each in product(range(8), range(4), range(2), range(5))]
    about = rules(80, levels=levels, ordered=ordered, sizes=[])
    for seed in (703, 709) if kind == "two humps" else (901, 902):  # else the lower hump is found
        surface = planted_surface(kind, np.array(levels), ordered, seed)
        sweep = run_sweep(about, TunedWorld(-surface, 0.02, seed))
        answer = sweep.answer("write")
        assert answer is not None and sum(sweep.runs) <= 80  # of 320
        assert surface[answer.best] >= surface.max() + math.log(0.97)


@settings(max_examples=25, deadline=None)
@given(st.sets(st.integers(0, 47), max_size=40), st.integers(4, 40), st.integers(0, 8))
def test_limits_hold_and_failures_are_never_named(failing: set[int], runs: int, knee: int) -> None:
    truth = saturating(knee, 2)
    sweep = swept(rules(runs), {"write": truth}, frozenset(failing))
    assert sum(sweep.runs) <= runs and sweep.ending
    answer = sweep.answer("write")
    if answer is None:
        assert sweep.ending == "no figure" and not sweep.passed
        return
    named = {answer.best, answer.cheapest, answer.knee, *answer.plateau}
    assert not named & failing
    assert all(sweep.runs[each] for each in named)
    assert all(sweep.failures[each] == [] for each in named)
    assert {each for each, failed in enumerate(sweep.failures) if failed} <= failing
    assert all(sweep.runs[each] == 1 for each in failing if sweep.runs[each])


def test_plateau_and_knee_without_noise() -> None:
    """Clients saturate at 2^4: more nodes and tasks are no better, and not cheaper."""
    truth = saturating(4, 2)
    sweep = swept(rules(36), {"write": truth})
    answer = sweep.answer("write")
    assert answer is not None
    assert truth[answer.best] == 2.0
    tried = {each for each, runs in enumerate(sweep.runs) if runs}
    plateau = {each for each in tried if truth[each] == 2.0}
    assert set(answer.plateau) == plateau
    least = min(SIZES[each] for each in plateau)
    assert SIZES[answer.knee] == least  # a step below has half of it
    assert SIZES[answer.cheapest][0] == least[0]


def test_it_ends_where_nothing_improves() -> None:
    """With as many runs as points it takes two thirds of them."""
    surface = [-0.1 * (one - 4) ** 2 - 0.2 * (other - 2) ** 2 for one, other, _ in LEVELS]
    sweep = run_sweep(rules(48, min_effect=0.05), TunedWorld(-np.array(surface), 0.01, 3))
    answer = sweep.answer("write")
    assert answer is not None and LEVELS[answer.best][:2] == [4, 2]
    assert sweep.ending == "nothing improves" and sum(sweep.runs) <= 32


def test_from_small_to_large() -> None:
    sweep = Sweep(rules(40))
    ((*order,),) = sweep.next_block()
    assert [SIZES[each] for each in order] == sorted(SIZES[each] for each in order)
    assert {LEVELS[each][0] for each in order} == set(range(6))
    assert {LEVELS[each][2] for each in order} == {0, 1}


def test_two_metrics_have_each_its_best() -> None:
    write = saturating(3, 2)
    read = [1.0 / (1 + one) * (1.5, 1.0)[word] for one, _, word in LEVELS]
    about = rules(40, others={"read": "higher"})
    sweep = swept(about, {"write": write, "read": read}, noise=0.01)
    of_write, of_read = sweep.answer("write"), sweep.answer("read")
    assert of_write is not None and of_read is not None
    assert write[of_write.best] == 2.0 and read[of_read.best] == 1.5


def test_a_lower_figure_may_be_better() -> None:
    times = [1 / figure for figure in saturating(4, 2)]
    sweep = swept(rules(36, better="lower"), {"write": times})
    answer = sweep.answer("write")
    assert answer is not None and times[answer.best] == 0.5


def test_a_value_with_which_all_fails_is_left_out() -> None:
    """The largest nodes fail always: three points tell it, and the others are not tried."""
    failing = frozenset(each for each, levels in enumerate(LEVELS) if levels[0] == 5)
    sweep = swept(rules(40), {"write": saturating(7, 2)}, failing)
    tried = [each for each in failing if sweep.runs[each]]
    assert 3 <= len(tried) < len(failing)
    assert set(sweep.left_out()) == failing - set(tried)
    assert set(sweep.left_out().values()) == {(0, 5)}
    answer = sweep.answer("write")
    assert answer is not None and LEVELS[answer.best][0] == 4


def test_limits_are_told() -> None:
    truth = {"write": saturating(5, 2)}
    by_time = swept(rules(40, seconds=100.0), truth, noise=0.1, seconds=5.0)
    assert by_time.ending == "time" and by_time.spent <= 100
    assert by_time.answer("write") is not None
    by_runs = swept(rules(12), truth, noise=0.1)
    assert by_runs.ending == "runs" and sum(by_runs.runs) <= 12


def test_without_any_figure_it_stops_after_one_block() -> None:
    sweep = swept(rules(40), {"write": saturating(5)}, frozenset(range(48)))
    assert sweep.ending == "no figure" and len(sweep.blocks) == 1
    assert sweep.answer("write") is None


def test_a_figure_that_is_missing_or_not_above_0_is_a_failure() -> None:
    sweep = Sweep(rules(20, others={"read": "higher"}))
    sweep.next_block()
    sweep.record(0, 0, 1.0, {})
    sweep.record(1, 0, 1.0, {"read": 0.0})
    sweep.record(2, 0, math.nan, {"read": 1.0})
    assert sweep.passed == []
    assert [sweep.failures[each][0].split(";")[0] for each in range(3)] == [
        "no figure of read",
        "0 is no figure of read",
        "nan is no figure of write",
    ]


def test_a_run_that_was_ended_from_outside_is_nothing_against_its_point() -> None:
    sweep = Sweep(rules(20))
    ((first, *_),) = sweep.next_block()
    sweep.cut_off(first, 0, "node failed")
    assert first not in sweep.dropped
    for _ in range(2):
        sweep.cut_off(first, 0, "node failed")
    assert sweep.dropped[first].cause == "3 runs had no result: node failed"


def test_the_interval_holds_the_true_figure() -> None:
    held = 0
    truth = saturating(4, 2)
    for seed in range(8):
        about = rules(40, seed=seed)
        sweep = run_sweep(about, TunedWorld(-np.log(truth), 0.05, seed))
        answer = sweep.answer("write")
        assert answer is not None
        low, high = sweep.interval("write", answer)
        held += low <= math.log(truth[answer.best]) <= high
        assert high - low < 0.5
    assert held >= 7
