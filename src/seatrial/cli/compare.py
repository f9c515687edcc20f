"""``seatrial compare``: compare two sides or more."""

import click

from seatrial.cli import complete
from seatrial.cli.actions import action
from seatrial.cli.options import SHARE, format_option, list_option, per_option, tests_filter


@click.command("compare")
@click.argument("sides", nargs=-1, metavar="A B...", shell_complete=complete.sides)
@list_option("--metric", "metrics", "PATTERN", "Only these metrics.")
@tests_filter
@click.option(
    "--threshold",
    type=SHARE,
    default="2%",
    show_default=True,
    metavar="SHARE",
    help="The least effect that matters, such as 3%.",
)
@list_option("--across", "PARAMETER", "Compare cases that differ in this.")
@click.option("--each-node", is_flag=True, help="A row for each node of tests run on each.")
@click.option("--elapsed", is_flag=True, help="Scripts' times, too, beside figures of merit.")
@click.option("--ladder", is_flag=True, help="Each side with the one before, and the product.")
@click.option("--spread", is_flag=True, help="Which side varies more, in place of the medians.")
@per_option
@format_option("table", "json")
@click.pass_obj
@action
def command() -> None:
    """Compare B (and C...) with A: a row for each metric of each case, the largest change first.

    A side is a trial, with conditions behind a colon; @ stands for all trials. The time that
    scripts took is the metric `elapsed`; it is shown of cases without a figure of merit.
    Exit code 1: something is worse, beyond noise; 3: too few runs to decide, or one side has no
    right answer.

    \b
    seatrial compare before after
    seatrial compare nightly:toolchain=gcc* nightly:toolchain=clang*
    seatrial compare @machine=c5,until=2026-05-01 @machine=c5,since=2026-05-01
    seatrial compare week:launch=mpi week:launch=hybrid --across ranks
    seatrial compare v0 v1 v2 --ladder
    seatrial compare before after --spread
    seatrial compare carver hopper --per core
    """
