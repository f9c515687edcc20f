"""What judging costs: seconds of the clock and of the processor."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np

from bench.quality import nodes, series
from seatrial.judge.statistics import all_pairs, changes, two_samples


def report(count: int = 100, seed: int = 7) -> Iterator[str]:
    rng = np.random.default_rng(seed)
    many = [series.null(noise, rng, 365).tolist() for noise in series.NOISES for _ in range(40)]
    planted = nodes.matrix(rng, 4096, 64, 4, False, 0.05)
    sides = [rng.normal(100, 2, (2, 5)).tolist() for _ in range(1000)]
    yield "| what | wall | processor |"
    yield "| --- | --- | --- |"
    wall, cpu = _timed(lambda: [changes.find(one) for one in many])
    wall, cpu = wall * 10_000 / len(many), cpu * 10_000 / len(many)
    yield f"| 10,000 series of 365 points (from {len(many)}) | {wall:.0f} s | {cpu:.0f} s |"
    wall, cpu = _timed(lambda: all_pairs.survey(planted.matrix, groups=planted.groups))
    yield f"| a matrix of 4,096 ranks | {wall:.1f} s | {cpu:.1f} s |"
    wall, cpu = _timed(lambda: [two_samples.compare(a, b, "lower") for a, b in sides])
    yield f"| 1,000 comparisons, 5 and 5 runs | {wall:.2f} s | {cpu:.2f} s |"


def _timed(act: Callable[[], object]) -> tuple[float, float]:
    began = time.perf_counter(), time.process_time()
    act()
    return time.perf_counter() - began[0], time.process_time() - began[1]
