"""Runs that are not as the others of their test: in what way, and what they share.

classify(runs)[0].classes["slow"]; shared(runs, found, groups)

Classes: *walltime*: it was at its limit when it ended; *slow*: complete, but far slower than the
others (a performance failure); *short*: complete, or so it says, in far too little time; *failed*,
by its cause.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Literal, NamedTuple

from msgspec import Struct

from seatrial.statistics import suspects
from seatrial.statistics.scan_statistic import BadSpan, spans
from seatrial.statistics.spread import MAD_TO_SIGMA

Class = Literal["walltime", "slow", "short", "failed"]

AT_LIMIT = 0.99  # of the walltime
SLOW = 0.10  # slower than the median by at least this share of it
SHORT = 0.5  # quicker than this share of the median
DEVIATIONS = 5.0  # robust ones, that slow and short need besides
MIN_RUNS = 5
STEPS = (1.0, 0.1, 0.01, 0.001)  # seconds, to which times may be rounded


class RunSample(NamedTuple):
    """One run of a test. ``cause`` is why it failed, "" where it did not; ``seconds`` is its
    elapsed time and ``limit`` its walltime (None: not known); ``start`` a time in any unit."""

    name: str
    seconds: float | None
    cause: str = ""
    limit: float | None = None
    nodes: Sequence[str] = ()
    start: float | None = None


class Outlier(Struct, frozen=True):
    """A run that is not as the others, its class, and in words why."""

    run: str
    kind: Class
    why: str


class Outliers(Struct, frozen=True):
    """``median`` and ``noise`` (a robust standard deviation) are those of the complete runs, of
    which there are ``complete``. ``why`` says why no slow or short ones could be told."""

    outliers: list[Outlier]
    runs: int
    complete: int
    median: float | None
    noise: float | None
    why: str = ""

    def of(self, kind: Class) -> list[Outlier]:
        return [outlier for outlier in self.outliers if outlier.kind == kind]


class SharedByOutliers(Struct, frozen=True):
    """What outliers share: nodes or groups, and spans of time."""

    nodes: suspects.Suspects
    spans: list[BadSpan]


def classify(runs: Sequence[RunSample]) -> Outliers:
    """The outliers among the runs of one test that should all take the same time."""
    times = [seconds for run in runs if (seconds := _complete(run)) is not None]
    few = len(times) < MIN_RUNS
    middle = median(times) if times else None
    noise = _deviation(times, middle) if middle is not None and not few else None
    found = []
    for run in runs:
        outlier = _ended(run)
        if outlier is None and middle is not None and noise is not None:
            outlier = _timed(run, middle, noise)
        if outlier is not None:
            found.append(outlier)
    why = ""
    if few:
        why = f"{len(times)} runs are complete; what is slow is told among {MIN_RUNS} or more"
    return Outliers(found, len(runs), len(times), middle, noise, why)


def shared(
    runs: Sequence[RunSample], found: Outliers, groups: Mapping[str, Sequence[str]] | None = None
) -> SharedByOutliers:
    """The nodes, groups and times that explain the outliers better than chance."""
    bad = {outlier.run for outlier in found.outliers}
    jobs = [suspects.RunOnNodes(run.nodes, run.name in bad) for run in runs if run.nodes]
    timed = sorted((run.start, run.name in bad) for run in runs if run.start is not None)
    return SharedByOutliers(suspects.find(jobs, groups), spans(timed))


def _complete(run: RunSample) -> float | None:
    """The time of a run that is complete and not at its limit."""
    usable = run.seconds is not None and math.isfinite(run.seconds) and not run.cause
    return run.seconds if usable and not _at_limit(run) else None


def _at_limit(run: RunSample) -> bool:
    return bool(run.limit and run.seconds is not None and run.seconds >= AT_LIMIT * run.limit)


def _deviation(times: Sequence[float], middle: float) -> float:
    """A robust standard deviation. Where more than half of the times are equal, the most that
    their rounding can hide: half a step."""
    robust = MAD_TO_SIGMA * median(abs(time - middle) for time in times)
    return robust or MAD_TO_SIGMA * _step(times) / 2


def _step(times: Sequence[float]) -> float:
    """Seconds, to which all the times are rounded; 0 where they are not."""
    for step in STEPS:
        if all(math.isclose(time, round(time / step) * step, abs_tol=1e-9) for time in times):
            return step
    return 0.0


def _ended(run: RunSample) -> Outlier | None:
    if _at_limit(run):
        return Outlier(run.name, "walltime", f"{run.seconds:g} s of {run.limit:g} s")
    if run.cause:
        return Outlier(run.name, "failed", run.cause)
    return None


def _timed(run: RunSample, middle: float, noise: float) -> Outlier | None:
    if run.seconds is None or not math.isfinite(run.seconds):
        return None
    away = run.seconds - middle
    if abs(away) <= DEVIATIONS * noise:
        return None
    if away > SLOW * middle:
        return Outlier(run.name, "slow", f"{run.seconds:g} s; the median is {middle:g} s")
    if run.seconds < SHORT * middle:
        return Outlier(run.name, "short", f"{run.seconds:g} s; the median is {middle:g} s")
    return None
