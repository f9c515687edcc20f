"""The command ``network``."""

import click

from seatrial.cli.commands import act
from seatrial.cli.options import (
    json_option,
    text_option,
)


@click.command("network")
@click.argument("source", metavar="TRIAL|FILE")
@click.option(
    "-m", "--machine", help="Machine whose groups of nodes are used; default: the trial's."
)
@text_option("--run", "run_id", "RUN", "Only this run of the trial.")
@click.option("--ranks", is_flag=True, help="Judge ranks, not nodes, where a node has several.")
@json_option
@click.pass_obj
@act("seatrial.plugins.network.acts:network")
def network() -> None:
    """Judge an all-pairs matrix: slow senders, receivers and links, and who cannot talk, by node
    and by level of the network.

    Of TRIAL: the latest run of each case of the probes `pairs` and `congestion`, of mpiGraph or
    GPCNeT. FILE: an output of mpiGraph or GPCNeT, a `pairs.matrix`, or an output of `congestion`.
    """
