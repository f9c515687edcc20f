"""A year (or a month) of a machine as one document: what others ran, and what is not known of it.

    document = usage_report(store, "hopper", period_of("2010", zone), context)
    document_html(document)

Each chapter is the `Page` of a question. Names of people are in none of them, unless the machine's
file says so.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, tzinfo
from functools import cache, partial
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Final, NamedTuple

import click
from markupsafe import Markup
from msgspec import Struct
from msgspec.structs import replace

from seatrial import __version__
from seatrial.cli import Folders
from seatrial.cli.query_common import opened
from seatrial.errors import UsageError
from seatrial.escaping import plain_line, plain_page
from seatrial.files import replace_file
from seatrial.lazy import jinja2
from seatrial.plugins.usage.answer_page import usage_page
from seatrial.plugins.usage.attributes import MONTH, Context, context_of, zone_name
from seatrial.plugins.usage.charge_pages import ChargeQuestion, charges_page
from seatrial.plugins.usage.importing import gaps, imports_page
from seatrial.plugins.usage.loss_pages import LossQuestion, losses_of, losses_page
from seatrial.plugins.usage.losses import incidents_between
from seatrial.plugins.usage.questions import Measure, Question
from seatrial.plugins.usage.settings import name_of_machine, settings_of
from seatrial.results import notes
from seatrial.results.store.schema import Store
from seatrial.show.draw.plots import PALETTE
from seatrial.show.html import page_html
from seatrial.show.page import Cell, Chart, Items, Link, Page, Part, Section, Table, Text, TimeChart
from seatrial.show.report.render import TEMPLATES as OF_REPORTS
from seatrial.show.report.render import escaped as markdown
from seatrial.show.text import cell_text
from seatrial.units import count, show_bytes

# ---- document ------------------------------------------------------------------------------------
#
# Answers as one file of HTML that loads nothing, runs no script and prints on paper.
#
#     document_html(Document("Usage of hopper in 2010", [("Hours by month", page), ...]))
#
# Each answer is a `Page`, as the terminal and the server show it. Links of theirs lead to pages of
# a server, so a file has their texts alone.


TEMPLATES: Final = Path(__file__).with_name("templates")


class Document(Struct, frozen=True):
    """A document: chapters with their titles, and what stands above them."""

    title: str
    chapters: Sequence[tuple[str, Page]]
    #: What it says, in sentences.
    lead: Sequence[str] = ()
    #: Names and values, such as who made it, and when.
    facts: Sequence[tuple[str, str]] = ()
    #: What is missing.
    remarks: Sequence[str] = ()


class _Chapter(Struct, frozen=True):
    """A chapter as the template shows it."""

    title: str
    html: Markup


def document_html(document: Document) -> str:
    """Return a document as the text of an HTML file."""
    style = _style()
    digest = b64encode(sha256(style.encode()).digest()).decode()
    text = _template().render(
        title=document.title,
        lead=document.lead,
        facts=document.facts,
        remarks=document.remarks,
        chapters=[
            _Chapter(title, page_html(without_links(page), _no_address))
            for title, page in _once(document)
        ],
        version=__version__,
        style=Markup(style),
        style_hash=f"sha256-{digest}",  # for the content security policy, which allows no other
    )
    return plain_page(text)


def _style() -> str:
    sheets = (PALETTE, OF_REPORTS / "report.css", TEMPLATES / "usage_report.css")
    # plain: files of the package
    text = "".join(sheet.read_text() for sheet in sheets)
    return text.replace('"Report REPORT-NAME"', '"Usage report"')


@cache
def _template() -> jinja2.Template:
    loader = jinja2.FileSystemLoader(TEMPLATES)
    environment = jinja2.Environment(
        loader=loader,
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("usage_report.html")


def _no_address(**_: str) -> str:
    return "#"


def _once(document: Document) -> list[tuple[str, Page]]:
    """Return the chapters, without what was told before."""
    answers = Answers(*document.lead)
    return [(title, Page("", answers.sections(page))) for title, page in document.chapters]


# ---- as Markdown -------------------------------------------------------------------------------


def document_markdown(document: Document) -> str:
    """Return a document as Markdown, with tables in place of its charts."""
    lines = [f"# {markdown(document.title)}"]
    lines += ["", *(f"{markdown(sentence)}" for sentence in document.lead)]
    lines += ["", *(f"- {name}: {markdown(words)}" for name, words in document.facts)]
    lines += ["", *(f"> {markdown(remark)}" for remark in document.remarks)]
    for title, page in _once(document):
        lines += ["", f"## {markdown(title)}"]
        for section in page.sections:
            lines += ["", f"### {markdown(section.title)}"] if section.title else []
            lines += chain.from_iterable(map(_part_lines, section.parts))
    return "\n".join(lines) + "\n"


def _part_lines(part: Part) -> list[str]:
    if isinstance(part, str):
        return ["", markdown(part)] if part else []
    if part.only == "terminal" or isinstance(part, Chart | TimeChart):
        return []
    if isinstance(part, Text):
        if part.tone == "code":
            return ["", *(f"    {line}" for line in str(part.words).splitlines())]
        words = markdown(cell_text(part.words))
        return ["", f"{'> ' if part.tone else ''}{words}"] if words else []
    if isinstance(part, Items):
        return ["", *(f"- {markdown(words)}" for words in part.words)]
    return _table_lines(part)


def _table_lines(table: Table) -> list[str]:
    columns, rows = table.for_medium("browser")
    if not rows:
        return []
    title = ["", f"**{markdown(table.title)}**"] if table.title else []
    grid = [
        [markdown(column.words) for column in columns],
        ["--:" if column.right else "---" for column in columns],
        *(
            [
                markdown(cell_text(cell, column.kind))
                for cell, column in zip(row, columns, strict=True)
            ]
            for row in rows
        ),
    ]
    return [*title, "", *(f"| {' | '.join(cells)} |" for cells in grid)]


# ---- answers one below the other -----------------------------------------------------------------


class Answers:
    """Pages that become parts of one document: what one of them told, the next does not tell again.
    Their links and their advice for terminals are left out where they lead nowhere."""

    def __init__(self, *told: str) -> None:
        self._told = {*told}

    def sections(self, page: Page, title: str = "", link: Link | None = None) -> list[Section]:
        """Return the sections of a page, the first one with this title. Its summary comes first."""
        first, *others = [each for each in page.sections if each.only != "terminal"] or [_EMPTY]
        parts = list(self._new([Text(page.summary), *first.parts]))
        sections = [replace(first, title=title, link=link, parts=parts)]
        sections += [replace(each, parts=list(self._new(each.parts))) for each in others]
        return [each for each in sections if each.title or each.parts]

    def _new(self, parts: Sequence[Part]) -> Iterator[Part]:
        for part in parts:
            if isinstance(part, Text):
                words = cell_text(part.words)
                if words and words not in self._told:
                    self._told.add(words)
                    yield part
            elif isinstance(part, Table):
                more = "; JSON and CSV have all" if part.left_out else ""
                yield replace(part, remainder=more)
            else:
                yield part


_EMPTY = Section("", [])


# ---- without links -------------------------------------------------------------------------------


def without_links(page: Page) -> Page:
    """Return a page with the texts of its links in place of them."""
    sections = [
        replace(section, link=None, parts=[_without(part) for part in section.parts])
        for section in page.sections
        if section.only != "terminal"
    ]
    return replace(page, sections=sections)


def _without(part: Part) -> Part:
    if isinstance(part, Table):
        rows = [[_text(cell) for cell in row] for row in part.rows]
        return replace(part, rows=rows, remainder=_text(part.remainder))
    if isinstance(part, Items):
        return replace(part, remainder=_text(part.remainder))
    return replace(part, words=_text(part.words)) if isinstance(part, Text) else part


def _text(cell: Cell) -> Cell:
    if isinstance(cell, Link):
        return cell.text
    if isinstance(cell, Sequence) and not isinstance(cell, str):
        return [_text(each) for each in cell]
    return cell


# ---- the report ----------------------------------------------------------------------------------


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


class _Asked(NamedTuple):
    """A chapter: its title, and what is asked for it."""

    title: str
    by: tuple[str, ...]
    of: Measure = "hours"


_CHAPTERS = (
    _Asked("Hours by month and size", (MONTH, "size")),
    _Asked("Hours by size", ("size",)),
    _Asked("Hours by field of science", ("field",)),
    _Asked("Hours by application", ("application",)),
    _Asked("Hours by mode", ("mode",)),
    _Asked("Hours by queue", ("queue",)),
    _Asked("Users by month", (MONTH,), "users"),
    _Asked("Waits by month", (MONTH,), "waits"),
    _Asked("Waits by size", ("size",), "waits"),
    _Asked("Failures by month", (MONTH,), "failures"),
    _Asked("Failures by cause", ("cause",), "failures"),
    _Asked("Energy by month", (MONTH,), "energy"),
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

    def answer(chapter: _Asked) -> Page:
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


def report(
    folders: Folders,
    period: str,
    machine: str | None,
    output: Path | None,
    edges: tuple[int, ...],
    zone: tzinfo | None,
) -> int:
    """Do ``seatrial usage report``; return the exit code."""
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
