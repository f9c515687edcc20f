"""HPCG 3: the rating of HPCG-Benchmark_*.txt (3.1) or .yaml (3.0), which the script prints.

GB/s Summary::Raw Total B/W=7.4
GFLOP/s Summary::Total with convergence and optimization phase overhead=0.974
Final Summary::HPCG result is VALID with a GFLOP/s rating of=0.974
Final Summary::HPCG 2.4 rating for historical reasons is=0.98
"""

import re

from seatrial.judge.formats import once
from seatrial.model.figures import MetricValue, number, shown

FIGURES = ("rate", "bandwidth")

# Intel's have blanks around the name of a section.
_SUMMARY = r"(?:[ \t]*Final Summary[ \t]*::|[ \t])"
_RESULT = re.compile(
    rf"^(?:{_SUMMARY}[ \t]*)?HPCG result is[ \t]*=?[ \t]*(VALID|INVALID)"
    r"(?: with a GFLOP/s rating of[ \t]*[=:][ \t]*(\S+))?(.*)\n",
    re.MULTILINE,
)
_AFTER = re.compile(rf"^{_SUMMARY}[ \t]*\S.*[=:].*\n", re.MULTILINE)
# Intel's prints its rating on the screen, too, where there is no sign between.
_ON_SCREEN = re.compile(
    r"^HPCG result is VALID with a GFLOP/s rating of ([0-9]\S*)[ \t]*\n", re.MULTILINE
)
_AGREES = 1e-4
_BANDWIDTH = re.compile(
    r"^(?:[ \t]*GB/s Summary[ \t]*::|[ \t])[ \t]*Raw Total B/W[ \t]*[=:][ \t]*(\S+)[ \t]*\n",
    re.MULTILINE,
)


def parse(text: str) -> list[MetricValue]:
    """Return rate (the rating) and bandwidth (the raw total). Raises ValueError with the reason if
    the result is not valid, or the file ends before it."""
    on_screen = _ON_SCREEN.findall(text)
    text = _ON_SCREEN.sub("", text)
    result = once(_RESULT, text, "line 'HPCG result is ...'")
    if result[1] != "VALID":
        raise ValueError("HPCG says that its result is INVALID")
    if result[2] is None or result[3].strip():
        raise ValueError(f"its rating is not whole: {shown(result[0].strip())}")
    if not _AFTER.search(text, result.end()):
        raise ValueError("its final summary ends with the rating: it is not whole")
    bandwidth = once(_BANDWIDTH, text, "line 'Raw Total B/W'")
    rate = number(result[2])
    if other := [each for each in on_screen if abs(number(each) - rate) > _AGREES * rate]:
        raise ValueError(f"it has two ratings, {result[2]} and {shown(other[0])}")
    return [
        MetricValue("rate", rate, "Gflop/s", "higher"),
        MetricValue("bandwidth", number(bandwidth[1]), "GB/s", "higher"),
    ]
