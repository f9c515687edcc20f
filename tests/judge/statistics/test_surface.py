"""The surface through figures of some points of a grid."""

from __future__ import annotations

from itertools import product

import numpy as np

from seatrial.judge.statistics.trends import Surface

LEVELS = np.array([list(each) for each in product(range(8), range(6))])
TRUTH = -0.05 * (LEVELS[:, 0] - 5) ** 2 - 0.08 * (LEVELS[:, 1] - 3) ** 2
RAN = [each for each in range(48) if sum(LEVELS[each]) % 3 == 0]


def noisy(seed: int, noise: float) -> list[float]:
    return [*(TRUTH[RAN] + np.random.default_rng(seed).normal(0, noise, len(RAN)))]


def test_points_that_never_ran_follow_from_their_neighbours() -> None:
    fit = Surface(LEVELS, [True, True]).fit(RAN, noisy(1, 0.01), [1] * len(RAN))
    others = [each for each in range(48) if each not in RAN]
    assert np.abs(fit.mean - TRUTH)[others].max() < 0.06
    assert int(fit.mean.argmax()) == int(TRUTH.argmax())
    assert fit.deviation[others].mean() > 1.5 * fit.deviation[RAN].mean()
    gaps = np.abs(fit.mean - TRUTH) / fit.deviation
    assert (gaps < 2).mean() > 0.85


def test_a_disturbed_run_counts_less() -> None:
    """The best point lost a quarter in its one run; its neighbours tell that it is better."""
    figures = noisy(2, 0.01)
    best = int(TRUTH[RAN].argmax())
    figures[best] -= 0.3
    fit = Surface(LEVELS, [True, True]).fit(RAN, figures, [1] * len(RAN))
    assert fit.mean[RAN[best]] - figures[best] > 0.135
    assert np.abs(fit.mean - TRUTH).max() < 0.175


def test_large_noise_is_told() -> None:
    """Figures that differ by factors at one point: the surface is no surer than they are."""
    draws = np.random.default_rng(7)
    settings = RAN * 3
    figures = [*(TRUTH[settings] + draws.normal(0, 0.8, len(settings)))]
    fit = Surface(LEVELS, [True, True]).fit(settings, figures, [1] * len(settings))
    assert 0.4 <= fit.noise <= 1.2
    assert (np.abs(fit.mean - TRUTH) < 3 * fit.deviation).all()


def test_a_slow_block_is_told_from_slow_points() -> None:
    """Half of the points ran while the file system was 20 % slower; some ran in both blocks."""
    settings, blocks = RAN + RAN[:4], [1 + each % 2 for each in range(len(RAN))]
    blocks += [3 - each for each in blocks[:4]]
    figures = np.array(noisy(3, 0.01) + noisy(4, 0.01)[:4]) - 0.2 * (np.array(blocks) == 2)
    fit = Surface(LEVELS, [True, True]).fit(settings, [*figures], blocks)
    beside = fit.mean - TRUTH
    assert np.ptp(beside[RAN]) < 0.12


def test_values_without_order_are_alike_or_not() -> None:
    levels = np.array([list(each) for each in product(range(6), range(2))])
    truth = -0.1 * (levels[:, 0] - 3) ** 2 - 0.5 * levels[:, 1]
    ran = [each for each in range(12) if each != 6]  # the best of the better word is left out
    figures = [*(truth[ran] + np.random.default_rng(5).normal(0, 0.01, 11))]
    fit = Surface(levels, [True, False]).fit(ran, figures, [1] * 11)
    assert int(fit.mean.argmax()) == 6 and abs(fit.mean[6] - truth[6]) < 0.1
    assert fit.column(6).shape == (12,)
