"""nccl-tests and rccl-tests: time and bandwidths of each size, out of place and in place.

#       size         count      type   redop    root     time   algbw   busbw #wrong     time ...
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us) ...
    16777216       4194304     float     sum      -1    179.5   93.47  140.20      0    178.5 ...
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 70.30

Rows of 0 bytes, which nccl-tests prints where a size is too small for the ranks, have no figures.
"""

import re
from collections.abc import Iterator
from statistics import fmean

from seatrial.judge.formats import is_row, not_rows, once
from seatrial.model.figures import MetricValue, number, shown
from seatrial.units import Better

_TITLE = re.compile(r"^# nThread \d+ nGpus \d+ minBytes ", re.MULTILINE)
_HEAD = re.compile(r"^#[ \t]+size[ \t]+count[ \t]+type\b.*", re.MULTILINE)
_WRONG = re.compile(r"^# Out of bounds values[ \t]*: (\d+) (OK|FAILED)[ \t]*$", re.MULTILINE)
_AVERAGE = re.compile(
    r"^# Avg bus bandwidth[ \t]*:[ \t]*(\S+)(?:[ \t]+(?:OK|FAILED))?[ \t]*\n", re.MULTILINE
)
_TIMES = ("time", "cputime")
_OF_SIZE: dict[str, tuple[str, Better]] = {  # of each of the two places
    "time": ("us", "lower"),
    "cputime": ("us", "lower"),
    "algbw": ("GB/s", "higher"),
    "busbw": ("GB/s", "higher"),
}
_PLACES = ("out", "in")
_NO_LABEL = ("none", "-1")  # of redop, of root
_ROUNDED, _AGREES = 0.02, 0.02

Labels = dict[str, int | str]


def parse(text: str) -> list[MetricValue]:
    """Return time, algbw and busbw, labelled ``bytes``, ``type``, ``redop``, ``root`` (as far as
    the collective has them) and ``place`` (out or in), and busbw_avg. Raises ValueError with the
    reason if a row or a closing line is missing, or a value was wrong. Without validation (``-c
    0``) nothing was checked, and N/A stands for the number of wrong values."""
    once(_TITLE, text, "title '# nThread ...'")
    head = once(_HEAD, text, "head of its table")
    judged = once(_WRONG, text, "line '# Out of bounds values'")
    wrong, verdict = judged.groups()
    if wrong.strip("0") or verdict != "OK":
        raise ValueError(f"nccl-tests says: out of bounds values {wrong} {verdict}")
    average = number(once(_AVERAGE, text, "closing line '# Avg bus bandwidth'")[1])
    figures: list[MetricValue] = []
    rates: list[float] = []
    for line in filter(is_row, text[head.end() : judged.start()].split("\n")):
        labels, values = _row(head[0].split()[1:], line)
        rates += [value for _, column, value in values if column == "busbw"]
        if labels["bytes"]:
            figures += [
                MetricValue(column, value, *_OF_SIZE[column], labels={**labels, "place": place})
                for place, column, value in values
            ]
    if not figures:
        raise ValueError("its table has no row of more than 0 bytes")
    if abs(fmean(rates) - average) > _ROUNDED + _AGREES * average:
        raise ValueError(f"it says an average of {average:g} GB/s, but its rows {fmean(rates):.4g}")
    return [MetricValue("busbw_avg", average, "GB/s", "higher"), *figures]


def unknown_lines(text: str) -> Iterator[str]:
    """Yield the lines among the rows that are passed over, without those of NCCL_DEBUG=INFO."""
    head, end = _HEAD.search(text), _WRONG.search(text)
    if head and end:
        lines = not_rows(text[head.end() : end.start()].split("\n"))
        yield from (line for line in lines if " NCCL INFO " not in line)


def _row(columns: list[str], line: str) -> tuple[Labels, list[tuple[str, str, float]]]:
    """Return the labels of a row, and its figures with place and column. Raises ValueError if it is
    not whole, or a value was wrong."""
    first = next((i for i, column in enumerate(columns) if column in _TIMES), 0)
    words = line.split()
    if "timestamp" in columns:  # a date and a time
        columns, words = columns[: columns.index("timestamp")], words[:-2]
    if columns[:3] != ["size", "count", "type"] or not first:
        raise ValueError(f"the head of its table is not known: {shown(' '.join(columns))}")
    measured = len(columns) - first
    named = columns[3:first]  # redop and root; older versions leave both blank for some collectives
    if len(words) not in (len(columns), 3 + measured) or not words[0].isdecimal():
        raise ValueError(f"it should have {len(columns)} columns: {shown(line)}")
    labels: Labels = {"bytes": int(words[0][:18]), "type": words[2]}
    given = zip(named, words[3:-measured], strict=False)
    labels |= {name: word for name, word in given if word not in _NO_LABEL}
    return labels, _figures(columns[first:], words[-measured:], line)


def _figures(columns: list[str], words: list[str], line: str) -> list[tuple[str, str, float]]:
    figures = []
    both = sum(column in _TIMES for column in columns) > 1
    places = iter(_PLACES if both else _PLACES[1:])
    place = ""
    for column, word in zip(columns, words, strict=True):
        if column in _TIMES:
            place = next(places, "")
            if number(word) <= 0:
                raise ValueError(f"a row of its table is not whole: {shown(line)}")
        if column in ("#wrong", "error"):
            _require_right(column, word, line)
        elif column in _OF_SIZE:
            figures.append((place, column, number(word)))
        elif not column.startswith("i_"):  # of each iteration
            raise ValueError(f"it has a column that is not known: {shown(column)}")
    return figures


def _require_right(column: str, word: str, line: str) -> None:
    """Raise ValueError if a number of wrong values is not 0. The ``error`` of versions before 2.12
    is the greatest deviation, which the line of values out of bounds judges."""
    if word == "N/A":
        return
    if column == "#wrong" and ("." in word or number(word) != 0):
        row = " ".join(line.split())
        raise ValueError(f"a value was wrong: #wrong is {word} in the row {shown(row)}")
    number(word)
