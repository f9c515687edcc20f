"""A page: an answer as sections of tables, charts and sentences, told once for every medium.

    page = history_page(histories, "triad")
    text.page_text(page)          # for a terminal, 80 columns or as wide as it is
    html.page_html(page, link)    # for a browser
    page.records()                # for JSON; text.page_csv(page) for CSV

Few things are for one medium alone, such as a plot that the terminal has no room for. They have
``only``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from markupsafe import Markup
from msgspec import Struct
from msgspec.structs import replace

from seatrial.units import show_unit

Only = Literal["", "terminal", "browser"]
"""The one medium that shows a thing; "" for each. A report is like a browser."""

Kind = Literal["text", "count", "number", "share", "per cent", "seconds", "time", "clock", "state"]
"""How numbers of a column are shown. "share": a fraction of 1. "time": in ns since the epoch, to
the minute on a terminal; "clock": the same to the second, without its year."""

Tone = Literal["", "better", "worse", "suspect", "rehearsed", "given", "quiet"]

# ---- cells --------------------------------------------------------------------------------


class Figure(Struct, frozen=True):
    """A value with a unit of its own; columns of one unit name it in their title."""

    value: float | None
    unit: str


class Link(Struct, frozen=True):
    """A text that leads to another page."""

    text: str
    address: str = ""
    """A path with its query; "" for the page itself with another query."""
    query: Mapping[str, str] = {}
    """The parameters that differ from the page's own."""


class State(Struct, frozen=True):
    """A word or a figure with a colour."""

    word: str | Figure
    tone: Tone = ""


class Shares(Struct, frozen=True):
    """A bar of parts of a whole: of each its size, colour and name. A terminal shows none."""

    parts: Sequence[tuple[float, str, str]]


Cell = str | int | float | None | Figure | Link | State | Shares | Sequence["Cell"]
"""A text, a number, nothing, or several cells side by side. Texts stand in any column; a column of
numbers shows them as they are. Cells side by side have a space between them, but none before a
text that begins with a comma or a semicolon."""


def spaced(texts: Sequence[str]) -> Iterator[str]:
    """Yield the texts of cells that stand side by side, with the spaces between them."""
    for number, text in enumerate(texts):
        if number and not text.startswith((",", ";")):
            yield " "
        yield text


# ---- parts --------------------------------------------------------------------------------


class Column(Struct, frozen=True):
    """A column of a table. It isn't shown where all its cells are empty."""

    title: str
    kind: Kind = "text"
    value: Callable[[Any], Cell] | None = None
    """Returns its cell of a thing that is a row; for ``Table.of``."""
    unit: str = ""
    fold: bool = False
    """Its text may take several lines in a narrow terminal."""
    spare: int = 0
    """A narrow terminal leaves the column with the largest number out first. One below 0 goes only
    if a word would have to be broken."""
    letter: bool = False
    """A letter may stand for its title, where a narrow terminal has no room for the titles."""
    only: Only = ""

    @property
    def right(self) -> bool:
        return self.kind not in ("text", "time", "clock", "state")

    @property
    def words(self) -> str:
        """Its title with its unit."""
        return self.title + show_unit(self.unit, " ({})")


class Table(Struct, frozen=True):
    """A table, or its first rows."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    title: str = ""
    total: int = 0
    """How many rows there are, where ``rows`` are the first of them."""
    remainder: Cell = ""
    """What is said of the rows that are not shown, behind "and 3 more"."""
    about: str = ""
    """How to read it; for reports."""
    only: Only = ""

    @classmethod
    def of(cls, columns: Sequence[Column], things: Iterable[Any], **more: Any) -> Table:
        """Return a table of which each thing is a row."""
        values = [column.value for column in columns if column.value is not None]
        rows = [[value(each) for value in values] for each in things]
        return cls([replace(column, value=None) for column in columns], rows, **more)

    @property
    def left_out(self) -> int:
        return max(0, self.total - len(self.rows))

    def for_medium(self, medium: Only) -> tuple[list[Column], list[list[Cell]]]:
        """Return the columns that a medium shows, and their cells, a list for each row."""
        kept = [
            place
            for place, column in enumerate(self.columns)
            if column.only in ("", medium)
            and any(row[place] not in (None, "") for row in self.rows)
        ]
        return (
            [self.columns[place] for place in kept],
            [[row[place] for place in kept] for row in self.rows],
        )


class Chart(Struct, frozen=True):
    """A figure for a browser."""

    drawn: Callable[..., Markup]
    """Draws it as SVG, with a ``width``; by a function of ``seatrial.show.draw.plots``."""
    caption: str = ""
    small: bool = False
    """Small ones that follow each other stand side by side."""
    only: Only = "browser"


class Dots(Struct, frozen=True):
    """Values of a chart over time: (ns, value)."""

    name: str
    points: Sequence[tuple[int, float]]
    colour: int = 1
    form: int = 1


class Mark(Struct, frozen=True):
    """An incident in a chart over time."""

    time: int
    text: str
    tone: Tone = "quiet"
    letter: str = ""
    """Stands for it below the plot of a terminal."""
    bar: bool = False
    """Whether it has a bar in that plot, and is drawn in small charts."""


class TimeChart(Struct, frozen=True):
    """Values over time. A terminal plots the first of ``dots`` that has points."""

    title: str
    about: str
    dots: Sequence[Dots]
    metric: str
    unit: str
    marks: Sequence[Mark] = ()
    levels: Sequence[tuple[int, int, float]] = ()
    """Lines from one time to another (ns) at a height."""
    bounds: Sequence[tuple[float | None, str]] = ()
    """Heights with their names, such as those of a reference."""
    caption: str = ""
    small: bool = False
    only: Only = ""
    given: Sequence[tuple[int | None, float, str]] = ()
    """Values that others gave, with their times (ns; None: not known) and names. One whose time is
    not among those of the dots is a height in a browser, and stands at an end in a terminal."""


class Text(Struct, frozen=True):
    """A sentence, which may have links in it. A plain ``str`` is one, too."""

    words: Cell
    tone: Literal["", "notice", "quiet", "code"] = ""
    """code: lines to be copied, as they are."""
    only: Only = ""


class Items(Struct, frozen=True):
    """A list of sentences, or its first ones."""

    words: Sequence[str]
    total: int = 0
    remainder: Cell = ""
    only: Only = ""

    @property
    def left_out(self) -> int:
        return max(0, self.total - len(self.words))


Part = str | Text | Items | Table | Chart | TimeChart


class Section(Struct, frozen=True):
    """Parts below a title. Without a title they go on from the section before."""

    title: str
    parts: Sequence[Part]
    link: Link | None = None
    """Where the title leads to."""
    mark: Cell = None
    """Stands beside the title in a browser, such as the mark of rehearsed figures."""
    small: bool = False
    """One of many charts, which stand side by side in a browser."""
    stressed: bool = False
    """A small one that is to be looked at."""
    only: Only = ""


class Page(Struct, frozen=True):
    """An answer. ``records`` and ``lines`` are the same for programs, and are made when they are
    asked for."""

    title: str
    sections: Sequence[Section]
    summary: str = ""
    """The answer in a sentence: the last line on a terminal, the first one in a browser."""
    records: Callable[[], Any] = list
    """Makes what JSON shows."""
    lines: Callable[[], Iterable[Sequence[object]]] | None = None
    """Makes the rows of CSV, the titles first."""
