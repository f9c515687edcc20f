"""Figures that a check script writes to metrics.txt, as for the OLCF Test Harness.

A figure a line, ``name = value``. Empty lines, those that begin with #, and values that are text
are passed over, as the harness does; a value that begins like a number must be one. Blanks in a
name become _, as there. The harness has no units and no directions: a figure has the unit 1, and no
direction is better.

Where the verdict is that of a check script with ``codes: oth``, lines that are no figures are
noticed and change nothing: in the harness the code of its check is the verdict.
"""

import re
from collections import Counter

from seatrial.model.figures import MetricValue, shown

FILE = "metrics.txt"

_NUMBER = re.compile(r"-?([0-9]*\.)?[0-9]+([eE][+-]?[0-9]+)?", re.ASCII)  # as OTH's apptest.py
_LIKE_A_NUMBER = re.compile(r"[-+.]?[0-9*]|[-+]?(nan|inf)", re.ASCII | re.IGNORECASE)


def parse(text: str) -> list[MetricValue]:
    """Return the figures in their order. Raises ValueError with the line that is none, or cut."""
    figures, faults = read_lines(text)
    if faults:
        raise ValueError(faults[0])
    return figures


def read_lines(text: str) -> tuple[list[MetricValue], list[str]]:
    """Return the figures in their order, and the fault of each line that should be one."""
    if not text.endswith("\n"):
        return [], ["it is empty, or its last line is cut: end each line with a newline"]
    figures, faults = [], []
    for place, line in enumerate(text.splitlines(), 1):
        written = line.strip()
        if not written or written.startswith("#"):
            continue
        name, _, value = map(str.strip, written.partition("="))
        if not name or written.count("=") != 1:
            faults.append(f"line {place}: {shown(written)} is not `name = value`")
        elif _NUMBER.fullmatch(value):
            figures.append(MetricValue("_".join(name.split()), float(value), "1", "none"))
        elif _LIKE_A_NUMBER.match(value):
            faults.append(f"line {place}: {shown(value)} of {shown(name)} is not a number")
    return figures, faults


def read_as_harness(text: str) -> tuple[list[MetricValue], list[str]]:
    """Return what the harness takes from a file whose check has passed: the figures of the lines
    that are some, of one name the last, and the faults of the others. A last line that is cut is
    one."""
    figures, faults = read_lines(text if text.endswith("\n") else f"{text}\n")
    by_name = {figure.name: figure for figure in figures}
    twice = [name for name, number in Counter(each.name for each in figures).items() if number > 1]
    faults += [f"{shown(name)} is there twice: the last one counts" for name in twice]
    return list(by_name.values()), faults
