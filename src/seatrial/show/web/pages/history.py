"""History: a metric over time in each case, with changes of its level, notes and references; or how
often the runs of each test passed. Records: the best figure of a metric that each machine ever
had, and those that others gave."""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial
from typing import NamedTuple, get_args

from msgspec.structs import replace

from seatrial.errors import TrialError
from seatrial.model.figures import ELAPSED
from seatrial.model.test import Stage
from seatrial.results import notes as note_file
from seatrial.results.bands import BY_LEVEL
from seatrial.results.given import GivenEntry
from seatrial.results.history import (
    SUCCESS_RATE,
    History,
    beside_given,
    histories,
    is_success_rate,
    number_given,
    success_rates,
    with_node_changes,
)
from seatrial.results.metric_records import metric_records
from seatrial.results.references import Expected, expected
from seatrial.results.store import queries
from seatrial.results.store.tables import Filters, MetricRow, TrialRow
from seatrial.show.history import View, by_change, history_page, history_records, rates_page
from seatrial.show.page import Page
from seatrial.show.records import records_page
from seatrial.show.web.page import PageQuery
from seatrial.show.web.server_state import ServerState
from seatrial.show.web.study_view import (
    SHOWN,
    Field,
    StudyView,
    choices_of,
    names_rehearsal,
    suggested_metrics,
    version_of,
)

POINTS = 50  # rows of the table of figures
MAX_POINTS = 5000


class _Answer(NamedTuple):
    """The judged series. ``references`` are those that were looked up for them, by machine, case
    and stage."""

    histories: list[History]
    damaged: int
    references: dict[tuple[str, str, str], Expected | None]
    others: list[GivenEntry]
    not_asked: int
    """Given figures that are there, and were not asked for."""


Asked = tuple[str, Filters, str, str, bool]  # metric, which runs, case, stage, with given figures
Trials = dict[tuple[str, str], TrialRow]  # by tag and machine


def _history_fields(metrics: list[str]) -> list[Field]:
    return [
        Field("Metric", "metric", "elapsed, triad", 18, metrics, required=True),
        Field("Test", "test", "all, or a pattern"),
        Field("Case", "case", "all, or a pattern", 16),
        Field("Machine", "machine", "all", 10),
        Field("Stage", "stage", choices=get_args(Stage)),
        Field("Toolchain", "toolchain", "all", 10),
        Field("Trial", "trial", "all"),
        Field("Since", "since", "90d, 2026-05-01", 12),
        Field("Until", "until", "now", 12),
        Field("rehearsed, too", "rehearsed", box=True),
        Field("given by others, too", "given", box=True),
    ]


def history(state: ServerState, query: PageQuery) -> StudyView:
    store = state.store()
    filters = Filters(
        **query.texts("test", "machine", "toolchain", "trial"),
        since=query.moment("since"),
        until=query.moment("until"),
        rehearsed=query.flag("rehearsed"),
    )
    metric, case, given = query.text("metric"), query.text("case"), query.flag("given")
    stage = query.choice("stage", get_args(Stage))
    first = query.number("first", 0)
    points = query.number("points", POINTS, least=1, most=MAX_POINTS)
    names = suggested_metrics(state, ELAPSED, SUCCESS_RATE, *BY_LEVEL)
    view = StudyView(
        title="History", fields=_history_fields(names), choices=choices_of("metric", names)
    )
    if not metric:
        return view
    view = replace(view, title=f"History of {metric}", first=first)
    question = metric, filters, case, stage, given
    if is_success_rate(store, metric):
        return _rates(state, view, question)
    return _series(state, view, question, points)


def _rates(state: ServerState, view: StudyView, question: Asked) -> StudyView:
    """Return how often runs passed."""
    _, filters, case, stage, _ = question
    study = state.studies.answer(
        question, _version(state), lambda: success_rates(state.store(), filters, case, stage)
    )
    if study.value is None:
        return replace(view, state=study.state, reason=study.reason)
    page = rates_page(study.value, view.first, SHOWN)
    return replace(view, state="judged", answer=page, found=len(study.value))


def _series(state: ServerState, view: StudyView, question: Asked, points: int) -> StudyView:
    """Return the series of a metric."""
    metric, filters, *_ = question
    study = state.studies.answer(
        ("history", *question), _version(state), lambda: _judged_histories(state, *question)
    )
    if study.value is None:
        named = [filters.trial] if filters.trial else []
        made_up = names_rehearsal(state.store(), named, rehearsed=False)
        return replace(view, state=study.state, reason=study.reason, rehearsed=made_up)
    every, damaged, references, others, not_asked = study.value
    last_page = max(0, (len(every) - 1) // SHOWN * SHOWN)
    first = view.first if view.first < len(every) else last_page
    trials = queries.trials(state.store())
    trial_of = {(trial.tag, trial.machine): trial for trial in reversed(trials)}

    def reference(history: History) -> Expected | None:
        series = history.series
        key = series.machine, series.case, series.stage
        if key not in references:
            references[key] = _expected(state, history, trial_of)
        return references[key]

    beside = View(
        first=first,
        number=SHOWN,
        points=points,
        rehearsed=frozenset(key for key, trial in trial_of.items() if trial.rehearsed),
        reference=reference,
    )
    shown = every[first : first + SHOWN]
    page = replace(
        history_page(every, metric, beside, others),
        records=partial(history_records, shown, others),
    )
    return replace(
        view,
        state="judged",
        answer=page,
        found=len(every),
        first=first,
        rehearsed=any(beside.made_up(each, one) for each in shown for one in each.series.points),
        notices=_notices(damaged, not_asked),
    )


def _version(state: ServerState) -> Hashable:
    """Return what changes with every run and every note."""
    return _notes_mark(state), version_of(queries.trials(state.store()))


def _notes_mark(state: ServerState) -> int:
    try:
        return (state.folder / note_file.FILE).stat().st_mtime_ns
    except OSError:
        return 0


def _notices(damaged: int, not_asked: int) -> list[str]:
    notices = []
    if damaged:
        notices.append(f"{damaged} lines of the diary can not be read as notes.")
    if not_asked:
        are = "figure is" if not_asked == 1 else "figures are"
        notices.append(f"{not_asked} {are} given by others; the box in the form shows them.")
    return notices


def _judged_histories(
    state: ServerState, metric: str, filters: Filters, case: str, stage: str, given: bool
) -> _Answer:
    try:
        notes = note_file.read(state.folder / note_file.FILE)
    except TrialError:
        notes = note_file.Diary([])
    store = state.store()
    found = histories(store, metric, filters, case, notes.notes, stage, given=given)
    judged = by_change(with_node_changes(store, found))
    if not given:
        number = number_given(store, metric, filters, case)
        return _Answer(judged, notes.damaged, {}, [], number)
    marked, others = beside_given(store, metric, judged, filters, case)
    return _Answer(marked, notes.damaged, {}, others, 0)


def _expected(state: ServerState, history: History, trial_of: Trials) -> Expected | None:
    """Return the reference by which the latest run was judged."""
    series = history.series
    if not series.points:
        return None
    last = series.points[-1]
    trial = trial_of.get((last.trial, series.machine))
    if trial is None:
        return None
    case = next((c for c in queries.cases_of(state.store(), trial) if c.id == series.case), None)
    if case is None:
        return None
    figure = MetricRow(series.metric, last.value, series.unit, series.better)
    return expected(figure, case, state.records.references(state.store(), trial), series.stage)


# ---- records -------------------------------------------------------------------------------------


def _records_fields(metrics: list[str]) -> list[Field]:
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


def records(state: ServerState, query: PageQuery) -> StudyView:
    filters = Filters(
        **query.texts("test", "machine", "toolchain", "trial"),
        since=query.moment("since"),
        rehearsed=query.flag("rehearsed"),
    )
    metric, case = query.text("metric"), query.text("case")
    names = suggested_metrics(state, ELAPSED)
    view = StudyView(
        title="Records", fields=_records_fields(names), choices=choices_of("metric", names)
    )
    if not metric:
        return view
    version = version_of(queries.trials(state.store()))

    def judged() -> Page:
        return records_page(metric_records(state.store(), metric, filters, case), metric)

    answer = state.studies.answer(("records", metric, filters, case), version, judged)
    view = replace(view, title=f"Records of {metric}", rehearsed=filters.rehearsed)
    return view.answered(answer)
