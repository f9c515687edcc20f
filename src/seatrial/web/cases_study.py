"""A study of cases of trials that a form names: pages Scaling, Ratio, Best and Matrix share it."""

import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from seatrial.store import queries
from seatrial.store.series import metric_names
from seatrial.studies.selection import Side, gather
from seatrial.web.query import PageQuery
from seatrial.web.run_filters import names_rehearsal, side_of
from seatrial.web.state.server_state import ServerState
from seatrial.web.state.study_cache import StudyAnswer

T = TypeVar("T")

TABLES = 8  # on a page
MAX_NAMED = 300  # trials, metrics: what a form suggests


class CasesPage(Struct, frozen=True, kw_only=True):
    """The answer to a query; ``state`` is "asked", "judging", "judged" or "refused" (``reason``).
    ``tags`` and ``metrics`` are what the form suggests. Of the tables that were ``found`` the page
    has a panel for each from the ``first`` on."""

    state: str
    tags: list[str]
    metrics: list[str]
    reason: str = ""
    panels: list[Any] = []
    found: int = 0
    first: int = 0
    rehearsed: bool = False


P = TypeVar("P", bound=CasesPage)


def cases_page(
    kind: type[P],
    state: ServerState,
    query: PageQuery,
    name: tuple[Hashable, ...],
    labels: Mapping[str, str],
    judge: Callable[[list[Side]], tuple[Sequence[T], dict[str, Any]]],
    panel: Callable[[T], Struct],
    metrics: Sequence[str] = (),
    **asked: Any,
) -> P:
    """Return a page with the fields ``asked``. ``judge`` returns the tables, each of which becomes
    a ``panel``, and further fields. ``metrics`` come first among those that are suggested; for
    ``name`` and ``labels`` see ``cases_study``."""
    first = query.number("first", 0)
    found = cases_study(state, query, name, labels, judge)
    page = kind(
        state=found.state,
        tags=suggested_trials(state),
        metrics=list(dict.fromkeys([*metrics, *metric_names(state.store())]))[:MAX_NAMED],
        reason=found.reason,
        rehearsed=found.rehearsed,
        **asked,
    )
    if found.value is None:
        return page
    tables, others = found.value
    panels = [panel(table) for table in tables[first : first + TABLES]]
    return replace(page, panels=panels, found=len(tables), first=first, **others)


def suggested_trials(state: ServerState) -> list[str]:
    """Return the names of trials that a form suggests."""
    return [trial.tag for trial in queries.trials(state.store())][:MAX_NAMED]


def cases_study(
    state: ServerState,
    query: PageQuery,
    name: tuple[Hashable, ...],
    labels: Mapping[str, str],
    judge: Callable[[list[Side]], T],
) -> StudyAnswer[T]:
    """Return what ``judge`` makes of the sides that the query names; it is made in the background.
    ``name``: of the study, apart from its sides. ``labels``: the form's words for options of the
    command line."""
    written, test, rehearsed = query.text("trial"), query.text("test"), query.flag("rehearsed")
    if not written:
        return StudyAnswer(None, "asked")
    texts = written.split()

    def judged() -> tuple[T, bool]:
        tests = [test] if test else []
        sides = [gather(state.store(), side_of(text, rehearsed), tests) for text in texts]
        made_up = any(trial.rehearsed for side in sides for trial in side.trials)
        return judge(sides), made_up

    trials = queries.trials(state.store())
    version = tuple((trial.row, trial.last, trial.passed) for trial in trials)
    study = state.studies.answer((*name, written, test, rehearsed), version, judged)
    if study.value is None:
        made_up = names_rehearsal(state.store(), texts, rehearsed)
        options = "|".join(labels)
        reason = re.sub(rf"--({options})\b", lambda found: f"“{labels[found[1]]}”", study.reason)
        return StudyAnswer(None, study.state, reason, made_up)
    value, made_up = study.value
    return StudyAnswer(value, "judged", rehearsed=made_up)
