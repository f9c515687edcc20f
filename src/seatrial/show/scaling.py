"""Scaling as a page: what more threads, nodes or tasks give, or what constant resources cost; or
curves over a size of the work: their figures, bands, and where two of them cross."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from markupsafe import Markup
from msgspec import to_builtins

from seatrial.judge.promises import COLUMN, share_cell, told
from seatrial.results.case_figures import TableOverX, causes
from seatrial.results.given import GivenEntry
from seatrial.results.scaling import CurveCell, CurveTable, ScalingLine, ScalingQuery, ScalingTable
from seatrial.results.sizes import Cell as ScalingCell
from seatrial.results.sizes import Crossing, Meeting
from seatrial.show.draw import plots
from seatrial.show.draw.svg import WIDTH, Axis
from seatrial.show.given import OF_MEASURED, given_section
from seatrial.show.page import Cell, Chart, Column, Figure, Page, Part, Section, State, Table, Text
from seatrial.units import (
    count,
    in_per_cent,
    interval_in_per_cent,
    show_bytes,
    show_interval,
    show_number,
    show_unit,
)

MEASURED = "measured"  # the name of the only line
MAX_TICKS = 10  # sizes that are labelled on an axis
MAX_EQUAL = 5
COLUMNS = (
    *("case", "metric", "unit", "line", "x", "median", "runs", "speedup", "low", "high"),
    *("ideal", "efficiency", "gain", "excluded"),
)


def scaling_page(
    tables: Sequence[ScalingTable | CurveTable],
    query: ScalingQuery,
    without: Sequence[str] = (),
    given: Sequence[GivenEntry] = (),
) -> Page:
    """Return sections for each table, then the tests ``without`` the metric, the figures that were
    given, and what cases are in no table."""
    over_sizes = [one for one in tables if isinstance(one, CurveTable)]
    if over_sizes:
        return curves_page(over_sizes, given)
    series = [one for one in tables if isinstance(one, ScalingTable)]
    return Page(
        "Scaling",
        [
            *(section for one in series for section in _sections(one, query.pays)),
            *_below(series[0], query, without, given),
        ],
        records=partial(_records, series, given),
        lines=lambda: [COLUMNS, *(row for one in series for row in _lines(one))],
    )


def _below(
    one: ScalingTable,
    query: ScalingQuery,
    without: Sequence[str],
    given: Sequence[GivenEntry],
) -> Iterator[Section]:
    """Yield what is told below all tables, of which ``one`` is."""
    yield Section("", [f"without {query.metric}: {', '.join(without)}" if without else ""])
    if given:
        yield given_section(given, beside=OF_MEASURED)
    left_out = one.left_out_words
    yield Section("", [f"left out: {left_out}" if left_out else ""])


def _records(tables: Sequence[ScalingTable], given: Sequence[GivenEntry]) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = to_builtins(tables)
    for record in records:
        for line in record["lines"]:
            for cell in line["cells"]:
                del cell["values"]
    beside = {"given": to_builtins(given)} if given else {}
    return [record | beside for record in records]


def _lines(one: ScalingTable) -> Iterator[list[object]]:
    for line in one.lines:
        for cell in line.cells:
            yield [
                *(one.case, one.metric, one.unit, line.by, one.named(cell.x), cell.median, cell.n),
                *(cell.speedup, cell.low, cell.high, cell.ideal, cell.efficiency, cell.gain),
                cell.reason or causes(cell.excluded),
            ]


# ---- a table -------------------------------------------------------------------------------------


def _sections(one: ScalingTable, pays: float) -> Iterator[Section]:
    """Yield what a table is about with its charts, its rows, and what is told of it."""
    said = about(one, f"{one.better} is better", _kind(one))
    if one.reason:
        yield Section(heading(one), [said, Text(one.reason, "notice")])
        return
    yield Section(heading(one), [said, *_charts(one)])
    yield Section("", [_table(one)])
    yield Section("", list(_told(one, pays)))


def _kind(one: ScalingTable) -> str:
    if one.names:
        return "settings: each beside the best"
    if one.fixed:
        return "constant resources: the same speed is ideal"
    return "weak scaling" if one.weak else "strong scaling"


class _Row(NamedTuple):
    line: ScalingLine
    cell: ScalingCell


def _table(one: ScalingTable) -> Table:
    columns = [
        Column("line", value=lambda row: _name(row), fold=True),
        Column(one.x, "number", lambda row: one.named(row.cell.x)),
        Column("median", "number", lambda row: row.cell.median),
        Column("runs", "count", lambda row: row.cell.n),
        Column(COLUMN, "share", lambda row: share_cell(row.cell.promised)),
        *(_OF_CONSTANT if one.fixed else _OF_GROWING),
        Column(
            "excluded", value=lambda row: row.cell.reason or causes(row.cell.excluded), fold=True
        ),
    ]
    return Table.of(columns, (_Row(line, cell) for line in one.lines for cell in line.cells))


def _name(row: _Row) -> str:
    """Return the name of a line, in its first row."""
    return row.line.by if row.cell is row.line.cells[0] else ""


_OF_CONSTANT = (
    Column("of the best", "share", lambda row: in_per_cent(row.cell.speedup)),
    Column("95 %", "share", lambda row: interval_in_per_cent(row.cell.low, row.cell.high), spare=1),
)


def _whole(share: float | None) -> str:
    return "" if share is None else f"{round(100 * share)} %"  # never -0


_OF_GROWING = (
    Column("speed-up", "number", lambda row: row.cell.speedup),
    Column("95 %", "number", lambda row: show_interval(row.cell.low, row.cell.high), spare=1),
    Column("ideal", "number", lambda row: row.cell.ideal, spare=3),
    Column("efficiency", "share", lambda row: _whole(row.cell.efficiency)),
    Column("gain", "share", lambda row: _whole(row.cell.gain), spare=2),
    Column(
        "",
        "state",
        lambda row: State("knee", "suspect") if row.line.knee == row.cell.x else "",
        only="browser",
    ),
)


# ---- in words ------------------------------------------------------------------------------------


def _told(one: ScalingTable, pays: float) -> Iterator[Part]:
    """Yield what is told of each line, then the best setting."""
    for line in one.lines:
        name = f"{line.by}: " if line.by else ""
        for words in _of_constant(line, one) if one.fixed else _of_growing(line, one.x, pays):
            yield name + words
    if one.best is not None:
        yield _best(one)
    yield from _crossings(one)
    yield from of_figures(one.metric, one.figures)
    yield from told(cell.promised for line in one.lines for cell in line.cells)


def _of_constant(line: ScalingLine, table: ScalingTable) -> Iterator[str]:
    """Yield what is told of a line with constant resources: its plateau, its drops."""
    if line.reason:
        yield line.reason
        return
    yield f"{_plateau(line, table)}: within 5 % of the best, or as good within the noise"
    for drop in line.drops:
        yield drop.words(table.x, table.named)


def _plateau(line: ScalingLine, table: ScalingTable) -> str:
    """Return the x that are as good as the best, as a span if they have an order."""
    named = list(map(table.named, line.plateau))
    if not table.ordered:
        return f"as good: {table.x} {', '.join(named)}"
    several = len(named) > 1
    return f"plateau: {table.x} {' to '.join((named[0], named[-1])[: several + 1])}"


def _of_growing(line: ScalingLine, x: str, pays: float) -> Iterator[str]:
    """Yield where more of x stops paying, and speed-ups that are more than ideal."""
    yield _knee(line, x, pays)
    for cell in line.beyond_ideal:
        yield (
            f"{x} {line.base or 0:g} to {cell.x:g}: a speed-up of {show_number(cell.speedup)} is "
            f"beyond ideal ({show_number(cell.ideal)}): look at the smallest case, and at the sizes"
        )


def _knee(line: ScalingLine, x: str, pays: float) -> str:
    if line.knee is None:
        return f"no knee: {line.reason}"
    where = f"knee at {x} {line.knee:g}"
    if line.knee == line.base:
        where = f"more than {x} {line.knee:g}, the smallest measured, does not pay"
    doubt = "" if line.certain else f"; {line.reason}"
    return f"{where}: less than {100 * pays:g} % of an addition becomes speed{doubt}"


def _best(one: ScalingTable) -> Text:
    def setting(by: str, x: float) -> str:
        return f"{by}, {one.x} {one.named(x)}" if by else f"{one.x} {one.named(x)}"

    assert one.best is not None
    best = f"best median: {setting(one.best.by, one.best.x)}:"
    equals = "; ".join(setting(by, x) for by, x in one.best.equals[:MAX_EQUAL])
    beside = [f"; as good within the noise: {equals}"] if equals else []
    return Text([best, Figure(one.best.median, one.unit), *beside])


def _crossings(table: ScalingTable) -> Iterator[Text]:
    """Yield from which x on another line has the best median, of x that two lines share."""
    sign = 1 if table.better == "higher" else -1
    medians: dict[float, dict[str, float]] = {}
    for line in table.lines:
        for cell in line.cells:
            if cell.median is not None:
                medians.setdefault(cell.x, {})[line.by] = cell.median
    leader = ""
    for x, here in sorted(medians.items()):
        if len(here) < 2:
            continue
        best = max(here, key=lambda by: sign * here[by])
        if leader in here and best != leader:
            first, second = (Figure(here[by], table.unit) for by in (best, leader))
            ahead = f"from {table.x} {table.named(x)} on {best} is ahead of {leader}:"
            yield Text([ahead, first, "against", second, ", by the medians"])
        leader = best


# ---- drawn ---------------------------------------------------------------------------------------


def _charts(table: ScalingTable) -> list[Chart]:
    """Return the values, the speed-up and the efficiency; of named settings the speed over the
    best."""
    if table.names:
        drawn = partial(_of_the_best, table)
        return [Chart(drawn, "per cent of the best, with 95 % intervals", small=True)]
    speed = "speed over the best" if table.fixed else "speed-up"
    share = "per cent of the best" if table.fixed else "efficiency: speed-up over ideal"
    return [
        Chart(partial(_medians, table), "medians", small=True),
        Chart(partial(_speedups, table, speed), f"{speed}, with 95 % intervals", small=True),
        Chart(partial(_efficiencies, table), share, small=True),
    ]


def _medians(table: ScalingTable, width: int) -> Markup:
    slope = 0.0 if table.weak else -1.0
    if table.better == "higher":
        slope = 1.0
    curves = [
        plots.Curve(
            line.by or MEASURED, [(c.x, c.median, None, None) for c in line.cells if c.median]
        )
        for line in table.lines
    ]
    return plots.scaling(
        curves,
        title=heading(table),
        x=Axis(table.x),
        y=Axis(table.metric, table.unit),
        ideal=0.0 if table.fixed else slope,
        width=width,
    )


def _speedups(table: ScalingTable, speed: str, width: int) -> Markup:
    curves = []
    for line in table.lines:
        points = [(c.x, c.speedup, c.low, c.high) for c in line.cells if c.speedup is not None]
        curves.append(plots.Curve(line.by or MEASURED, points))
    return plots.scaling(
        curves,
        title=f"{heading(table)}: {speed}",
        x=Axis(table.x),
        y=Axis(speed),
        ideal=0.0 if table.fixed else 1.0,
        width=width,
    )


def _efficiencies(table: ScalingTable, width: int) -> Markup:
    sizes = sorted({cell.x for line in table.lines for cell in line.cells})
    series = []
    for line in table.lines:
        points = [(c.x, c.efficiency and 100 * c.efficiency) for c in line.cells]
        series.append(plots.ChartSeries(line.by or MEASURED, points, "both"))
    return plots.chart(
        series,
        title=f"{heading(table)}: efficiency",
        x=Axis(table.x, kind="log", ticks=sizes if len(sizes) <= MAX_TICKS else ()),
        y=Axis("efficiency", "%", low=0, high=100),
        levels=[plots.ReferenceLine(100, "ideal")],
        width=width,
        height=270,
    )


def _of_the_best(table: ScalingTable, width: int) -> Markup:
    """Return a row for each setting: its speed in per cent of that of the best, as SVG."""
    rows = []
    for line in table.lines:
        for cell in line.cells:
            if cell.speedup is not None:
                name = ", ".join(filter(None, (line.by, table.named(cell.x))))
                value, best = 100 * cell.speedup, cell.x == line.base
                low, high = (end and 100 * end for end in (cell.low, cell.high))
                looks = ("good", 1) if best else ("muted", 3)
                rows.append(plots.Interval(name, value, low, high, f"{value:.1f} %", *looks))
    return plots.forest(
        rows,
        title=heading(table),
        axis=Axis("of the best", "%"),
        centre=100,
        width=width,
        stacked=True,
        bars=True,
    )


# ---- curves --------------------------------------------------------------------------------------

MAX_SIZES = 8  # sizes that are labelled on an axis
MAX_TOLD = 12  # sentences about pairs of curves
MAX_ALIKE = 3  # of these about pairs without an order
BANDS = "band: 95 % of the median; of under six runs the least and greatest figure"
CURVE_COLUMNS = ("case", "metric", "unit", "line", "x", "median", "runs", "low", "high")
OF_PAIRS = ("times_as_good", "times_low", "times_high", "verdict", "excluded")


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
        records=partial(_curve_records, tables, given),
        lines=lambda: [
            (*CURVE_COLUMNS, *OF_PAIRS),
            *(row for one in tables for row in _curve_lines(one)),
        ],
    )


def _curve_records(
    tables: Sequence[CurveTable], given: Sequence[GivenEntry]
) -> list[dict[str, Any]]:
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
        _curve_table(one),
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


def _curve_lines(one: CurveTable) -> Iterator[list[object]]:
    for line in one.lines:
        for cell in line.cells:
            yield [
                *(one.case, one.metric, one.unit, line.by, cell.x, cell.median, cell.n),
                *(cell.low, cell.high, cell.times, cell.times_low, cell.times_high),
                *(cell.verdict, cell.reason or causes(cell.excluded)),
            ]


def _curve_table(one: CurveTable) -> Table:
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


# ---- curves in words -----------------------------------------------------------------------------


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
        return "; ".join(_crossing_words(crossing, each, one) for crossing in each.crossings)
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


def _crossing_words(crossing: Crossing, each: Meeting, one: TableOverX) -> str:
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


# ---- curves drawn --------------------------------------------------------------------------------


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
    ticks = sizes[:: -(-len(sizes) // MAX_SIZES) or 1]
    return Axis(one.x, kind="log", ticks=ticks, labels=[one.named(x) for x in ticks])
