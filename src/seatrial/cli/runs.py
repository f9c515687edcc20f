"""``seatrial runs``: list runs."""

import click

from seatrial.cli import complete
from seatrial.cli.actions import action
from seatrial.cli.options import format_option, run_filters, text_option

SHOWN = 50


@click.command("runs")
@run_filters
@click.option("-t", "--tag", default="", help="Only tests with this tag.")
@click.option("--failed", is_flag=True, help="Neither passed nor lost and run again.")
@click.option(
    "--verdict",
    "verdicts",
    multiple=True,
    shell_complete=complete.verdicts,
    help="Only this verdict; may be repeated.",
)
@text_option("--cause", "TEXT", "Only failures of this cause: a part, or a pattern.")
@click.option(
    "--limit", type=click.IntRange(min=0), help=f"Most runs; 0: all. Default: {SHOWN} in a table."
)
@format_option("table", "json", "csv")
@click.pass_obj
@action
def command() -> None:
    """List runs, newest first: test, nodes, verdict, time."""
