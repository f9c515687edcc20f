"""Scaling: the gain of more threads, nodes or tasks, as ``seatrial scaling`` judges it."""

import re
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from seatrial.errors import UsageError
from seatrial.model.figures import ELAPSED
from seatrial.results.scaling import AXES, PAYS, ScalingQuery, ScalingTable, scaling, without_metric
from seatrial.results.selection import Side
from seatrial.results.store.by_case import CORES
from seatrial.show.draw import plots as draw
from seatrial.show.formatting import NARROW
from seatrial.show.web.filters import CasesPage, cases_page
from seatrial.show.web.page import PageQuery
from seatrial.show.web.state.server_state import ServerState

MAX_TICKS = 10  # sizes that are labelled on an axis
LINES = ("toolchain", "machine", "trial", "stage")
LABELS = {"x": "Over", "by": "Lines by", "metric": "Metric", "pays": "Pays from"}  # of the form


class Crossing(Struct, frozen=True):
    """From ``x`` on the line ``by`` has the best median, before that ``before``; with both
    medians."""

    x: float
    before: str
    by: str
    median: float
    other: float


class Panel(Struct, frozen=True, kw_only=True):
    """A case, and the crossings of its lines."""

    table: ScalingTable
    crossings: list[Crossing]

    def plots(self) -> list[tuple[str, Any]]:
        """Return the values, the speed-up and the efficiency as SVG, each with its caption; of
        named settings the speed over the best."""
        table = self.table
        if table.names:
            return [("Per cent of the best, with 95 % intervals", _of_the_best(table))]
        slope = 1.0 if table.better == "higher" else 0.0 if table.weak else -1.0
        if table.fixed:
            slope = 0.0
        named = [(line.by or "measured", line.cells) for line in table.lines]
        medians = [
            draw.Curve(name, [(c.x, c.median, None, None) for c in cells if c.median])
            for name, cells in named
        ]
        speedups = [
            draw.Curve(
                name, [(c.x, c.speedup, c.low, c.high) for c in cells if c.speedup is not None]
            )
            for name, cells in named
        ]
        sizes = sorted({cell.x for _, cells in named for cell in cells})
        efficiencies = [
            draw.ChartSeries(
                name, [(c.x, c.efficiency and 100 * c.efficiency) for c in cells], "both"
            )
            for name, cells in named
        ]
        x = draw.Axis(table.x)
        speed = "Speed over the best" if table.fixed else "Speed-up"
        over = f"over {table.x}"
        values = draw.scaling(
            medians,
            title=f"{table.metric} {over}",
            x=x,
            y=draw.Axis(table.metric, table.unit),
            ideal=slope,
            width=NARROW,
        )
        faster = draw.scaling(
            speedups,
            title=f"{speed} {over}",
            x=x,
            y=draw.Axis(speed.lower()),
            ideal=0.0 if table.fixed else 1.0,
            width=NARROW,
        )
        shares = draw.chart(
            efficiencies,
            title=f"Efficiency {over}",
            x=draw.Axis(table.x, kind="log", ticks=sizes if len(sizes) <= MAX_TICKS else ()),
            y=draw.Axis("efficiency", "%", low=0, high=100),
            levels=[draw.ReferenceLine(100, "ideal")],
            width=NARROW,
            height=270,
        )
        of_best = "Per cent of the best" if table.fixed else "Efficiency: speed-up over ideal"
        return [
            (f"{table.metric}, medians", values),
            (f"{speed}, with 95 % intervals", faster),
            (of_best, shares),
        ]


def _of_the_best(table: ScalingTable) -> Any:
    """Return a row for each setting: its speed in per cent of that of the best, as SVG."""
    rows = []
    for line in table.lines:
        for cell in line.cells:
            if cell.speedup is not None:
                name = ", ".join(filter(None, (line.by, table.named(cell.x))))
                value, best = 100 * cell.speedup, cell.x == line.base
                low, high = (end and 100 * end for end in (cell.low, cell.high))
                looks = ("good", 1) if best else ("muted", 3)
                rows.append(draw.Interval(name, value, low, high, f"{value:.1f} %", *looks))
    return draw.forest(
        rows,
        title=f"{table.metric} over {table.x}",
        axis=draw.Axis("of the best", "%"),
        centre=100,
        width=NARROW,
        stacked=True,
        bars=True,
    )


class ScalingPage(CasesPage, frozen=True, kw_only=True):
    """The answer to a query. ``xs`` are the parameters that can grow, ``x`` is the chosen one; the
    tests ``without`` the metric are left out."""

    x: str
    xs: list[str] = []
    without: list[str] = []


def data(state: ServerState, query: PageQuery) -> ScalingPage:
    asked = ScalingQuery(
        x=query.text("x"),
        metric=query.text("metric", ELAPSED),
        by=tuple(name.strip() for name in query.text("by").split(",") if name.strip()),
        weak=query.flag("weak"),
        fixed=query.flag("fixed"),
        pays=query.share("pays", LABELS["pays"], PAYS),
    )
    return cases_page(
        *(ScalingPage, state, query, ("scaling", asked), LABELS),
        judge=lambda sides: _judged(asked, sides),
        panel=_panel,
        metrics=[ELAPSED],
        x=asked.x,
    )


def _judged(asked: ScalingQuery, sides: list[Side]) -> tuple[list[ScalingTable], dict[str, Any]]:
    """Return the tables, and fields of the page."""
    names = dict.fromkeys(name for side in sides for one in side.cases for name in one.parameters)
    grow = [name for name in dict.fromkeys([*names, *AXES]) if _grows(sides, name)]
    xs = [*grow, *(name for name in names if name not in grow and len(_values(sides, name)) > 1)]
    if not {"tasks", "threads"} <= {*xs}:
        xs = [name for name in xs if name != CORES or name in names]  # no more than one of these
    x = asked.x or (xs[0] if xs else "")
    if not x:
        raise UsageError(
            "nothing varies in these cases: no number of nodes, tasks or threads and no parameter "
            "has two values"
        )
    lines = tuple(name for name in LINES if name != x and len(_values(sides, name)) > 1)
    if x == CORES:
        lines = (*lines, "tasks") if len(_values(sides, "tasks")) > 1 else lines
    asked = replace(asked, x=x, by=asked.by or lines)
    return scaling(sides, asked), {"x": x, "xs": xs, "without": without_metric(sides, asked)}


def _values(sides: list[Side], name: str) -> set[str]:
    return {value for side in sides for value in side.all_of(name)} - {""}


def _grows(sides: list[Side], name: str) -> bool:
    """Return whether a parameter has two or more values, all numbers above 0."""
    values = _values(sides, name)
    return len(values) > 1 and all(re.fullmatch(r"\d+(\.\d+)?", value) for value in values)


def _panel(table: ScalingTable) -> Panel:
    lines = [
        replace(line, cells=[replace(cell, values=[]) for cell in line.cells])
        for line in table.lines
    ]
    return Panel(table=replace(table, lines=lines), crossings=_crossings(table))


def _crossings(table: ScalingTable) -> list[Crossing]:
    """Return the x from which on another line has the best median, of x that two lines share."""
    sign = 1 if table.better == "higher" else -1
    found: list[Crossing] = []
    leader = ""
    for x in sorted({cell.x for line in table.lines for cell in line.cells}):
        here = {
            line.by: cell.median
            for line in table.lines
            for cell in line.cells
            if cell.x == x and cell.median is not None
        }
        if len(here) < 2:
            continue
        best = max(here, key=lambda by: sign * here[by])
        if leader and best != leader and leader in here:
            found.append(Crossing(x, leader, best, here[best], here[leader]))
        leader = best
    return found
