"""``seatrial ratio``: what one way of running costs against another, over sizes."""

from __future__ import annotations

from typing import Any

import click

from seatrial.cli import Folders
from seatrial.cli.options import format_option, tests_filter, trials_argument
from seatrial.cli.query_common import print_page
from seatrial.cli.sides import code_of_damage, sides_of
from seatrial.results import ratios
from seatrial.show.ratio import ratio_page


@click.command("ratio")
@trials_argument
@click.option(
    "--of",
    required=True,
    metavar="NAME=FIRST,SECOND",
    help="The two ways: toolchain=native,compat, or values of a parameter.",
)
@click.option(
    "--x",
    "x",
    required=True,
    metavar="NAME",
    help="The size: tasks, nodes, threads, cores, a parameter, or a label of figures.",
)
@click.option(
    "--metric",
    default="",
    help="The figure; default: elapsed, over a label the figure that most runs have.",
)
@tests_filter
@click.option("--weak", is_flag=True, help="The work grows with x: the same time is ideal.")
@click.option(
    "--fixed", is_flag=True, help="The resources are the same at each x: there is no speed-up."
)
@format_option("table", "json", "csv")
@click.pass_obj
def command(
    folders: Folders,
    /,
    trials: tuple[str, ...],
    of: str,
    tests: tuple[str, ...],
    form: str,
    **asked: Any,
) -> int:
    """Show how many times as long the second way takes as the first, at each size.

    With 95 % intervals, the speed-up of both, sizes that failed with their cause, the range over
    all tests, and how the ratio changes from the least size to the largest. TRIAL may have
    conditions, as for `seatrial compare`.

    \b
    seatrial ratio both --of toolchain=native,compat --x tasks
    seatrial ratio sweep --of order=smp,grid --x nodes --metric rate
    seatrial ratio osu1 --of place=X,Z --x bytes
    """
    name, first, second = ratios.two_values(of)
    query = ratios.RatioQuery(of=name, values=(first, second), **asked)
    sides = sides_of(folders, trials, tests)
    tables = ratios.ratios(sides, query)
    print_page(ratio_page(tables, tables, ratios.without_both(sides, tables)), form)
    return code_of_damage(sides)
