"""Find the runs of a test that differ from the others.

classify(runs).outliers     # [Outlier(run="r17", kind="slow", why=...), ...]

Classes: *walltime*: it ended at its limit; *slow*: complete, but far slower than the others (a
performance failure); *short*: reported as complete in far too little time; *failed*: by its cause.
"""

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

from msgspec import Struct

from seatrial.lazy import statistics
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

    ``seconds``: elapsed. ``cause``: why it failed, or "". ``limit``: its walltime in seconds. None
    means unknown.
    """

    name: str
    seconds: float | None
    cause: str = ""
    limit: float | None = None


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


def classify(runs: Sequence[RunSample]) -> Outliers:
    """Return the outliers among the runs of one test; all should take the same time."""
    complete = [run.seconds for run in runs if not run.cause and not _at_limit(run)]
    times = [time for time in complete if time is not None and math.isfinite(time)]
    few = len(times) < MIN_RUNS
    middle = statistics.median(times) if times else None
    noise = _deviation(times, middle) if middle is not None and not few else None
    outliers = [outlier for run in runs if (outlier := _outlier(run, middle, noise))]
    reason = ""
    if few:
        reason = f"{len(times)} runs are complete; what is slow is told among {MIN_RUNS} or more"
    return Outliers(outliers, len(runs), len(times), middle, noise, reason)


def _at_limit(run: RunSample) -> bool:
    return bool(run.limit and run.seconds is not None and run.seconds >= AT_LIMIT * run.limit)


def _deviation(times: Sequence[float], middle: float) -> float:
    """Return a robust standard deviation.

    If more than half of the times are equal, their rounding hides a median deviation of up to half
    a step, which is taken instead.
    """
    robust = MAD_TO_SIGMA * statistics.median(abs(time - middle) for time in times)
    return robust or MAD_TO_SIGMA * _step(times) / 2


def _step(times: Sequence[float]) -> float:
    """Return the step in seconds to which all the times are rounded, or 0."""
    for step in STEPS:
        if all(math.isclose(time, round(time / step) * step, abs_tol=1e-9) for time in times):
            return step
    return 0.0


def _outlier(run: RunSample, middle: float | None, noise: float | None) -> Outlier | None:
    """Return the run as an outlier, or None.

    ``middle`` and ``noise``: of the complete runs, None if unknown.
    """
    if _at_limit(run):
        return Outlier(run.name, "walltime", f"{run.seconds:g} s of {run.limit:g} s")
    if run.cause:
        return Outlier(run.name, "failed", run.cause)
    if middle is None or noise is None or run.seconds is None or not math.isfinite(run.seconds):
        return None
    away, text = run.seconds - middle, f"{run.seconds:g} s; the median is {middle:g} s"
    if abs(away) <= DEVIATIONS * noise:
        return None
    if away > SLOW * middle:
        return Outlier(run.name, "slow", text)
    return Outlier(run.name, "short", text) if run.seconds < SHORT * middle else None
