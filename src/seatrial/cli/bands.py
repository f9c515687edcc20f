"""``seatrial bands``: latency and bandwidth of pairs by level of the network and kind of core."""

import click

from seatrial.cli.actions import action
from seatrial.cli.options import json_option


@click.command("bands")
@click.argument("source", metavar="TRIAL|FILE")
@click.option("-m", "--machine", help="Machine whose topology is used; default: the trial's.")
@json_option
@click.pass_obj
@action
def command() -> None:
    """Show latency and bandwidth of pairs by level of the network, and by kind of core.

    Of TRIAL: all right runs of the probe `pingpong`. FILE: an output of `pingpong`. A node pair of
    several runs or ranks has the median of its figures.
    """
