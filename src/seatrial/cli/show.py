"""``seatrial show``: show one run in full."""

import click

from seatrial.cli import complete
from seatrial.cli.actions import action
from seatrial.cli.options import format_option


@click.command("show")
@click.argument("run", metavar="[TAG/]RUN", shell_complete=complete.runs)
@click.option("--scripts", is_flag=True, help="Show the build's, the test's and the job's script.")
@click.option(
    "-n",
    "--lines",
    type=click.IntRange(min=0),
    default=10,
    show_default=True,
    help="Lines of stdout and stderr that are shown; their last ones.",
)
@format_option("text", "json")
@click.pass_obj
@action
def command() -> None:
    """Show one run in full: the case, events, metrics, verdict, output.

    RUN is a run's id or a unique beginning of it; `seatrial runs` lists them.
    """
