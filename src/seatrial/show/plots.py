"""A time line as plain text: calm, 80 columns, nothing but ASCII; shares as a row of bars.

5850 |  . ..:.  .:
     |..: ::.:::...:
5700 |             |. .:..
     |             |::.:::
     +-------------------------
      2026-03-01     2026-11-20
                   C            C confirmed, s suspect
                  a             notes
"""

import math
import sys
from collections.abc import Iterable, Sequence

from seatrial.show.page import Mark
from seatrial.units import SECOND_NS, show_number

WIDTH = 80
ROWS = 9
_FEW, _MORE, _MANY = ".", ":", "#"
GIVEN = "G"
LEGEND = "signs: . one figure, : two or three, # more; | and C confirmed change, s suspect"
BLOCKS = " ▁▂▃▄▅▆▇█"
PLAIN = " .:-=+*#@"  # if the output's encoding has no block characters


def time_line(
    points: Sequence[tuple[float, float]],
    marks: Sequence[Sequence[Mark]] = (),
    ends: tuple[str, str] = ("", ""),
    width: int = WIDTH,
    given: Sequence[tuple[float, float]] = (),
) -> list[str]:
    """Return the lines of a plot of (time, value). Below it is a line for each sequence of marks,
    with ``ends`` the labels of the first and last time. Marks before or after all points stand at
    the ends, so that an old note takes no room from the points; so do ``given`` points, which have
    a sign of their own."""
    values = [value for _, value in (*points, *given)]
    low, high = min(values), max(values)
    first, last = min(time for time, _ in points), max(time for time, _ in points)
    labels = _labels(low, high)
    margin = max(map(len, labels.values())) + 1
    columns = width - margin - 2

    def column(time: float) -> int:
        share = (time - first) / (last - first) if last > first else 0.0
        return round(min(1.0, max(0.0, share)) * (columns - 1))

    counts = [[0] * columns for _ in range(ROWS)]
    for time, value in points:
        counts[_row(value, low, high)][column(time)] += 1
    signed = {(_row(value, low, high), column(time)) for time, value in given}
    bars = {column(mark.time / SECOND_NS) for line in marks for mark in line if mark.bar}
    lines = []
    for row in range(ROWS):
        cells = [
            GIVEN if (row, i) in signed else _cell(count, i in bars)
            for i, count in enumerate(counts[row])
        ]
        lines.append(f"{labels.get(row, ''):>{margin}} |{''.join(cells)}".rstrip())
    lines.append(" " * margin + " +" + "-" * columns)
    space = max(1, columns - len(ends[0]) - len(ends[1]))
    lines.append(" " * (margin + 2) + ends[0] + " " * space + ends[1])
    for line in filter(None, marks):
        letters = _letters([(column(m.time / SECOND_NS), m.letter) for m in line], columns)
        lines.append((" " * (margin + 2) + letters).rstrip())
    return lines


def _letters(marks: Iterable[tuple[int, str]], columns: int) -> str:
    """Return a line of letters at their places, with + where several fall together."""
    cells = [" "] * columns
    for place, letter in marks:
        cells[place] = letter if cells[place] == " " else "+"
    return "".join(cells)


def _labels(low: float, high: float) -> dict[int, str]:
    """Return the labels of the rows: highest, middle, lowest; equal values only once. Digits are
    added until the labels differ."""
    if low == high:
        return {ROWS // 2: show_number(low)}
    values = {0: high, ROWS // 2: low / 2 + high / 2, ROWS - 1: low}
    shown = {row: show_number(value) for row, value in values.items()}
    digits = 5
    while len(set(shown.values())) < len(shown) and digits < 17:
        shown = {row: f"{value:.{digits}g}" for row, value in values.items()}
        digits += 1
    return shown


def _row(value: float, low: float, high: float) -> int:
    if low == high:
        return ROWS // 2
    share = (value / 2 - low / 2) / (high / 2 - low / 2)  # halves, so that no difference overflows
    return round((1 - share) * (ROWS - 1)) if math.isfinite(share) else ROWS // 2


def _cell(count: int, bar: bool) -> str:
    if not count:
        return "|" if bar else " "
    return _FEW if count == 1 else _MORE if count < 4 else _MANY


def bars(shares: Iterable[float]) -> str:
    """Return a bar for each share from 0 to 1: a blank for 0, the tallest for 1."""
    signs = BLOCKS
    try:
        signs.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        signs = PLAIN
    tallest = len(signs) - 1
    return "".join(signs[max(0, min(tallest, round(share * tallest)))] for share in shares)
