"""``seatrial builds``: the builds that trials share."""

import click

from seatrial.cli.actions import action
from seatrial.cli.options import Parsed, format_option, machine_option
from seatrial.units import seconds


@click.command("builds")
@machine_option
@click.option("--remove", "removes", is_flag=True, help="Remove those that no trial uses.")
@click.option(
    "--older-than",
    type=Parsed(seconds),
    default=0.0,
    metavar="TIME",
    help="With --remove: only those made and last used before, e.g. 30d.",
)
@format_option("table", "json")
@click.pass_obj
@action
def command() -> None:
    """List the builds that trials share, or remove those that no trial uses.

    They lie in .builds beside the trials, or where `builds: {folder: ...}` of MACHINE says.

    \b
    seatrial builds
    seatrial builds --remove --older-than 30d
    """
