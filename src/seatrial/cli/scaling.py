"""``seatrial scaling``: the effect of more threads, nodes or tasks."""

import click

from seatrial.cli.actions import action
from seatrial.cli.options import SHARE, format_option, list_option, tests_filter, trials_argument


@click.command("scaling")
@trials_argument
@click.option(
    "--x", "x", required=True, metavar="NAME", help="threads, tasks, nodes, cores, or other."
)
@click.option("--metric", default="elapsed", show_default=True, help="The figure that scales.")
@list_option("--by", "NAME", "A line for each toolchain, or trial.")
@tests_filter
@click.option("--weak", is_flag=True, help="The work grows with x: the same time is ideal.")
@click.option(
    "--fixed", is_flag=True, help="The resources are the same at each x: the same speed is ideal."
)
@click.option(
    "--pays",
    type=SHARE,
    default="50%",
    show_default=True,
    metavar="SHARE",
    help="Smallest share of an addition that must become speed.",
)
@format_option("table", "json")
@click.pass_obj
@action
def command() -> None:
    """Show how a metric scales: speed-up, efficiency, where scaling ends, the best setting.

    TRIAL may have conditions, as for `seatrial compare`. Settings that failed are shown with their
    cause.

    \b
    seatrial scaling sweep --x threads --metric triad --by toolchain
    seatrial scaling week:test=cm4 --x nodes
    seatrial scaling v1 v2 --x nodes --by trial --weak
    """
