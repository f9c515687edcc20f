"""``seatrial usage report``: a year of a machine as one file."""

from __future__ import annotations

from pathlib import Path

import click

from seatrial.cli import Folders
from seatrial.cli.options import Parsed, machine_named, path_option, text_option, value_option
from seatrial.cli.query_common import opened
from seatrial.errors import UsageError
from seatrial.escaping import plain_line
from seatrial.files import replace_file
from seatrial.plugins.usage.attributes import context_of
from seatrial.plugins.usage.document import document_html, document_markdown
from seatrial.plugins.usage.question_commands import parse_edges
from seatrial.plugins.usage.report import period_of, usage_report
from seatrial.plugins.usage.settings import name_of_machine
from seatrial.results import notes
from seatrial.units import count, show_bytes

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
@text_option("--zone", "ZONE", "Time zone of months, such as UTC; default: this host's.")
@click.pass_obj
def command(
    folders: Folders,
    period: str,
    machine: str | None,
    output: Path | None,
    edges: tuple[int, ...],
    zone: str,
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
