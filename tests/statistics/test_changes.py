from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from bench.quality import changes as quality
from bench.quality import series
from bench.quality.detectors import THRESHOLDS, confirmed
from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial.statistics.changes import LevelChange, analyse, find, neighbour_correlation


def test_a_step_is_told_with_its_levels() -> None:
    rng = np.random.default_rng(1)
    values = np.r_[rng.normal(100, 1, 40), rng.normal(93, 1, 30)].tolist()
    (change,) = find(values)
    assert change.tier == "confirmed"
    assert change.index == 40
    assert change.before == pytest.approx(100, abs=0.5)
    assert change.after == pytest.approx(93, abs=0.5)
    assert change.ratio == pytest.approx(0.93, abs=0.01)


def test_without_noise_a_step_is_exact() -> None:
    assert find([100.0] * 20 + [110.0] * 20) == [
        LevelChange(20, 100.0, 110.0, "confirmed", math.inf)
    ]


def test_a_new_level_is_suspect_before_it_is_confirmed() -> None:
    rng = np.random.default_rng(3)
    values = np.r_[rng.normal(100, 2, 60), rng.normal(88, 2, 12)].tolist()
    tiers = [{c.tier for c in find(values[: 60 + n]) if abs(c.index - 60) <= 1} for n in range(12)]
    assert tiers[0] == set()
    assert tiers[1] | tiers[2] == {"suspect"}
    assert tiers[-1] == {"confirmed"}


@pytest.mark.parametrize("share", [0.5, 0.2, 0.05])
def test_figures_that_hop_between_two_modes_have_not_changed(share: float) -> None:
    """Latency by which core talks: three in a row in one mode are chance."""
    rng = np.random.default_rng(6)
    for count in (30, 120, 365):
        for _ in range(5):
            hopping = np.where(rng.random(count) < share, 6.74, 5.46) * rng.normal(1, 0.003, count)
            assert confirmed(hopping) == []


def test_few_figures_are_enough_after_many() -> None:
    """But not among few: of six figures, one order in twenty has the three least first."""
    assert [c.index for c in find([5.0, 5.1] * 20 + [6.0, 6.1, 6.0])] == [40]
    assert [c.index for c in find([5.0, 5.1] * 5 + [6.0] * 5)] == [10]
    assert [c.tier for c in find([5.0, 5.1, 5.0, 5.1, 6.0, 6.1, 6.0, 6.1])] == ["suspect"]


def test_what_is_too_small_is_not_told() -> None:
    rng = np.random.default_rng(4)
    values = np.r_[rng.normal(100, 0.02, 60), rng.normal(99.5, 0.02, 60)].tolist()
    assert find(values) == []
    values[60:] = [value - 1 for value in values[60:]]
    assert [c.index for c in find(values)] == [60]


def test_figures_that_are_none_are_left_out() -> None:
    values = [100.0] * 20 + [math.nan, math.inf] + [110.0] * 20
    found = analyse(values)
    assert [c.index for c in found.changes] == [22]
    assert found.count == 40


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([], "no finite figure"),
        ([math.nan] * 9, "no finite figure"),
        ([1.0], "one figure has no history"),
        ([1.0, 2.0], "2 figures have no history"),
        ([5.0] * 50, "all 50 figures are equal"),
        ([0.0] * 50, "all 50 figures are equal"),
    ],
)
def test_what_cannot_be_judged_is_told(values: list[float], said: str) -> None:
    found = analyse(values)
    assert found.changes == []
    assert said in found.why


def test_zeros_and_negatives_have_levels_but_no_ratio() -> None:
    (up,) = find([0.0] * 20 + [1.0] * 20)
    assert (up.before, up.after, up.ratio) == (0.0, 1.0, None)
    (down,) = find([-1.0] * 20 + [-2.0] * 20)
    assert down.ratio == 2.0
    (across,) = find([-1.0] * 20 + [1.0] * 20)
    assert across.ratio is None


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(width=64), max_size=60))
def test_any_series_is_survived(values: list[float]) -> None:
    found = analyse(values)
    indices = [change.index for change in found.changes]
    assert indices == sorted(set(indices))
    assert all(0 < index < len(values) for index in indices)
    assert found.count == sum(map(math.isfinite, values))
    for change in found.changes:
        assert math.isfinite(change.before)
        assert math.isfinite(change.after)


@settings(max_examples=20, deadline=None)
@given(st.integers(-900, 900), st.integers(0, 10_000))
def test_the_unit_does_not_matter(power: int, seed: int) -> None:
    values = series.stepped("gauss", np.random.default_rng(seed), 0.05, 60).tolist()
    plain = [(c.index, c.tier) for c in find(values)]
    assert [(c.index, c.tier) for c in find([math.ldexp(v, power) for v in values])] == plain


# ---- the claims of docs/quality.md, on few seeds ------------------------------------------


@pytest.fixture(scope="module")
def ours() -> quality.Score:
    return quality.score(confirmed, False, 12, seed=1234)


def test_noise_alarms_rarely(ours: quality.Score) -> None:
    assert all(alarms <= 10 for alarms in ours.alarms.values()), ours.alarms


def test_small_steps_are_found(ours: quality.Score) -> None:
    assert ours.recall[0.03] >= 0.8
    assert ours.recall[0.05] >= 0.95
    assert ours.recall[0.10] >= 0.98


def test_no_fixed_threshold_comes_near(ours: quality.Score) -> None:
    best = max(quality.score(d, True, 12, seed=1234).f1 for d in THRESHOLDS.values())
    assert ours.f1 >= best + 0.3


def test_a_step_of_ten_percent_is_told_soon() -> None:
    assert quality.delay(confirmed, 5, seed=1234) <= 5


@pytest.mark.parametrize("noise", series.NOISES)
def test_long_quiet_series_stay_quiet(noise: str) -> None:
    rng = np.random.default_rng(5)
    assert sum(len(confirmed(series.null(noise, rng, 365))) for _ in range(12)) <= 1


def test_an_outage_is_two_changes() -> None:
    told = confirmed(series.outage("gauss", np.random.default_rng(2), 50))
    assert told == [50, 55]


def test_a_drift_is_told_as_steps_downward() -> None:
    found = find(series.drifting("gauss", np.random.default_rng(2)).tolist())
    levels = [change.after for change in found if change.tier == "confirmed"]
    assert levels
    assert all(a > b for a, b in pairwise([100.0, *levels]))


# ---- how alike neighbours are -------------------------------------------------------------


@pytest.mark.parametrize("truth", [0.0, 0.3, 0.6])
@pytest.mark.parametrize(("before", "after"), [(10, 30), (20, 20), (50, 50)])
def test_the_correlation_of_neighbours_is_right_in_small_samples(
    truth: float, before: int, after: int
) -> None:
    """In AR(1) series. The two means that are subtracted make the plain estimate too low by
    2 (1 + 3 rho) / n (Marriott and Pope 1954), which is 0.14 of 0.6 in forty figures."""
    total, series_count = before + after, 4000
    shocks = np.random.default_rng(8).normal(0, 1, (total, series_count))
    series = np.empty_like(shocks)
    series[0] = shocks[0] / math.sqrt(1 - truth**2)
    for i in range(1, total):
        series[i] = truth * series[i - 1] + shocks[i]
    sides = series[:before], series[before:]
    off = [(side - side.mean(axis=0)).T for side in sides]
    ours = np.array([neighbour_correlation(*each) for each in zip(*off, strict=True)])
    bias = 2 * (1 + 3 * truth) / total
    assert ours.mean() == pytest.approx(truth, abs=0.25 * bias)
    plain = (ours - 2 / total) / (1 + 6 / total)  # as it was before the correction
    assert plain.mean() == pytest.approx(truth - bias, abs=0.1 * bias)
