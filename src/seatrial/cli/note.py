"""``seatrial note``: notes about the machine."""

import time

import click

from seatrial.cli import Folders
from seatrial.cli.query_common import opened
from seatrial.cli.tables import TextTable
from seatrial.errors import UsageError
from seatrial.escaping import plain_line
from seatrial.model import machine_file as machines
from seatrial.results import notes as note_file
from seatrial.results.store import queries
from seatrial.show.text import show_minute
from seatrial.units import SECOND_NS, show_seconds


def note(
    folders: Folders,
    text: str | None,
    at: int | None,
    machine: str,
    listed: bool,
    remove: str | None,
) -> int:
    """Do ``seatrial note``; return the exit code."""
    if (text is not None) + listed + (remove is not None) != 1:
        raise UsageError(
            "give a text, such as `seatrial note 'fabric reset'`, or --list or --remove"
        )
    path = folders.trials / note_file.FILE
    if listed:
        return _list(folders, machine)
    if remove is not None:
        gone = note_file.remove(path, remove)
        click.echo(f"removed {gone.id}  {show_minute(gone.time)}  {plain_line(gone.text)}")
        return 0
    if machine:
        _require_known(folders, machine)
    note = note_file.write(path, text or "", time.time_ns() if at is None else at, machine)
    about = f" on {plain_line(note.machine)}" if note.machine else ""
    click.echo(f"noted {note.id}  {show_minute(note.time)}{about}  {plain_line(note.text)}")
    if note.time > note.written:
        away = show_seconds((note.time - note.written) / SECOND_NS)
        click.echo(f"that is {away} ahead; if not meant so: seatrial note --remove {note.id}")
    return 0


def _list(folders: Folders, machine: str) -> int:
    found = diary(folders)
    notes = found.of(machine) if machine else found.notes
    if not notes:
        click.echo("No notes yet. Write one: seatrial note 'fabric reset' --at 2h")
        return 0
    table = TextTable("id | time | until?1 | machine | nodes~?2 | note~ | by")
    for note in notes:
        until = show_minute(note.until) if note.until else ""
        when = (show_minute(note.time), until)
        table.add(note.id, *when, note.machine, note.nodes, note.text, note.user)
    click.echo(table)
    return 0


def _require_known(folders: Folders, machine: str) -> None:
    """Raise UsageError for an unknown machine: a misspelt name would hide the note for ever."""
    with opened(folders) as store:
        known = sorted({trial.machine for trial in queries.trials(store)})
    if machine in known:
        return
    try:
        machines.machine_file(machine)
    except UsageError as error:
        tried = f"; trials are on {', '.join(known[:12])}" if known else ""
        raise UsageError(f"{error}{tried}") from None


def diary(folders: Folders) -> note_file.Diary:
    """Return the notes; if lines of their file are damaged, say so."""
    found = note_file.read(folders.trials / note_file.FILE)
    if found.damaged:
        click.echo(f"seatrial: {found.damaged} lines of {note_file.FILE} are not notes", err=True)
    return found
