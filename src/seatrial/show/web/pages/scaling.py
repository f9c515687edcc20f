"""Scaling: the gain of more threads, nodes or tasks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from msgspec.structs import replace

from seatrial.errors import UsageError
from seatrial.model.figures import ELAPSED
from seatrial.results.curves import CurveTable, is_over_size, over_x
from seatrial.results.given import GivenEntry, measured_sides
from seatrial.results.ratios import AXES
from seatrial.results.scaling import PAYS, ScalingQuery, ScalingTable, without_metric
from seatrial.results.selection import Side, cases_of, words_of
from seatrial.results.sizes import is_size, labels_of, values_of
from seatrial.results.store.by_case import CORES
from seatrial.results.store.series import metric_names
from seatrial.show.given import given_over
from seatrial.show.page import Link, Page, Section, Text
from seatrial.show.scaling import scaling_page
from seatrial.show.web.filters import MAX_NAMED, TABLES, cases_view
from seatrial.show.web.page import PageQuery
from seatrial.show.web.state.server_state import ServerState
from seatrial.show.web.study_view import Field, StudyView

ASKS = "Name a trial whose cases differ in their threads, tasks, nodes or a parameter."
LINES = ("toolchain", "machine", "trial", "stage")
PAYS_FROM = "Pays from"
_NUMBER = re.compile(r"\d+(\.\d+)?")


class _Answer(NamedTuple):
    """The tables of what was chosen; the ``xs`` are all that can grow."""

    query: ScalingQuery
    xs: list[str]
    tables: Sequence[ScalingTable] | Sequence[CurveTable]
    without: list[str]
    given: list[GivenEntry]


def _fields(metrics: list[str]) -> list[Field]:
    return [
        Field("Over", "x", "threads, nodes", 10),
        Field("Metric", "metric", "of most runs", suggested=metrics),
        Field("Lines by", "by", "toolchain, trial"),
        Field(PAYS_FROM, "pays", "50%", 5),
        Field("weak: the work grows, too", "weak", box=True),
        Field("fixed: the same resources everywhere", "fixed", box=True),
        Field("size: x is a size of the work", "size", box=True),
    ]


def data(state: ServerState, query: PageQuery) -> StudyView:
    question = ScalingQuery(
        x=query.text("x"),
        metric=query.text("metric"),
        by=words_of(query.text("by")),
        weak=query.flag("weak"),
        fixed=query.flag("fixed"),
        size=query.flag("size"),
        pays=query.share("pays", PAYS_FROM, PAYS),
    )
    metrics = list(dict.fromkeys([ELAPSED, *metric_names(state.store())]))[:MAX_NAMED]
    form = StudyView(title="Scaling", fields=_fields(metrics), asks=ASKS)
    view, found = cases_view(state, query, form, question, partial(_judged, question), given=True)
    if found is None:
        return view
    return replace(
        view.suggesting(x=found.xs).choosing(x=found.query.x),
        answer=_page(found, view.first),
        found=len(found.tables),
    )


def _page(found: _Answer, first: int) -> Page:
    """Return the answer, from a table on, with links to what else can grow."""
    shown = found.tables[first : first + TABLES] or found.tables[:TABLES]
    page = scaling_page(shown, found.query, found.without, found.given)
    if len(found.xs) < 2:
        return page
    names = [name if name == found.query.x else Link(name, query={"x": name}) for name in found.xs]
    return replace(page, sections=[Section("", [Text(["over", *names], "quiet")]), *page.sections])


def _judged(question: ScalingQuery, every: list[Side]) -> _Answer:
    """Choose what grows and what the lines are by, where that was not asked for."""
    sides = measured_sides(every)
    xs = _that_grow(sides)
    x = question.x or next(iter(xs), "")
    if not x:
        raise UsageError(
            "nothing varies in these cases: no number of nodes, tasks or threads and no parameter "
            "has two values"
        )
    question = replace(question, x=x)
    if not question.by and not is_over_size(sides, question):
        question = replace(question, by=_usual_lines(sides, x))
    tables = over_x(sides, question)
    return _Answer(question, xs, tables, without_metric(sides, question), given_over(every, tables))


def _usual_lines(sides: list[Side], x: str) -> tuple[str, ...]:
    names = (*LINES, "tasks") if x == CORES else LINES
    return tuple(name for name in names if name != x and len(_values(sides, name)) > 1)


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
