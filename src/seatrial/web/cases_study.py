"""What the pages Scaling, Ratio and Best share: a study of the cases of trials that a form names.

found = cases_study(state, query, ("best", asked), {"over": "Over"}, lambda sides: ...)
found.state, found.value, found.reason
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Mapping
from typing import Generic, NamedTuple, TypeVar

from seatrial.store import queries
from seatrial.studies.selection import Side, gather
from seatrial.web.query import PageQuery
from seatrial.web.run_filters import names_rehearsal, side_of
from seatrial.web.state.server_state import ServerState

T = TypeVar("T")

TABLES = 8  # on a page
MAX_NAMED = 300  # trials, metrics: what a form suggests


class CasesStudy(NamedTuple, Generic[T]):
    """A study, or why there is none: the ``state`` is "asked" (no trial is named), "judging",
    "judged" or "refused" (for the ``reason``, in the words of the form)."""

    state: str
    value: T | None = None
    reason: str = ""
    rehearsed: bool = False


def suggested_trials(state: ServerState) -> list[str]:
    """Return the names of trials that a form suggests."""
    return [trial.tag for trial in queries.trials(state.store())][:MAX_NAMED]


def cases_study(
    state: ServerState,
    query: PageQuery,
    name: tuple[Hashable, ...],
    labels: Mapping[str, str],
    judge: Callable[[list[Side]], T],
) -> CasesStudy[T]:
    """Return what ``judge`` makes of the sides that the query names; it is made in the background.
    ``name``: of the study, apart from its sides. ``labels``: the form's words for options of the
    command line."""
    written, test, rehearsed = query.text("trial"), query.text("test"), query.flag("rehearsed")
    if not written:
        return CasesStudy("asked")
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
        return CasesStudy(study.state, None, reason, made_up)
    value, made_up = study.value
    return CasesStudy("judged", value, "", made_up)
