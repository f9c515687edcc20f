"""Show and keep what an import did not carry over."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from seatrial.units import count

if TYPE_CHECKING:  # the help needs none of it
    from seatrial.importers.notes import ImportNote

NOTES_SHOWN = 10
PLACES_SHOWN = 2

Grouped = Sequence[tuple[str, Sequence["ImportNote"]]]


def show_notes(grouped: Grouped) -> None:
    """Print the first notes, each with its first places."""
    for text, places in grouped[:NOTES_SHOWN]:
        click.echo(f"note: {text}")
        for note in places[:PLACES_SHOWN]:
            click.echo(f"      {note.place}")
        if len(places) > PLACES_SHOWN:
            click.echo(f"      and {count(len(places) - PLACES_SHOWN, 'other place')}")
    if len(grouped) > NOTES_SHOWN:
        click.echo(f"and {count(len(grouped) - NOTES_SHOWN, 'other note')}")


def write_notes(file: Path, path: Path, grouped: Grouped) -> None:
    """Write all notes on the import of ``path``."""
    lines = [f"# Imported from {path}\n\n"]
    for text, places in grouped:
        lines.append(f"## {text}\n\n")
        lines += [f"- {note.place}\n" for note in places]
        lines.append("\n")
    file.write_text("".join(lines))
