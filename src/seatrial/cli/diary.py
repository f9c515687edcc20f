"""The notes about machines, as commands show them."""

import click

from seatrial.cli import Folders
from seatrial.studies import note_file
from seatrial.studies.note_file import Diary


def diary(folders: Folders) -> Diary:
    """Return the notes; if lines of their file are damaged, say so."""
    found = note_file.read(folders.trials / note_file.FILE)
    if found.damaged:
        click.echo(f"seatrial: {found.damaged} lines of {note_file.FILE} are not notes", err=True)
    return found
