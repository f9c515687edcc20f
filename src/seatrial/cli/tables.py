"""Tables as plain text: aligned columns, no boxes, no control characters.

On a terminal no table is wider than the screen: columns that can be spared are left out, which is
said, and text is folded between words if there is room. In a pipe each row stays one line, for
grep.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap
import unicodedata
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import click

from seatrial.verify.reading import plain_line

GAP = "  "
NARROWEST = 10
READABLE = 30  # a text column keeps its longest word, up to this width, while others are wider

# not inside a number such as 3.9, 1e-09, 12:30 or a date, nor before a unit: 3 s, 5 %, GB/s
_UNIT = r"(?!(?:[mun]?s|m|min|h|d|%)(?!\w))"
_BREAK_AFTER = re.compile(rf"(?<=[,_@{{}}\s;/]){_UNIT}|(?<=[\-.:])(?!\d)")


class TableColumn(NamedTuple):
    """A column: its title, whether it is aligned right, whether it may be folded. ``spare``: on a
    narrow terminal the column with the largest number is left out first (0: it stays; below 0: only
    if a word would have to be broken)."""

    title: str
    right: bool = False
    folds: bool = False
    spare: int = 0


def columns_of(
    titles: str, right: str = "", folds: str = "", spare: Mapping[str, int] | None = None
) -> list[TableColumn]:
    """Return columns from their titles, separated by `` | ``. ``right`` and ``folds`` name those
    that are aligned right and that may be folded."""
    aligned, folding = ({*names.split(" | ")} - {""} for names in (right, folds))
    return [
        TableColumn(title, title in aligned, title in folding, (spare or {}).get(title, 0))
        for title in titles.split(" | ")
    ]


def table(columns: Sequence[TableColumn], rows: Sequence[Sequence[str]]) -> str:
    """Return the table as text, titles in bold. A column with only empty cells is left out."""
    safe = [[plain_line(cell) for cell in row] for row in rows]
    kept = [i for i in range(len(columns)) if any(row[i] for row in safe)]
    columns, safe = _chosen(columns, safe, kept)
    titles_of_all = [column.title for column in columns]
    columns, safe = _that_fit(columns, safe)
    widths = _widths(columns, safe)
    titles = [column.title for column in columns]
    lines = [click.style(line, bold=True) for line in _lines(columns, widths, titles)]
    for row in safe:
        lines += _lines(columns, widths, row)
    if spared := [title for title in titles_of_all if title not in titles]:
        lines += fold(f"(too narrow to show {', '.join(spared)})", screen_width())
    return "\n".join(lines)


Cells = list[list[str]]


def _chosen(
    columns: Sequence[TableColumn], rows: Cells, kept: Sequence[int]
) -> tuple[list[TableColumn], Cells]:
    return [columns[i] for i in kept], [[row[i] for i in kept] for row in rows]


def _that_fit(columns: list[TableColumn], rows: Cells) -> tuple[list[TableColumn], Cells]:
    """Return the columns without those that can be spared, as far as the table is too wide."""
    room = screen_width()
    while room and _whole(_widest(columns, rows)) > room:
        spare = [i for i, column in enumerate(columns) if column.spare > 0]
        if not spare and _whole(_readable(columns, rows)) > room:
            spare = [i for i, column in enumerate(columns) if column.spare < 0]
        if not spare:
            break
        left_out = max(spare, key=lambda i: abs(columns[i].spare))
        columns, rows = _chosen(columns, rows, [i for i in range(len(columns)) if i != left_out])
    return columns, rows


def _widest(columns: Sequence[TableColumn], rows: Cells) -> list[int]:
    return [
        max([_width(column.title), *(_width(row[i]) for row in rows)])
        for i, column in enumerate(columns)
    ]


def _readable(columns: Sequence[TableColumn], rows: Cells) -> list[int]:
    """Return the smallest widths at which no word is broken."""
    widths = _widest(columns, rows)
    for i, column in enumerate(columns):
        if column.folds:
            longest = _longest_word([row[i] for row in rows])
            widths[i] = min(widths[i], max(NARROWEST, min(longest, READABLE)))
    return widths


def _whole(widths: Sequence[int]) -> int:
    return sum(widths) + len(GAP) * (len(widths) - 1)


def _widths(columns: Sequence[TableColumn], rows: Cells) -> list[int]:
    """Return the width of each column: that of its widest cell, or less if the table would be too
    wide: first text down to its longest word, then down to the narrowest, then whatever is
    widest."""
    widths = _widest(columns, rows)
    narrow = [
        NARROWEST if column.folds else wide for column, wide in zip(columns, widths, strict=True)
    ]
    room = screen_width()
    if not room or _whole(widths) <= room:
        return widths
    for least in (_readable(columns, rows), narrow, [1] * len(columns)):
        while _whole(widths) > room:
            wide = [i for i, width in enumerate(widths) if width > least[i]]
            if not wide:
                break
            widths[max(wide, key=lambda i: widths[i])] -= 1
    return widths


def _longest_word(cells: Sequence[str]) -> int:
    """Return the width of the widest piece of text between the places where it may be broken."""
    return max(
        (_width(part.rstrip()) for cell in cells for part in _BREAK_AFTER.split(cell)), default=0
    )


def folded(sentence: str) -> str:
    """Return a sentence, on a terminal folded to its width between words."""
    room = screen_width()
    if not room or _width(sentence) <= room:
        return sentence
    return textwrap.fill(sentence, room, subsequent_indent=GAP, break_on_hyphens=False)


def screen_width() -> int:
    """Return the width to fold to; 0 if nothing is folded."""
    if not sys.stdout.isatty() and not os.environ.get("COLUMNS"):
        return 0
    return shutil.get_terminal_size().columns


def _lines(columns: Sequence[TableColumn], widths: Sequence[int], row: Sequence[str]) -> list[str]:
    cells = [
        [line.rstrip() for line in fold(cell, width)]
        for width, cell in zip(widths, row, strict=True)
    ]
    lines = []
    for number in range(max(map(len, cells))):
        parts = [cell[number] if number < len(cell) else "" for cell in cells]
        padded = [
            _padded(part, width, column.right)
            for part, width, column in zip(parts, widths, columns, strict=True)
        ]
        lines.append(GAP.join(padded).rstrip())
    return lines


def fold(text: str, width: int) -> list[str]:
    """Return text in lines of at most that width (white space at their ends aside), broken after a
    sign if there is one."""
    lines = [""]
    for part in _BREAK_AFTER.split(text):
        if _width(lines[-1]) + _width(part.rstrip()) > width and lines[-1]:
            lines.append("")
        for char in part:
            full = _width(lines[-1]) + _width(char) > width
            if lines[-1] and full and not char.isspace():
                lines.append("")
            lines[-1] += char
    return lines


def _padded(text: str, width: int, right: bool) -> str:
    space = " " * (width - _width(text))
    return space + text if right else text + space


def _width(text: str) -> int:
    """Return the columns that a text takes on a terminal."""
    if text.isascii():
        return len(text)
    return sum(_columns(char) for char in text)


def _columns(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
