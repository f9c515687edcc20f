"""``seatrial best``: the best setting, and those that cannot be told from it."""

from typing import Any

import click

from seatrial.cli import Folders, options
from seatrial.cli.query_common import print_page
from seatrial.cli.sides import code_of_damage, sides_of
from seatrial.results.best import BestQuery, best_settings, over_sizes
from seatrial.results.ratios import per_resource
from seatrial.results.selection import words_of
from seatrial.show.best import best_page


@click.command("best")
@options.trials_argument
@options.text_option(
    "--over",
    "NAME[,NAME]",
    "What makes a setting: parameters, toolchain, tasks...; default: all parameters that vary.",
)
@options.text_option(
    "--best-of", "NAME[,NAME]", "Each setting by its best over these, such as nodes,tasks."
)
@click.option("--metric", default="", help="The figure; default: the one that most runs have.")
@options.text_option(
    "--x", "NAME", "Rank at each value of a label or parameter; default: bytes, if it has several."
)
@options.choice_option(
    "--statistic",
    of=["median", "least"],
    help="Rank by the median of the runs, or by the best of them.",
)
@options.tests_filter
@options.per_option
@options.format_option("table", "json")
@click.pass_obj
def command(
    folders: Folders,
    /,
    trials: tuple[str, ...],
    over: str,
    best_of: str,
    tests: tuple[str, ...],
    per: str | None,
    form: str,
    **asked: Any,
) -> int:
    """Rank settings: the best one, those that cannot be told from it, those that failed.

    TRIAL may have conditions, as for `seatrial compare`. With 95 % a best setting is among those
    that are not called worse. Figures that others gave stand beside them, marked and not ranked. Of
    a figure with several sizes it tells the best at each, and over which sizes each is best.

    \b
    seatrial best sweep
    seatrial best sweep --over order,stripe --metric bandwidth
    seatrial best week1 week2 week3 --over threads --statistic least
    seatrial best osu1 --over place --metric "latency{bytes=8}"
    seatrial best daint titan vendor --over machine --best-of nodes,tasks
    """
    query = BestQuery(over=words_of(over), best_of=words_of(best_of), **asked)
    sides = sides_of(folders, trials, tests, given=True)
    if per:
        sides = [per_resource(side, per) for side in sides]
    print_page(best_page(over_sizes(best_settings(sides, query))), form)
    return code_of_damage(sides)
