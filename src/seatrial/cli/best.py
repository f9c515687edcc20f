"""``seatrial best``: the best setting, and those that cannot be told from it."""

import click

from seatrial.cli import options
from seatrial.cli.actions import action


@click.command("best")
@options.trials_argument
@options.text_option(
    "--over",
    "NAME[,NAME]",
    "What makes a setting: parameters, toolchain, tasks...; default: all parameters that vary.",
)
@click.option("--metric", default="", help="The figure; default: the one that most runs have.")
@options.choice_option(
    "--statistic",
    of=["median", "least"],
    help="Rank by the median of the runs, or by the best of them.",
)
@options.tests_filter
@options.per_option
@options.format_option("table", "json")
@click.pass_obj
@action
def command() -> None:
    """Rank settings: the best one, those that cannot be told from it, those that failed.

    TRIAL may have conditions, as for `seatrial compare`. With 95 % a best setting is among those
    that are not called worse.

    \b
    seatrial best sweep
    seatrial best sweep --over order,stripe --metric bandwidth
    seatrial best week1 week2 week3 --over threads --statistic least
    """
