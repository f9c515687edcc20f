"""The notes about machines, as commands show them."""

from datetime import datetime

import click

from seatrial.cli import Folders
from seatrial.studies import note_file
from seatrial.studies.note_file import Diary
from seatrial.units import SECOND_NS


def diary(folders: Folders) -> Diary:
    """Return the notes; if lines of their file are damaged, say so."""
    found = note_file.read(folders.trials / note_file.FILE)
    if found.damaged:
        click.echo(f"seatrial: {found.damaged} lines of {note_file.FILE} are not notes", err=True)
    return found


def show_minute(time_ns: int) -> str:
    """Return a time in the local time zone, to the minute."""
    return f"{datetime.fromtimestamp(time_ns // SECOND_NS):%Y-%m-%d %H:%M}"
