"""``seatrial figures``: figures that somebody else measured, such as a vendor."""

from pathlib import Path

import click

from seatrial.account import account
from seatrial.cli import Folders
from seatrial.escaping import plain_line
from seatrial.execute.figures_file import import_figures
from seatrial.units import count


def figures_import(
    folders: Folders, /, file: Path, tag: str, machine: str, by: str, **usual: str
) -> int:
    """Do ``seatrial figures import``; return the exit code."""
    by = by.strip() or account()
    folder = import_figures(folders.trials, tag, machine or tag, file, by, **usual)
    about = f"figures of {count(len(folder.cases()), 'case')}, given by {plain_line(by)}"
    click.echo(f"{folder.tag}: {about}")
    click.echo(f"next   {folders.command('compare', folder.tag, 'TRIAL')}")
    return 0
