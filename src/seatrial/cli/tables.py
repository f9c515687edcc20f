"""Tables as plain text: aligned columns, no boxes, no control characters.

    found = TextTable("case~ | runs> | sd>?1")
    found.add("stream", 3, 0.25)
    click.echo(found)

Behind a title, ``>`` aligns the column right, ``~`` lets its text be folded, and ``?2`` lets the
column be left out: on a narrow terminal the one with the largest number goes first, and one with a
number below 0 only if a word would have to be broken.

On a terminal no table is wider than the screen: columns that can be spared are left out, which is
said, and text is folded between words if there is room. In a pipe each row stays one line, for
grep.
"""

import re
import shutil
import sys
import textwrap
import unicodedata
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import zip_longest

import click

from seatrial.lazy import regex
from seatrial.units import show_number
from seatrial.verify.reading import plain_line

GAP = "  "
NARROWEST = 10
READABLE = 30  # a text column keeps its longest word, up to this width, while others are wider

# not inside a number such as 3.9, 1e-09, 12:30 or a date, nor before a unit: 3 s, 5 %, GB/s
_UNIT = r"(?!(?:[mun]?s|m|min|h|d|%)(?!\w))"
_BREAK_AFTER = regex(rf"(?<=[,_@{{}}\s;/]){_UNIT}|(?<=[\-.:])(?!\d)")
_COLUMN = regex(r"(.*?)(>?)(~?)(?:\?(-?\d))?", re.DOTALL)


class _TextColumn:
    """A column by its form, such as ``runs>?1``, with its cells."""

    def __init__(self, form: str, cells: Sequence[str]) -> None:
        found = _COLUMN.fullmatch(form)
        assert found is not None  # it matches every text
        self.title, self.right, self.folds = found[1], bool(found[2]), bool(found[3])
        self.spare = int(found[4] or 0)
        self.cells = cells

    @cached_property
    def widest(self) -> int:
        return max(map(_width, (self.title, *self.cells)))

    @cached_property
    def readable(self) -> int:
        """The smallest width at which no word is broken."""
        if not self.folds:
            return self.widest
        words = (part.rstrip() for cell in self.cells for part in _BREAK_AFTER.split(cell))
        return min(self.widest, max(NARROWEST, min(max(map(_width, words)), READABLE)))

    @property
    def narrowest(self) -> int:
        return NARROWEST if self.folds else self.widest

    def padded(self, text: str, width: int) -> str:
        space = " " * (width - _width(text))
        return space + text if self.right else text + space


class TextTable:
    """A table by the forms of its columns, separated by `` | ``. As text it has bold titles, and no
    column whose cells are all empty. Without rows it is the empty text."""

    def __init__(self, columns: str, rows: Iterable[Sequence[object]] = ()) -> None:
        self._forms = columns.split(" | ")
        self._rows: list[list[str]] = []
        for row in rows:
            self.add(*row)

    def add(self, *cells: object) -> None:
        """Add a row. Numbers are shown as ``show_number`` does, None as an empty cell."""
        self._rows.append([_cell(cell) for cell in cells])

    def __str__(self) -> str:
        if not self._rows:
            return ""
        cells = zip(*self._rows, strict=True)
        found = [_TextColumn(*each) for each in zip(self._forms, cells, strict=True)]
        filled = [column for column in found if any(column.cells)]
        room = screen_width()
        columns = _that_fit(filled, room)
        widths = _widths(columns, room)
        titles = [column.title for column in columns]
        lines = [click.style(line, bold=True) for line in _lines(columns, widths, titles)]
        for row in zip(*(column.cells for column in columns), strict=True):
            lines += _lines(columns, widths, row)
        if spared := [column.title for column in filled if column not in columns]:
            lines += fold(f"(too narrow to show {', '.join(spared)})", room)
        return "\n".join(lines)


def print_first(table: TextTable, number: int, most: int, where: str = "") -> None:
    """Print a table of the first ``most`` of a number of rows, if there are any, then how many more
    there are, and ``where``."""
    if text := str(table):
        click.echo(text)
    if number > most:
        click.echo(f"and {number - most} more{where}")


def _cell(value: object) -> str:
    if isinstance(value, str):
        return plain_line(value)
    return show_number(value) if isinstance(value, float) else "" if value is None else str(value)


def _whole(widths: Iterable[int]) -> int:
    """Return the width of a table of columns of these widths."""
    return sum(width + len(GAP) for width in widths) - len(GAP)


def _that_fit(columns: list[_TextColumn], room: int) -> list[_TextColumn]:
    """Return the columns without those that can be spared, as far as the table is too wide."""
    while room and _whole(column.widest for column in columns) > room:
        spare = [column for column in columns if column.spare > 0]
        if not spare and _whole(column.readable for column in columns) > room:
            spare = [column for column in columns if column.spare < 0]
        if not spare:
            break
        left_out = max(spare, key=lambda column: abs(column.spare))
        columns = [column for column in columns if column is not left_out]
    return columns


def _widths(columns: Sequence[_TextColumn], room: int) -> list[int]:
    """Return the width of each column: that of its widest cell, or less if the table would be too
    wide: first text down to its longest word, then down to the narrowest, then whatever is
    widest."""
    widths = [column.widest for column in columns]
    if not room or _whole(widths) <= room:
        return widths
    readable, narrow = ([each.readable for each in columns], [each.narrowest for each in columns])
    for least in (readable, narrow, [1] * len(columns)):
        while _whole(widths) > room:
            wide = [i for i, width in enumerate(widths) if width > least[i]]
            if not wide:
                break
            widths[max(wide, key=widths.__getitem__)] -= 1
    return widths


def folded(sentence: str) -> str:
    """Return a sentence, on a terminal folded to its width between words."""
    room = screen_width()
    if not room or _width(sentence) <= room:
        return sentence
    return textwrap.fill(sentence, room, subsequent_indent=GAP, break_on_hyphens=False)


def screen_width() -> int:
    """Return the width to fold to; 0 in a pipe, whatever COLUMNS says: nothing is folded."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else 0


def _lines(columns: Sequence[_TextColumn], widths: Sequence[int], row: Sequence[str]) -> list[str]:
    cells = (fold(cell, width) for cell, width in zip(row, widths, strict=True))
    lines = []
    for parts in zip_longest(*cells, fillvalue=""):
        padded = (
            column.padded(part.rstrip(), width)
            for column, part, width in zip(columns, parts, widths, strict=True)
        )
        lines.append(GAP.join(padded).rstrip())
    return lines


def labelled(pairs: Iterable[tuple[str, str]]) -> str:
    """Return the texts that are not empty, a line each, behind their bold labels."""
    kept = [(label, plain_line(text)) for label, text in pairs if text]
    widest = max(len(label) for label, _ in kept)
    return "\n".join(f"{click.style(name.ljust(widest), bold=True)}  {text}" for name, text in kept)


def in_per_cent(share: float | None) -> str:
    """Return a share for a cell: ``97.5 %``; "" for None."""
    return "" if share is None else f"{100 * share:.1f} %"


def interval_in_per_cent(low: float | None, high: float | None) -> str:
    """Return an interval of shares for a cell: ``96.1..98.9 %``; "" where an end is None."""
    return "" if low is None or high is None else f"{100 * low:.1f}..{100 * high:.1f} %"


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


def _width(text: str) -> int:
    """Return the columns that a text takes on a terminal."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1
        for char in text
    )
