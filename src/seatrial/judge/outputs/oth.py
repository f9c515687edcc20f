"""Figures that a check script writes to metrics.txt, as for the OLCF Test Harness.

A figure a line, ``name = value``. Empty lines, those that begin with #, and values that are text
are passed over, as the harness does; a value that begins like a number must be one. Blanks in a
name become _, as there. The harness has no units and no directions: a figure has the unit 1, and no
direction is better.
"""

import re

from seatrial.model.figures import MetricValue, shown

FILE = "metrics.txt"

_NUMBER = re.compile(r"-?([0-9]*\.)?[0-9]+([eE][+-]?[0-9]+)?", re.ASCII)  # as OTH's apptest.py
_LIKE_A_NUMBER = re.compile(r"[-+.]?[0-9*]|[-+]?(nan|inf)", re.ASCII | re.IGNORECASE)


def parse(text: str) -> list[MetricValue]:
    """Return the figures in their order. Raises ValueError with the line that is none, or cut."""
    if not text.endswith("\n"):
        raise ValueError("it is empty, or its last line is cut: end each line with a newline")
    figures = []
    for place, line in enumerate(text.splitlines(), 1):
        written = line.strip()
        if not written or written.startswith("#"):
            continue
        name, _, value = map(str.strip, written.partition("="))
        if not name or written.count("=") != 1:
            raise ValueError(f"line {place}: {shown(written)} is not `name = value`")
        if _NUMBER.fullmatch(value):
            figures.append(MetricValue("_".join(name.split()), float(value), "1", "none"))
        elif _LIKE_A_NUMBER.match(value):
            raise ValueError(f"line {place}: {shown(value)} of {shown(name)} is not a number")
    return figures
