"""Predictions from the effects of levels."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from seatrial.judge.statistics.trends import predict

LEVELS = np.array(list(product(range(4), range(2), range(3))))
TRUE = 0.2 * LEVELS[:, 0] + 0.1 * LEVELS[:, 1] - 0.05 * LEVELS[:, 2]


def test_settings_that_never_ran_are_predicted_from_their_levels() -> None:
    rng = np.random.default_rng(1)
    means = TRUE + rng.normal(0, 0.005, len(TRUE))
    missing = rng.permutation(len(TRUE))[:8]
    means[missing] = np.nan
    runs = np.where(np.isfinite(means), 1, 0)
    found = predict(LEVELS, means, runs)
    assert found.mean[missing] == pytest.approx(TRUE[missing], abs=0.03)
    assert found.deviation[missing].min() > found.deviation[runs > 0].max() / 2


def test_a_setting_of_its_own_is_not_smoothed_away_once_it_has_runs() -> None:
    means = TRUE.copy()
    means[5] -= 0.4
    runs = np.full(len(TRUE), 9)
    found = predict(LEVELS, means, runs, noise=0.01)
    assert found.mean[5] == pytest.approx(means[5], abs=0.02)


def test_the_others_tell_of_a_disturbed_run() -> None:
    rng = np.random.default_rng(2)
    means = TRUE + rng.normal(0, 0.005, len(TRUE))
    best = int(TRUE.argmin())
    means[best] += 0.3
    found = predict(LEVELS, means, np.ones(len(TRUE), dtype=np.int64))
    assert found.without[best] == pytest.approx(TRUE[best], abs=0.05)


def test_effects_that_are_not_there_are_mostly_estimated_as_none() -> None:
    left = []
    for seed in range(20):
        means = np.random.default_rng(seed).normal(0, 0.1, len(TRUE))
        found = predict(LEVELS, means, np.ones(len(TRUE), dtype=np.int64), noise=0.1)
        left.append(np.std(found.mean) / np.std(means))
    assert np.median(left) < 0.02


def test_figures_that_are_all_alike() -> None:
    found = predict(LEVELS, np.full(len(TRUE), 3.0), np.ones(len(TRUE), dtype=np.int64))
    assert found.mean == pytest.approx(np.full(len(TRUE), 3.0))
    one = predict(LEVELS[:1], np.array([2.0]), np.array([1]))
    assert one.mean == pytest.approx([2.0])
