"""Intervals that hold at every look."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

from seatrial.judge.statistics.sequential import (
    BlockNoise,
    evidence,
    interval,
    means_of,
    residuals_of,
)
from seatrial.lazy import Floats


def noisy(rng: np.random.Generator, kind: str, shape: tuple[int, int]) -> Floats:
    """Noise of runs, in logarithms: normal, with heavy tails, with disturbed runs, skewed."""
    if kind == "normal":
        return np.asarray(rng.normal(0, 0.01, shape))
    if kind == "heavy":
        return np.asarray(0.01 * rng.standard_t(2, shape))
    if kind == "skewed":
        return np.asarray(rng.exponential(0.01, shape))
    wild = rng.random(shape) < 0.1
    return np.asarray(rng.normal(0, 0.01, shape) + wild * rng.exponential(0.2, shape))


@pytest.mark.parametrize("kind", ["normal", "heavy", "disturbed", "skewed"])
def test_intervals_hold_at_every_look(kind: str) -> None:
    """At 95 % for each end, looked at after 3, 6, 9 and 12 rounds."""
    rng = np.random.default_rng(1)
    missed, trials = 0, 100
    for _ in range(trials):
        figures = noisy(rng, kind, (8, 12)) + rng.normal(0, 0.1, 12)
        for rounds in (3, 6, 9, 12):
            noise = BlockNoise.of(figures[:, :rounds])
            assert noise is not None
            differences = figures[0, :rounds] - figures[1, :rounds]
            both = np.array([differences, -differences])
            if evidence(both, noise).max() >= math.log(20):  # an end of the interval is beyond 0
                missed += 1
                break
    assert missed <= 0.1 * trials  # both ends


def test_the_evidence_falls_with_the_mean_that_is_denied() -> None:
    rng = np.random.default_rng(2)
    figures = rng.normal(0, 0.01, (6, 8))
    noise = BlockNoise.of(figures)
    assert noise is not None
    differences = figures[0] - figures[1] + 0.05
    found = [float(evidence(differences, noise, mean)) for mean in np.linspace(-0.1, 0.2, 30)]
    assert all(one >= other for one, other in pairwise(found))
    low, high = interval(differences, noise, 0.01)
    assert 0 < low < noise.centre(differences) < high < 0.1


def test_one_wild_run_proves_nothing() -> None:
    rng = np.random.default_rng(3)
    noise = BlockNoise.of(rng.normal(0, 0.01, (8, 6)))
    assert noise is not None
    assert float(evidence(np.array([9.0]), noise)) < math.log(20)
    assert interval(np.array([9.0]), noise, 0.001) == (-math.inf, math.inf)
    assert interval(np.array([]), noise, 0.05) == (-math.inf, math.inf)


def test_pairs_without_a_common_round_have_no_evidence() -> None:
    rng = np.random.default_rng(4)
    noise = BlockNoise.of(rng.normal(0, 0.01, (8, 6)))
    assert noise is not None
    found = evidence(np.array([[np.nan, np.nan], [1.0, 1.0]]), noise)
    assert found[0] == pytest.approx(0)
    assert found[1] > 1


def test_noise_needs_settings_that_ran_twice_beside_each_other() -> None:
    once = np.array([[1.0, np.nan], [1.1, np.nan], [np.nan, 2.0]])
    assert BlockNoise.of(once) is None
    assert BlockNoise.of(np.zeros((3, 0))) is None
    alone = np.array([[1.0, 1.2], [1.1, np.nan]])
    assert BlockNoise.of(alone) is None


def test_levels_of_rounds_are_no_noise() -> None:
    figures = np.add.outer([0.0, 0.3, 0.7], [0.0, 5.0, -2.0])
    residuals, freedom = residuals_of(figures)
    assert freedom == 4
    assert np.abs(residuals).max() < 1e-12


def test_means_leave_out_rounds_and_wild_runs() -> None:
    rng = np.random.default_rng(5)
    levels = np.array([0.0, 0.2, 0.5, 0.9])
    figures = np.add.outer(levels, rng.normal(0, 0.3, 9)) + rng.normal(0, 0.001, (4, 9))
    figures[1, 4] += 3.0
    figures[3, 1:] = np.nan  # it ran in the first round alone
    means, runs = means_of(figures, BlockNoise.of(figures))
    assert runs.tolist() == [9, 9, 9, 1]
    assert means - means[0] == pytest.approx(levels, abs=0.004)
