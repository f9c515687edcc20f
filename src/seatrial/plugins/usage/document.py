"""Answers as one file of HTML that loads nothing, runs no script and prints on paper.

    document_html(Document("Usage of hopper in 2010", [("Hours by month", page), ...]))

Each answer is a `Page`, as the terminal and the server show it. Links of theirs lead to pages of a
server, so a file has their texts alone.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Sequence
from functools import cache
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Final

from markupsafe import Markup
from msgspec import Struct
from msgspec.structs import replace

from seatrial import __version__
from seatrial.escaping import plain_page
from seatrial.lazy import jinja2
from seatrial.show.draw.plots import PALETTE
from seatrial.show.html import page_html
from seatrial.show.page import Cell, Chart, Items, Link, Page, Part, Section, Table, Text, TimeChart
from seatrial.show.report.render import TEMPLATES as OF_REPORTS
from seatrial.show.report.render import escaped as markdown
from seatrial.show.text import cell_text

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
