"""A study as a page of the server: its form, whether it is judged yet, and the answer.

A page's function that answers with a ``StudyView`` needs no template of its own: it has the answer
as a ``show.page.Page``, which the command prints. Each study of a plug-in is such a page.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from seatrial.errors import UsageError
from seatrial.hooks import Study, WebPage, load, provided
from seatrial.results.selection import SideSelection, parse_side
from seatrial.results.store import queries
from seatrial.results.store.queries import trial as trial_of
from seatrial.results.store.schema import Store
from seatrial.results.store.series import metric_names
from seatrial.results.store.tables import TrialRow
from seatrial.show.page import Link, Page
from seatrial.show.web.page import PageQuery
from seatrial.show.web.server_state import ServerState, StudyAnswer, news_of_plugins

SHOWN = 24  # series, cases on a page
MAX_NAMED = 400  # values that a field suggests
MAX_CHOICES = 60  # values to choose from where nothing was asked yet


class Field(Struct, frozen=True):
    """A field of a form: a text, one of ``choices``, or a box to tick."""

    label: str
    name: str
    placeholder: str = ""
    """What stands for no value: in an empty text, or as the first choice ("": all)."""
    size: int = 14
    suggested: Sequence[str] = ()
    choices: Sequence[str] = ()
    box: bool = False
    required: bool = False
    value: str = ""
    """What was chosen where the query has no value."""


def version_of(trials: Iterable[TrialRow]) -> Hashable:
    """Return what changes with every run of these trials: then a study of them is judged anew."""
    return tuple((trial.row, trial.last, trial.passed) for trial in trials)


def choices_of(name: str, values: Sequence[str]) -> list[Link]:
    """Return the first values of a field, to choose from."""
    return [Link(value, query={name: value}) for value in values[:MAX_CHOICES]]


def suggested_trials(state: ServerState) -> list[str]:
    """Return the names of trials that a form suggests."""
    return [trial.tag for trial in queries.trials(state.store())][:MAX_NAMED]


def suggested_metrics(state: ServerState, *first: str) -> list[str]:
    """Return the names of metrics that a form suggests, ``first`` these."""
    return list(dict.fromkeys([*first, *metric_names(state.store())]))[:MAX_NAMED]


class StudyView(Struct, frozen=True, kw_only=True):
    """What the page shows. Without an ``answer`` its ``state`` tells why."""

    title: str
    fields: Sequence[Field]
    state: Literal["asked", "judging", "judged", "refused"] = "asked"
    reason: str = ""
    """Why it was refused."""
    answer: Page | None = None
    found: int = 0
    """How many series, cases or the like there are."""
    first: int = 0
    shown: int = SHOWN
    rehearsed: bool = False
    """Whether figures of rehearsals are among them."""
    notices: Sequence[str] = ()
    trial: str = ""
    """The tag of the one trial that it is of, if it is a page of that."""
    help: str = ""
    """How to fill the form in, behind a fold."""
    asks: str = ""
    """What to name, where nothing was asked yet."""
    choices: Sequence[Link] = ()
    """What can be chosen then."""

    def answered(self, study: StudyAnswer[Page]) -> StudyView:
        """Return the view with the answer of its study, or with why there is none."""
        return replace(self, state=study.state, reason=study.reason, answer=study.value)

    def suggesting(self, **values: Sequence[str]) -> StudyView:
        """Return the view with what its fields suggest, by their names."""
        fields = [
            replace(field, suggested=values.get(field.name, field.suggested))
            for field in self.fields
        ]
        return replace(self, fields=fields)

    def choosing(self, **values: str) -> StudyView:
        """Return the view with what was chosen for fields that say nothing, by their names."""
        fields = [
            replace(field, value=values.get(field.name, field.value)) for field in self.fields
        ]
        return replace(self, fields=fields)

    @property
    def record(self) -> dict[str, Any]:
        """The JSON of the page. ``records`` are those of the command, of the part that is shown."""
        names = ("state", "reason", "rehearsed", "found", "first")
        records = self.answer.records() if self.answer else []
        return {**{name: getattr(self, name) for name in names}, "records": records}


class PagePart:
    """An answer as a part of a page made by hand: the template shows its ``page``, the JSON of the
    whole page has its ``record``."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.record = page.records()


# ---- sides of comparisons ------------------------------------------------------------------

HOW_TO_WRITE_SIDES = (
    "nightly-0412: a trial; nightly-*: all that fit; nightly-0412:toolchain=gcc*,test=cm4: with "
    "conditions; @machine=frost,since=2026-05-01: all trials with conditions: machine, toolchain, "
    "test, tag, stage, plan, component, phase, since, until, rehearsed, given, or a parameter of "
    "the cases."
)


def side_of(text: str, rehearsed: bool) -> SideSelection:
    """Return a side as a person writes it. With ``rehearsed`` a pattern selects rehearsals, unless
    the side says otherwise. Raises UsageError."""
    side = parse_side(text)
    is_pattern = not side.trial or any(sign in side.trial for sign in "*?[")
    if rehearsed and is_pattern:
        side.conditions.setdefault("rehearsed", "yes")
    return side


def names_rehearsal(store: Store, sides: Iterable[str], rehearsed: bool) -> bool:
    """Return whether one of these sides names a rehearsal, even if the sides have faults."""
    for text in sides:
        with contextlib.suppress(UsageError):
            side = side_of(text, rehearsed)
            if side.conditions.get("rehearsed") == "yes":
                return True
            if side.trial and trial_of(store, side.trial).rehearsed:
                return True
    return False


def in_words_of_form(reason: str, fields: Sequence[Field]) -> str:
    """Return a reason with the labels of fields in place of options of the command line."""
    labels = {f"--{field.name.replace('_', '-')}": f"“{field.label}”" for field in fields}
    return re.sub(r"--[a-z-]*[a-z]", lambda option: labels.get(option[0], option[0]), reason)


# ---- studies of plug-ins -------------------------------------------------------------------------


def page_of(study: Study) -> WebPage:
    """Return the page of a study that a plug-in brings."""
    data = f"{__name__}:study_data"
    return WebPage(
        f"/{study.name}", study.name, data, "study.html", study.title, rows="lines", form=True
    )


def study_data(state: ServerState, query: PageQuery) -> StudyView:
    """Ask the study whose page it is; it is judged beside the server's requests."""
    name = query.address.rpartition("/")[2]
    (study,) = (one for one in provided("seatrial_studies") if one.name == name)
    fields = [
        Field(
            option.name.replace("_", " "),
            option.name,
            option.default,
            choices=option.choices,
            box=option.flag,
        )
        for option in study.options
    ]
    options = {option.name: query.text(option.name) or option.default for option in study.options}
    store = state.store()
    news = tuple(tuple(map(tuple, store.rows(sql))) for sql in news_of_plugins())
    version = version_of(queries.trials(store)), news

    def judged() -> Page:
        page: Page = load(study.run)(state.store(), **options)
        return page

    answer = state.studies.answer((study.name, *options.values()), version, judged)
    return StudyView(title=study.title, fields=fields).answered(answer)
