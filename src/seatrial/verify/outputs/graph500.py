"""Graph500 (reference code 2 and 3): traversed edges per second and times of BFS and SSSP.

construction_time:              8.21669
bfs  median_time:               1.54229
bfs  harmonic_mean_TEPS:     !  2.71366e+09
bfs  stddev_validate:           0
"""

from __future__ import annotations

import re

from seatrial.verify.figures import MetricValue, number, shown
from seatrial.verify.outputs._text import end_whole

KERNELS = ("bfs", "sssp")
FIGURES = (
    "construction_time",
    *(f"{kernel}_{what}" for kernel in KERNELS for what in ("harmonic_mean", "median_time")),
)

# Before version 3 there was BFS alone, and no prefix.
_LINE = re.compile(r"(?:(bfs|sssp)[ \t]+)?(\w+):[ \t]*(?:![ \t]*)?(\S+)[ \t]*")
_KEY = re.compile(r"(?:(?:bfs|sssp)[ \t]+)?(?:\w+_(?:TEPS|time|validate)|NBFS):")
_FAILED = re.compile(r"^.*\bvalidation (?:failed|error).*$", re.MULTILINE | re.IGNORECASE)


def parse(text: str) -> list[MetricValue]:
    """Return construction_time, bfs_harmonic_mean and bfs_median_time, and those of sssp if it was
    run. Raises ValueError with the reason if a validation failed, or the list of a kernel's figures
    is not complete: it ends with harmonic_stddev_TEPS and stddev_validate."""
    if failed := _FAILED.search(text):
        raise ValueError(f"Graph500 says {shown(failed[0].strip())}")
    end_whole(text)
    values: dict[str, str] = {}
    for line in text.split("\n"):
        if not _KEY.match(line):
            continue
        row = _LINE.fullmatch(line)
        if row is None:
            raise ValueError(f"a line of it is not whole: {shown(line)}")
        key = row[2] if row[2] == "construction_time" else f"{row[1] or 'bfs'} {row[2]}"
        if key in values:
            raise ValueError(f"it has {shown(key)} twice; judge one run at a time")
        values[key] = row[3]
    figures = [MetricValue("construction_time", _value(values, "construction_time"), "s", "lower")]
    kernels = [
        name for name in KERNELS if name == "bfs" or any(key.startswith(name) for key in values)
    ]
    for kernel in kernels:
        teps = _value(values, f"{kernel} harmonic_mean_TEPS")
        time = _value(values, f"{kernel} median_time")
        _value(values, f"{kernel} harmonic_stddev_TEPS")
        if any(key.endswith("_validate") for key in values):
            _value(values, f"{kernel} stddev_validate")
        if teps <= 0 or time <= 0:
            raise ValueError(f"a figure of {kernel} is not positive")
        figures.append(MetricValue(f"{kernel}_harmonic_mean", teps, "TEPS", "higher"))
        figures.append(MetricValue(f"{kernel}_median_time", time, "s", "lower"))
    return figures


def _value(values: dict[str, str], key: str) -> float:
    if key not in values:
        raise ValueError(f"its line {key!r} is missing")
    return number(values[key])
