"""``seatrial check``: check the nodes of a machine."""

import click

from seatrial.cli.actions import action
from seatrial.cli.lint import rules_option
from seatrial.cli.options import choice_option, machine_option, text_option


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
@click.option("--drain", is_flag=True, help="Drain nodes with findings, with a note of ours.")
@click.option(
    "--resume", is_flag=True, help="Return nodes without findings that our own note drained."
)
@click.option("--name", "tag", help="Tag of the trial; default: date, time and `facts`.")
@click.pass_context
@action
def nodes() -> None:
    """Ask the nodes for their facts and judge them by rules. Exits 1 if something was found.

    With --drain, nodes with findings get no more jobs; the note begins with `seatrial:`. Nodes that
    others drained stay as they are, and are never returned.
    """
