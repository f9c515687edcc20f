"""Find the runs of a test that differ from the others, and what these runs share.

found = classify(runs); found.of("slow"); shared(runs, found, groups)

Classes: *walltime*: it ended at its limit; *slow*: complete, but far slower than the others (a
performance failure); *short*: reported as complete in far too little time; *failed*: by its cause.
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
DEVIATIONS = 5.0  # robust deviations from the median that slow and short runs need, too
MIN_RUNS = 5
STEPS = (1.0, 0.1, 0.01, 0.001)  # seconds to which times may be rounded


class RunSample(NamedTuple):
    """One run of a test.

    ``seconds``: elapsed. ``cause``: why it failed, or "". ``limit``: its walltime in seconds.
    ``start``: in any unit. None means unknown.
    """

    name: str
    seconds: float | None
    cause: str = ""
    limit: float | None = None
    nodes: Sequence[str] = ()
    start: float | None = None


class Outlier(Struct, frozen=True):
    """A run that differs from the others, its class, and the reason in words."""

    run: str
    kind: Class
    why: str


class Outliers(Struct, frozen=True):
    """The outliers among ``runs`` runs, ``complete`` of which are complete.

    ``median`` and ``noise`` (a robust standard deviation): of the complete runs, in seconds.
    ``why``: the reason why slow and short runs could not be found, or "".
    """

    outliers: list[Outlier]
    runs: int
    complete: int
    median: float | None
    noise: float | None
    why: str = ""

    def of(self, kind: Class) -> list[Outlier]:
        return [outlier for outlier in self.outliers if outlier.kind == kind]


class SharedByOutliers(Struct, frozen=True):
    """Nodes, groups and spans of time that outliers share."""

    nodes: suspects.Suspects
    spans: list[BadSpan]


def classify(runs: Sequence[RunSample]) -> Outliers:
    """Return the outliers among the runs of one test; all should take the same time."""
    times = [seconds for run in runs if (seconds := _complete(run)) is not None]
    few = len(times) < MIN_RUNS
    middle = median(times) if times else None
    noise = _deviation(times, middle) if middle is not None and not few else None
    outliers = []
    for run in runs:
        outlier = _ended(run)
        if outlier is None and middle is not None and noise is not None:
            outlier = _timed(run, middle, noise)
        if outlier is not None:
            outliers.append(outlier)
    reason = ""
    if few:
        reason = f"{len(times)} runs are complete; what is slow is told among {MIN_RUNS} or more"
    return Outliers(outliers, len(runs), len(times), middle, noise, reason)


def shared(
    runs: Sequence[RunSample], found: Outliers, groups: Mapping[str, Sequence[str]] | None = None
) -> SharedByOutliers:
    """Return the nodes, groups and times that explain the outliers better than chance does."""
    bad = {outlier.run for outlier in found.outliers}
    jobs = [suspects.RunOnNodes(run.nodes, run.name in bad) for run in runs if run.nodes]
    timed = sorted((run.start, run.name in bad) for run in runs if run.start is not None)
    return SharedByOutliers(suspects.find(jobs, groups), spans(timed))


def _complete(run: RunSample) -> float | None:
    """Return the elapsed seconds of a complete run that did not end at its limit, else None."""
    usable = run.seconds is not None and math.isfinite(run.seconds) and not run.cause
    return run.seconds if usable and not _at_limit(run) else None


def _at_limit(run: RunSample) -> bool:
    return bool(run.limit and run.seconds is not None and run.seconds >= AT_LIMIT * run.limit)


def _deviation(times: Sequence[float], middle: float) -> float:
    """Return a robust standard deviation.

    If more than half of the times are equal, their rounding hides a median deviation of up to half
    a step, which is taken instead.
    """
    robust = MAD_TO_SIGMA * median(abs(time - middle) for time in times)
    return robust or MAD_TO_SIGMA * _step(times) / 2


def _step(times: Sequence[float]) -> float:
    """Return the step in seconds to which all the times are rounded, or 0."""
    for step in STEPS:
        if all(math.isclose(time, round(time / step) * step, abs_tol=1e-9) for time in times):
            return step
    return 0.0


def _ended(run: RunSample) -> Outlier | None:
    """Return the run as an outlier if it ended at its limit or failed."""
    if _at_limit(run):
        return Outlier(run.name, "walltime", f"{run.seconds:g} s of {run.limit:g} s")
    if run.cause:
        return Outlier(run.name, "failed", run.cause)
    return None


def _timed(run: RunSample, middle: float, noise: float) -> Outlier | None:
    """Return the run as an outlier if it is slow or short."""
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
