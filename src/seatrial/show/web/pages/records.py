"""Records: the best figure of a metric that each machine ever had, and those that others gave."""

from __future__ import annotations

from msgspec.structs import replace

from seatrial.model.figures import ELAPSED
from seatrial.results.metric_records import metric_records
from seatrial.results.store import queries
from seatrial.results.store.series import metric_names
from seatrial.results.store.tables import Filters
from seatrial.show.page import Page
from seatrial.show.records import records_page
from seatrial.show.web.page import PageQuery
from seatrial.show.web.state.server_state import ServerState
from seatrial.show.web.study_view import MAX_NAMED, Field, StudyView, choices_of


def _fields(metrics: list[str]) -> list[Field]:
    return [
        Field("Metric", "metric", "elapsed, triad", 18, metrics, required=True),
        Field("Test", "test", "all, or a pattern"),
        Field("Case", "case", "all, or a pattern", 16),
        Field("Machine", "machine", "all", 10),
        Field("Toolchain", "toolchain", "all", 10),
        Field("Trial", "trial", "all"),
        Field("Since", "since", "90d, 2026-05-01", 12),
        Field("rehearsed, too", "rehearsed", box=True),
    ]


def data(state: ServerState, query: PageQuery) -> StudyView:
    filters = Filters(
        **query.texts("test", "machine", "toolchain", "trial"),
        since=query.moment("since"),
        rehearsed=query.flag("rehearsed"),
    )
    metric, case = query.text("metric"), query.text("case")
    names = list(dict.fromkeys([ELAPSED, *metric_names(state.store())]))[:MAX_NAMED]
    view = StudyView(title="Records", fields=_fields(names), choices=choices_of("metric", names))
    if not metric:
        return view
    trials = queries.trials(state.store())
    version = tuple((trial.row, trial.last, trial.passed) for trial in trials)

    def judged() -> Page:
        return records_page(metric_records(state.store(), metric, filters, case), metric)

    answer = state.studies.answer(("records", metric, filters, case), version, judged)
    view = replace(view, title=f"Records of {metric}", rehearsed=filters.rehearsed)
    return view.answered(answer)
