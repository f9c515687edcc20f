"""Pages as HTML, for the server's page around it.

    page_html(page, query.link)

No script is needed. Colours and widths are those of ``web/static/style.css``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby
from operator import itemgetter

from markupsafe import Markup, escape
from msgspec.structs import replace

from seatrial.errors import UsageError
from seatrial.show.draw import plots
from seatrial.show.draw.svg import Axis, file_of
from seatrial.show.formatting import (
    NARROW,
    NOTHING,
    WIDE,
    breakable,
    clock,
    figure,
    message,
    moment,
    number,
    rehearsal_mark,
    shares,
    whole,
)
from seatrial.show.page import (
    Cell,
    Chart,
    Column,
    Figure,
    Items,
    Link,
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
from seatrial.show.text import cell_text
from seatrial.units import SECOND_NS, show_change, show_seconds, show_share

SHORT = 24  # characters of texts that need no room to fold
MAX_DRAWN = 2000  # values of a series over time

Address = Callable[..., str]
"""Returns the address of the page itself with some parameters of its query changed."""


def page_html(page: Page, address: Address) -> Markup:
    """Return what stands below a page's heading and form."""
    parts = [_sentence(page.summary, "", address)]
    shown = [section for section in page.sections if section.only != "terminal"]
    for small, sections in groupby(shown, lambda section: section.small):
        inner = _joined(section_html(section, address) for section in sections)
        parts.append(Markup('<div class="multiples">{}</div>').format(inner) if small else inner)
    return _joined(parts)


def page_svg(page: Page) -> str:
    """Return the charts of a page as the text of one SVG file; those of single series where it has
    no others. Raises UsageError for a page without a chart."""
    charts = [
        (section, part)
        for section in page.sections
        for part in section.parts
        if isinstance(part, Chart | TimeChart) and part.only != "terminal"
    ]
    charts = [each for each in charts if not each[0].small] or charts
    if not charts:
        raise UsageError("there is nothing to draw; --format table says why")
    return file_of([(_heading(section, part), _drawn(part, WIDE)) for section, part in charts])


def _heading(section: Section, chart: Chart | TimeChart) -> str:
    if isinstance(chart, TimeChart):
        return chart.title
    return ": ".join(filter(None, (section.title, chart.caption)))


def _drawn(chart: Chart | TimeChart, width: int) -> Markup:
    if isinstance(chart, Chart):
        return chart.drawn(width=NARROW if chart.small else width)
    return _time_chart(replace(chart, small=False), width)


def section_html(section: Section, address: Address) -> Markup:
    """Return a section with its heading."""
    title = _link(section.link, address) if section.link else escape(section.title)
    if section.mark is not None:
        title += Markup(" ") + _cell(section.mark, Column(""), address)
    inner = parts_html(section.parts, address)
    if section.small:
        return Markup('<figure class="multiple{}"><figcaption>{}</figcaption>{}</figure>').format(
            " changed" * section.stressed, title, inner
        )
    return Markup("<h2>{}</h2>{}").format(title, inner) if section.title else inner


def parts_html(parts: Iterable[Part], address: Address) -> Markup:
    """Return parts one below the other, small charts side by side."""
    shown = []
    for small, group in groupby(parts, lambda part: isinstance(part, Chart) and part.small):
        inner = _joined(_part(part, address) for part in group)
        beside = Markup('<div class="multiples plots-of-three">{}</div>')
        shown.append(beside.format(inner) if small else inner)
    return _joined(shown)


def _joined(parts: Iterable[Markup]) -> Markup:
    return Markup("\n").join(filter(None, parts))


def _part(part: Part, address: Address) -> Markup:
    if isinstance(part, str):
        return _sentence(part, "", address)
    if part.only == "terminal":
        return Markup()
    if isinstance(part, Text):
        return _sentence(part.words, part.tone, address)
    if isinstance(part, Chart | TimeChart):
        return _chart(part)
    if isinstance(part, Items):
        lines = _joined(Markup("<li>{}</li>").format(message(words)) for words in part.words)
        return Markup('<ul class="facts-list">{}</ul>{}').format(lines, _remainder(part, address))
    return table_html(part, address)


def _sentence(words: Cell, tone: str, address: Address) -> Markup:
    if tone == "code":
        return Markup("<pre>{}</pre>").format(words)
    inner = message(words) if isinstance(words, str) else _cell(words, Column(""), address)
    return Markup('<p class="{}">{}</p>').format(tone or "wide-text", inner) if inner else Markup()


def _remainder(part: Items | Table, address: Address) -> Markup:
    if not part.left_out:
        return Markup()
    return Markup('<p class="quiet">and {} more{}</p>').format(
        whole(part.left_out), _cell(part.remainder, Column(""), address)
    )


def _chart(chart: Chart | TimeChart) -> Markup:
    """Return a chart, drawn for screens with room and for those without."""
    drawn = chart.drawn if isinstance(chart, Chart) else partial(_time_chart, chart)
    if isinstance(chart, TimeChart) and chart.small:
        return drawn(width=NARROW)
    caption = Markup()
    if chart.caption:
        caption = Markup("<figcaption>{}</figcaption>").format(chart.caption)
    if chart.small:
        return Markup('<figure class="drawn">{}{}</figure>').format(caption, drawn(width=NARROW))
    both = '<div class="roomy">{}</div><div class="close">{}</div>'
    return Markup(f'<figure class="drawn">{{}}{both}</figure>').format(
        caption, drawn(width=WIDE), drawn(width=NARROW)
    )


def _time_chart(chart: TimeChart, width: int) -> Markup:
    large = not chart.small
    inks = {"better": "good", "worse": "bad", "suspect": "warn"}
    marks = [
        plots.Mark(mark.time / SECOND_NS, mark.text, inks.get(mark.tone, "muted"))
        for mark in sorted(chart.marks, key=lambda mark: mark.time)
        if large or mark.bar
    ]
    return plots.chart(
        [*_dots(chart), *_given_dots(chart), *_levels(chart)],
        title=chart.title,
        about=chart.about,
        x=Axis(kind="time"),
        y=Axis(chart.metric, chart.unit) if large else Axis(),
        marks=marks,
        levels=[
            *(plots.ReferenceLine(y, text) for y, text in chart.bounds if y is not None),
            *(plots.ReferenceLine(y, name, "warn") for y, name in _given_heights(chart)),
        ],
        width=width,
        height=280 if large else 110,
    )


def _dots(chart: TimeChart) -> Iterator[plots.ChartSeries]:
    for dots in chart.dots:
        points = [(time / SECOND_NS, value) for time, value in _thinned(dots.points)]
        if points:
            name = "" if chart.small else dots.name
            yield plots.ChartSeries(name, points, "dots", dots.colour, dots.form)


def _is_within(chart: TimeChart, time: int | None) -> bool:
    """Return whether a given value is drawn at its time: within that of the dots, if any."""
    times = [at for dots in chart.dots for at, _ in dots.points]
    return time is not None and (not times or min(times) <= time <= max(times))


def _given_dots(chart: TimeChart) -> Iterator[plots.ChartSeries]:
    """Yield the given values at their times."""
    known = [(time or 0, y) for time, y, _ in chart.given if _is_within(chart, time)]
    if known:
        points = [(time / SECOND_NS, y) for time, y in sorted(known)]
        yield plots.ChartSeries("" if chart.small else "given", points, "dots", "warn", 3)


def _given_heights(chart: TimeChart) -> Iterator[tuple[float, str]]:
    """Yield the heights of the other given values, with their names."""
    for time, y, name in chart.given:
        if not _is_within(chart, time):
            yield y, "" if chart.small else name


def _thinned(points: Sequence[tuple[int, float]]) -> list[tuple[int, float]]:
    """Return few enough values: the least and the greatest in each of many spans of time."""
    if len(points) <= MAX_DRAWN:
        return [*points]
    first, length = points[0][0], points[-1][0] - points[0][0] or 1
    spans: dict[int, list[tuple[int, float]]] = {}
    for point in points:
        span = (point[0] - first) * (MAX_DRAWN // 2 - 1) // length
        spans.setdefault(span, []).append(point)
    return [
        point
        for within in spans.values()
        for point in sorted({min(within, key=itemgetter(1)), max(within, key=itemgetter(1))})
    ]


def _levels(chart: TimeChart) -> Iterator[plots.ChartSeries]:
    name = "" if chart.small else "level"  # of the first one, for the legend
    for start, end, level in chart.levels:
        ends = [(start / SECOND_NS, level), (end / SECOND_NS, level)]
        yield plots.ChartSeries(name, ends, "line", 2, 1)
        name = ""


def table_html(table: Table, address: Address, kind: str = "narrow-table") -> Markup:
    """Return a table, "" without rows. Of the kind ``cards`` each row is a card on a telephone."""
    if not table.rows:
        return Markup()
    columns, rows = table.for_medium("browser")
    columns = [
        replace(column, fold=column.fold and any(len(cell_text(row[i])) > SHORT for row in rows))
        for i, column in enumerate(columns)
    ]
    heads = _joined(
        Markup('<th scope="col"{}>{}</th>').format(_class(column), column.words)
        for column in columns
    )
    lines = _joined(_row(row, columns, address, kind == "cards") for row in rows)
    title = Markup("<h3>{}</h3>").format(table.title) if table.title else Markup()
    return title + Markup(
        '<div class="wide"><table class="{}">'
        "<thead><tr>{}</tr></thead><tbody>{}</tbody></table></div>{}"
    ).format(kind, heads, lines, _remainder(table, address))


def _row(
    row: Sequence[Cell], columns: Sequence[Column], address: Address, labelled: bool
) -> Markup:
    """Return a row. A text in its first column names it; numbers may be ``labelled``."""
    cells = []
    for place, (cell, column) in enumerate(zip(row, columns, strict=True)):
        inner = _cell(cell, column, address)
        if place or column.kind != "text":
            label = f' data-label="{escape(column.title)}"' if labelled and column.right else ""
            cells.append(Markup("<td{}{}>{}</td>").format(_class(column), Markup(label), inner))
        else:
            cells.append(Markup('<th scope="row" class="name">{}</th>').format(inner))
    return Markup("<tr>{}</tr>").format(Markup().join(cells))


def _class(column: Column) -> Markup:
    if column.right:
        return Markup(' class="num"')
    return Markup(' class="text"') if column.fold else Markup()


def _cell(cell: Cell, column: Column, address: Address) -> Markup:
    if cell is None or cell == "":
        return escape(NOTHING if column.right else "")
    if isinstance(cell, str):
        return breakable(cell)
    if isinstance(cell, int | float):
        return escape(_number(cell, column))
    if isinstance(cell, Figure):
        return escape(figure(cell.value, cell.unit))
    if isinstance(cell, Link):
        return _link(cell, address)
    if isinstance(cell, State):
        return _state(cell)
    if isinstance(cell, Shares):
        return shares(*cell.parts)
    return Markup().join(spaced([_cell(each, Column(""), address) for each in cell]))


def _number(value: float, column: Column) -> str:
    if column.kind == "time":
        return moment(int(value))
    if column.kind == "clock":
        return clock(int(value))
    if column.kind == "share":
        return show_share(value)
    if column.kind == "per cent":
        return show_change(value)
    if column.kind == "seconds":
        return show_seconds(value)
    return whole(value) if isinstance(value, int) else number(value)


def _link(link: Link, address: Address) -> Markup:
    where = link.address or address(**link.query)
    return Markup('<a href="{}">{}</a>').format(where, breakable(link.text))


def _state(state: State) -> Markup:
    word = state.word
    if isinstance(word, Figure):
        word = figure(word.value, word.unit)
    if state.tone == "rehearsed":
        return rehearsal_mark(True)
    if state.tone == "given":
        title = "given by others, not measured here"
        return Markup('<span class="rehearsed" title="{}">{}</span>').format(title, word)
    kind = state.tone if state.tone == "quiet" else f"judged {state.tone}"
    return Markup('<span class="{}">{}</span>').format(kind, word)
