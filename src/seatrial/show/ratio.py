"""Ratio as a page: what one way of running costs against another, over sizes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from markupsafe import Markup
from msgspec import to_builtins

from seatrial.judge.statistics.significance import remedy
from seatrial.results.case_figures import causes
from seatrial.results.ratios import RatioCell, RatioTable, extremes
from seatrial.show.draw import plots
from seatrial.show.draw.svg import Axis
from seatrial.show.page import Chart, Column, Page, Section, State, Table, Text, Tone
from seatrial.show.scaling import about, axis_of, meeting_words
from seatrial.units import listed, show_interval, show_number

MAX_NAMED = 6
COLUMNS = (
    *("case", "x", "first_median", "first_runs", "second_median", "second_runs"),
    *("ratio", "low", "high", "verdict", "first_speedup", "second_speedup", "ideal"),
    *("first_why", "second_why", "why", "needed"),
)


def ratio_page(
    shown: Sequence[RatioTable], every: Sequence[RatioTable], without: Sequence[str]
) -> Page:
    """Return sections for each table that is ``shown``; the range over ``every`` one, and the tests
    ``without`` one of both ways."""
    left_out = every[0].left_out_words
    lacking = f"not with both {' and '.join(every[0].values)}: {', '.join(without)}"
    return Page(
        "Ratio",
        [
            *(section for one in shown for section in _sections(one)),
            Section("", [f"left out: {left_out}" if left_out else ""]),
            Section("", [*_range(every), lacking if without else ""]),
        ],
        records=partial(_records, shown),
        lines=lambda: [COLUMNS, *(row for one in shown for row in _lines(one))],
    )


def _records(tables: Sequence[RatioTable]) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = to_builtins(tables)
    for record in records:
        for cell in record["cells"]:
            del cell["first"]["values"], cell["second"]["values"]
    return records


def _lines(one: RatioTable) -> Iterator[list[object]]:
    for cell in one.cells:
        a, b = cell.first, cell.second
        yield [
            *(one.case, one.named(cell.x), a.median, a.n, b.median, b.n),
            *(cell.ratio, cell.low, cell.high, cell.word, a.speedup, b.speedup),
            *(a.ideal or b.ideal, a.reason, b.reason, cell.reason, cell.needed or None),
        ]


def _range(tables: Sequence[RatioTable]) -> Iterator[str]:
    """Yield the least and the greatest ratio over all tables: 1.11 GTC 64 .. 1.93 MILC 256."""
    ends_of_range = extremes(tables)
    if ends_of_range and len(tables) > 1:
        ends = (
            f"{show_number(one.ratio)} {one.test} {one.x}{' (unclear)' if one.unclear else ''}"
            for one in ends_of_range
        )
        yield f"over all: {' .. '.join(ends)}"


# ---- a table -------------------------------------------------------------------------------------


def _sections(one: RatioTable) -> Iterator[Section]:
    """Yield what a table is about with its charts, its rows, and what is told of them."""
    title = f"{one.case}: {one.metric}, {_ways(one)}, by {one.x}"
    said = [about(one, f"{one.better} is better", axes="them")]
    if one.fixed:
        what = f"{one.x} is a size" if one.sized else "constant resources"
        said.append(f"{what}: no speed-up is to be expected")
    if one.reason:
        yield Section(title, [*said, Text(one.reason, "notice")])
        return
    yield Section(title, [*said, *_charts(one)])
    yield Section("", [_table(one)])
    yield Section("", list(told_of(one)))


def _ways(one: RatioTable) -> str:
    return f"{one.values[1]} over {one.values[0]}"


def _table(one: RatioTable) -> Table:
    first, second = one.values
    columns = [
        Column(one.x, "number", lambda cell: one.named(cell.x)),
        Column(first, "number", lambda cell: cell.first.median),
        Column(second, "number", lambda cell: cell.second.median),
        Column("runs", "count", _runs, spare=2),
        Column("ratio", "number", lambda cell: cell.ratio),
        Column("95 %", "number", lambda cell: show_interval(cell.low, cell.high)),
        Column(f"{second} is", "state", _verdict),
        Column("speed-ups", "number", _speedups),
        Column("ideal", "number", lambda cell: cell.first.ideal or cell.second.ideal, spare=3),
        Column("excluded", value=partial(_excluded, one), fold=True),
    ]
    return Table.of(columns, one.cells)


def _runs(cell: RatioCell) -> str:
    a, b = cell.first.n, cell.second.n
    return f"{a}" if a == b else f"{a}, {b}"


_TONES: dict[str, Tone] = {"faster": "better", "slower": "worse", "unclear": "suspect"}


def _verdict(cell: RatioCell) -> State:
    return State(cell.verdict_words, _TONES.get(cell.word, ""))


def _speedups(cell: RatioCell) -> str:
    if not (cell.first.ideal or cell.second.ideal):
        return ""
    return ", ".join(show_number(each.speedup) or "-" for each in (cell.first, cell.second))


def _excluded(table: RatioTable, cell: RatioCell) -> str:
    """Return why a way has no figure, or which of its runs do not count: ``compat: 2 timeout``."""
    sides = zip(table.values, (cell.first, cell.second), strict=True)
    reasons = [(name, side.reason or causes(side.excluded)) for name, side in sides]
    return "; ".join(f"{name}: {reason}" for name, reason in reasons if reason)


# ---- in words ------------------------------------------------------------------------------------


def told_of(one: RatioTable) -> Iterator[str]:
    """Yield what is told below a table: range, speed-ups, how the ratio changes, what failed."""
    known = one.known
    if not known:
        yield "no size has a figure of both: nothing to compare"
        return
    if one.lowest is not one.highest:
        ends = (_end(one, cell) for cell in (one.lowest, one.highest) if cell)
        yield f"range: {' .. '.join(ends)}"
    if one.change is not None:
        yield from _change(one)
    if one.meeting is not None and (one.sized or one.meeting.crossings):
        yield meeting_words(one.meeting, one)
    yield from _unclear(one)


def _end(one: RatioTable, cell: RatioCell) -> str:
    """Return the least or greatest ratio, and where it is."""
    unclear = " (unclear)" if cell.verdict == "unclear" else ""
    return f"{show_number(cell.ratio)} at {one.x} {one.named(cell.x)}{unclear}"


def _change(one: RatioTable) -> Iterator[str]:
    """Yield how much faster both ways get up to the largest size, and how the ratio changes."""
    assert one.change is not None
    base, last = one.known[0], one.known[-1]
    first, second = one.values
    a, b = (show_number(cell.speedup) for cell in (last.first, last.second))
    span = f"from {one.x} {base.x:g} to {last.x:g}"
    yield f"speed-up {span}: {first} {a}, {second} {b}, of {show_number(last.first.ideal)}"
    ends = show_interval(one.change.low, one.change.high)
    interval = f"95 %: {ends}" if ends else "of single runs: repeat"
    yield f"ratio of ratios {span}: {show_number(one.change.ratio)} ({interval})"


def _unclear(one: RatioTable) -> Iterator[str]:
    """Yield why sizes are unclear, each reason once, and the remedy."""
    reasons: dict[str, list[str]] = {}
    unclear = [cell for cell in one.known if cell.verdict == "unclear"]
    for cell in unclear:
        reasons.setdefault(cell.reason, []).append(one.named(cell.x))
    for reason, xs in reasons.items():
        yield f"{one.x} {listed(xs, MAX_NAMED)}: {reason}"
    if needed := max((cell.needed for cell in unclear), default=0):
        yield remedy(needed)


# ---- drawn ---------------------------------------------------------------------------------------


def _charts(table: RatioTable) -> list[Chart]:
    """Return the ratio over the sizes, and the speed-up of both ways; of named sizes the ratio
    alone."""
    if not table.known:
        return []
    ratio = _of_names if table.names else _over_sizes
    drawn = [Chart(partial(ratio, table), "times as long, with 95 % intervals", small=True)]
    if table.change is not None and not table.names:
        caption = "speed-up of both, with 95 % intervals"
        drawn.append(Chart(partial(_both_speedups, table), caption, small=True))
    return drawn


def _of_names(table: RatioTable, width: int) -> Markup:
    rows = [
        plots.Interval(
            table.named(c.x), c.ratio or 0.0, c.low, c.high, f"{c.ratio:.4g}", *_look(c.verdict)
        )
        for c in table.known
    ]
    return plots.forest(
        rows,
        title=f"{table.case}: {_ways(table)}",
        axis=Axis("ratio of times"),
        centre=1,
        width=width,
        stacked=True,
    )


def _look(verdict: str) -> tuple[str, int]:
    return {"better": ("good", 1), "worse": ("bad", 2)}.get(verdict, ("muted", 3))


def _over_sizes(table: RatioTable, width: int) -> Markup:
    known = table.known
    ends = [
        (cell.x, cell.low, cell.high)
        for cell in known
        if cell.low is not None and cell.high is not None
    ]
    points = [(cell.x, cell.ratio) for cell in known]
    return plots.chart(
        [plots.ChartSeries("ratio", points, "both", intervals=ends)],
        title=f"{table.case}: {_ways(table)}",
        x=axis_of(table, [cell.x for cell in known]),
        y=Axis("ratio of times"),
        levels=[plots.ReferenceLine(1, "the same")],
        width=width,
        height=270,
        margin=8,
    )


def _both_speedups(table: RatioTable, width: int) -> Markup:
    curves = []
    for i, name in enumerate(table.values):
        cells = [(c.first, c.second)[i] for c in table.cells]
        points = [(c.x, c.speedup, c.low, c.high) for c in cells if c.speedup is not None]
        curves.append(plots.Curve(name, points))
    return plots.scaling(
        curves,
        title=f"{table.case}: speed-up over {table.x}",
        x=Axis(table.x),
        y=Axis("speed-up"),
        width=width,
    )
