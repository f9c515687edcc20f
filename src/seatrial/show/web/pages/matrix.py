"""Matrix: tests by toolchains, as ``seatrial matrix`` shows them."""

from msgspec import Struct
from msgspec.structs import replace

from seatrial.results.matrix import ATTRIBUTES, MatrixQuery, ResultMatrix, reasons_of, result_matrix
from seatrial.results.selection import Side, trials_of
from seatrial.results.store.series import metric_names
from seatrial.show.web.filters import MAX_NAMED, cases_study, suggested_trials
from seatrial.show.web.page import PageQuery
from seatrial.show.web.state.server_state import ServerState

LABELS = {"by": "Columns", "metric": "Metric"}  # of the form


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
    asked = MatrixQuery(
        by=query.text("by") or "toolchain",
        metric=query.text("metric"),
        each_case=query.flag("cases"),
    )
    test = query.text("test")

    def judged(sides: list[Side]) -> tuple[list[Side], ResultMatrix]:
        reasons = reasons_of(state.store(), trials_of(sides), [test] if test else [])
        return sides, result_matrix(sides, asked, reasons)

    study = cases_study(state, query, ("matrix", asked), LABELS, judged)
    page = MatrixPage(
        state=study.state,
        by=asked.by,
        tags=suggested_trials(state),
        metrics=metric_names(state.store())[:MAX_NAMED],
        reason=study.reason,
        rehearsed=study.rehearsed,
    )
    if study.value is None:
        return page
    sides, matrix = study.value
    parameters = {name for side in sides for one in side.cases for name in one.parameters}
    attributes = [*sorted(parameters), *(n for n in ATTRIBUTES if n not in parameters)]
    return replace(page, attributes=attributes, matrix=matrix, total=matrix.total)
