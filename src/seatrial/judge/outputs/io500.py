"""IO500: the twelve phases and the score, as printed and in result_summary.txt.

[RESULT]       ior-easy-write        1.234567 GiB/s : time 300.123 seconds
[SCORE ] Bandwidth 0.9 GiB/s : IOPS 12.1 kiops : TOTAL 3.3

bandwidth is the fourth root of the product of the four IOR phases, iops the eighth root of that of
the eight others, score the square root of the product of both.
"""

import re
from math import prod, sqrt

from seatrial.judge.formats import UniqueValues, once, whole
from seatrial.model.figures import MetricValue, number

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
_UNITS = dict.fromkeys(BANDWIDTH, "GiB/s") | dict.fromkeys(METADATA, "kIOPS")

_PHASE = re.compile(
    r"\[RESULT\][ \t]+(\S+)[ \t]+(\S+) (GiB/s|kIOPS)[ \t]+: time (\S+) seconds( \[INVALID\])?[ \t]*"
)
_SCORE = re.compile(r"^\[SCORE ?\].*\n", re.MULTILINE)
_PRINTED = re.compile(
    r"\[SCORE ?\][ \t]+Bandwidth (\S+) GiB/s[ \t]+: IOPS (\S+) kiops[ \t]+: TOTAL (\S+)"
    r"( \[INVALID\])?[ \t]*\n"
)
_AGREES = 0.01


def parse(text: str) -> list[MetricValue]:
    """Return each phase, bandwidth, iops and score. Raises ValueError with the reason if a phase is
    missing, invalid or zero, or the score does not follow from the phases."""
    phases: UniqueValues[float] = UniqueValues()
    for line in text.split("\n"):
        if not line.startswith("[RESULT]"):
            continue
        name, value, unit, _, invalid = whole(_PHASE, line).groups()
        if name not in _UNITS:
            continue  # of an extended run
        if unit != _UNITS[name]:
            raise ValueError(f"{name} is in {unit}")
        if invalid:
            raise ValueError(f"{name} is INVALID, IO500 says")
        phases[name] = number(value)
        if phases[name] <= 0:
            raise ValueError(f"{name} is {value}: that phase did not run")
    return [
        *(MetricValue(name, phases[name], unit, "higher") for name, unit in _UNITS.items()),
        *_score(text, phases),
    ]


def _score(text: str, phases: UniqueValues[float]) -> list[MetricValue]:
    *printed, invalid = whole(_PRINTED, once(_SCORE, text, "line '[SCORE ]'")[0]).groups()
    if invalid:
        raise ValueError("its score is INVALID, IO500 says")
    bandwidth = prod(phases[name] ** (1 / len(BANDWIDTH)) for name in BANDWIDTH)
    iops = prod(phases[name] ** (1 / len(METADATA)) for name in METADATA)
    values = (bandwidth, iops, sqrt(bandwidth * iops))
    figures = []
    for name, unit, value, word in zip(
        ("bandwidth", "iops", "score"), ("GiB/s", "kIOPS", "1"), values, printed, strict=True
    ):
        figure = MetricValue(name, number(word), unit, "higher")
        if abs(figure.value - value) > _AGREES * value:
            raise ValueError(f"it says {name} {figure.value:g}, but its phases give {value:g}")
        figures.append(figure)
    return figures
