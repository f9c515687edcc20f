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
from typing import NamedTuple

import click

from seatrial import __version__
from seatrial.cli import Folders
from seatrial.cli.options import Parsed, machine_named, path_option, value_option
from seatrial.cli.query_common import opened
from seatrial.errors import UsageError
from seatrial.escaping import plain_line
from seatrial.files import replace_file
from seatrial.model.moments import zone_of
from seatrial.plugins.usage.answer_page import usage_page
from seatrial.plugins.usage.attributes import MONTH, Context, context_of, zone_name
from seatrial.plugins.usage.charge_pages import ChargeQuestion, charges_page
from seatrial.plugins.usage.document import Document, document_html, document_markdown
from seatrial.plugins.usage.gaps import gaps, imports_page
from seatrial.plugins.usage.loss_pages import LossQuestion, losses_of, losses_page
from seatrial.plugins.usage.losses import incidents_between
from seatrial.plugins.usage.question_commands import parse_edges
from seatrial.plugins.usage.questions import Measure, Question
from seatrial.plugins.usage.settings import name_of_machine, settings_of
from seatrial.results import notes
from seatrial.results.store.schema import Store
from seatrial.show.page import Page, Section, Text
from seatrial.units import count, show_bytes

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
    chapters += [("Losses by cause", page) for _, page in lost]
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
) -> list[tuple[str, Page]]:
    """Return what the incidents of each machine cost that began in a span (s; 0: no bound), each
    with its title; machines without any are left out."""
    known = notes.read(file).notes
    asked = LossQuestion(by=("cause",))
    pages = []
    for machine in machines:
        if incidents := incidents_between(known, machine, since, until):
            page = losses_page(losses_of(store, incidents, asked), asked)
            pages.append((f"Losses of {machine}", page))
    return pages


# ---- seatrial usage report -----------------------------------------------------------------------

STDOUT = Path("-")
_FORMS = {".html": document_html, ".htm": document_html, ".md": document_markdown}


@click.command("report")
@click.argument("period", metavar="YEAR|MONTH")
@machine_named("Machine, by name or file.")
@path_option(
    "-o",
    "--output",
    "FILE",
    "File to write, .html or .md; `-`: HTML to stdout. Default: usage-MACHINE-YEAR.html.",
)
@value_option(
    "--edges",
    "SIZES",
    "Largest sizes of the classes of cores, such as 1,512,8192; default: powers.",
    type=Parsed(parse_edges),
    default="",
)
@value_option(
    "--zone",
    "ZONE",
    "Time zone of months, such as UTC; default: this host's.",
    type=Parsed(zone_of),
    default=None,
)
@click.pass_obj
def command(
    folders: Folders,
    period: str,
    machine: str | None,
    output: Path | None,
    edges: tuple[int, ...],
    zone: tzinfo | None,
) -> int:
    """Write what others ran in a year, or a month, as one file.

    Hours by size, field, application, mode and queue, users, waits, failures, energy, and what is
    missing, as charts and tables. An HTML file loads nothing, and prints on paper. Names of people
    are in it only if the machine's file says so.

    \b
    seatrial usage report 2010 -m hopper -o usage-2010.html
    seatrial usage report 2010-03 -m hopper -o march.md
    """
    name = name_of_machine(machine)
    context = context_of([name], edges=edges, zone=zone)
    span = period_of(period, context.zone)
    file = output or Path(f"usage-{name}-{span.name}.html")
    write = document_html if file == STDOUT else _FORMS.get(file.suffix.lower())
    if write is None:
        remedy = "print the HTML to make a PDF" if file.suffix == ".pdf" else "name one of these"
        raise UsageError(f"{file}: a report ends in .html or .md; {remedy}")
    with opened(folders) as store:
        document = usage_report(store, name, span, context, folders.trials / notes.FILE)
    text = write(document)
    if file == STDOUT:
        click.echo(text, nl=False)
        return 0
    _write(file, text.encode())
    told = f"{document.title}, {count(len(document.chapters), 'chapter')}"
    click.echo(plain_line(f"{file}: {told}, {show_bytes(len(text.encode()))}"))
    return 0


def _write(file: Path, data: bytes) -> None:
    """Write the file whole or not at all. Raises UsageError."""
    try:
        replace_file(file, data, follow=True)
    except OSError as error:
        raise UsageError(
            f"{file}: cannot be written: {error.strerror}; name another file with -o"
        ) from error
