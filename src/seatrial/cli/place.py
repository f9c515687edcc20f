"""``seatrial place``: draw the cores of each task of a case, and show what the launcher is told."""

import click

from seatrial.cli.actions import action
from seatrial.cli.options import format_option, selection_options


@click.command("place")
@selection_options
@format_option("text", "json")
@action
def command() -> None:
    """Show on which cores of a node the tasks of each case run.

    SUITE is a folder with tests, or that of one test (default: the current one). Nothing is run.
    Cores are drawn by NUMA domain, each with the rank that has it; `.` is a free one. With a rank
    order these are slots, and the ranks of the slots of each node follow.
    """
