"""The detectors of change that others use, written from their descriptions, to compare with.

Each takes a series and gives the indices at which it raises an alarm.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from seatrial.judge.statistics import changes
from seatrial.judge.statistics.changes import starts
from seatrial.judge.statistics.significance import normal_deviate

Array = NDArray[np.float64]
Detector = Callable[[Array], list[int]]


def threshold(series: Array, share: float) -> list[int]:
    """Farther than a share from the median of the first ten points; neighbouring alarms on one
    side are one alarm."""
    ratio = series / np.median(series[:10]) - 1
    return _rising(np.where(np.abs(ratio) > share, np.sign(ratio), 0.0))


def rolling_z(series: Array, window: int = 30, bound: float = 3.0) -> list[int]:
    """More than three standard deviations from the mean of the thirty points before."""
    side = np.zeros(len(series))
    for i in range(window, len(series)):
        before = series[i - window : i]
        z = (series[i] - before.mean()) / before.std(ddof=1)
        side[i] = np.sign(z) if abs(z) > bound else 0.0
    return _rising(side)


def _rising(side: Array) -> list[int]:
    return [i for i in range(len(side)) if side[i] and (i == 0 or side[i] != side[i - 1])]


def perfherder(series: Array, window: int = 12, bound: float = 7.0) -> list[int]:
    """t of the twelve points before and after, weighted by their nearness; the best of each run of
    points over the bound."""
    weights = np.linspace(1, 1 / window, window)
    scores = np.zeros(len(series))
    for i in range(window, len(series) - window + 1):
        left, right = series[i - window : i][::-1], series[i : i + window]
        means = [np.average(side, weights=weights) for side in (left, right)]
        variances = [
            np.average((side - mean) ** 2, weights=weights)
            for side, mean in zip((left, right), means, strict=True)
        ]
        scores[i] = abs(means[1] - means[0]) / math.sqrt(sum(variances) / window)
    found: list[int] = []
    for i in np.argsort(-scores):
        if scores[i] > bound and all(abs(int(i) - other) >= window for other in found):
            found.append(int(i))
    return sorted(found)


def otava(series: Array, level: float = 0.001, window: int = 50) -> list[int]:
    """E-divisive in windows that overlap by half; splits that t finds at ten times the level; then
    the weakest is dropped until all are at the level."""
    weak: list[int] = []
    start = 0
    while start < len(series):
        end = min(start + window, len(series))
        found = [start + i for i in _divided(series[start:end], 10 * level)]
        start = max([*found[-1:], start + window // 2])
        weak += [i for i in found if i not in weak]
    weak.sort()
    while weak:
        marks = [0, *weak, len(series)]
        rare = [_t_test(series, *marks[i : i + 3]) for i in range(len(weak))]
        if max(rare) < level:
            break
        del weak[rare.index(max(rare))]
    return weak


def _divided(piece: Array, level: float) -> list[int]:
    if len(piece) < 4:
        return []
    at = _energy_split(piece)
    if _t_test(piece, 0, at, len(piece)) > level:
        return []
    return [*_divided(piece[:at], level), at, *(at + i for i in _divided(piece[at:], level))]


def _energy_split(piece: Array) -> int:
    """Where the energy distance between the two sides is greatest."""
    count = len(piece)
    sums = np.zeros((count + 1, count + 1))
    sums[1:, 1:] = np.abs(piece[:, None] - piece[None, :]).cumsum(axis=0).cumsum(axis=1)
    first = np.arange(2, count - 1)
    rest = count - first
    left = sums[first, first]
    across = sums[first, count] - left
    right = sums[count, count] - left - 2 * across
    energy = (
        2 * across / (first * rest) - left / (first * (first - 1)) - right / (rest * (rest - 1))
    )
    return int(first[(first * rest / count * energy).argmax()])


def _t_test(series: Array, start: int, at: int, end: int) -> float:
    """The two-sided p-value of Student's t for the two sides, in the normal approximation of it."""
    left, right = series[start:at], series[at:end]
    freedom = end - start - 2
    if freedom < 1:
        return 1.0
    squares = ((left - left.mean()) ** 2).sum() + ((right - right.mean()) ** 2).sum()
    error = math.sqrt(squares / freedom * (1 / len(left) + 1 / len(right)))
    t = abs(left.mean() - right.mean()) / error
    return math.erfc(normal_deviate(t, freedom) / math.sqrt(2))


def asv(series: Array) -> list[int]:
    """L1 Potts; the penalty is the one of least 4 ln(n) / n for a piece plus the logarithm of the
    error, in which the best correlation of neighbours is taken out."""
    count = len(series)
    whole = float(np.abs(series - np.median(series)).sum())
    best, least = [0], math.inf
    for penalty in whole * np.geomspace(0.1 / count, 1, 25):
        pieces = starts(series, float(penalty))
        marks = [*pieces, count]
        off = series.copy()
        levels = []
        for a, b in pairwise(marks):
            levels.append(float(np.median(series[a:b])))
            off[a:b] -= levels[-1]
        steps = np.abs(np.diff(levels))
        floor = 0.1 * float(steps.min()) if len(levels) > 2 else 0.001 * min(map(abs, levels))
        error = min(
            abs(float(off[0])) + float(np.abs(off[1:] - rho * off[:-1]).sum())
            for rho in np.linspace(-1, 1, 41)
        )
        value = 4 * math.log(count) / count * len(pieces) + math.log(floor + error)
        if value < least:
            best, least = pieces, value
    return best[1:]


def pelt_l1(series: Array) -> list[int]:
    """The rule that confirmed changes are built on, alone: L1, 3 ln(n) sigma."""
    sigma = 1.4826 * float(np.median(np.abs(np.diff(series)))) / math.sqrt(2)
    return starts(series, 3 * math.log(len(series)) * sigma)[1:]


def confirmed(series: Array) -> list[int]:
    return [c.index for c in changes.find(series) if c.tier == "confirmed"]  # type: ignore[arg-type]


def either(series: Array) -> list[int]:
    return [c.index for c in changes.find(series)]  # type: ignore[arg-type]


LASTING = {"threshold", "rolling"}  # these go on with their alarm after a step: no false ones

DETECTORS: dict[str, Detector] = {
    "threshold 5 %": partial(threshold, share=0.05),
    "threshold 10 %": partial(threshold, share=0.10),
    "rolling z > 3": rolling_z,
    "Perfherder's weighted t > 7": perfherder,
    "Otava: E-divisive + t, p = .001": otava,
    "asv: L1 Potts": asv,
    "L1 at 3 ln(n) sigma alone": pelt_l1,
    "Seatrial: suspect or confirmed": either,
    "**Seatrial: confirmed**": confirmed,
}
THRESHOLDS: dict[str, Detector] = {
    f"threshold {share:g} %": partial(threshold, share=share / 100)
    for share in (3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 20)
}
