"""How well changes are found in series, beside other detectors."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import NamedTuple

import numpy as np

from bench.quality import series
from bench.quality.detectors import DETECTORS, LASTING, THRESHOLDS, Detector, confirmed, either

STEPS = (0.03, 0.05, 0.10)
DRIFT_NOISES = (0.02, 0.01, 0.003, 0.001, 0.00001)
NEAR = 10  # points from the truth at which a step counts as found


class Score(NamedTuple):
    """``alarms``: per 100 null series, by noise; ``recall``: by size of the step, and by size and
    noise; ``f1``: over all series, null ones and steps, and by noise."""

    alarms: dict[str, float]
    recall: dict[float, float]
    recall_of: dict[tuple[float, str], float]
    f1: float
    f1_of: dict[str, float]


def score(
    detector: Detector, lasting: bool, count: int, seed: int, scale: float = series.SCALE
) -> Score:
    """``count`` null series and as many of each step, in every noise."""
    alarms: dict[str, float] = {}
    hits: dict[tuple[float, str], float] = {}
    counted: dict[str, tuple[int, int, int]] = {}
    for number, noise in enumerate(series.NOISES):
        rng = np.random.default_rng([seed, number])
        false = sum(len(detector(series.null(noise, rng, scale=scale))) for _ in range(count))
        alarms[noise] = 100 * false / count
        right, wrong, missed = 0, false, 0
        for size in STEPS:
            found = 0
            for _ in range(count):
                at = int(rng.integers(30, 91))
                told = detector(series.stepped(noise, rng, size, at, scale=scale))
                hit = [i for i in told if abs(i - at) <= NEAR]
                found += bool(hit)
                wrong += sum(i not in hit and not (lasting and i > at) for i in told)
            hits[size, noise] = found / count
            right += found
            missed += count - found
        counted[noise] = right, wrong, missed
    recall = {
        size: float(np.mean([hits[size, noise] for noise in series.NOISES])) for size in STEPS
    }
    f1_of = {noise: _f1(*own) for noise, own in counted.items()}
    total = (sum(own[i] for own in counted.values()) for i in range(3))
    return Score(alarms, recall, hits, _f1(*total), f1_of)


def _f1(right: int, wrong: int, missed: int) -> float:
    return 2 * right / (2 * right + wrong + missed)


def scores(count: int, seed: int, only: str = "") -> Iterator[tuple[str, Score]]:
    """Of the fixed threshold that is best with hindsight, and of all detectors or one."""
    tried = [(name, score(found, True, count, seed)) for name, found in THRESHOLDS.items()]
    name, best = max(tried, key=lambda one: one[1].f1)
    yield f"best {name} (hindsight)", best
    for name, detector in DETECTORS.items():
        if only not in ("", name):
            continue
        yield name, score(detector, name.split()[0] in LASTING, count, seed)


def delay(detector: Detector, count: int, seed: int) -> float:
    """Median points after a step of 10 % until it is told, itself counted as 1; over all noises."""
    waits = []
    for number, noise in enumerate(series.NOISES):
        rng = np.random.default_rng([seed, 100 + number])
        for _ in range(count):
            whole = series.stepped(noise, rng, 0.10, 60)
            waits.append(_wait(detector, whole, 60))
    return float(median(waits))


def _wait(detector: Detector, whole: series.Array, at: int) -> int:
    for n in range(1, 31):
        if any(abs(i - at) <= 3 for i in detector(whole[: at + n])):
            return n
    return 31


def shuffled(count: int, seed: int) -> dict[str, tuple[float, float]]:
    """Alarms per 100 null series as they are, and in random order."""
    found = {}
    for number, noise in enumerate(series.NOISES):
        rng = np.random.default_rng([seed, 200 + number])
        nulls = [series.null(noise, rng) for _ in range(count)]
        mixed = [rng.permutation(one) for one in nulls]
        plain, random = (sum(len(confirmed(one)) for one in some) for some in (nulls, mixed))
        found[noise] = (100 * plain / count, 100 * random / count)
    return found


def stories(count: int, seed: int) -> dict[str, float]:
    """The share of series in which what happened was told, over all noises: a drift by any change
    downward, an outage and a pair of near steps by both their ends."""
    drift = out = near = 0
    for number, noise in enumerate(series.NOISES):
        rng = np.random.default_rng([seed, 300 + number])
        for _ in range(count):
            drift += bool(confirmed(series.drifting(noise, rng)))
            at = int(rng.integers(30, 80))
            out += _both(confirmed(series.outage(noise, rng, at)), at, at + 5, 1)
            near += _both(confirmed(series.two_steps(noise, rng, at)), at, at + 12, 5)
    total = count * len(series.NOISES)
    return {"drift": drift / total, "outage": out / total, "two near steps": near / total}


def drifts(count: int, seed: int) -> Iterator[tuple[str, list[float]]]:
    """The share of series of 60 points that lose 10 % in which a change for the worse is confirmed,
    by the form of the loss and the noise."""
    for number, shape in enumerate(series.SHAPES):
        rng = np.random.default_rng([seed, 400 + number])
        lost = [[series.lost(shape, rng, n, 60) for _ in range(count)] for n in DRIFT_NOISES]
        yield shape, [float(np.mean([bool(confirmed(one)) for one in some])) for some in lost]


def no_change(count: int, seed: int) -> Iterator[tuple[str, list[float]]]:
    """Confirmed changes in 100 series of 30, 120 and 365 points in which there is none."""
    for number, (name, made) in enumerate(series.NO_CHANGE.items()):
        rng = np.random.default_rng([seed, 500 + number])
        yield (
            name,
            [
                100 / count * sum(len(confirmed(made(rng, length))) for _ in range(count))
                for length in (30, 120, 365)
            ],
        )


def _both(told: list[int], first: int, second: int, within: int) -> bool:
    return all(any(abs(i - at) <= within for i in told) for at in (first, second))


def report(count: int = 100, seed: int = 7) -> Iterator[str]:
    noises = list(series.NOISES)
    yield f"| detector | {' | '.join(noises)} | recall at 3 / 5 / 10 % | F1 |"
    yield "|" + " --- |" * (len(noises) + 3)
    ours = None
    for name, got in scores(count, seed):
        alarms = " | ".join(f"{got.alarms[noise]:.0f}" for noise in noises)
        recall = " / ".join(f"{got.recall[size]:.2f}" for size in STEPS)
        yield f"| {name} | {alarms} | {recall} | {got.f1:.2f} |"
        ours = got
    assert ours is not None
    yield ""
    for size in STEPS[:2]:
        parts = ", ".join(f"{noise} {ours.recall_of[size, noise]:.2f}" for noise in noises)
        yield f"Recall of confirmed changes at {100 * size:.0f} %: {parts}."
    at_2 = score(confirmed, False, 2 * count, seed, scale=0.02)
    yield ""
    yield "| confirmed, noise 2 % | false alarms per 100 | recall at 3 / 5 / 10 % | F1 |"
    yield "| --- | --- | --- | --- |"
    for noise in noises:
        recall = " / ".join(f"{at_2.recall_of[size, noise]:.2f}" for size in STEPS)
        yield f"| {noise} | {at_2.alarms[noise]:.1f} | {recall} | {at_2.f1_of[noise]:.3f} |"
    recall = " / ".join(f"{at_2.recall[size]:.2f}" for size in STEPS)
    yield f"| all | {np.mean([*at_2.alarms.values()]):.1f} | {recall} | {at_2.f1:.3f} |"
    yield ""
    titles = " | ".join(f"{100 * noise:g} %" for noise in DRIFT_NOISES)
    yield f"| 10 % lost in 60 points, noise | {titles} |"
    yield "|" + " --- |" * (len(DRIFT_NOISES) + 1)
    for shape, shares in drifts(count, seed):
        yield f"| {shape} | {' | '.join(f'{share:.2f}' for share in shares)} |"
    yield ""
    yield "| confirmed per 100 series without a change, of | 30 points | 120 | 365 |"
    yield "| --- | --- | --- | --- |"
    for name, false in no_change(count, seed):
        yield f"| {name} | {' | '.join(f'{share:.0f}' for share in false)} |"
    yield ""
    waits = delay(confirmed, count // 4, seed), delay(either, count // 4, seed)
    yield f"Median delay at 10 %: confirmed {waits[0]:.0f} points, suspect {waits[1]:.0f}."
    order = shuffled(2 * count, seed)
    parts = ", ".join(f"{noise} {a:.1f} and {b:.1f}" for noise, (a, b) in order.items())
    yield f"Confirmed alarms per 100 null series as they are and shuffled: {parts}."
    told = ", ".join(f"{name} {share:.2f}" for name, share in stories(count // 2, seed).items())
    yield f"Told as confirmed changes: {told}."
