"""Pages as plain text: aligned columns, no boxes, no control characters; and as CSV.

    click.echo(page_text(page))
    click.echo(table_text(Table([Column("case", fold=True), Column("runs", "count")], rows)))

On a terminal no table is wider than the screen: what all rows share is said once above it, columns
that can be spared are left out, which is said, and text is folded between words if there is room.
In a pipe each row stays one line, for grep.
"""

from __future__ import annotations

import csv
import io
import math
import re
import shutil
import sys
import textwrap
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property, reduce
from itertools import zip_longest
from string import ascii_uppercase

import click
from msgspec import Struct
from msgspec.structs import replace

from seatrial.escaping import csv_cell, plain_line
from seatrial.show.page import (
    Cell,
    Chart,
    Column,
    Figure,
    Items,
    Kind,
    Link,
    Mark,
    Page,
    Part,
    Section,
    Shares,
    State,
    Table,
    Text,
    TimeChart,
    spaced,
)
from seatrial.units import SECOND_NS, show_figure, show_number, show_seconds, show_share

GAP = "  "
NARROWEST = 10
READABLE = 30  # a text column keeps its longest word, up to this width, while others are wider

# not inside a number such as 3.9, 1e-09, 12:30 or a date, an arrow or an option (--again), nor
# before a unit: 3 s, 5 %, GB/s
_UNIT = r"(?!(?:[mun]?s|m|min|h|d|%)(?!\w))"
_BREAK_AFTER = re.compile(rf"(?<=[,_@{{}}\s;/]){_UNIT}|(?<=\w[\-.:])(?![\d>])")

_CASE = r"([^\s{}@]+)(?:\{(.*)\})?(?:@(\S+))?"  # its test, parameters, toolchain
_NEXT_SETTING = r",(?=\w+=)"  # other commas are of a value

# ---- pages --------------------------------------------------------------------------------


def page_text(page: Page) -> str:
    """Return a page as text, without its title, which the command says."""
    parts = [section_text(section) for section in page.sections]
    return "\n\n".join(filter(None, [*parts, folded(plain_line(page.summary))]))


def section_text(section: Section) -> str:
    """Return a section as lines, "" for one that a terminal does not show."""
    if section.small or section.only == "browser":
        return ""
    title = click.style(folded(plain_line(section.title)), bold=True) if section.title else ""
    return "\n".join(filter(None, [title, *map(part_text, section.parts)]))


def part_text(part: Part) -> str:
    """Return a part as lines, "" for one that a terminal does not show."""
    if isinstance(part, str):
        return folded(plain_line(part))
    if part.only == "browser":
        return ""
    if isinstance(part, Text):
        return _sentence(part)
    if isinstance(part, Chart):
        return ""
    if isinstance(part, TimeChart):
        return "\n".join(_time_chart(part))
    if isinstance(part, Items):
        lines = [folded(plain_line(words)) for words in part.words]
        return textwrap.indent("\n".join([*lines, *_remainder(part)]), GAP)
    text = "\n".join(filter(None, [table_text(part), *_remainder(part)]))
    if not part.title or not text:
        return text
    return f"{GAP}{plain_line(part.title)}\n{textwrap.indent(text, 2 * GAP)}"


def _sentence(part: Text) -> str:
    if part.tone == "code":
        lines = map(plain_line, str(part.words).splitlines())
        return textwrap.indent("\n".join(lines), 2 * GAP)
    return folded(cell_text(part.words))


def _time_chart(chart: TimeChart) -> list[str]:
    points = [(time / SECOND_NS, value) for dots in chart.dots for time, value in dots.points]
    dated = [(time / SECOND_NS, value) for time, value, _ in chart.given if time is not None]
    points, given = (points, chart.given) if points else (dated, ())  # given ones may be alone
    if chart.small or not points:
        return []
    lines: dict[bool, list[Mark]] = {False: [], True: []}  # notes are below the others
    for mark in chart.marks:
        lines[mark.tone == "quiet"].append(mark)
    times = [time for time, _ in points]
    first, last = (show_minute(int(end) * SECOND_NS) for end in (min(times), max(times)))
    beside = [(max(times) if t is None else t / SECOND_NS, value) for t, value, _ in given]
    ends = (first, last if last != first else "")
    return time_line(points, list(lines.values()), ends, given=beside)


def _remainder(part: Items | Table) -> list[str]:
    words = cell_text(part.remainder)
    return [f"and {part.left_out} more{words}"] if part.left_out else []


def cell_text(cell: Cell, kind: Kind = "text") -> str:
    """Return a cell as text, "" for an empty one."""
    if cell is None:
        return ""
    if isinstance(cell, str):
        return plain_line(cell)
    if isinstance(cell, int | float):
        return _number(cell, kind)
    if isinstance(cell, Figure):
        return "" if cell.value is None else plain_line(show_figure(cell.value, cell.unit))
    if isinstance(cell, Link):
        return plain_line(cell.text)
    if isinstance(cell, State):
        return cell_text(cell.word)
    if isinstance(cell, Shares):
        return ""
    return "".join(spaced(list(filter(None, map(cell_text, cell)))))


def _number(value: float, kind: Kind) -> str:
    if kind == "time":
        return show_minute(int(value))
    if kind == "clock":
        return show_clock(int(value))
    if kind == "share":
        return show_share(value)
    if kind == "per cent":
        return f"{round(value, 2) + 0.0:+.2f} %"
    if kind == "seconds":
        return show_seconds(value)
    return show_number(value) if isinstance(value, float) else str(value)


def show_minute(time_ns: int) -> str:
    """Return a time in the local time zone, to the minute."""
    return f"{datetime.fromtimestamp(time_ns // SECOND_NS):%Y-%m-%d %H:%M}"


def show_clock(time_ns: int) -> str:
    """Return a time in the local time zone, to the second, without its year."""
    return f"{datetime.fromtimestamp(time_ns // SECOND_NS):%m-%d %H:%M:%S}"


# ---- CSV ----------------------------------------------------------------------------------


def page_csv(page: Page) -> str:
    """Return the rows of a page as CSV."""
    return csv_text(page.lines() if page.lines else ())


def csv_text(rows: Iterable[Sequence[object]]) -> str:
    """Return rows as CSV, the titles first. No text of a user or a job becomes a formula."""
    out = io.StringIO()
    safe = ([csv_cell(plain_line(c)) if isinstance(c, str) else c for c in row] for row in rows)
    csv.writer(out, lineterminator="\n").writerows(safe)
    return out.getvalue()


# ---- tables -------------------------------------------------------------------------------


def table_text(table: Table) -> str:
    """Return the rows of a table below its bold titles; "" without rows."""
    if not table.rows:
        return ""
    filled, rows = table.for_medium("terminal")
    texts = [
        [cell_text(cell, column.kind) for cell, column in zip(row, filled, strict=True)]
        for row in rows
    ]
    return "\n".join(_table_lines(filled, texts))


def _table_lines(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    filled = _filled(columns, rows)
    room = screen_width()
    filled, legend = _with_letters(filled, room)
    filled, shared = _without_shared(filled, room)
    kept = _that_fit(filled, room)
    widths = _widths(kept, room)
    if shared:
        yield folded(f"all rows: {'; '.join(shared)}")
    for line in _lines(kept, widths, [column.title for column in kept]):
        yield click.style(line, bold=True)
    for row in zip(*(column.cells for column in kept), strict=True):
        yield from _lines(kept, widths, row)
    if spared := [column.title for column in filled if column not in kept]:
        yield from fold(f"(too narrow to show {', '.join(spared)})", room)
    if legend:
        yield folded(", ".join(legend))


def _filled(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> list[_TextColumn]:
    """Return the columns that have a text in some row."""
    cells = zip(*rows, strict=True) if columns else ()
    texts = [_TextColumn(*each) for each in zip(columns, cells, strict=True)]
    return [column for column in texts if any(column.cells)]


class _TextColumn:
    """A column with its cells as texts."""

    def __init__(self, column: Column, cells: Sequence[str]) -> None:
        self.column = column
        self.title, self.right, self.folds = plain_line(column.title), column.right, column.fold
        self.spare = column.spare
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


def _whole(widths: Iterable[int]) -> int:
    """Return the width of a table of columns of these widths."""
    return sum(width + len(GAP) for width in widths) - len(GAP)


def _without_shared(columns: list[_TextColumn], room: int) -> tuple[list[_TextColumn], list[str]]:
    """Return the columns of a table that is too wide without what all its rows share, as far as
    that makes room, and what it is."""
    if not room or _fits(columns, room) or len(columns[0].cells) < 2:
        return columns, []
    parts = [parts_of_cases(column.cells) for column in columns]
    shared = {place: common for place, (common, _) in enumerate(parts) if common}
    pairs = zip(columns, parts, strict=True)
    kept = {i: _TextColumn(one.column, rest) for i, (one, (_, rest)) in enumerate(pairs)}
    while not _fits(kept.values(), room) and (alike := _alike(kept)):
        widest = max(alike, key=lambda place: kept[place].widest)
        gone = kept.pop(widest)
        shared[widest] = f"{gone.title} {gone.cells[0]}".strip()
    return list(kept.values()), [shared[place] for place in sorted(shared)]


def _with_letters(columns: list[_TextColumn], room: int) -> tuple[list[_TextColumn], list[str]]:
    """Return the columns of a table that is too wide with letters for the titles that may have
    them, and what these stand for."""
    long = [one for one in columns if one.column.letter]
    if not room or not long or _fits(columns, room):
        return columns, []
    letters = {id(one): letter_of(number) for number, one in enumerate(long)}
    return [
        _TextColumn(replace(one.column, title=letters[id(one)]), one.cells)
        if id(one) in letters
        else one
        for one in columns
    ], [f"{letters[id(one)]} = {one.title}" for one in long]


def letter_of(number: int) -> str:
    """Return A to Z, then AA and so on."""
    first, second = divmod(number, len(ascii_uppercase))
    return (ascii_uppercase[first - 1] if first else "") + ascii_uppercase[second]


def _alike(columns: Mapping[int, _TextColumn]) -> list[int]:
    """Return the places of columns that have the same text in all rows; none if one is left."""
    alike = [place for place, column in columns.items() if len(set(column.cells)) == 1]
    return alike if len(columns) > 1 else []


def _fits(columns: Iterable[_TextColumn], room: int) -> bool:
    return _whole(column.widest for column in columns) <= room


class _CaseName(Struct, frozen=True):
    """The parts of a case's name: ``nbody{n=8,ranks=2}@gcc``."""

    test: str
    settings: tuple[str, ...]
    toolchain: str

    @classmethod
    def parse(cls, text: str) -> _CaseName | None:
        match = re.fullmatch(_CASE, text)
        if match is None:
            return None
        settings = tuple(re.split(_NEXT_SETTING, match[2])) if match[2] else ()
        return cls(match[1], settings, match[3] or "")

    def common(self, other: _CaseName) -> _CaseName:
        """Return what another name has, too."""
        return _CaseName(
            self.test if self.test == other.test else "",
            tuple(one for one in self.settings if one in other.settings),
            self.toolchain if self.toolchain == other.toolchain else "",
        )

    def without(self, common: _CaseName) -> _CaseName:
        return _CaseName(
            "" if common.test else self.test,
            tuple(one for one in self.settings if one not in common.settings),
            "" if common.toolchain else self.toolchain,
        )

    def __str__(self) -> str:
        inner = ",".join(self.settings)
        name = f"{self.test}{{{inner}}}" if self.test and inner else self.test or inner
        return f"{name}@{self.toolchain}" if self.toolchain else name


def parts_of_cases(texts: Sequence[str]) -> tuple[str, list[str]]:
    """Return what the names of cases have in common, "" for nothing (or if these are no such
    names), and what is left of each: ``nbody{n=8,ranks=1}@gcc`` and ``nbody{n=8,ranks=2}@gcc`` are
    ``nbody{n=8}@gcc``, and ``ranks=1`` and ``ranks=2``."""
    names = [name for name in map(_CaseName.parse, texts) if name is not None]
    are_cases = len(names) == len(texts) and any(one.settings or one.toolchain for one in names)
    if are_cases and len(set(names)) > 1:
        common = reduce(_CaseName.common, names)
        rest = [str(name.without(common)) for name in names]
        if all(rest):
            return str(common), rest
    return "", list(texts)


def _that_fit(columns: list[_TextColumn], room: int) -> list[_TextColumn]:
    """Return the columns without those that can be spared, as far as the table is too wide."""
    while room and _whole(column.widest for column in columns) > room:
        left_out = _least_needed(columns, room)
        if left_out is None:
            break
        columns = [column for column in columns if column is not left_out]
    return columns


def _least_needed(columns: Sequence[_TextColumn], room: int) -> _TextColumn | None:
    """Return the column that goes first, None if none can be spared."""
    spare = [column for column in columns if column.spare > 0]
    if not spare and _whole(column.readable for column in columns) > room:
        spare = [column for column in columns if column.spare < 0]
    return max(spare, key=lambda column: abs(column.spare), default=None)


def _widths(columns: Sequence[_TextColumn], room: int) -> list[int]:
    """Return the width of each column: that of its widest cell, or less if the table would be too
    wide: first text down to its longest word, then down to the narrowest, then whatever is
    widest."""
    widths = [column.widest for column in columns]
    if not room:
        return widths
    readable, narrow = ([each.readable for each in columns], [each.narrowest for each in columns])
    for minima in (readable, narrow, [1] * len(columns)):
        _shrink(widths, minima, room)
    return widths


def _shrink(widths: list[int], minima: Sequence[int], room: int) -> None:
    """Make the widest columns narrower until the table fits, none below its least width."""
    while _whole(widths) > room:
        wide = [place for place, width in enumerate(widths) if width > minima[place]]
        if not wide:
            return
        widths[max(wide, key=widths.__getitem__)] -= 1


def folded(sentence: str, left: int = 0) -> str:
    """Return a sentence, on a terminal folded to its width between words. ``left``: columns that
    stand before it, below which nothing is written."""
    room = screen_width() - left
    if room < NARROWEST or _width(sentence) <= room:
        return sentence
    if not left:
        return textwrap.fill(sentence, room, subsequent_indent=GAP, break_on_hyphens=False)
    lines = textwrap.wrap(sentence, room, break_on_hyphens=False, break_long_words=False)
    return f"\n{'':{left}}".join(lines)


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


# ---- time lines and bars -------------------------------------------------------------------------
#
# 5850 |  . ..:.  .:
#      |..: ::.:::...:
# 5700 |             |. .:..
#      |             |::.:::
#      +-------------------------
#       2026-03-01     2026-11-20
#                    C            C confirmed, s suspect
#                   a             notes

PLOT_WIDTH = 80
PLOT_ROWS = 9
_FEW, _MORE, _MANY = ".", ":", "#"
GIVEN = "G"
LEGEND = "signs: . one figure, : two or three, # more; | and C confirmed change, s suspect"
BLOCKS = " ▁▂▃▄▅▆▇█"
PLAIN = " .:-=+*#@"  # if the output's encoding has no block characters


def time_line(
    points: Sequence[tuple[float, float]],
    marks: Sequence[Sequence[Mark]] = (),
    ends: tuple[str, str] = ("", ""),
    width: int = PLOT_WIDTH,
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

    counts = [[0] * columns for _ in range(PLOT_ROWS)]
    for time, value in points:
        counts[_row(value, low, high)][column(time)] += 1
    signed = {(_row(value, low, high), column(time)) for time, value in given}
    bars = {column(mark.time / SECOND_NS) for line in marks for mark in line if mark.bar}
    lines = []
    for row in range(PLOT_ROWS):
        cells = [
            GIVEN if (row, i) in signed else _point(count, i in bars)
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
        return {PLOT_ROWS // 2: show_number(low)}
    values = {0: high, PLOT_ROWS // 2: low / 2 + high / 2, PLOT_ROWS - 1: low}
    shown = {row: show_number(value) for row, value in values.items()}
    digits = 5
    while len(set(shown.values())) < len(shown) and digits < 17:
        shown = {row: f"{value:.{digits}g}" for row, value in values.items()}
        digits += 1
    return shown


def _row(value: float, low: float, high: float) -> int:
    if low == high:
        return PLOT_ROWS // 2
    share = (value / 2 - low / 2) / (high / 2 - low / 2)  # halves, so that no difference overflows
    return round((1 - share) * (PLOT_ROWS - 1)) if math.isfinite(share) else PLOT_ROWS // 2


def _point(count: int, bar: bool) -> str:
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
