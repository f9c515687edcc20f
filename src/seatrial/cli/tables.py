"""Tables as plain text: aligned columns, no boxes, nothing in them that a terminal would obey.

On a terminal no table is wider than its screen: columns that can be spared are left out, and said
so, and text is folded, at signs between its words as long as there is room. In a pipe each row
stays one line, for grep.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

import click

from seatrial.verify.reading import plain_line

GAP = "  "
NARROWEST = 10
READABLE = 30  # a column of text keeps its longest word, up to this, as long as others are wider

# not inside of a number, such as 3.9, 1e-09, 12:30 or a date, nor before a unit: 3 s, 5 %, GB/s
_UNIT = r"(?!(?:[mun]?s|m|min|h|d|%)(?!\w))"
_BREAK_AFTER = re.compile(rf"(?<=[,_@{{}}\s;/]){_UNIT}|(?<=[\-.:])(?!\d)")


class TableColumn(NamedTuple):
    """A column: its title, whether it is aligned right, whether it may be folded; ``spare``: where
    a terminal is too narrow it is left out, the largest number first (0: it stays; below 0: only
    where a word would have to be broken)."""

    title: str
    right: bool = False
    folds: bool = False
    spare: int = 0


def table(columns: Sequence[TableColumn], rows: Sequence[Sequence[str]]) -> str:
    """The table, titles in bold. A column with nothing in it is left out."""
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
    """Without the columns that can be spared, as far as the table is too wide."""
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
    """The least widths at which no word is broken that need not be."""
    widths = _widest(columns, rows)
    for i, column in enumerate(columns):
        if column.folds:
            longest = _longest_word([row[i] for row in rows])
            widths[i] = min(widths[i], max(NARROWEST, min(longest, READABLE)))
    return widths


def _whole(widths: Sequence[int]) -> int:
    return sum(widths) + len(GAP) * (len(widths) - 1)


def _widths(columns: Sequence[TableColumn], rows: Cells) -> list[int]:
    """Each column as wide as its widest cell, or less where the table would be too wide: text down
    to its longest word, then down to the narrowest, and in the end whatever is widest."""
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
    """The widest piece of text that is not broken where it need not be."""
    return max(
        (_width(part.rstrip()) for cell in cells for part in _BREAK_AFTER.split(cell)), default=0
    )


def folded(sentence: str) -> str:
    """A sentence, on a terminal in lines of its width, broken between words."""
    import textwrap

    room = screen_width()
    if not room or _width(sentence) <= room:
        return sentence
    return textwrap.fill(sentence, room, subsequent_indent=GAP, break_on_hyphens=False)


def screen_width() -> int:
    """The width to fold to; 0 where nothing is folded."""
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
    """Text in lines of at most that width, but for white space at their ends, broken behind a sign
    where there is one."""
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
    """The columns that a text takes on a terminal."""
    if text.isascii():
        return len(text)
    return sum(_columns(char) for char in text)


def _columns(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
