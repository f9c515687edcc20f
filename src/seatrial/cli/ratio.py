"""``seatrial ratio``: what one way of running costs against another, over sizes."""

import click

from seatrial.cli.actions import action
from seatrial.cli.options import format_option, tests_filter, trials_argument


@click.command("ratio")
@trials_argument
@click.option(
    "--of",
    required=True,
    metavar="NAME=FIRST,SECOND",
    help="The two ways: toolchain=native,compat, or values of a parameter.",
)
@click.option("--x", "x", required=True, metavar="NAME", help="The size: tasks, nodes, or other.")
@click.option("--metric", default="elapsed", show_default=True, help="The figure.")
@tests_filter
@click.option("--weak", is_flag=True, help="The work grows with x: the same time is ideal.")
@format_option("table", "json", "csv")
@click.pass_obj
@action
def command() -> None:
    """Show how many times as long the second way takes as the first, at each size.

    With 95 % intervals, the speed-up of both, sizes that failed with their cause, the range over
    all tests, and how the ratio changes from the least size to the largest. TRIAL may have
    conditions, as for `seatrial compare`.

    \b
    seatrial ratio both --of toolchain=native,compat --x tasks
    seatrial ratio sweep --of order=smp,grid --x nodes --metric rate
    """
