"""STREAM 5 (C, Fortran or MPI): the best rate of each kernel, in MB/s of 10^6 bytes.

Function    Best Rate MB/s  Avg time     Min time     Max time
Triad:           5693.6     0.023418     0.021076     0.028006
Solution Validates: avg error less than 1.000000e-13 on all three arrays
"""

import re

from seatrial.judge.formats import UniqueValues
from seatrial.model.figures import MetricValue, number, shown

KERNELS = ("Copy", "Scale", "Add", "Triad")
FIGURES = tuple(kernel.lower() for kernel in KERNELS)

# Blanks only between the columns: \s would run across lines.
_ROW = re.compile(
    r"^(Copy|Scale|Add|Triad):[ \t]+(\S+)[ \t]+\S+[ \t]+\S+[ \t]+\S+[ \t]*$", re.MULTILINE
)
_RATE = re.compile(r"^Function[ \t]+(?:Best )?Rate[ \t]+\(?(\S*?)\)?[ \t]", re.MULTILINE)


def parse(text: str) -> list[MetricValue]:
    """Return the figures copy, scale, add and triad. Raises ValueError with the reason if one is
    missing, repeated or not finite, or STREAM did not validate them."""
    if "Failed Validation" in text:
        raise ValueError("STREAM says 'Failed Validation'")
    for header in _RATE.finditer(text):
        if header[1] != "MB/s":
            raise ValueError(f"its rates are in {shown(header[1])}, not in MB/s as STREAM's are")
    rates: UniqueValues[float] = UniqueValues()
    for kernel, rate in _ROW.findall(text):
        rates[kernel] = number(rate)
    if "Solution Validates" not in text:
        raise ValueError("its closing line 'Solution Validates' is missing")
    return [MetricValue(kernel.lower(), rates[kernel], "MB/s", "higher") for kernel in KERNELS]
