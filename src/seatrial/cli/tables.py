"""Tables of commands as plain text, by short forms of their columns.

    found = TextTable("case~ | runs> | sd>?1")
    found.add("stream", 3, 0.25)
    click.echo(found)

Behind a title, ``>`` aligns the column right, ``~`` lets its text be folded, and ``?2`` lets the
column be left out: see ``show.page.Column``.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import click

from seatrial.escaping import plain_line
from seatrial.show.page import Column, Table
from seatrial.show.text import folded, table_text

_COLUMN = r"(.*?)(>?)(~?)(?:\?(-?\d))?"


def _column(form: str) -> Column:
    match = re.fullmatch(_COLUMN, form, re.DOTALL)
    assert match is not None  # it matches every text
    return Column(
        match[1],
        "number" if match[2] else "text",
        fold=bool(match[3]),
        spare=int(match[4] or 0),
    )


class TextTable:
    """A table by the forms of its columns, separated by `` | ``. As text it has bold titles, and no
    column whose cells are all empty. Without rows it is the empty text."""

    def __init__(self, columns: str, rows: Iterable[Sequence[Any]] = ()) -> None:
        self._columns = [_column(form) for form in columns.split(" | ")]
        self._rows: list[Sequence[Any]] = [*rows]

    def add(self, *cells: Any) -> None:
        """Add a row. Numbers are shown as ``show_number`` does, None as an empty cell."""
        self._rows.append(cells)

    def __str__(self) -> str:
        return table_text(Table(self._columns, self._rows))


def print_first(table: TextTable, number: int, maximum: int, where: str = "") -> None:
    """Print a table of the first ``maximum`` of a number of rows, if there are any, then how many
    more there are, and ``where``."""
    if text := str(table):
        click.echo(text)
    if number > maximum:
        click.echo(f"and {number - maximum} more{where}")


def labelled(pairs: Iterable[tuple[str, str]], sentences: Collection[str] = ()) -> str:
    """Return the texts that are not empty, a line each, behind their bold labels. On a terminal
    those with the labels ``sentences`` are folded; others, such as commands, are for copying."""
    kept = [(label, plain_line(text)) for label, text in pairs if text]
    widest = max(len(label) for label, _ in kept)
    lines = []
    for name, text in kept:
        shown = folded(text, left=widest + 2) if name in sentences else text
        lines.append(f"{click.style(name.ljust(widest), bold=True)}  {shown}")
    return "\n".join(lines)
