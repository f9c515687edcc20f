"""``seatrial check``: check the nodes of a machine."""

import click

from seatrial.cli.actions import action
from seatrial.cli.lint import rules_option
from seatrial.cli.options import SHARE, choice_option, machine_option, text_option, value_option


@click.group("check")
def command() -> None:
    """Check the nodes of a machine by rules over their facts."""


@command.command("nodes")
@machine_option
@rules_option
@choice_option(
    "--by", of=["job", "array", "ssh"], help="How nodes are asked, as for `facts collect`."
)
@text_option("--nodes", "SET", "Only these nodes.")
@click.option(
    "--drain",
    is_flag=True,
    help="Drain nodes that rules with `drain: true` accuse, and silent ones.",
)
@value_option(
    "--most",
    "SHARE",
    "Nodes that --drain may drain without a question; default: 5%.",
    type=SHARE,
    default=0.05,
)
@click.option("-y", "--yes", is_flag=True, help="Do not ask before more are drained.")
@click.option(
    "--resume", is_flag=True, help="Ask the nodes that our note drained; return good ones."
)
@click.option("--name", "tag", help="Tag of the trial; default: date, time and `facts`.")
@click.pass_context
@action
def nodes() -> None:
    """Ask the nodes for their facts and judge them by rules. Exits 1 if something was found.

    With --drain, nodes get no more jobs that rules marked `drain: true` accuse, or that did not
    answer; the note begins with `seatrial:`. Beyond 5 % of the machine (at least one node) it asks;
    where nobody can be asked nothing is drained. Nodes that others drained stay as they are, and
    are never returned. --resume asks drained nodes by ssh. Each act is noted: `seatrial note`.
    """
