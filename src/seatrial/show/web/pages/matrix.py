"""Matrix: tests by toolchains, as ``seatrial matrix`` shows them."""

from typing import Any

from seatrial.results.matrix import ATTRIBUTES, MatrixQuery, ResultMatrix, reasons_of, result_matrix
from seatrial.results.panels import parameters_of
from seatrial.results.selection import Side, cases_of, trials_of
from seatrial.results.store.series import metric_names
from seatrial.show.web.filters import MAX_NAMED, cases_study, suggested_trials
from seatrial.show.web.page import PageQuery
from seatrial.show.web.state.server_state import ServerState

LABELS = {"by": "Columns", "metric": "Metric"}  # of the form


def data(state: ServerState, query: PageQuery) -> dict[str, Any]:
    question = MatrixQuery(
        by=query.text("by") or "toolchain",
        metric=query.text("metric"),
        each_case=query.flag("cases"),
    )
    test = query.text("test")

    def judged(sides: list[Side]) -> tuple[list[Side], ResultMatrix]:
        reasons = reasons_of(state.store(), trials_of(sides), [test] if test else [])
        return sides, result_matrix(sides, question, reasons)

    study = cases_study(state, query, ("matrix", question), LABELS, judged)
    page: dict[str, Any] = {
        "state": study.state,  # "asked", "judging", "judged" or "refused" (``reason``)
        "by": question.by,
        "tags": suggested_trials(state),
        "metrics": metric_names(state.store())[:MAX_NAMED],
        "attributes": [],  # what the columns can be by
        "reason": study.reason,
        "matrix": None,
        "total": {},
        "rehearsed": study.rehearsed,
    }
    if study.value is None:
        return page
    sides, matrix = study.value
    attributes = list(dict.fromkeys([*parameters_of(cases_of(sides)), *ATTRIBUTES]))
    return page | {"attributes": attributes, "matrix": matrix, "total": matrix.total}
