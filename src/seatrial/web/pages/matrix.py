"""Matrix: tests by toolchains, as ``seatrial matrix`` shows them."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from seatrial.store import queries
from seatrial.store.series import metric_names
from seatrial.studies.matrix_reasons import reasons_of
from seatrial.studies.result_matrix import ATTRIBUTES, MatrixQuery, ResultMatrix, result_matrix
from seatrial.studies.selection import Side, gather, trials_of
from seatrial.web.query import PageQuery
from seatrial.web.run_filters import names_rehearsal, side_of
from seatrial.web.state.server_state import ServerState

MAX_NAMED = 300


class MatrixPage(Struct, frozen=True, kw_only=True):
    """The answer to a query; ``state`` is "asked", "judging", "judged" or "refused" (``reason``).
    ``attributes`` are what the columns can be by."""

    state: str
    by: str
    tags: list[str]
    metrics: list[str]
    attributes: list[str] = []
    reason: str = ""
    matrix: ResultMatrix | None = None
    total: dict[str, int] = {}
    rehearsed: bool = False


def data(state: ServerState, query: PageQuery) -> MatrixPage:
    store = state.store()
    trials = queries.trials(store)
    asked = MatrixQuery(
        by=query.text("by") or "toolchain",
        metric=query.text("metric"),
        each_case=query.flag("cases"),
    )
    written, test = query.text("trial"), query.text("test")
    rehearsed = query.flag("rehearsed")
    page = MatrixPage(
        state="asked",
        by=asked.by,
        tags=[trial.tag for trial in trials][:MAX_NAMED],
        metrics=metric_names(store)[:MAX_NAMED],
    )
    if not written:
        return page
    names = written.split()
    version = tuple((trial.row, trial.last, trial.passed) for trial in trials)
    study = state.studies.answer(
        ("matrix", written, test, rehearsed, asked),
        version,
        lambda: _judged(state, asked, names, test, rehearsed),
    )
    if study.value is None:
        made_up = names_rehearsal(store, names, rehearsed)
        reason = study.reason.replace("--by", "“Columns”").replace("--metric", "“Metric”")
        return replace(page, state=study.state, reason=reason, rehearsed=made_up)
    sides, matrix = study.value
    parameters = {name for side in sides for one in side.cases for name in one.parameters}
    return replace(
        page,
        state="judged",
        attributes=[*sorted(parameters), *(n for n in ATTRIBUTES if n not in parameters)],
        matrix=matrix,
        total=matrix.total,
        rehearsed=any(trial.rehearsed for trial in trials_of(sides)),
    )


def _judged(
    state: ServerState, asked: MatrixQuery, texts: list[str], test: str, rehearsed: bool
) -> tuple[list[Side], ResultMatrix]:
    tests = [test] if test else []
    sides = [gather(state.store(), side_of(text, rehearsed), tests) for text in texts]
    reasons = reasons_of(state.store(), trials_of(sides), tests)
    return sides, result_matrix(sides, asked, reasons)
