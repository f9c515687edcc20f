"""``seatrial parse``: print the figures of a known output format as JSON."""

import sys
from pathlib import Path

import click
import msgspec

from seatrial.cli.tables import TextTable
from seatrial.errors import UsageError
from seatrial.escaping import plain
from seatrial.judge.formats import LESS, find_format, formats, told
from seatrial.judge.reading import TooLarge, Unreadable, decoded, read_text
from seatrial.model.figures import MetricValue
from seatrial.units import show_bytes


def parse(form: str | None, file: str | None, listed: bool) -> int:
    """Do ``seatrial parse``; return the exit code."""
    if listed:
        rows = ((form.name, form.file, form.about) for form in map(find_format, formats()))
        click.echo(TextTable("format | file of a run | reads~", rows))
        return 0
    if form is None or file is None:
        raise UsageError("name a format and a file; `seatrial parse --list` lists the formats")
    keys = ("name", "value", "unit", "better", "labels")
    shown = [{key: getattr(figure, key) for key in keys} for figure in _figures(form, file)]
    click.echo(msgspec.json.format(msgspec.json.encode(shown), indent=2).decode())
    return 0


def _figures(form: str, file: str) -> list[MetricValue]:
    """Return the figures of a file (``-``: stdin). Raises UsageError for what it cannot read."""
    try:
        known = find_format(form)
    except ValueError as error:
        raise UsageError(str(error)) from None
    name = "stdin" if file == "-" else file
    try:
        text = _text(file, known.limit)
        figures = known.read(text)
    except Unreadable as error:
        raise UsageError(str(error)) from None
    except ValueError as error:
        reason = plain(str(error))[:400]
        raise UsageError(f"{name}: is not a whole {known.name} output: {reason}") from None
    if lines := known.passed_over(text):
        click.echo(f"note: {name}: {plain(told(lines))}", err=True)
    return figures


def _text(file: str, limit: int) -> str:
    """Return the text of a file or of stdin. Raises Unreadable, also if it is too large."""
    if file != "-":
        return read_text(Path(), file, limit, LESS)
    data = sys.stdin.buffer.read(limit + 1)
    if len(data) > limit:
        raise TooLarge(f"stdin has more than {show_bytes(limit)}, the limit; {LESS}")
    return decoded(data)
