"""``seatrial suspects``: find nodes that explain failed or slow runs."""

import click

from seatrial.cli.actions import action
from seatrial.cli.options import json_option, list_option, machine_filter, since_filter, test_filter


@click.command("suspects")
@list_option("--trial", "trials", "TAG", "Only of this; repeatable.")
@since_filter
@test_filter
@machine_filter
@json_option
@click.pass_obj
@action
def command() -> None:
    """Name the nodes, and groups of nodes, that explain failed or slow runs better than chance.

    A run counts as bad if it failed, was at its walltime, or was far slower than the others of its
    case. p is the chance of as many bad runs for a healthy node, times the number of nodes and
    groups that were compared.
    """
