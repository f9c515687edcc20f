"""Tables as plain text: aligned columns, no boxes, nothing in them that a terminal would obey.

On a terminal, long names are folded to its width; in a pipe each row stays one line, for grep.
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

# not inside of a number, such as 3.9, 1e-09, 12:30 or a date
_BREAK_AFTER = re.compile(r"(?<=[,/_@{}\s;])|(?<=[\-.:])(?!\d)")


class Column(NamedTuple):
    """A column: its title, whether it is aligned right, whether it may be folded; ``spare``: where
    a terminal is too narrow it is left out, the largest number first (0: it stays)."""

    title: str
    right: bool = False
    folds: bool = False
    spare: int = 0


def table(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> str:
    """The table, titles in bold. A column with nothing in it is left out."""
    safe = [[plain_line(cell) for cell in row] for row in rows]
    kept = [i for i in range(len(columns)) if any(row[i] for row in safe)]
    columns, safe = _chosen(columns, safe, kept)
    columns, safe = _that_fit(columns, safe)
    widths = _widths(columns, safe)
    titles = [column.title for column in columns]
    lines = [click.style(line, bold=True) for line in _lines(columns, widths, titles)]
    for row in safe:
        lines += _lines(columns, widths, row)
    return "\n".join(lines)


Cells = list[list[str]]


def _chosen(
    columns: Sequence[Column], rows: Cells, kept: Sequence[int]
) -> tuple[list[Column], Cells]:
    return [columns[i] for i in kept], [[row[i] for i in kept] for row in rows]


def _that_fit(columns: list[Column], rows: Cells) -> tuple[list[Column], Cells]:
    """Without the columns that can be spared, as far as the table is too wide."""
    room = screen_width()
    while room and _whole(_widest(columns, rows)) > room:
        spare = max(range(len(columns)), key=lambda i: columns[i].spare)
        if not columns[spare].spare:
            break
        columns, rows = _chosen(columns, rows, [i for i in range(len(columns)) if i != spare])
    return columns, rows


def _widest(columns: Sequence[Column], rows: Cells) -> list[int]:
    return [
        max([_width(column.title), *(_width(row[i]) for row in rows)])
        for i, column in enumerate(columns)
    ]


def _whole(widths: Sequence[int]) -> int:
    return sum(widths) + len(GAP) * (len(widths) - 1)


def _widths(columns: Sequence[Column], rows: Cells) -> list[int]:
    """Each column as wide as its widest cell, or less where the table would be too wide."""
    widths = _widest(columns, rows)
    room = screen_width()
    while room and _whole(widths) > room:
        folding = [i for i, c in enumerate(columns) if c.folds and widths[i] > NARROWEST]
        if not folding:
            break
        widths[max(folding, key=lambda i: widths[i])] -= 1
    return widths


def screen_width() -> int:
    """The width to fold to; 0 where nothing is folded."""
    if not sys.stdout.isatty() and not os.environ.get("COLUMNS"):
        return 0
    return shutil.get_terminal_size().columns


def _lines(columns: Sequence[Column], widths: Sequence[int], row: Sequence[str]) -> list[str]:
    cells = [
        fold(cell, width) if column.folds else [cell]
        for column, width, cell in zip(columns, widths, row, strict=True)
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
    """Text in lines of at most that width, broken behind a sign where there is one."""
    lines = [""]
    for part in _BREAK_AFTER.split(text):
        if _width(lines[-1]) + _width(part) > width and lines[-1]:
            lines.append("")
        for char in part:
            if lines[-1] and _width(lines[-1]) + _width(char) > width:
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
