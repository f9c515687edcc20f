"""A year (or a month) of a machine as one document: what others ran, and what is not known of it.

    document = usage_report(store, "hopper", period_of("2010", zone), context)
    document_html(document)

Each chapter is the `Page` of a question. Names of people are in none of them, unless the machine's
file says so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import datetime, tzinfo
from functools import partial
from pathlib import Path
from time import time
from typing import NamedTuple

from seatrial import __version__
from seatrial.errors import UsageError
from seatrial.plugins.usage.answer_page import usage_page
from seatrial.plugins.usage.attributes import MONTH, Context, zone_name
from seatrial.plugins.usage.charge_pages import ChargeQuestion, charges_page
from seatrial.plugins.usage.document import Document
from seatrial.plugins.usage.gaps import gaps, imports_page
from seatrial.plugins.usage.loss_pages import LossQuestion, losses_of, losses_page
from seatrial.plugins.usage.losses import incident_of
from seatrial.plugins.usage.questions import Measure, Question
from seatrial.plugins.usage.settings import settings_of
from seatrial.results import notes
from seatrial.results.store.schema import Store
from seatrial.show.page import Page, Section, Text

TOP = 25


class Period(NamedTuple):
    """A calendar year or month, in s, by its name."""

    name: str
    since: int
    until: int


def period_of(text: str, zone: tzinfo | None) -> Period:
    """Return a year (``2010``) or a month (``2010-03``). Raises UsageError."""
    found = re.fullmatch(r"(\d{4})(?:-(\d\d))?", text.strip())
    year, month = (int(found[1]), int(found[2] or 0)) if found else (0, 0)
    if not 1970 <= year < 3000 or month > 12 or (found and found[2] == "00"):
        raise UsageError(f"{text!r} is no year or month; write 2010, or 2010-03")
    begin = datetime(year, month or 1, 1, tzinfo=zone)
    end = datetime(year + (month in (0, 12)), month % 12 + 1 if month else 1, 1, tzinfo=zone)
    return Period(text.strip(), int(begin.timestamp()), int(end.timestamp()))


class _Chapter(NamedTuple):
    """A chapter: its title, and what is asked for it."""

    title: str
    by: tuple[str, ...]
    of: Measure = "hours"


_CHAPTERS = (
    _Chapter("Hours by month and size", (MONTH, "size")),
    _Chapter("Hours by size", ("size",)),
    _Chapter("Hours by field of science", ("field",)),
    _Chapter("Hours by application", ("application",)),
    _Chapter("Hours by mode", ("mode",)),
    _Chapter("Hours by queue", ("queue",)),
    _Chapter("Users by month", (MONTH,), "users"),
    _Chapter("Waits by month", (MONTH,), "waits"),
    _Chapter("Waits by size", ("size",), "waits"),
    _Chapter("Failures by month", (MONTH,), "failures"),
    _Chapter("Failures by cause", ("cause",), "failures"),
    _Chapter("Energy by month", (MONTH,), "energy"),
)


NO_INCIDENT = (
    "No incident is recorded. `seatrial usage incident add` records one, and what it cost is told "
    "here."
)


def usage_report(
    store: Store, machine: str, period: Period, context: Context, incidents: Path
) -> Document:
    """Return the report on a machine. ``incidents``: the file of notes. Raises UsageError where
    nothing is known of the period."""
    settings = settings_of(machine)
    names = settings.names_on_pages
    missing = gaps(store, machine, period.since, period.until)
    if missing and all(gap.since <= period.since and period.until <= gap.until for gap in missing):
        raise UsageError(
            f"nothing is known of {machine} in {period.name}; `seatrial usage imports` shows what "
            "was imported, and `seatrial usage import` brings in more"
        )

    def answer(chapter: _Chapter) -> Page:
        asked = Question(
            by=chapter.by,
            of=chapter.of,
            machine=machine,
            since=period.since,
            until=period.until,
            top=TOP,
            names=names,
        )
        return usage_page(store, asked, context)

    first, *others = _CHAPTERS
    opening = answer(first)
    chapters = [(first.title, opening)]
    chapters += [(each.title, _told(partial(answer, each))) for each in others]
    if settings.charges:
        question = ChargeQuestion(
            by=(MONTH,), machine=machine, since=period.since, until=period.until, names=names
        )
        chapters.append(("Charges by month", _told(partial(charges_page, store, question))))
    lost = losses_of_machines(store, incidents, [machine], period.since, period.until)
    chapters += [("Losses by cause", page) for _, _, page in lost]
    chapters.append(("What was imported", imports_page(store, machine)))
    return Document(
        f"Usage of {machine} in {period.name}",
        chapters,
        lead=[opening.summary],
        facts=[
            ("period", period.name),
            ("time zone", zone_name(context.zone)),
            ("made", f"{datetime.now(context.zone):%Y-%m-%d %H:%M}"),
            ("by", f"Seatrial {__version__}"),
            ("names of people", "shown, as the machine's file says" if names else "not shown"),
        ],
        remarks=[f"{gap.sentence}." for gap in missing]
        or ["Nothing is missing: imports cover the whole period."],
    )


def _told(make: Callable[[], Page]) -> Page:
    """Return an answer, or why there is none."""
    try:
        return make()
    except UsageError as error:
        return Page("", [Section("", [Text(f"Not told: {error}", "notice")])])


def losses_of_machines(
    store: Store, file: Path, machines: Sequence[str], since: int, until: int
) -> list[tuple[str, str, Page]]:
    """Return what the incidents of each machine cost that began in a span (s; 0: no bound). Each
    has a title, the address of its own page, and the answer; machines without any are left out."""
    now = int(time())
    known = [incident_of(note, now) for note in notes.read(file).notes if note.cause]
    asked = LossQuestion(by=("cause",))
    pages = []
    for machine in machines:
        incidents = [
            each
            for each in known
            if each.machine == machine and since <= each.start < (until or each.start + 1)
        ]
        if incidents:
            page = losses_page(losses_of(store, incidents, asked), asked)
            pages.append((f"Losses of {machine}", "", page))
    return pages
