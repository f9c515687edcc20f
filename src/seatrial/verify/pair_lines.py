"""The figures of pairs of ranks in an output of the probe ``pingpong``.

pair 0 1 nodes n001 n002 cpus 0 1 latency 0.42 us bandwidth 9211.0 MiB/s
"""

from __future__ import annotations

import re
from typing import NamedTuple

from seatrial.verify.reading import plain

END = "pingpong finished, all messages correct"
_LINE = re.compile(
    r"pair (\d+) (\d+) nodes (\S+) (\S+) cpus (-?\d+) (-?\d+) "
    r"latency ([\d.]+) us bandwidth ([\d.]+) MiB/s"
)


class PairLine(NamedTuple):
    """Two ranks with their nodes and CPUs; latency in us, bandwidth in MiB/s."""

    ranks: tuple[int, int]
    nodes: tuple[str, str]
    cpus: tuple[int, int]
    latency: float
    bandwidth: float


def pair_lines(text: str) -> list[PairLine]:
    """Return the pairs of a whole output. Raises ValueError with the line that is none, or if the
    closing line is missing."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.startswith("pair "):
            continue
        match = _LINE.fullmatch(line.strip())
        if match is None or not (float(match[7]) > 0 and float(match[8]) > 0):
            raise ValueError(f"line {number} has no figures of a pair: {plain(line)[:100]}")
        i, j, a, b, x, y, latency, bandwidth = match.groups()
        ends = (int(i), int(j)), (a, b), (int(x), int(y))
        found.append(PairLine(*ends, float(latency), float(bandwidth)))
    if not found:
        raise ValueError("it has no line `pair ...` of the probe pingpong")
    if END not in text:
        raise ValueError(f"its closing line {END!r} is missing")
    return found
