"""A study as a page of the server: its form, whether it is judged yet, and the answer.

A module of ``pages/`` that answers with a ``StudyView`` needs no template of its own: it has the
answer as a ``show.page.Page``, which the command prints.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from seatrial.show.page import Link, Page
from seatrial.show.web.state.document_cache import StudyAnswer

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


def choices_of(name: str, values: Sequence[str]) -> list[Link]:
    """Return the first values of a field, to choose from."""
    return [Link(value, query={name: value}) for value in values[:MAX_CHOICES]]


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
