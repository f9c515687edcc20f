"""Graph500 (reference code 2 and 3): traversed edges per second and times of BFS and SSSP.

construction_time:              8.21669
bfs  median_time:               1.54229
bfs  harmonic_mean_TEPS:     !  2.71366e+09
bfs  stddev_validate:           0
"""

import re

from seatrial.judge.formats import UniqueValues, end_whole, whole
from seatrial.model.figures import MetricValue, number, shown

KERNELS = ("bfs", "sssp")
FIGURES = (
    "construction_time",
    *(f"{kernel}_{what}" for kernel in KERNELS for what in ("harmonic_mean", "median_time")),
)

# Before version 3 there was BFS alone, and no prefix.
_LINE = re.compile(r"(?:(bfs|sssp)[ \t]+)?(\w+):[ \t]*(?:![ \t]*)?(\S+)[ \t]*")
_KEY = re.compile(r"(?:(?:bfs|sssp)[ \t]+)?(?:\w+_(?:TEPS|time|validate)|NBFS):")
# Printed while it runs, in seconds; the list at the end has the same figure without a unit.
_PROGRESS = re.compile(r"construction_time:[ \t]*\S+[ \t]+s[ \t]*")
_FAILED = re.compile(r"^.*\bvalidation (?:failed|error).*$", re.MULTILINE | re.IGNORECASE)


def parse(text: str) -> list[MetricValue]:
    """Return construction_time, bfs_harmonic_mean and bfs_median_time, and those of sssp if it was
    run. Raises ValueError with the reason if a validation failed, or the list of a kernel's figures
    is not complete: it ends with harmonic_stddev_TEPS and stddev_validate."""
    if failed := _FAILED.search(text):
        raise ValueError(f"Graph500 says {shown(failed[0].strip())}")
    end_whole(text)
    values: UniqueValues[str] = UniqueValues()
    for line in filter(_KEY.match, text.split("\n")):
        if _PROGRESS.fullmatch(line):
            continue
        kernel, name, value = whole(_LINE, line).groups()
        values[name if name == "construction_time" else f"{kernel or 'bfs'} {name}"] = value
    figures = [MetricValue("construction_time", number(values["construction_time"]), "s", "lower")]
    for kernel in KERNELS:
        if kernel == "bfs" or any(key.startswith(kernel) for key in values):
            figures += _of_kernel(kernel, values)
    return figures


def _of_kernel(kernel: str, values: UniqueValues[str]) -> list[MetricValue]:
    teps = number(values[f"{kernel} harmonic_mean_TEPS"])
    time = number(values[f"{kernel} median_time"])
    number(values[f"{kernel} harmonic_stddev_TEPS"])
    if any(key.endswith("_validate") for key in values):
        number(values[f"{kernel} stddev_validate"])
    if teps <= 0 or time <= 0:
        raise ValueError(f"a figure of {kernel} is not positive")
    return [
        MetricValue(f"{kernel}_harmonic_mean", teps, "TEPS", "higher"),
        MetricValue(f"{kernel}_median_time", time, "s", "lower"),
    ]
