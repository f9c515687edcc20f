"""The notes about machines, as commands show them."""

import click

from seatrial.cli import Folders
from seatrial.results import notes
from seatrial.results.notes import Diary


def diary(folders: Folders) -> Diary:
    """Return the notes; if lines of their file are damaged, say so."""
    found = notes.read(folders.trials / notes.FILE)
    if found.damaged:
        click.echo(f"seatrial: {found.damaged} lines of {notes.FILE} are not notes", err=True)
    return found
