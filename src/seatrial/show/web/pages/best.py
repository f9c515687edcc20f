"""Best: settings ranked over any parameters."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from seatrial.results.best import BestQuery, BestTable, OverSizes, best_settings, over_sizes
from seatrial.results.panels import varying
from seatrial.results.selection import Side, cases_of, words_of
from seatrial.results.store.series import metric_names
from seatrial.show.best import best_page
from seatrial.show.web.filters import MAX_NAMED, TABLES, cases_view
from seatrial.show.web.page import PageQuery
from seatrial.show.web.state.server_state import ServerState
from seatrial.show.web.study_view import Field, StudyView

ASKS = "Name a trial whose cases differ in a parameter."


def data(state: ServerState, query: PageQuery) -> StudyView:
    question = BestQuery(
        over=words_of(query.text("over")),
        best_of=words_of(query.text("best_of")),
        metric=query.text("metric"),
        x=query.text("x"),
        statistic="least" if query.flag("least") else "median",
    )

    def judged(sides: list[Side]) -> tuple[Sequence[str], list[BestTable | OverSizes]]:
        return varying(cases_of(sides)), over_sizes(best_settings(sides, question))

    metrics = metric_names(state.store())[:MAX_NAMED]
    fields = [
        Field("Over", "over", "all that vary", 16),
        Field("Metric", "metric", "of most runs", suggested=metrics),
        Field("Best of", "best_of", "such as nodes,tasks", 16),
        Field("By", "x", "bytes, if several", 10),
        Field("by the best of the runs, not their median", "least", box=True),
    ]
    form = StudyView(title="Best setting", fields=fields, asks=ASKS)
    view, found = cases_view(state, query, form, question, judged, given=True)
    if found is None:
        return view
    names, tables = found
    return replace(
        view.suggesting(over=names, best_of=names, x=names),
        answer=best_page(tables[view.first : view.first + TABLES] or tables[:TABLES]),
        found=len(tables),
    )
