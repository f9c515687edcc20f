"""The probe collectives: time of a barrier, and of bcast, allreduce, alltoall over message sizes.

bcast bytes 8 ranks min 0.12 avg 0.25 max 0.37 us slowest min 0.37 median 0.65 max 3.23 us
collectives finished, all results correct
"""

import re
from collections.abc import Iterator

from seatrial.judge.formats import UniqueValues, once
from seatrial.model.figures import MetricValue, number, shown

OPERATIONS = ("bcast", "allreduce", "alltoall")
STEP = 16  # from one size to the next

_TITLE = re.compile(
    r"^collectives of \d+ ranks, \d+ repetitions, sizes (\d{1,12}) to (\d{1,12}) bytes$",
    re.MULTILINE,
)
_DONE = re.compile(r"^collectives finished, all results correct$", re.MULTILINE)
_ROW = re.compile(
    r"(barrier|bcast|allreduce|alltoall) bytes (\d+) ranks min (\S+) avg (\S+) max (\S+) us "
    r"slowest min (\S+) median (\S+) max (\S+) us"
)
_LEFT_OUT = re.compile(r"(alltoall) bytes (\d+) left out: more than \d+ bytes a rank")
_BEGINS = re.compile(r"(?:barrier|bcast|allreduce|alltoall) bytes ")


def parse(text: str) -> list[MetricValue]:
    """Return barrier, and bcast, allreduce and alltoall labelled ``bytes``: the median over the
    repetitions of the slowest rank's time. Raises ValueError with the reason if a line is
    missing or not whole."""
    title = once(_TITLE, text, "title 'collectives of'")
    done = once(_DONE, text, "closing line 'collectives finished'")
    rows: UniqueValues[float | None] = UniqueValues()
    for line in text[title.end() : done.start()].split("\n"):
        if _BEGINS.match(line):
            name, size, value = _row(line)
            rows[f"{name} of {size} bytes"] = value
    figures = [_figure("barrier", rows["barrier of 0 bytes"], {})]
    for operation in OPERATIONS:
        for size in _sizes(int(title[1]), int(title[2])):
            value = rows[f"{operation} of {size} bytes"]
            figures.append(_figure(operation, value, {"bytes": size}))
    return [figure for figure in figures if figure is not None]


def unknown_lines(text: str) -> Iterator[str]:
    """Yield the lines among the rows that are passed over."""
    title, done = _TITLE.search(text), _DONE.search(text)
    if title and done:
        lines = text[title.end() : done.start()].split("\n")
        yield from (line for line in lines if line.strip() and not _BEGINS.match(line))


def _row(line: str) -> tuple[str, int, float | None]:
    """Return the operation of a row, its bytes, and its time; None where it was left out."""
    if left_out := _LEFT_OUT.fullmatch(line):
        return left_out[1], int(left_out[2][:18]), None
    row = _ROW.fullmatch(line)
    if row is None:
        raise ValueError(f"a row is not whole: {shown(line)}")
    least, mean, most, low, middle, high = map(number, row.groups()[2:])
    if not 0 <= least <= mean + 0.01 <= most + 0.02 or not 0 <= low <= middle <= high:
        raise ValueError(f"its times cannot be: {shown(line)}")
    return row[1], int(row[2][:18]), middle


def _sizes(smallest: int, largest: int) -> Iterator[int]:
    """Yield the bytes of the rows: of whole doubles."""
    while 0 < smallest <= largest:
        yield smallest // 8 * 8
        smallest *= STEP


def _figure(name: str, value: float | None, labels: dict[str, int | str]) -> MetricValue | None:
    return None if value is None else MetricValue(name, value, "us", "lower", labels=labels)
