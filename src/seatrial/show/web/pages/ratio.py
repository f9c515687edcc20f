"""Ratio: what one way of running costs against another."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from msgspec.structs import replace

from seatrial.errors import UsageError
from seatrial.model.figures import ELAPSED
from seatrial.results import ratios
from seatrial.results.panels import varying
from seatrial.results.scaling_cells import are_numbers
from seatrial.results.selection import Side, cases_of
from seatrial.results.store.series import metric_names
from seatrial.show.ratio import ratio_page
from seatrial.show.web.filters import MAX_NAMED, TABLES, cases_view
from seatrial.show.web.page import PageQuery
from seatrial.show.web.state.server_state import ServerState
from seatrial.show.web.study_view import Field, StudyView

ASKS = (
    "Name a trial whose cases ran in two ways: with two toolchains, or two values of a parameter."
)


class _Asked(NamedTuple):
    of: str
    x: str
    metric: str
    weak: bool
    fixed: bool


class _Answer(NamedTuple):
    """The tables of what was chosen: ``of`` and ``x``; what else can be, and the tests that one way
    lacks."""

    of: str
    ofs: list[str]
    x: str
    xs: list[str]
    tables: list[ratios.RatioTable]
    without: list[str]


def _fields(metrics: list[str]) -> list[Field]:
    return [
        Field("Ways", "of", "toolchain=native,compat", 24),
        Field("Over", "x", "tasks, nodes", 10),
        Field("Metric", "metric", ELAPSED, suggested=metrics),
        Field("weak: the work grows, too", "weak", box=True),
        Field("fixed: the same resources everywhere", "fixed", box=True),
    ]


def data(state: ServerState, query: PageQuery) -> StudyView:
    question = _Asked(
        **query.texts("of", "x", "metric"), weak=query.flag("weak"), fixed=query.flag("fixed")
    )
    metrics = list(dict.fromkeys([ELAPSED, *metric_names(state.store())]))[:MAX_NAMED]
    form = StudyView(title="Ratio", fields=_fields(metrics), asks=ASKS)
    view, found = cases_view(state, query, form, question, partial(_judged, question))
    if found is None:
        return view
    tables = found.tables
    shown = tables[view.first : view.first + TABLES] or tables[:TABLES]
    return replace(
        view.suggesting(of=found.ofs, x=found.xs).choosing(of=found.of, x=found.x),
        answer=ratio_page(shown, tables, found.without),
        found=len(tables),
    )


def _judged(asked: _Asked, sides: list[Side]) -> _Answer:
    """Choose the ways and the size, where they were not asked for."""
    varies = varying(cases_of(sides))
    ofs = []
    for name in sorted(varies, key=lambda name: name != "toolchain"):
        values = _values(sides, name)
        if len(values) == 2:
            ofs.append(f"{name}={','.join(values)}")
    ways = asked.of or next(iter(ofs), "")
    if not ways:
        raise UsageError("no parameter of these cases has two values; name two of a larger number")
    way, first, second = ratios.two_values(ways)
    sizes = [name for name in dict.fromkeys([*ratios.AXES, *varies]) if name != way]
    sizes = [name for name in sizes if len(_values(sides, name)) > 1]
    query = ratios.RatioQuery(
        of=way,
        values=(first, second),
        x=asked.x or _usual_size(sides, sizes),
        metric=asked.metric,
        weak=asked.weak,
        fixed=asked.fixed,
    )
    tables = ratios.ratios(sides, query)
    return _Answer(ways, ofs, query.x, sizes, tables, ratios.without_both(sides, tables))


def _usual_size(sides: list[Side], sizes: list[str]) -> str:
    """Return the size that is chosen where none was asked for: the first whose values are
    numbers."""
    numbers = (name for name in sizes if are_numbers(_values(sides, name)))
    return next(numbers, next(iter(sizes), ratios.AXES[0]))


def _values(sides: list[Side], name: str) -> list[str]:
    """Return the values of a parameter, in the order of the cases."""
    values = dict.fromkeys(one.attribute(name) for one in cases_of(sides))
    return [value for value in values if value]
