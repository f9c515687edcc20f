"""Matrix: tests by toolchains, or by another attribute."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from seatrial.results.matrix import ATTRIBUTES, MatrixQuery, ResultMatrix, reasons_of, result_matrix
from seatrial.results.panels import parameters_of
from seatrial.results.selection import Side, cases_of, trials_of
from seatrial.results.store.series import metric_names
from seatrial.show.matrix import matrix_page
from seatrial.show.web.filters import MAX_NAMED, cases_view
from seatrial.show.web.page import PageQuery
from seatrial.show.web.state.server_state import ServerState
from seatrial.show.web.study_view import Field, StudyView

ASKS = "Name a trial: its tests are shown by toolchains, or by a parameter."


def data(state: ServerState, query: PageQuery) -> StudyView:
    question = MatrixQuery(
        by=query.text("by") or "toolchain",
        metric=query.text("metric"),
        each_case=query.flag("cases"),
    )
    test = query.text("test")

    def judged(sides: list[Side]) -> tuple[Sequence[str], ResultMatrix]:
        reasons = reasons_of(state.store(), trials_of(sides), [test] if test else [])
        names = dict.fromkeys([*parameters_of(cases_of(sides)), *ATTRIBUTES])
        return [*names], result_matrix(sides, question, reasons)

    fields = [
        Field("Columns", "by", "toolchain", 10),
        Field("Metric", "metric", "each test's", suggested=metric_names(state.store())[:MAX_NAMED]),
        Field("a row for each case", "cases", box=True),
    ]
    form = StudyView(title="Matrix", fields=fields, asks=ASKS)
    view, found = cases_view(state, query, form, question, judged)
    if found is None:
        return view
    names, result = found
    return replace(view.suggesting(by=names), answer=matrix_page(result))
