"""Curves over a size as a page: their figures, bands, and where two of them cross."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from markupsafe import Markup
from msgspec import to_builtins

from seatrial.judge.promises import COLUMN, share_cell, told
from seatrial.results.curves import CurveCell, CurveTable
from seatrial.results.given import GivenEntry
from seatrial.results.panels import TableOverX
from seatrial.results.sizes import Crossing, Meeting
from seatrial.results.store.by_case import causes
from seatrial.show.draw import plots
from seatrial.show.draw.svg import WIDTH, Axis
from seatrial.show.given import OF_MEASURED, given_section
from seatrial.show.page import Cell, Chart, Column, Page, Part, Section, Table, Text
from seatrial.units import count, show_bytes, show_interval, show_number, show_unit

MAX_TICKS = 8  # sizes that are labelled on an axis
MAX_TOLD = 12  # sentences about pairs of curves
MAX_ALIKE = 3  # of these about pairs without an order
BANDS = "band: 95 % of the median; of under six runs the least and greatest figure"
COLUMNS = ("case", "metric", "unit", "line", "x", "median", "runs", "low", "high")
MORE = ("times_as_good", "times_low", "times_high", "verdict", "excluded")


def curves_page(tables: Sequence[CurveTable], given: Sequence[GivenEntry] = ()) -> Page:
    """Return a section for each table, figures that were given, and what cases are in none."""
    left_out = tables[0].left_out_words
    return Page(
        "Scaling",
        [
            *(Section(heading(one), parts_of(one)) for one in tables),
            *([given_section(given, beside=OF_MEASURED)] if given else []),
            Section("", [f"left out: {left_out}" if left_out else ""]),
        ],
        records=partial(_records, tables, given),
        lines=lambda: [(*COLUMNS, *MORE), *(row for one in tables for row in _lines(one))],
    )


def _records(tables: Sequence[CurveTable], given: Sequence[GivenEntry]) -> list[dict[str, Any]]:
    beside = {"given": to_builtins(given)} if given else {}
    return [record(one) | beside for one in tables]


def heading(one: TableOverX) -> str:
    return f"{one.case}: {one.metric} over {one.x}"


def about(one: TableOverX, *more: str, axes: str = "") -> str:
    """Return the unit of a table, with what else is told above it, and what follows its ``axes``
    (default: x)."""
    said = ", ".join(filter(None, (show_unit(one.unit, "in {}"), *more)))
    return f"{said}; along with {axes or one.x}: {', '.join(one.along)}" if one.along else said


def of_figures(metric: str, figures: int) -> Iterator[Part]:
    """Yield that the metric was chosen of several; in a terminal also how another is asked for."""
    if figures > 1:
        chosen = f"{metric} is one of {figures} figures"
        yield Text(chosen, only="browser")
        yield Text(f"{chosen}; --metric names another", only="terminal")


def parts_of(one: CurveTable) -> list[Part]:
    """Return the chart and the table of curves, and what is told of them."""
    said = about(one, f"{one.better} is better" if one.directed else "no direction")
    if one.reason:
        return [said, Text(one.reason, "notice")]
    pairs = list(told_of(one))
    more = len(pairs) - MAX_TOLD
    words = [*pairs[:MAX_TOLD], *([f"and {count(more, 'more pair')}"] if more > 0 else [])]
    return [
        said,
        Chart(partial(drawing, one), _caption(one)),
        *(Text(each, only="browser") for each in words),
        _table(one),
        BANDS,
        f"as good: how many times as good as {one.lines[0].by}" if one.meetings else "",
        *(Text(each, only="terminal") for each in words),
        *told(cell.promised for line in one.lines for cell in line.cells),
        *of_figures(one.metric, one.figures),
    ]


def _caption(one: CurveTable) -> str:
    zero = any(cell.x == 0 for line in one.lines for cell in line.cells)
    without = f"; {one.named(0)} has no place on a logarithmic axis" if zero else ""
    return f"{one.metric} over {one.x}, with bands{without}"


def record(one: CurveTable) -> dict[str, Any]:
    found: dict[str, Any] = to_builtins(one)
    return found


def _lines(one: CurveTable) -> Iterator[list[object]]:
    for line in one.lines:
        for cell in line.cells:
            yield [
                *(one.case, one.metric, one.unit, line.by, cell.x, cell.median, cell.n),
                *(cell.low, cell.high, cell.times, cell.times_low, cell.times_high),
                *(cell.verdict, cell.reason or causes(cell.excluded)),
            ]


def _table(one: CurveTable) -> Table:
    rows: list[list[Cell]] = [
        [
            line.by if cell is line.cells[0] else "",
            one.named(cell.x),
            cell.median,
            show_interval(cell.low, cell.high),
            cell.n,
            share_cell(cell.promised),
            cell.times,
            show_interval(cell.times_low, cell.times_high),
            _word(cell),
            cell.reason or causes(cell.excluded),
        ]
        for line in one.lines
        for cell in line.cells
    ]
    columns = [
        Column("line", fold=True),
        Column(one.x, "number"),
        Column("median", "number"),
        Column("band", "number"),
        Column("runs", "count", spare=1),
        Column(COLUMN, "number"),
        Column("as good", "number"),
        Column("95 %", "number", spare=2),
        Column(""),
        Column("excluded", fold=True),
    ]
    return Table(columns, rows)


def _word(cell: CurveCell) -> str:
    return "" if cell.times is None else cell.verdict or ""


# ---- in words ------------------------------------------------------------------------------------


def told_of(one: CurveTable) -> Iterator[str]:
    """Yield what is told of each two curves: those that cross first, those without an order last
    and in one sentence where they are many."""
    if not one.directed and len(one.lines) > 1:
        yield "it has no direction (better: none), so no curve is ahead"
    ordered = [each for each in one.meetings if any(span.ahead for span in each.spans)]
    for each in sorted(ordered, key=lambda each: not each.crossings):
        yield meeting_words(each, one)
    without = [each for each in one.meetings if each not in ordered]
    if len(without) > MAX_ALIKE:
        yield f"no order beyond noise in {count(len(without), 'pair')} of curves"
    else:
        yield from (meeting_words(each, one) for each in without)
    if not one.paired:
        yield f"{count(len(one.lines), 'curve')}: each was compared with {one.lines[0].by} alone"


def meeting_words(each: Meeting, one: TableOverX) -> str:
    """Return who of two curves is ahead at which sizes, and where they cross."""
    first, second = each.curves
    if not each.spans:
        return f"{first} and {second}: no size has a figure of both"
    if each.crossings:
        return "; ".join(_crossing(crossing, each, one) for crossing in each.crossings)
    ahead = [span for span in each.spans if span.ahead]
    if not ahead:
        return f"no order beyond noise between {first} and {second}"
    other = second if ahead[0].ahead == first else first
    said = f"{ahead[0].ahead} is ahead of {other}"
    if len(ahead) == len(each.spans):
        return f"{said} at every size"
    where = ", ".join(_sizes(span.start, span.end, one) for span in ahead)
    return f"{said} {where}; no order beyond noise at the other sizes"


def _sizes(start: float, end: float, one: TableOverX) -> str:
    if start == end:
        return f"at {one.named(start)}"
    return f"from {one.named(start)} to {one.named(end)}"


def _crossing(crossing: Crossing, each: Meeting, one: TableOverX) -> str:
    """Return where two curves cross: ``X is ahead up to 4 KiB, Y from 16 KiB: they cross``."""
    said = (
        f"{crossing.before} is ahead up to {one.named(crossing.last)}, {crossing.after} from "
        f"{one.named(crossing.first)}: they cross"
    )
    if crossing.near is not None:
        near = show_bytes(crossing.near) if one.in_bytes else show_number(crossing.near)
        said += f" near {near}"
    between = [
        span
        for span in each.spans
        if not span.ahead and crossing.last < span.start < crossing.first
    ]
    if between:
        said += f" (no order beyond noise {_sizes(between[0].start, between[-1].end, one)})"
    return said


# ---- drawn ---------------------------------------------------------------------------------------


def drawing(one: CurveTable, width: int = WIDTH) -> Markup:
    """Return the curves with their bands on logarithmic axes, as SVG."""
    series = [
        plots.ChartSeries(
            line.by or "measured",
            [(cell.x, cell.median) for cell in line.cells if cell.x > 0],
            "both",
            band=[
                (cell.x, cell.low, cell.high)
                for cell in line.cells
                if cell.x > 0 and cell.low and cell.low > 0 and cell.high
            ],
        )
        for line in one.lines
    ]
    return plots.chart(
        series,
        title=heading(one),
        about="A curve and its band for each setting",
        x=axis_of(one, [cell.x for line in one.lines for cell in line.cells]),
        y=Axis(one.metric, one.unit, "log"),
        width=width,
        height=270,
        margin=8,
    )


def axis_of(one: TableOverX, xs: Iterable[float]) -> Axis:
    """Return a logarithmic axis on which some of the sizes are labelled."""
    sizes = sorted({x for x in xs if x > 0})
    ticks = sizes[:: -(-len(sizes) // MAX_TICKS) or 1]
    return Axis(one.x, kind="log", ticks=ticks, labels=[one.named(x) for x in ticks])
