"""``seatrial report``: write an acceptance report."""

from __future__ import annotations

import os
from pathlib import Path

import click

from seatrial.cli import Folders
from seatrial.cli.query_common import opened, tell_damaged_journal
from seatrial.errors import UsageError
from seatrial.escaping import plain_line
from seatrial.execute.trial_folder import find
from seatrial.model.settings import setting
from seatrial.show.report import content, gather, planned, render, sign
from seatrial.show.report.content import Decision
from seatrial.units import show_bytes

_FORMS = {".html": "html", ".htm": "html", ".md": "md", ".json": "json"}


STDOUT = Path("-")
_LONGEST_NAME = 100


DECISIONS: dict[str, Decision] = {
    "accepted": "accepted",
    "reservations": "accepted with reservations",
    "rejected": "rejected",
}


def report_write(
    folders: Folders,
    /,
    asked: tuple[str, ...],
    output: Path | None,
    form: str | None,
    key: Path | None,
    name: str,
    rehearsed: bool,
    given: str,
    by: str | None,
    organisation: str | None,
    decision: str | None,
    reservations: tuple[str, ...],
) -> int:
    """Do ``seatrial report write``; return the exit code."""
    form = form or _form(output)
    _require_output(output, key)
    _require_reservations(decision, reservations)
    author = gather.Author(
        setting("name") if by is None else by,
        setting("organisation") if organisation is None else organisation,
        DECISIONS[decision] if decision else "",
        reservations,
    )
    with opened(folders) as store:
        chosen = _chosen(folders, asked, name, rehearsed)
        made = gather.gather(chosen, store, author, given)
    _tell_damaged(chosen, made)
    if decision and made.rehearsed:
        raise UsageError(f"--decision {decision}: a rehearsal accepts nothing")
    text = _text(made, form)
    if output == STDOUT:
        click.echo(text, nl=False)
        return 0
    if output is None:
        output = Path(f"{_stem(asked, name, made)}-report.{form}")
        _require_own(output, made)
    _write(output, text)
    size = show_bytes(len(text.encode()))
    mark = " (rehearsed)" if made.rehearsed else ""
    click.echo(plain_line(f"{output}: report {made.name} on {made.title}{mark}, {size}"))
    _sign(output, key)
    return 0


def _require_output(output: Path | None, key: Path | None) -> None:
    """Raise UsageError for an output without a name, and for one that cannot be signed."""
    if output is not None and not output.name:
        raise UsageError("--output: names no file; name one, such as report.html")
    if key is None:
        return
    if output == STDOUT:
        raise click.UsageError("--sign: a report on stdout cannot be signed; name a file with -o")
    sign.require_key(key)


def _sign(output: Path, key: Path | None) -> None:
    """Sign a report, if there is a key, and tell of signatures that are not its own."""
    signature = None
    if key is not None:
        signature = sign.sign(output, key)
        click.echo(plain_line(f"{signature}: its signature"))
    for _, path in sign.signatures_of(output):
        if path != signature:
            click.echo(f"{path}: is of an earlier report; it must be signed anew", err=True)


def _require_reservations(decision: str | None, reservations: tuple[str, ...]) -> None:
    """Raise UsageError for reservations of another decision, and for none of that decision."""
    if any(not one.strip() for one in reservations):
        raise click.UsageError("--reservation: is empty")
    if reservations and decision != "reservations":
        raise click.UsageError("--reservation: goes with --decision reservations")
    if decision == "reservations" and not reservations:
        raise click.UsageError("--decision reservations: name each of them with --reservation")


def _chosen(
    folders: Folders, asked: tuple[str, ...], name: str, rehearsed: bool
) -> planned.Planned:
    """Return the trials of a plan, or those of which the tags were given."""
    plans = [one for one in asked if Path(one).suffix in (".yaml", ".yml")]
    if plans and len(asked) > 1:
        raise click.UsageError(f"{plans[0]}: one plan at a time, or trials by their tags")
    if plans:
        return planned.find(folders.trials, Path(plans[0]), name, rehearsed)
    if name or rehearsed:
        raise click.UsageError("--name and --rehearsed are of a plan; a trial is named by its tag")
    trials = [find(folders.trials, one) for one in dict.fromkeys(asked)]
    return planned.Planned(trials)


def _tell_damaged(chosen: planned.Planned, made: content.Report) -> None:
    damaged = {file.trial for file in made.files if file.damaged}
    for folder in chosen.trials:
        if folder.tag in damaged:
            tell_damaged_journal(folder)


def _form(output: Path | None) -> str:
    """Return the format of a file by its suffix."""
    ending = output.suffix.lower() if output else ""
    if ending and ending not in _FORMS:
        remedy = "print the HTML to make a PDF" if ending == ".pdf" else "--format says which it is"
        raise click.UsageError(
            f"{output}: a report ends in .html, .md or .json, not {ending}; {remedy}"
        )
    return _FORMS.get(ending, "html")


def _stem(asked: tuple[str, ...], name: str, made: content.Report) -> str:
    """Return the name of a report's file: the common beginning of the tags of its plan's trials, or
    the names of all its trials."""
    plan = Path(asked[0])
    if plan.suffix in (".yaml", ".yml"):
        begin = name or made.plan or plan.stem
        return f"{begin}-rehearsed" if made.rehearsed else begin
    tags = [part.tag for part in made.components]
    named = "-".join(tags)
    return named if len(named) <= _LONGEST_NAME else f"{tags[0]}-and-{len(tags) - 1}-more"


def _require_own(output: Path, made: content.Report) -> None:
    """Raise UsageError if an unnamed output would overwrite the report of something else."""
    if not output.exists():
        return
    there, ours = sign.tags_in(output), {file.trial for file in made.files}
    if there != ours and not (made.plan and there & ours):
        of = f"the report on {', '.join(sorted(there)[:3])}" if there else "no report of Seatrial's"
        raise UsageError(f"{output}: is {of}; remove it, or name another file with -o")


def _text(made: content.Report, form: str) -> str:
    if form == "json":
        return content.as_json(made)
    return render.as_markdown(made) if form == "md" else render.as_html(made)


def _write(output: Path, text: str) -> None:
    """Write the file completely or not at all: a signed report is never left half replaced."""
    making = output.with_name(f".{output.name}.{os.getpid()}")
    try:
        making.write_text(text, encoding="utf-8")
        making.replace(output)
    except OSError as error:
        making.unlink(missing_ok=True)
        raise UsageError(
            f"{output}: cannot be written: {error.strerror}; name another file with -o"
        ) from error
