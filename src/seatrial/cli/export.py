"""``seatrial export``: a trial as JUnit XML or JSON."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import click

from seatrial.cli import Folders, complete
from seatrial.cli.options import format_option
from seatrial.cli.query_common import opened, tell_damage
from seatrial.errors import UsageError
from seatrial.store import export, queries


@click.command("export")
@click.argument("trial", shell_complete=complete.trials)
@format_option("junit", "json", help="JUnit XML for a CI server, or all of it as one JSON object.")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="File to write; default: stdout."
)
@click.pass_obj
def command(folders: Folders, trial: str, form: str, output: Path | None) -> int:
    """Write a trial as JUnit XML or JSON. TRIAL is its tag, or a unique beginning of it."""
    with opened(folders) as store:
        found = queries.trial(store, trial)
        tell_damage(store, [found])
        pieces: Iterable[str]
        if form == "junit":
            pieces = export.junit(store, found)
        else:
            pieces = [export.to_json(export.trial_record(store, found))]
        if output is None or os.fspath(output) == "-":
            for piece in pieces:
                click.echo(piece, nl=False)
            return 0
        _write(output, pieces)
    click.echo(f"{output}: trial {found.tag} as {form}")
    return 0


def _write(output: Path, pieces: Iterable[str]) -> None:
    try:
        with output.open("w", encoding="utf-8") as file:
            file.writelines(pieces)
    except OSError as error:
        raise UsageError(
            f"{output}: cannot be written: {error.strerror}; name another file with --output"
        ) from error
