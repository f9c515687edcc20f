"""IO500: the twelve phases and the score, as printed and in result_summary.txt.

[RESULT]       ior-easy-write        1.234567 GiB/s : time 300.123 seconds
[SCORE ] Bandwidth 0.9 GiB/s : IOPS 12.1 kiops : TOTAL 3.3

bandwidth is the fourth root of the product of the four IOR phases, iops the eighth root of that of
the eight others, score the square root of the product of both.
"""

from __future__ import annotations

import re
from math import prod, sqrt

from seatrial.verify.figures import MetricValue, number, shown
from seatrial.verify.outputs._text import once

BANDWIDTH = ("ior-easy-write", "ior-hard-write", "ior-easy-read", "ior-hard-read")
METADATA = (
    "mdtest-easy-write",
    "mdtest-hard-write",
    "find",
    "mdtest-easy-stat",
    "mdtest-hard-stat",
    "mdtest-easy-delete",
    "mdtest-hard-read",
    "mdtest-hard-delete",
)
FIGURES = (*BANDWIDTH, *METADATA, "bandwidth", "iops", "score")

_PHASE = re.compile(
    r"\[RESULT\][ \t]+(\S+)[ \t]+(\S+) (GiB/s|kIOPS)[ \t]+: time (\S+) seconds( \[INVALID\])?[ \t]*"
)
_SCORE = re.compile(r"^\[SCORE ?\].*\n", re.MULTILINE)
_TOLD = re.compile(
    r"\[SCORE ?\][ \t]+Bandwidth (\S+) GiB/s[ \t]+: IOPS (\S+) kiops[ \t]+: TOTAL (\S+)"
    r"( \[INVALID\])?[ \t]*\n"
)
_AGREES = 0.01


def parse(text: str) -> list[MetricValue]:
    """Return each phase, bandwidth, iops and score. Raises ValueError with the reason if a phase is
    missing, invalid or zero, or the score does not follow from the phases."""
    phases: dict[str, float] = {}
    for line in text.split("\n"):
        if not line.startswith("[RESULT]"):
            continue
        row = _PHASE.fullmatch(line)
        if row is None:
            raise ValueError(f"a line of it is not whole: {shown(line)}")
        name, unit = row[1], row[3]
        if name not in (*BANDWIDTH, *METADATA):
            continue  # of an extended run
        if name in phases:
            raise ValueError(f"it has {name} twice; judge one run at a time")
        if unit != ("GiB/s" if name in BANDWIDTH else "kIOPS"):
            raise ValueError(f"{name} is in {unit}")
        if row[5]:
            raise ValueError(f"{name} is INVALID, IO500 says")
        phases[name] = number(row[2])
        if phases[name] <= 0:
            raise ValueError(f"{name} is {row[2]}: that phase did not run")
    for name in (*BANDWIDTH, *METADATA):
        if name not in phases:
            raise ValueError(f"its phase {name} is missing, or not whole")
    return [*_phases(phases), *_score(text, phases)]


def _phases(phases: dict[str, float]) -> list[MetricValue]:
    return [
        *(MetricValue(name, phases[name], "GiB/s", "higher") for name in BANDWIDTH),
        *(MetricValue(name, phases[name], "kIOPS", "higher") for name in METADATA),
    ]


def _score(text: str, phases: dict[str, float]) -> list[MetricValue]:
    line = once(_SCORE, text, "line '[SCORE ]'")[0]
    told = _TOLD.fullmatch(line)
    if told is None:
        raise ValueError(f"its score is not whole: {shown(line)}")
    if told[4]:
        raise ValueError("its score is INVALID, IO500 says")
    bandwidth = prod(phases[name] ** (1 / len(BANDWIDTH)) for name in BANDWIDTH)
    iops = prod(phases[name] ** (1 / len(METADATA)) for name in METADATA)
    made = {"bandwidth": bandwidth, "iops": iops, "score": sqrt(bandwidth * iops)}
    figures = []
    for (name, value), text_of, unit in zip(
        made.items(), told.groups(), ("GiB/s", "kIOPS", "1"), strict=False
    ):
        figure = MetricValue(name, number(text_of), unit, "higher")
        if abs(figure.value - value) > _AGREES * value:
            raise ValueError(f"it says {name} {figure.value:g}, but its phases give {value:g}")
        figures.append(figure)
    return figures
