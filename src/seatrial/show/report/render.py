"""Write a report as one HTML file that loads nothing and runs no script, or as Markdown.

as_html(report)
as_markdown(report)
"""

import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from markupsafe import Markup, escape

from seatrial.escaping import plain, plain_line, plain_page
from seatrial.lazy import jinja2
from seatrial.results.criteria.mix import overall
from seatrial.results.criteria.view import Result, covered
from seatrial.show.draw.plots import PALETTE
from seatrial.show.page import Cell, Table
from seatrial.show.report import content
from seatrial.show.report.people import issues
from seatrial.show.report.sign import PLACE, block
from seatrial.units import show_bytes, show_seconds

TEMPLATES: Final = Path(__file__).with_name("templates")
MAX_SUBJECTS: Final = 60  # of a criterion
_MARKS: Final = re.compile(r"(?<=\w)[{@%](?=\w)|(?<=})[@%](?=\w)")
_LONG: Final = re.compile(r"\S{37,}")
_PART: Final = re.compile(r"[^_./:,=-]{0,31}[_./:,=-]+|[^_./:,=-]{32}")
_BREAK: Final = "\x1f"  # where a line may break: `plain` leaves no such sign in a text
SHORT_TABLE: Final = 40  # the data of a figure are printed if they have so many rows or fewer


def as_html(report: content.Report) -> str:
    """Return the report as HTML text."""
    sheets = [PALETTE, TEMPLATES / "report.css"]
    sheets += [TEMPLATES / "rehearsed.css"] if report.rehearsed else []
    # plain: files of the package
    style = "".join(sheet.read_text() for sheet in sheets)
    style = style.replace("REPORT-NAME", report.name)  # only hexadecimal digits
    template = environment().get_template("report.html")
    text = template.render(
        report=report,
        style=Markup(style),
        # for the content security policy, which allows no other style
        style_hash=f"sha256-{b64encode(sha256(style.encode()).digest()).decode()}",
        sentence=content.sentence(report),
        summed_up=content.state_of_criteria(report),
        faults=list(content.faulty_tests(report)),
        open_issues=issues(report.issues, "Open issues"),
        subjects=MAX_SUBJECTS,
        place=PLACE,
        checksums=block(report.files, report.decided),
        short=SHORT_TABLE,
        drawing=Markup,
    )
    return plain_page(text)


@cache
def environment() -> "jinja2.Environment":
    """Return what makes text from the templates; each is compiled once."""
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= _filters()
    return made


def breakable(text: str) -> Markup:
    """Return text whose lines may break within the name of a case, before its parameters, toolchain
    and node; not elsewhere in a word, unless it is so long that a table of a few such words is
    wider than a page."""
    parted = _LONG.sub(lambda word: _PART.sub(rf"\g<0>{_BREAK}", word[0]).rstrip(_BREAK), text)
    shown = _MARKS.sub(r"<wbr>\g<0>", str(escape(parted)))
    return Markup(shown.replace(_BREAK, "<wbr>"))


def _filters() -> dict[str, Any]:
    def figure(value: Cell) -> str:
        return plain(value) if isinstance(value, str) else content.shown(value, "number")

    return {
        "cell": lambda value, column: plain(content.shown(value, column.kind)),
        "breakable": breakable,
        "moment": content.moment,
        "seconds": lambda value: show_seconds(value) if value else "",
        "bytes": show_bytes,
        "percent": lambda value: content.shown(value, "share"),
        "state_class": lambda state: state.partition(" (")[0].replace(" ", "-"),
        "text": plain,
        "figure": figure,
        "covered": covered,
        "ended_runs": content.ended_runs,
        "not_passed": content.not_passed,
    }


# ---- Markdown ------------------------------------------------------------------------------------
#
# Tables stand in place of figures. Text that people wrote is escaped, and stays on one line.

MARK: Final = "> **Rehearsed.** In virtual time, on a simulated machine: nothing here was measured."
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~!&])")


def as_markdown(report: content.Report) -> str:
    """Return the report as Markdown text."""
    lines = [*_head(report), *_summary(report)]
    for each in report.machines:
        lines += _machine(each)
    if report.tests:
        lines += ["", "## The tests", *_tables(report.tests)]
    for part in report.components:
        lines += _component(part)
    for other in report.others:
        if other.evidence or other.waivers:
            lines += ["", f"## {escaped(other.title)}", "", f"{other.state.capitalize()}."]
            lines += _documents(other)
    lines += _grounds(report)
    lines += _annexes(report)
    if report.rehearsed:
        lines = list(_marked(lines))
    return "\n".join(lines) + "\n"


def escaped(words: str) -> str:
    """Return text that people wrote, escaped and on one line."""
    return _SPECIAL.sub(r"\\\1", plain_line(words.strip()))


def _marked(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines, with the mark of a rehearsal below each heading of a section."""
    for line in lines:
        yield line
        if line.startswith(("# ", "## ")):
            yield from ("", MARK)


def _head(report: content.Report) -> Iterator[str]:
    yield f"# {'Acceptance report' if report.plan else 'Report'}: {escaped(report.title)}"
    if report.about:
        yield from ("", escaped(report.about))
    if report.verdict != "no criteria":
        yield from ("", f"**{content.state_of_criteria(report)}**")
        faults = [f"- **{escaped(each)}**" for each in content.faulty_tests(report)]
        yield from ("", *faults) if faults else ()
    facts = [
        ("made", f"{content.moment(report.made)} UTC"),
        ("by", escaped(", ".join(filter(None, (report.made_by, report.organisation))))),
        ("with", f"Seatrial {escaped(report.version)}"),
        ("report", report.name),
        ("complete", "yes" if report.complete else "no"),
    ]
    facts += [("decision", report.decision)] if report.decision else []
    yield from ("", *_facts(facts))
    for remark in (*report.notices, *report.remarks):
        yield from ("", f"> {escaped(remark)}")
    if report.issues:
        yield from _table(issues(report.issues, "Open issues"))


def _facts(facts: Iterable[tuple[str, str]]) -> Iterator[str]:
    return (f"- {name}: {words}" for name, words in facts)


def _summary(report: content.Report) -> Iterator[str]:
    yield from ("", "## Summary", "")
    titles = ["component", "state", "verdict", "clock", "of", "runs passed", "did not pass"]
    rows = [_summed(part) for part in report.components]
    rows += [[other.title, other.state, *[""] * 8] for other in report.others]
    yield from _grid([*titles, "node-hours accepted", "begun (UTC)", "ended (UTC)"], rows)
    yield from _tables([*report.clauses, *report.phases, *report.records])
    if report.assumed:
        yield from ("", "**What the rehearsal assumes**", "")
        yield from (f"- {escaped(each)}" for each in report.assumed)


def _summed(part: content.ReportComponent) -> list[str]:
    status = part.status
    return [
        part.title + (" (rehearsed)" if status.rehearsed else ""),
        status.state,
        overall(status.criteria).short if status.criteria else "",
        *(show_seconds(time) if time else "" for time in (status.clock, status.duration)),
        "" if status.items else f"{sum(each.accepted for each in status.parts):,}",
        "" if status.items else f"{content.not_passed(part):,}",
        content.shown(status.utilisation, "share")
        if status.fills_machine and status.utilisation is not None
        else "",
        content.moment(part.begun),
        content.moment(part.ended),
    ]


def _machine(one: content.ReportMachine) -> Iterator[str]:
    yield from ("", f"## Machine {escaped(one.name)}")
    if one.about:
        yield from ("", escaped(one.about))
    yield from ("", *_facts((name, escaped(words)) for name, words in one.facts))
    yield from _tables(one.tables)


def _component(part: content.ReportComponent) -> Iterator[str]:
    status = part.status
    verdict = f": {escaped(status.verdict_words)}" if status.criteria else ""
    yield from ("", f"## {escaped(part.title)}{verdict}")
    if part.about:
        yield from ("", escaped(part.about))
    yield from ("", *_facts(_component_facts(part)))
    for remark in part.remarks:
        yield from ("", f"> {escaped(remark)}")
    if status.criteria:
        yield from _criteria(status.criteria)
    yield from _documents(part)
    if part.ran:
        yield from ("", "### What ran", *_tables(part.ran))
    for number, figure in enumerate(part.figures, 1):
        yield from ("", f"### Figure {number}: {escaped(figure.title)}", "", escaped(figure.about))
        for note in figure.notes:
            yield from ("", escaped(note))
        yield from _table(figure.table)
    yield from _tables(part.tables)
    if part.excluded:
        yield from ("", "### What was excluded, and why", *_tables(part.excluded))
    elif not status.items:
        yield from ("", "### What was excluded, and why", "", "Nothing was excluded.")
    yield from _tables(part.versions)


def _component_facts(part: content.ReportComponent) -> Iterator[tuple[str, str]]:
    status = part.status
    yield "trial", escaped(part.tag)
    yield "kind", status.kind.replace("_", " ")
    yield "state", status.state
    yield "nodes", f"{status.nodes:,}"
    yield "begun", f"{content.moment(part.begun)} UTC" if part.begun else "not yet"
    yield "ended", f"{content.moment(part.ended)} UTC" if part.ended else "not yet"
    yield "clock", show_seconds(status.clock) if status.clock else "0"
    if status.rehearsed:
        yield "rehearsed", f"with seed {part.seed}"


def _criteria(criteria: Sequence[Sequence[Result]]) -> Iterator[str]:
    yield from ("", "### Criteria", "")
    rows = []
    for results in criteria:
        for one in results:
            label = one.label if one is results[0] else f"- {one.subject}"
            value = one.shown
            rows.append([label, one.bound, value, f"{one.n:,}", one.words, one.full_reason])
    yield from _grid(["criterion", "asked", "found", "n", "state", "why"], rows)
    for results in criteria:
        one = results[0]
        if one.numbers:
            words = "; ".join(
                f"{name} {value if isinstance(value, str) else content.shown(value, 'number')}"
                for name, value in sorted(one.numbers.items())
            )
            yield from ("", f"Numbers of {escaped(one.label)}: {escaped(words)}.")


def _documents(one: content.ReportComponent | content.Other) -> Iterator[str]:
    if one.waivers:
        yield from ("", "### Waivers", "")
        for each in one.waivers:
            what = escaped(covered(each))
            agreed = f"(waived by {escaped(each.by)} on {escaped(each.on)})"
            unneeded = "; not needed" if each in one.unneeded else ""
            yield f"- {what}: {escaped(each.reason)} {agreed}{unneeded}"
    if one.evidence:
        yield from ("", "### Evidence", "")
        titles = ["document", "clause", "about", "signed by", "on", "state", "SHA-256"]
        rows = [
            [
                each.document if each.file == each.document else f"{each.document} ({each.file})",
                each.clause,
                each.about or one.about,
                each.signed_by,
                each.signed_on,
                each.state,
                each.sha256,
            ]
            for each in one.evidence
        ]
        yield from _grid(titles, rows)


def _grounds(report: content.Report) -> Iterator[str]:
    yield from ("", "## Versions and checksums")
    yield from _tables(report.versions)
    yield from (
        "",
        "### What this report rests on",
        "",
        "SHA-256, bytes and name of each trial's record, cases and journal, of the notes, and of "
        "the documents of evidence. A journal and notes only grow: their checksum is that of their "
        "first so many bytes. The journal has the checksums of what each run wrote. `seatrial "
        "report verify` checks all of them; of one file `head -c BYTES FILE | sha256sum` does.",
        "",
    )
    yield from (f"```{PLACE}", block(report.files, report.decided).rstrip("\n"), "```", "")
    journals = [each for each in report.files if each.events is not None]
    rows = [[f.trial, f"{f.events:,}", str(f.damaged), f"{f.bytes:,}"] for f in journals]
    yield from _grid(["journal of", "events", "damaged lines", "bytes"], rows)
    yield from _decision(report)


def _decision(report: content.Report) -> Iterator[str]:
    yield from ("", "## Decision and signatures", "")
    subject = (
        f"On report {report.name} of {content.moment(report.made)} UTC, {escaped(report.title)}."
    )
    yield f"{subject} {content.sentence(report)}".strip()
    if report.rehearsed:
        yield from ("", "**It is of a rehearsal, and accepts nothing.**")
    elif report.decision:
        yield from ("", f"**Decision: {report.decision}.**", "")
        yield from (f"{i}. {escaped(each)}" for i, each in enumerate(report.reservations, 1))
    else:
        yield from ("", "The machine is", "")
        decisions = ("accepted", "accepted with the reservations below", "rejected")
        yield from (f"- [ ] {each}" for each in decisions)
        yield from ("", "Reservations, each with what is to be done, by whom and until when:")
        yield from ("", *(f"{i}. {'_' * 60}" for i in (1, 2, 3)))
    words = ("name", "organisation and position", "place and date", "signature")
    rows = [[word, "", ""] for word in words]
    yield from ("", *_grid(["", "for the vendor", "for the centre"], rows))


def _annexes(report: content.Report) -> Iterator[str]:
    """Yield the texts in full. They are indented, so that none can pose as the checksums."""
    if report.annexes:
        yield from ("", "## Annex: plan and scripts")
    for each in report.annexes:
        yield from ("", f"### {escaped(each.title)}", "")
        yield from (f"    {plain_line(line.expandtabs())}" for line in each.text.splitlines())


# ---- tables -------------------------------------------------------------------------------


def _tables(several: Iterable[Table]) -> Iterator[str]:
    for one in several:
        yield from _table(one)


def _table(one: Table) -> Iterator[str]:
    yield from ("", f"**{escaped(one.title)}** {escaped(one.about)}".rstrip(), "")
    columns, cells = one.for_medium("browser")
    rows = [
        [content.shown(cell, column.kind) for cell, column in zip(row, columns, strict=True)]
        for row in cells
    ]
    right = [column.right for column in columns]
    yield from _grid([escaped(column.words) for column in columns], rows, right)
    if one.left_out:
        yield from ("", f"{one.total:,} rows, of which the first {len(one.rows):,} are shown.")


def _grid(
    titles: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[bool] = ()
) -> Iterator[str]:
    yield _row(titles)
    yield _row(("---:" if i < len(right) and right[i] else "---") for i in range(len(titles)))
    for row in rows:
        yield _row(map(escaped, row))


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
