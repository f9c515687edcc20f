"""``seatrial list``: list the cases of a suite without running anything."""

import click

from seatrial.cli.actions import action
from seatrial.cli.options import format_option, repeat_option, selection_options


@click.command("list")
@selection_options
@repeat_option
@click.option("--commands", is_flag=True, help="Show each case's launcher line.")
@format_option("table", "json")
@action
def command() -> None:
    """List the cases of a suite without running anything.

    SUITE is a folder with tests (default: the current one). Tests are checked as for a run.
    """
