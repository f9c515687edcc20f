"""``seatrial history``: a metric over time, and its changes."""

import click

from seatrial.cli.actions import action
from seatrial.cli.options import STAGES, format_option, run_filters, text_option


@click.command("history")
@click.argument("metric")
@text_option("--case", "case", "PATTERN", "Cases: a part of the name, or the id.")
@click.option("--stage", type=click.Choice(STAGES), default=None, help="Only of this stage.")
@run_filters
@click.option("--check", is_flag=True, help="Exit code 1: worse, confirmed; 3: not to be told.")
@format_option("table", "json", "csv")
@click.pass_obj
@action
def command() -> None:
    """Show METRIC over time, a series for each case, with the changes of its level.

    METRIC is a figure of merit, `elapsed` (the time of the script), or `success_rate`: the share of
    the runs of a test that passed, by trial and day; `latency_by_level` and `bandwidth_by_level` of
    the probe `pingpong` have a series for each level of the network. A change is *suspect* or
    *confirmed*; only confirmed ones for the worse make --check end with 1. It ends with 3 where no
    change could have been seen: too few figures, a single trial, a latest run without a figure.
    """
