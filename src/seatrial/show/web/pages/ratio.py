"""Ratio: what one way of running costs against another, as ``seatrial ratio`` tells it."""

from typing import Any, NamedTuple

from msgspec.structs import replace

from seatrial.errors import UsageError
from seatrial.model.figures import ELAPSED
from seatrial.results import ratios
from seatrial.results.panels import varying
from seatrial.results.scaling_cells import are_numbers
from seatrial.results.selection import Side, cases_of
from seatrial.show.curves import axis_of, meeting_words
from seatrial.show.draw import plots
from seatrial.show.draw.svg import Axis
from seatrial.show.formatting import NARROW
from seatrial.show.web.filters import cases_page
from seatrial.show.web.page import PageQuery
from seatrial.show.web.state.server_state import ServerState

LABELS = {"of": "Ways", "x": "Over", "metric": "Metric"}  # of the form


def charts(table: ratios.RatioTable) -> list[tuple[str, Any]]:
    """Return the ratio over the sizes, and the speed-up of both ways, as SVG, each with its
    caption; of named sizes the ratio alone."""
    if not table.known:
        return []
    first, second = table.values
    caption = f"{second} over {first}: times as long, with 95 % intervals"
    if table.names:
        return [(caption, _rows(table))]
    drawn = [(caption, _ratios(table))]
    if table.change is not None:
        drawn.append(("Speed-up of both, with 95 % intervals", _speedups(table)))
    return drawn


def _rows(table: ratios.RatioTable) -> Any:
    rows = [
        plots.Interval(
            table.named(c.x), c.ratio or 0.0, c.low, c.high, f"{c.ratio:.4g}", *_look(c.verdict)
        )
        for c in table.known
    ]
    return plots.forest(
        rows,
        title=f"{table.case}: {table.values[1]} over {table.values[0]}",
        axis=Axis("ratio of times"),
        centre=1,
        width=NARROW,
        stacked=True,
    )


def _look(verdict: str) -> tuple[str, int]:
    return {"better": ("good", 1), "worse": ("bad", 2)}.get(verdict, ("muted", 3))


def _ratios(table: ratios.RatioTable) -> Any:
    known = table.known
    ends = [
        (cell.x, cell.low, cell.high)
        for cell in known
        if cell.low is not None and cell.high is not None
    ]
    points = [(cell.x, cell.ratio) for cell in known]
    return plots.chart(
        [plots.ChartSeries("ratio", points, "both", intervals=ends)],
        title=f"{table.case}: {table.values[1]} over {table.values[0]}",
        x=axis_of(table, [cell.x for cell in known]),
        y=Axis("ratio of times"),
        levels=[plots.ReferenceLine(1, "the same")],
        width=NARROW,
        height=270,
        margin=8,
    )


def _speedups(table: ratios.RatioTable) -> Any:
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
        width=NARROW,
    )


class _Asked(NamedTuple):
    of: str
    x: str
    metric: str
    weak: bool
    fixed: bool


def data(state: ServerState, query: PageQuery) -> dict[str, Any]:
    question = _Asked(
        query.text("of"),
        query.text("x"),
        query.text("metric"),
        query.flag("weak"),
        query.flag("fixed"),
    )
    return cases_page(
        *(state, query, ("ratio", question), LABELS, lambda sides: _judged(question, sides)),
        panel=_panel,
        metrics=[ELAPSED],
        of=question.of,
        x=question.x,
        ofs=[],
        xs=[],
        range=[],
        without=[],
    )


def _judged(question: _Asked, sides: list[Side]) -> tuple[list[ratios.RatioTable], dict[str, Any]]:
    """Return the tables; texts for ``of``, what can be the size, the tests that one way lacks, and
    the least and the greatest ratio of all tables."""
    varies = varying(cases_of(sides))
    ofs = []
    for name in sorted(varies, key=lambda name: name != "toolchain"):
        values = _values(sides, name)
        if len(values) == 2:
            ofs.append(f"{name}={','.join(values)}")
    ways = question.of or next(iter(ofs), "")
    if not ways:
        raise UsageError("no parameter of these cases has two values; name two of a larger number")
    way, first, second = ratios.two_values(ways)
    sizes = [name for name in dict.fromkeys([*ratios.AXES, *varies]) if name != way]
    sizes = [name for name in sizes if len(_values(sides, name)) > 1]
    x = question.x or _usual_size(sides, sizes)
    query = ratios.RatioQuery(
        of=way,
        values=(first, second),
        x=x,
        metric=question.metric,
        weak=question.weak,
        fixed=question.fixed,
    )
    tables = ratios.ratios(sides, query)
    return tables, {
        "of": ways,
        "x": x,
        "ofs": ofs,
        "xs": sizes,
        "range": list(ratios.extremes(tables) or ()),
        "without": ratios.without_both(sides, tables),
    }


def _usual_size(sides: list[Side], sizes: list[str]) -> str:
    """Return the size that is chosen where none was asked for: the first whose values are
    numbers."""
    numbers = (name for name in sizes if are_numbers(_values(sides, name)))
    return next(numbers, next(iter(sizes), ratios.AXES[0]))


def _values(sides: list[Side], name: str) -> list[str]:
    """Return the values of a parameter, in the order of the cases."""
    values = dict.fromkeys(one.attribute(name) for one in cases_of(sides))
    return [value for value in values if value]


def _panel(table: ratios.RatioTable) -> dict[str, Any]:
    cells = [
        replace(cell, first=replace(cell.first, values=[]), second=replace(cell.second, values=[]))
        for cell in table.cells
    ]
    met = table.meeting
    told = met is not None and (table.sized or bool(met.crossings))
    return {
        "table": replace(table, cells=cells),
        "meeting": meeting_words(met, table) if met is not None and told else "",
    }
