"""Ratio: what one way of running costs against another, as ``seatrial ratio`` tells it."""

from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from seatrial.errors import UsageError
from seatrial.model.figures import ELAPSED
from seatrial.results import ratios
from seatrial.results.panels import varying
from seatrial.results.scaling_cells import are_numbers
from seatrial.results.selection import Side
from seatrial.show.draw import plots as draw
from seatrial.show.formatting import NARROW
from seatrial.show.web.filters import CasesPage, cases_page
from seatrial.show.web.page import PageQuery
from seatrial.show.web.state.server_state import ServerState

MAX_TICKS = 10  # sizes that are labelled on an axis
LABELS = {"of": "Ways", "x": "Over", "metric": "Metric"}  # of the form


class RatioPanel(Struct, frozen=True, kw_only=True):
    """The sizes of a case."""

    table: ratios.RatioTable

    def plots(self) -> list[tuple[str, Any]]:
        """Return the ratio over the sizes, and the speed-up of both ways, as SVG, each with its
        caption; of named sizes the ratio alone."""
        table = self.table
        if not table.known:
            return []
        first, second = table.values
        caption = f"{second} over {first}: times as long, with 95 % intervals"
        if table.names:
            return [(caption, _rows(table))]
        found = [(caption, _ratios(table))]
        if table.change is not None:
            found.append(("Speed-up of both, with 95 % intervals", _speedups(table)))
        return found


def _rows(table: ratios.RatioTable) -> Any:
    rows = [
        draw.Interval(
            table.named(c.x), c.ratio or 0.0, c.low, c.high, f"{c.ratio:.4g}", *_look(c.verdict)
        )
        for c in table.known
    ]
    return draw.forest(
        rows,
        title=f"{table.case}: {table.values[1]} over {table.values[0]}",
        axis=draw.Axis("ratio of times"),
        centre=1,
        width=NARROW,
        stacked=True,
    )


def _look(verdict: str) -> tuple[str, int]:
    return {"better": ("good", 1), "worse": ("bad", 2)}.get(verdict, ("muted", 3))


def _ratios(table: ratios.RatioTable) -> Any:
    known = table.known
    sizes = [cell.x for cell in known]
    ends = [
        (cell.x, cell.low, cell.high)
        for cell in known
        if cell.low is not None and cell.high is not None
    ]
    points = [(cell.x, cell.ratio) for cell in known]
    return draw.chart(
        [draw.ChartSeries("ratio", points, "both", intervals=ends)],
        title=f"{table.case}: {table.values[1]} over {table.values[0]}",
        x=draw.Axis(table.x, kind="log", ticks=sizes if len(sizes) <= MAX_TICKS else ()),
        y=draw.Axis("ratio of times"),
        levels=[draw.ReferenceLine(1, "the same")],
        width=NARROW,
        height=270,
        margin=8,
    )


def _speedups(table: ratios.RatioTable) -> Any:
    curves = []
    for i, name in enumerate(table.values):
        cells = [(c.first, c.second)[i] for c in table.cells]
        points = [(c.x, c.speedup, c.low, c.high) for c in cells if c.speedup is not None]
        curves.append(draw.Curve(name, points))
    return draw.scaling(
        curves,
        title=f"{table.case}: speed-up over {table.x}",
        x=draw.Axis(table.x),
        y=draw.Axis("speed-up"),
        width=NARROW,
    )


class RatioPage(CasesPage, frozen=True, kw_only=True):
    """The answer to a query. ``ofs`` are texts for ``of``, ``xs`` what can be the size. ``without``
    are tests that one way lacks; ``range`` the least and the greatest ratio of all tables."""

    of: str
    x: str
    ofs: list[str] = []
    xs: list[str] = []
    range: list[ratios.RatioExtreme] = []
    without: list[str] = []


class _Asked(NamedTuple):
    of: str
    x: str
    metric: str
    weak: bool


def data(state: ServerState, query: PageQuery) -> RatioPage:
    asked = _Asked(
        query.text("of"), query.text("x"), query.text("metric", ELAPSED), query.flag("weak")
    )
    return cases_page(
        *(RatioPage, state, query, ("ratio", asked), LABELS, lambda sides: _judged(asked, sides)),
        panel=_panel,
        metrics=[ELAPSED],
        of=asked.of,
        x=asked.x,
    )


def _judged(asked: _Asked, sides: list[Side]) -> tuple[list[ratios.RatioTable], dict[str, Any]]:
    """Return the tables, and fields of the page."""
    varies = varying([one for side in sides for one in side.cases])
    ofs = [
        f"{name}={','.join(values)}"
        for name in sorted(varies, key=lambda name: name != "toolchain")
        if len(values := _values(sides, name)) == 2
    ]
    xs = [name for name in dict.fromkeys([*ratios.AXES, *varies]) if len(_values(sides, name)) > 1]
    of = asked.of or next(iter(ofs), "")
    if not of:
        raise UsageError("no parameter of these cases has two values; name two of a larger number")
    name, first, second = ratios.two_values(of)
    sizes = [each for each in xs if each != name]
    x = asked.x or next((n for n in sizes if are_numbers(_values(sides, n))), "")
    x = x or next(iter(sizes), ratios.AXES[0])
    query = ratios.RatioQuery(
        of=name, values=(first, second), x=x, metric=asked.metric, weak=asked.weak
    )
    found = ratios.ratios(sides, query)
    least_and_most = list(ratios.extremes(found) or ())
    without = ratios.without_both(sides, found)
    chosen = {"of": of, "x": x, "ofs": ofs, "xs": sizes}
    return found, {**chosen, "range": least_and_most, "without": without}


def _values(sides: list[Side], name: str) -> list[str]:
    """Return the values of a parameter, in the order of the cases."""
    found = dict.fromkeys(one.attribute(name) for side in sides for one in side.cases)
    return [value for value in found if value]


def _panel(table: ratios.RatioTable) -> RatioPanel:
    cells = [
        replace(cell, first=replace(cell.first, values=[]), second=replace(cell.second, values=[]))
        for cell in table.cells
    ]
    return RatioPanel(table=replace(table, cells=cells))
