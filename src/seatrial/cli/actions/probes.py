"""``seatrial probes``: a copy of the suites that ship."""

from pathlib import Path

import click

from seatrial.cli import Folders
from seatrial.errors import UsageError
from seatrial.suite.shipped import copy_suites
from seatrial.units import count


def command(folders: Folders, folder: Path | None, every: bool) -> int:
    target = folder or Path("suites" if every else "probes")
    try:
        tests = copy_suites(target, "" if every else "probes")
    except FileExistsError:
        remedy = f"name another folder: seatrial probes {'--all ' if every else ''}FOLDER"
        raise UsageError(f"{target}: is there already; {remedy}") from None
    suite = target / "probes" if every else target
    click.echo(f"{count(tests, 'test')} in {target}")
    click.echo(f"next   {folders.command('run', str(suite))}")
    return 0
