"""``seatrial probes``: a copy of the suites that ship."""

from pathlib import Path

import click

from seatrial.cli.actions import action


@click.command("probes")
@click.argument("folder", required=False, type=click.Path(path_type=Path))
@click.option(
    "--all", "every", is_flag=True, help="All suites that ship, each in a folder of its own."
)
@click.pass_obj
@action
def command() -> None:
    """Copy the probes, small programs that measure one thing each, to FOLDER.

    FOLDER is `probes` in the working directory, with --all `suites`, where none is named. The copy
    is yours to change. README.md in it tells what each probe measures.

    \b
    seatrial probes && seatrial run probes
    seatrial probes --all /projects/acceptance/suites
    """
