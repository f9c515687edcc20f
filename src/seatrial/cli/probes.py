"""``seatrial probes``: a copy of the suites that ship."""

from pathlib import Path

import click

from seatrial.cli import Folders
from seatrial.errors import UsageError
from seatrial.model.suite import copy_suites
from seatrial.units import count


@click.command("probes")
@click.argument("folder", required=False, type=click.Path(path_type=Path))
@click.option(
    "--all", "every", is_flag=True, help="All suites that ship, each in a folder of its own."
)
@click.pass_obj
def command(folders: Folders, folder: Path | None, every: bool) -> int:
    """Copy the probes, small programs that measure one thing each, to FOLDER.

    FOLDER is `probes` in the working directory, with --all `suites`, where none is named. The copy
    is yours to change. README.md in it tells what each probe measures.

    \b
    seatrial probes && seatrial run probes
    seatrial probes --all /projects/acceptance/suites
    """
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
