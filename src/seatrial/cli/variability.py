"""``seatrial variability``: how much the tests of a trial vary, and which runs are outliers."""

import click

from seatrial.cli import complete
from seatrial.cli.actions import action
from seatrial.cli.options import FiniteRange, json_option, test_filter


@click.command("variability")
@click.argument("trial", shell_complete=complete.trials)
@test_filter
@click.option("--metric", default="", help="Only this metric; `elapsed` is one.")
@click.option(
    "--exclude",
    type=FiniteRange(min=1),
    metavar="D",
    help="Leave out figures farther than D robust deviations from the median.",
)
@json_option
@click.pass_obj
@action
def command() -> None:
    """Show how much the tests of TRIAL vary, its outliers, and what they share."""
