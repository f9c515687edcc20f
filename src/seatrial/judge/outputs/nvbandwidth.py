"""nvbandwidth: bandwidths and latencies between the CPU and GPUs, and between GPUs.

Running host_to_device_memcpy_ce.
memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)
           0         1
 0     55.36     55.29

SUM host_to_device_memcpy_ce 110.65
NOTE: The reported results may not reflect the full capabilities of the platform.
"""

import re

from seatrial.judge.formats import once
from seatrial.model.figures import MetricValue, number, shown
from seatrial.units import Better

_TITLE = re.compile(r"^nvbandwidth Version: v?\d", re.MULTILINE)
_END = re.compile(r"^NOTE: The reported results may not reflect ", re.MULTILINE)
_FAILED = re.compile(r"^(?:error|not found|assertion)\b.*", re.MULTILINE | re.IGNORECASE)
_RUNNING = re.compile(r"^Running (\w+)\.[ \t]*$", re.MULTILINE)
_MATRIX = re.compile(r"^[^\n:]{1,200} \((GB/s|ns)\)[ \t]*\n", re.MULTILINE)
_SUM = re.compile(r"^(?:SUM|&&&& PERF) (\w+) (\S+)(?: [+-](?:GB/s|ns))?[ \t]*\n", re.MULTILINE)
_FIGURES: dict[str, tuple[str, Better]] = {
    "GB/s": ("bandwidth", "higher"),
    "ns": ("latency", "lower"),
}
_ROW = re.compile(r"[0-9]+(?:->[0-9]+)?")
_CELL = re.compile(r"N/A|[0-9]+\.[0-9]+")  # a row that has another is found by the sum
_ROUNDED = 0.006  # of each value

Labels = dict[str, int | str]


def parse(text: str) -> list[MetricValue]:
    """Return bandwidth (or latency) of each pair, labelled ``testcase`` (as its sum is called),
    ``row`` and ``column``, and bandwidth_sum (latency_sum). Pairs that say N/A, or 0.00, have no
    figure. Raises ValueError with the reason if a test case failed, or a matrix is not whole, or
    its sum is another one."""
    once(_TITLE, text, "title 'nvbandwidth Version:'")
    once(_END, text, "closing line 'NOTE: The reported results'")
    if failed := _FAILED.search(text):
        raise ValueError(f"nvbandwidth says {shown(failed[0])}")
    before, *runs = _RUNNING.split(text)
    if _SUM.search(before):
        raise ValueError("the line 'Running ...' of its first test case is missing, or not whole")
    figures: list[MetricValue] = []
    for testcase, block in zip(runs[::2], runs[1::2], strict=True):
        _, *matrices = _MATRIX.split(block)
        if not matrices or len(_SUM.findall(block)) != len(matrices) // 2:
            raise ValueError(f"it has no whole matrix of {shown(testcase)}")
        for unit, matrix in zip(matrices[::2], matrices[1::2], strict=True):
            figures += _of_matrix(matrix, unit)
    if not figures:
        raise ValueError("it has no figures: no test case was run")
    return figures


def _of_matrix(text: str, unit: str) -> list[MetricValue]:
    """Return the figures of a matrix: a line of columns, a line for each row, and the sum."""
    what, better = _FIGURES[unit]
    total = once(_SUM, text, "line 'SUM'")
    columns: list[str] = []
    figures: list[MetricValue] = []
    for words in map(str.split, text[: total.start()].split("\n")):
        if not columns and all(map(str.isdecimal, words)):
            columns = words
            continue
        row, cells = "".join(words[: -len(columns)]), words[-len(columns) :]
        if columns and _ROW.fullmatch(row) and all(map(_CELL.fullmatch, cells)):
            for column, cell in zip(columns, cells, strict=True):
                labels: Labels = {"testcase": total[1], "row": row, "column": column}
                value = 0.0 if cell == "N/A" else number(cell)
                if value:
                    figures.append(MetricValue(what, value, unit, better, labels=labels))
    return [*figures, _sum(total, figures, unit)]


def _sum(total: re.Match[str], figures: list[MetricValue], unit: str) -> MetricValue:
    """Return the sum of a matrix. Raises ValueError if its values give another one."""
    what, better = _FIGURES[unit]
    value, added = number(total[2]), sum(figure.value for figure in figures)
    if abs(value - added) > _ROUNDED * (len(figures) + 1):
        raise ValueError(f"it says {total[0].strip()}, but its matrix gives {added:.2f}")
    return MetricValue(f"{what}_sum", value, unit, better, labels={"testcase": total[1]})
