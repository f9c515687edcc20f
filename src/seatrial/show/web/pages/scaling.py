"""Scaling: the gain of more threads, nodes or tasks, as ``seatrial scaling`` judges it."""

import re
from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from seatrial.errors import UsageError
from seatrial.model.figures import ELAPSED
from seatrial.results.curves import CurveTable, curves, is_over_size
from seatrial.results.given import GivenEntry, measured_sides
from seatrial.results.scaling import AXES, PAYS, ScalingQuery, ScalingTable, scaling, without_metric
from seatrial.results.selection import Side, cases_of
from seatrial.results.sizes import is_size, labels_of, values_of
from seatrial.results.store.by_case import CORES
from seatrial.show.curves import heading, parts_of
from seatrial.show.draw import plots
from seatrial.show.draw.svg import Axis
from seatrial.show.formatting import NARROW
from seatrial.show.given import OF_MEASURED, given_over, given_section
from seatrial.show.page import Page, Section
from seatrial.show.web.filters import cases_page
from seatrial.show.web.page import PageQuery
from seatrial.show.web.state.server_state import ServerState

_NUMBER = re.compile(r"\d+(\.\d+)?")
MEASURED = "measured"  # the name of the only line
MAX_TICKS = 10  # sizes that are labelled on an axis
LINES = ("toolchain", "machine", "trial", "stage")
LABELS = {"x": "Over", "by": "Lines by", "metric": "Metric", "pays": "Pays from"}  # of the form


def curves_of(table: ScalingTable | CurveTable) -> Page | None:
    """Return a table of curves over a size as a page; None for another one."""
    if not isinstance(table, CurveTable):
        return None
    return Page("", [Section(heading(table), parts_of(table))])


def charts(table: ScalingTable) -> list[tuple[str, Any]]:
    """Return the values, the speed-up and the efficiency as SVG, each with its caption; of
    named settings the speed over the best."""
    if table.names:
        return [("Per cent of the best, with 95 % intervals", _of_the_best(table))]
    speed = "Speed over the best" if table.fixed else "Speed-up"
    share = "Per cent of the best" if table.fixed else "Efficiency: speed-up over ideal"
    return [
        (f"{table.metric}, medians", _medians(table)),
        (f"{speed}, with 95 % intervals", _speedups(table, speed)),
        (share, _efficiencies(table)),
    ]


def _medians(table: ScalingTable) -> Any:
    slope = 1.0 if table.better == "higher" else 0.0 if table.weak else -1.0
    curves = [
        plots.Curve(
            line.by or MEASURED, [(c.x, c.median, None, None) for c in line.cells if c.median]
        )
        for line in table.lines
    ]
    return plots.scaling(
        curves,
        title=f"{table.metric} over {table.x}",
        x=Axis(table.x),
        y=Axis(table.metric, table.unit),
        ideal=0.0 if table.fixed else slope,
        width=NARROW,
    )


def _speedups(table: ScalingTable, title: str) -> Any:
    curves = []
    for line in table.lines:
        points = [(c.x, c.speedup, c.low, c.high) for c in line.cells if c.speedup is not None]
        curves.append(plots.Curve(line.by or MEASURED, points))
    return plots.scaling(
        curves,
        title=f"{title} over {table.x}",
        x=Axis(table.x),
        y=Axis(title.lower()),
        ideal=0.0 if table.fixed else 1.0,
        width=NARROW,
    )


def _efficiencies(table: ScalingTable) -> Any:
    sizes = sorted({cell.x for line in table.lines for cell in line.cells})
    series = []
    for line in table.lines:
        points = [(c.x, c.efficiency and 100 * c.efficiency) for c in line.cells]
        series.append(plots.ChartSeries(line.by or MEASURED, points, "both"))
    return plots.chart(
        series,
        title=f"Efficiency over {table.x}",
        x=Axis(table.x, kind="log", ticks=sizes if len(sizes) <= MAX_TICKS else ()),
        y=Axis("efficiency", "%", low=0, high=100),
        levels=[plots.ReferenceLine(100, "ideal")],
        width=NARROW,
        height=270,
    )


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
                rows.append(plots.Interval(name, value, low, high, f"{value:.1f} %", *looks))
    return plots.forest(
        rows,
        title=f"{table.metric} over {table.x}",
        axis=Axis("of the best", "%"),
        centre=100,
        width=NARROW,
        stacked=True,
        bars=True,
    )


def data(state: ServerState, query: PageQuery) -> dict[str, Any]:
    question = ScalingQuery(
        x=query.text("x"),
        metric=query.text("metric"),
        by=tuple(name.strip() for name in query.text("by").split(",") if name.strip()),
        weak=query.flag("weak"),
        fixed=query.flag("fixed"),
        size=query.flag("size"),
        pays=query.share("pays", LABELS["pays"], PAYS),
    )
    return cases_page(
        *(state, query, ("scaling", question), LABELS),
        judge=lambda sides: _judged(question, sides),
        panel=_panel,
        given=True,
        beside=[],
        metrics=[ELAPSED],
        x=question.x,
        xs=[],
        without=[],
    )


Judged = tuple[Sequence[ScalingTable | CurveTable], dict[str, Any]]


def beside_page(given: list[GivenEntry]) -> Page:
    """Return what a page shows of given figures."""
    return Page("", [given_section(given, beside=OF_MEASURED)] if given else [])


def _judged(question: ScalingQuery, sides: list[Side]) -> Judged:
    """Return the tables; which parameter is chosen, those that can grow, the tests without the
    metric, which are left out, and given figures."""
    tables, others = _judged_measured(question, measured_sides(sides))
    return tables, {**others, "beside": given_over(sides, tables)}


def _judged_measured(question: ScalingQuery, sides: list[Side]) -> Judged:
    xs = _that_grow(sides)
    x = question.x or next(iter(xs), "")
    if not x:
        raise UsageError(
            "nothing varies in these cases: no number of nodes, tasks or threads and no parameter "
            "has two values"
        )
    if is_over_size(sides, replace(question, x=x)):
        return curves(sides, replace(question, x=x)), {"x": x, "xs": xs, "without": []}
    names = (*LINES, "tasks") if x == CORES else LINES
    lines = tuple(name for name in names if name != x and len(_values(sides, name)) > 1)
    question = replace(question, x=x, by=question.by or lines)
    return scaling(sides, question), {"x": x, "xs": xs, "without": without_metric(sides, question)}


def _that_grow(sides: list[Side]) -> list[str]:
    """Return the parameters that have two values or more, those first whose values are numbers."""
    written = dict.fromkeys(name for side in sides for one in side.cases for name in one.parameters)
    several = [name for name in (*written, *AXES) if len(_values(sides, name)) > 1]
    numbers = [name for name in several if all(map(_NUMBER.fullmatch, _values(sides, name)))]
    xs = dict.fromkeys([*numbers, *(name for name in several if name in written)])
    if not {"tasks", "threads"} <= xs.keys() and CORES not in written:
        xs.pop(CORES, None)  # they are no more than one of these
    return list(dict.fromkeys([*xs, *_sizes(sides)]))


def _sizes(sides: list[Side]) -> list[str]:
    """Return the labels of figures that have two sizes or more."""
    cases = cases_of(sides)
    labels = {name: values_of(cases, name) for name in labels_of(cases)}
    return [name for name, each in labels.items() if len(each) > 1 and is_size(each, True)]


def _values(sides: list[Side], name: str) -> set[str]:
    return {value for side in sides for value in side.all_of(name)} - {""}


def _panel(table: ScalingTable | CurveTable) -> dict[str, Any]:
    if isinstance(table, CurveTable):
        return {"table": table}
    lines = [
        replace(line, cells=[replace(cell, values=[]) for cell in line.cells])
        for line in table.lines
    ]
    return {"table": replace(table, lines=lines), "crossings": _crossings(table)}


def _crossings(table: ScalingTable) -> list[dict[str, Any]]:
    """Return the x from which on another line ``by`` has the best median, of x that two lines
    share; with the line ``before`` and both medians."""
    sign = 1 if table.better == "higher" else -1
    medians: dict[float, dict[str, float]] = {}
    for line in table.lines:
        for cell in line.cells:
            if cell.median is not None:
                medians.setdefault(cell.x, {})[line.by] = cell.median
    crossings: list[dict[str, Any]] = []
    leader = ""
    for x, here in sorted(medians.items()):
        if len(here) < 2:
            continue
        best = max(here, key=lambda by: sign * here[by])
        if leader and best != leader and leader in here:
            medians_here = {"median": here[best], "other": here[leader]}
            crossings.append({"x": x, "before": leader, "by": best, **medians_here})
        leader = best
    return crossings
