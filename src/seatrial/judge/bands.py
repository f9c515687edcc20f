"""The figures of pairs of ranks in an output of the probe ``pingpong``.

    pair 0 1 nodes n1 n2 cpus 0 1 latency 0.42 us (0.41..0.44) bandwidth 921.0 MiB/s (919.2..924.1)

The intervals hold the medians of a pair's repetitions with 95 % or more. They are missing for fewer
than six repetitions, and in outputs of older versions of the probe.
"""

import re
from typing import NamedTuple

from seatrial.escaping import plain
from seatrial.judge.launcher_labels import without_labels

END = "pingpong finished, all messages correct"
Interval = tuple[float, float]
_INTERVAL = r"(?: \((\d+\.\d+)\.\.(\d+\.\d+)\))?"
_LINE = re.compile(
    r"pair (\d+) (\d+) nodes (\S+) (\S+) cpus (-?\d+) (-?\d+) "
    rf"latency ([\d.]+) us{_INTERVAL} bandwidth ([\d.]+) MiB/s{_INTERVAL}"
)


class PairLine(NamedTuple):
    """Two ranks with their nodes and CPUs; latency in us, bandwidth in MiB/s, and their intervals
    (None where the output has none)."""

    ranks: tuple[int, int]
    nodes: tuple[str, str]
    cpus: tuple[int, int]
    latency: float
    bandwidth: float
    latency_interval: Interval | None = None
    bandwidth_interval: Interval | None = None


def pair_lines(text: str) -> list[PairLine]:
    """Return the pairs of a whole output. Raises ValueError with the line that is none, or if the
    closing line is missing."""
    pairs = []
    text, _ = without_labels(text)
    for number, line in enumerate(text.splitlines(), 1):
        if not line.startswith("pair "):
            continue
        match = _LINE.fullmatch(line.strip())
        if match is None or not all(float(one) > 0 for one in match.groups()[6:] if one):
            raise ValueError(f"line {number} has no figures of a pair: {plain(line)[:100]}")
        i, j, a, b, x, y, latency, *between, bandwidth, low, high = match.groups()
        ends = (int(i), int(j)), (a, b), (int(x), int(y))
        figures = float(latency), float(bandwidth)
        pairs.append(PairLine(*ends, *figures, _interval(*between), _interval(low, high)))
    if not pairs:
        raise ValueError("it has no line `pair ...` of the probe pingpong")
    if END not in text:
        raise ValueError(f"its closing line {END!r} is missing")
    return pairs


def _interval(low: str | None, high: str | None) -> Interval | None:
    return None if low is None or high is None else (float(low), float(high))
