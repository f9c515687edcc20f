"""How simulated runs turn out: by seed, test and attempt alone, as they are said to."""

from __future__ import annotations

from statistics import fmean, stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.plugins.rehearsal.simulated_runs import (
    Quantity,
    RunModel,
    SampledOutcome,
    draw,
    figures,
)

MANY = 20_000


def many(run_model: RunModel, seed: int = 1) -> list[SampledOutcome]:
    return [draw(seed, "t", number, run_model) for number in range(MANY)]


def test_a_fixed_time_is_that_time() -> None:
    assert draw(1, "t", 1, RunModel(mean=60.0)) == SampledOutcome(60.0)


def test_mean_and_spread_are_those_asked_for() -> None:
    times = [sampled.elapsed for sampled in many(RunModel(mean=100.0, sd=30.0))]
    assert fmean(times) == pytest.approx(100, rel=0.01)
    assert stdev(times) == pytest.approx(30, rel=0.03)
    assert min(times) > 0


def test_given_times_are_drawn_each_as_often() -> None:
    times = [sampled.elapsed for sampled in many(RunModel(values=(1.0, 2.0, 4.0)))]
    assert set(times) == {1.0, 2.0, 4.0}
    for value in set(times):
        assert times.count(value) / MANY == pytest.approx(1 / 3, abs=0.015)


def test_shares_are_those_asked_for_and_exclude_each_other() -> None:
    samples = many(RunModel(mean=100.0, wrong=0.1, fails=0.2, hangs=0.3))
    assert sum(sampled.hangs for sampled in samples) / MANY == pytest.approx(0.3, abs=0.015)
    assert sum(sampled.exit_code for sampled in samples) / MANY == pytest.approx(0.2, abs=0.015)
    assert sum(sampled.wrong for sampled in samples) / MANY == pytest.approx(0.1, abs=0.015)
    assert max(sampled.hangs + sampled.exit_code + sampled.wrong for sampled in samples) == 1
    early = [sampled.elapsed for sampled in samples if sampled.exit_code]
    assert fmean(early) == pytest.approx(50, rel=0.05)
    assert 0 < min(early) < max(early) < 100
    assert all(sampled.elapsed == 100 for sampled in samples if sampled.wrong)


def test_figures_are_normal_and_of_their_own_chance() -> None:
    rate = Quantity("rate", 50.0, 5.0, "1/s", "higher")
    other = rate._replace(name="other")
    run_model = RunModel(mean=1.0, figures=(rate, other))
    pairs = [tuple(figures(1, "t", number, run_model)) for number in range(MANY)]
    values = [one.value for one, _ in pairs]
    assert fmean(values) == pytest.approx(50, rel=0.01)
    assert stdev(values) == pytest.approx(5, rel=0.03)
    products = [(one.value - 50) * (two.value - 50) / 25 for one, two in pairs]
    assert fmean(products) == pytest.approx(0, abs=0.03)
    assert (pairs[0][0].unit, pairs[0][0].better) == ("1/s", "higher")


@given(st.integers(0, 2**63), st.text(max_size=20), st.integers(0, 10**9), st.floats(1e-3, 1e6))
def test_the_same_attempt_has_the_same_luck(
    seed: int, test: str, attempt: int, mean: float
) -> None:
    run_model = RunModel(mean=mean, sd=mean / 2, fails=0.5)
    one = draw(seed, test, attempt, run_model)
    assert one == draw(seed, test, attempt, run_model)
    assert one.elapsed > 0


def test_other_seeds_tests_and_attempts_have_other_luck() -> None:
    run_model = RunModel(mean=100.0, sd=30.0)
    drawn = {draw(seed, test, n, run_model) for seed in (1, 2) for test in "ab" for n in (1, 2)}
    assert len(drawn) == 8


def test_the_point_where_runs_fail_does_not_change_with_the_share_that_fails() -> None:
    """So that plans are compared by the same luck."""
    rare, often = RunModel(mean=10.0, fails=0.1), RunModel(mean=10.0, fails=0.9)
    for attempt in range(200):
        one, other = draw(1, "t", attempt, rare), draw(1, "t", attempt, often)
        if one.exit_code:
            assert one == other
