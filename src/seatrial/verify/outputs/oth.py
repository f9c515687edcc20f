"""Figures that a check script writes to metrics.txt, as for the OLCF Test Harness.

A figure a line, ``name = value``; empty lines and those that begin with # are passed over. The
harness has no units and no directions: a figure has the unit 1 and is not judged by its direction.
"""

from __future__ import annotations

from seatrial.verify.figures import MetricValue, number, shown

FILE = "metrics.txt"


def parse(text: str) -> list[MetricValue]:
    """Return the figures in their order. Raises ValueError with the line that is none, or cut."""
    if not text.endswith("\n"):
        raise ValueError("it is empty, or its last line is cut: end each line with a newline")
    figures = []
    for place, line in enumerate(text.splitlines(), 1):
        if not (written := line.strip()) or written.startswith("#"):
            continue
        name, equals, value = (part.strip() for part in written.partition("="))
        if not equals or not name:
            raise ValueError(f"line {place}: {shown(written)} is not `name = value`")
        try:
            figures.append(MetricValue(name, number(value), "1", "none"))
        except ValueError as error:
            raise ValueError(f"line {place}: {name}: {error}") from None
    return figures
