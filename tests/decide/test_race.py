"""The race of a tuning."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial.decide.race import Dropped, LargestSearch, Race
from seatrial.model.policy import RaceRules

GRID = [list(each) for each in product(range(3), range(2), range(2))]


def rules(levels: list[list[int]] = GRID, runs: int = 0, **more: Any) -> RaceRules:
    made = RaceRules(levels=levels, default=0, **more)
    return RaceRules(levels=levels, default=0, **{"runs": runs or made.grid, **more})


def run(race: Race, effects: list[float], noise: float = 0.0, seed: int = 0) -> Race:
    """Run a race to its end; ``effects`` are the true logarithms. Each round has its own level."""
    rng = np.random.default_rng(seed)
    while block := race.next_block():
        for number, order in enumerate(block, race.rounds_begun):
            level = rng.normal(0, 0.2)
            for each in order:
                figure = math.exp(effects[each] + level + noise * rng.standard_t(4))
                race.record(each, number, figure)
        race.end_block()
    return race


@settings(max_examples=12, deadline=None)
@given(
    st.lists(st.integers(0, 60), min_size=12, max_size=12),
    st.sampled_from([144, 100, 48, 24]),
)
def test_without_noise_a_best_setting_is_never_dropped(percent: list[int], runs: int) -> None:
    effects = [each / 100 for each in percent]
    race = run(Race(rules(runs=runs)), effects)
    best = min(effects)
    assert all(effects[each] > best for each in race.dropped)
    answer = race.answer()
    assert answer.best is not None
    assert sum(race.runs) <= runs
    if runs == race.rules.grid:  # else some are screened by one run
        assert effects[answer.best] == best


@pytest.mark.parametrize("seed", range(3))
def test_what_cannot_be_told_from_the_best_is_named(seed: int) -> None:
    alike = run(Race(rules([[0], [1], [2]])), [0.0, 0.0, 0.5], noise=0.02, seed=seed).answer()
    assert alike.best in (0, 1) and alike.untold == [1 - alike.best]
    apart = run(Race(rules([[0], [1], [2]])), [0.0, 0.4, 0.5], noise=0.001, seed=seed).answer()
    assert (apart.best, apart.untold) == (0, [])


def test_what_is_far_behind_runs_no_more() -> None:
    race = run(Race(rules()), [0.0] + [0.5] * 11, noise=0.005)
    assert set(race.dropped) == set(range(1, 12))
    assert {each.by for each in race.dropped.values()} == {0}
    assert max(race.runs[1:]) < 12  # of the grid's
    assert race.answer().advised == 0


def test_a_null_race_keeps_the_default() -> None:
    kept = [run(Race(rules()), [0.0] * 12, 0.02, seed).answer().advised == 0 for seed in range(6)]
    assert all(kept)


def test_higher_figures_can_be_better() -> None:
    race = Race(rules(better="higher"))
    run(race, [0.1 * each for each in range(12)])
    assert race.answer().best == 11


def test_a_setting_that_fails_is_dropped_with_its_cause() -> None:
    race = Race(rules())
    block = race.next_block()
    for number, order in enumerate(block):
        for each in order:
            if each == 5:
                race.fail(each, number, "hung")
            else:
                race.record(each, number, 1.0 + each)
    race.end_block()
    assert race.dropped[5].cause == "hung"
    assert all(5 not in order for order in race.next_block())


def test_where_every_setting_fails_nothing_is_made_up() -> None:
    race = Race(rules())
    for number, order in enumerate(race.next_block()):
        for each in order:
            race.fail(each, number, "failed")
    race.end_block()
    assert race.next_block() == []
    assert race.answer().best is None
    assert race.answer().advised is None


def test_without_the_default_the_best_is_advised() -> None:
    race = Race(rules(levels=GRID[:4]))
    rng = np.random.default_rng(5)
    while block := race.next_block():
        for number, order in enumerate(block, race.rounds_begun):
            for each in order:
                if each == 0:
                    race.fail(0, number, "failed")
                else:
                    race.record(each, number, 1.0 + 0.1 * each + 0.01 * rng.random())
        race.end_block()
    answer = race.answer()
    assert (answer.advised, answer.to_default) == (1, None)


@pytest.mark.parametrize(("figures", "best"), [(2, 1), (1, 0)])
def test_a_setting_with_less_than_half_the_figures_of_another_is_not_named(
    figures: int, best: int
) -> None:
    race = Race(rules([[0], [1]], search="grid"))
    race.next_block()
    for number in range(4):
        race.record(0, number, 1.0)
        if number < figures:
            race.record(1, number, 0.5)
    assert race.answer().best == best


@pytest.mark.parametrize("figure", [0.0, -1.0, math.inf, math.nan])
def test_a_figure_that_has_no_ratio_is_a_failure(figure: float) -> None:
    race = Race(rules())
    race.next_block()
    race.record(3, 0, figure)
    (cause,) = race.failures[3]
    assert "ratios need figures above 0" in cause
    assert not np.isfinite(race.figures).any()


def test_while_a_block_runs_the_interval_is_that_of_every_look() -> None:
    race = Race(rules(search="grid"))
    rng = np.random.default_rng(3)
    for _ in range(2):
        for number, order in enumerate(race.next_block(), race.rounds_begun):
            for each in order:
                race.record(each, number, math.exp(-0.02 * (each == 4) + 0.004 * rng.normal()))
        race.end_block()
    between = race.answer()
    always = race.ratio(4, 0, 0.01)
    assert between.to_default and always
    assert between.to_default.high - between.to_default.low < always.high - always.low
    assert race.next_block()
    under_way = race.answer()
    assert under_way.best == between.best == 4
    assert under_way.to_default == race.ratio(4, 0) != between.to_default


def test_the_default_runs_in_every_block_though_it_has_lost() -> None:
    race = run(Race(rules()), [0.5] + [0.01 * each for each in range(11)], noise=0.003)
    assert 0 in race.dropped
    assert all(0 in order for block in race.blocks for order in block)


@pytest.mark.parametrize("runs", [144, 72, 36])
def test_a_round_has_each_setting_once_and_costs_stay_within_bounds(runs: int) -> None:
    race = run(Race(rules(runs=runs)), [0.0] * 12, noise=0.01)
    assert sum(race.runs) <= runs
    assert all(len(set(order)) == len(order) for block in race.blocks for order in block)
    assert all(sum(map(len, block)) <= 12 * 4 for block in race.blocks)
    assert [len(block) for block in race.blocks] <= [4, 4, 8]  # fewer settings, twice as often
    assert len(race.blocks) <= 3


def test_orders_differ_between_rounds_and_are_the_same_again() -> None:
    first, second = (run(Race(rules()), [0.0] * 12).blocks for _ in range(2))
    assert first == second
    assert first[0][0] != first[0][1]


def test_a_large_grid_is_screened_by_a_balanced_part() -> None:
    levels = [list(each) for each in product(range(4), range(4), range(3))]
    race = Race(rules(levels, runs=61))
    first = race.next_block()[0]
    assert len(first) == 30
    assert 0 in first
    chosen = np.array([levels[each] for each in first])
    for axis, size in enumerate((4, 4, 3)):
        counts = np.bincount(chosen[:, axis], minlength=size)
        assert counts.max() - counts.min() <= 2


def test_screening_finds_a_setting_that_never_ran() -> None:
    levels = [list(each) for each in product(range(4), range(4), range(3))]
    effects = [0.3 * one + 0.2 * two + 0.1 * three for one, two, three in levels]
    best = levels.index([0, 0, 0])
    found = Race(RaceRules(levels=levels, default=levels.index([3, 3, 2]), runs=60))
    answer = run(found, effects, noise=0.01).answer()
    assert answer.best == best


def test_halving_and_the_grid() -> None:
    effects = [0.05 * each for each in range(12)]
    halved = run(Race(rules(runs=48, search="halving")), effects)
    assert [len(block[0]) for block in halved.blocks] == [12, 6, 3]
    whole = run(Race(rules(search="grid")), effects)
    assert whole.runs == [12] * 12
    assert halved.answer().best == whole.answer().best == 0


# ---- the largest size that works -----------------------------------------------------------------


@pytest.mark.parametrize("largest", range(-1, 31))
def test_the_largest_size_is_found_in_five_runs(largest: int) -> None:
    search = LargestSearch(rules([[each] for each in range(31)], search="largest"))
    runs = 0
    while block := search.next_block():
        runs += 1
        (each,) = block[0]
        if each <= largest:
            search.record(each, search.rounds_begun, 1.0)
        else:
            search.fail(each, search.rounds_begun, "hung")
        search.end_block()
    assert search.largest == (largest if largest >= 0 else None)
    assert runs <= 5


def test_a_size_that_is_cut_off_runs_again_and_after_three_times_another_one() -> None:
    search = LargestSearch(rules([[each] for each in range(3)], search="largest"))
    for number in range(3):
        assert search.next_block() == [[1]]
        assert search.rounds_begun == number
        search.cut_off(1, number, "node failure")
    assert search.dropped[1].cause == "3 runs had no result: node failure"
    assert (search.runs[1], search.dropped[1].block) == (3, 3)
    search.exclude(0, "build failed")
    assert search.next_block() == [[2]]
    search.record(2, 3, 1.0)
    assert (search.largest, search.next_block()) == (2, [])


def test_a_setting_that_was_cut_off_or_not_built_is_none_that_failed() -> None:
    race = Race(rules(GRID[:4]))
    race.exclude(3, "build failed")
    (block, *_) = race.next_block()
    assert 3 not in block
    race.cut_off(1, 0, "node failure")
    assert (race.cuts[1], race.runs[1], race.failures[1]) == (["node failure"], 1, [])
    assert race.dropped == {3: Dropped(0, cause="build failed")}
