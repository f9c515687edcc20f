"""``seatrial tune``: find the best setting of a test by a race, or show how one stands."""

from pathlib import Path

import click

from seatrial.cli.actions import action
from seatrial.cli.options import alert_option, format_option, machine_option, quiet_option


@click.command("tune")
@click.argument("file", required=False, metavar="[TUNE]", type=click.Path(path_type=Path))
@machine_option
@click.option("--name", "tag", help="Tag of the trial; default: date, time and tuning.")
@click.option("--status", metavar="TRIAL", help="Show how a tuning stands, and run nothing.")
@click.option("--rehearse", is_flag=True, help="Run nothing; how likely is the best found?")
@click.option(
    "--seeds",
    type=click.IntRange(min=1, max=10_000),
    default=100,
    show_default=True,
    help="Rehearsed tunings.",
)
@click.option(
    "--noise",
    type=click.FloatRange(min=0, min_open=True, max=100),
    default=1.0,
    show_default=True,
    metavar="PERCENT",
    help="Rehearsal: spread of the runs of one setting on the same nodes.",
)
@alert_option
@quiet_option
@format_option("table", "json")
@click.pass_obj
@action
def command() -> None:
    """Find the best setting of a test: a race over the axes of a tune.yaml.

    TUNE is the file. All settings run once; those that may still be best run again, round by round
    beside the default, each block in one allocation. What cannot win is dropped. The race is a
    trial like any other: `seatrial resume` continues it.

    \b
    seatrial tune tune.yaml -m frost
    seatrial tune tune.yaml -m frost --rehearse   its cost and odds
    seatrial tune --status TRIAL
    seatrial advise TRIAL
    """
