"""High-Performance Linpack: rate and time of every system that was solved, and the best rate.

WC11C2R4        3520    80     1     2              19.36              1.503e+00
||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=        0.0056546 ...... PASSED
End of Tests.
"""

import re

from seatrial.judge.formats import once
from seatrial.model.figures import MetricValue, number, shown

_ROW = re.compile(r"W[RC]\w+[ \t]")
_RESIDUAL = re.compile(r"=[ \t]*(\S+)[ \t]+\.{4,6}[ \t]+(\w+)[ \t]*$")
_FINISHED = re.compile(r"^Finished[ \t]+(\d+) tests with the following results:", re.MULTILINE)
_PASSED = re.compile(r"^[ \t]+(\d+) tests completed and passed residual checks,", re.MULTILINE)
_END = re.compile(r"^End of Tests\.", re.MULTILINE)
_UNCHECKED = "it has a result without a residual that passed"


def parse(text: str) -> list[MetricValue]:
    """Return rate and time, labelled ``variant``, ``n``, ``nb``, ``p`` and ``q``, and best, the
    highest rate. Raises ValueError with the reason if a residual was not checked or did not pass,
    or the closing lines are missing or give other counts."""
    once(_END, text, "closing line 'End of Tests.'")
    finished = int(once(_FINISHED, text, "line 'Finished ... tests'")[1][:9])
    passed = int(once(_PASSED, text, "line of tests that passed")[1][:9])
    if not finished or passed != finished:
        raise ValueError(f"{passed} of its {finished} tests passed the residual checks")
    figures: list[MetricValue] = []
    rates: list[float] = []
    checked = 0
    for line in text.split("\n"):
        if _ROW.match(line):
            if checked < len(rates):
                raise ValueError(_UNCHECKED)
            figures += _row(line)
            rates.append(figures[-1].value)
        elif residual := _RESIDUAL.search(line[-200:]):
            number(residual[1])
            if residual[2] != "PASSED":
                raise ValueError(f"a residual check says {shown(residual[2])}")
            checked = len(rates)
    if checked < len(rates):
        raise ValueError(_UNCHECKED)
    if len(rates) != finished:
        raise ValueError(f"it has {len(rates)} results, and says that {finished} tests finished")
    return [MetricValue("best", max(rates), "Gflop/s", "higher"), *figures]


def _row(line: str) -> list[MetricValue]:
    cells = line.split("(")[0].split()  # some builds add the rate of one device in parentheses
    if len(cells) != 7 or not all(cell.isdecimal() for cell in cells[1:5]):
        raise ValueError(f"a result is not whole: {shown(line)}")
    variant, n, nb, p, q = cells[0], *(int(cell[:18]) for cell in cells[1:5])
    labels: dict[str, int | str] = {"variant": variant, "n": n, "nb": nb, "p": p, "q": q}
    return [
        MetricValue("time", number(cells[5]), "s", "lower", labels=labels),
        MetricValue("rate", number(cells[6]), "Gflop/s", "higher", labels=labels),
    ]
