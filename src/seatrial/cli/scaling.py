"""``seatrial scaling``: the effect of more threads, nodes or tasks."""

from __future__ import annotations

from typing import Any

import click

from seatrial.cli import Folders
from seatrial.cli.options import SHARE, format_option, list_option, tests_filter, trials_argument
from seatrial.cli.sides import sides_of
from seatrial.cli.study import HOW, print_or_draw
from seatrial.results.curves import over_x
from seatrial.results.given import measured_sides
from seatrial.results.scaling import ScalingQuery, without_metric
from seatrial.show.given import given_over
from seatrial.show.scaling import scaling_page


@click.command("scaling")
@trials_argument
@click.option(
    "--x",
    "x",
    required=True,
    metavar="NAME",
    help="What grows: threads, tasks, nodes, cores (tasks x threads), a parameter, or a label.",
)
@click.option(
    "--metric", default="", help="The figure that scales; default: the one that most runs have."
)
@list_option(
    "--by", "NAME", "A line for each toolchain, trial, machine, stage, or value of a parameter."
)
@tests_filter
@click.option("--weak", is_flag=True, help="The work grows with x: the same time is ideal.")
@click.option(
    "--fixed", is_flag=True, help="The resources are the same at each x: the same speed is ideal."
)
@click.option("--size", is_flag=True, help="x is a size of the work: curves with bands, crossings.")
@click.option(
    "--pays",
    type=SHARE,
    default="50%",
    show_default=True,
    metavar="SHARE",
    help="Smallest share of an addition that must become speed.",
)
@format_option("table", "json", "csv", "svg", help=HOW)
@click.pass_obj
def command(
    folders: Folders, /, trials: tuple[str, ...], tests: tuple[str, ...], form: str, **asked: Any
) -> int:
    """Show how a metric scales: speed-up, efficiency, where scaling ends, the best setting.

    Over a size (a label of figures such as bytes, a parameter with a unit, or with --size) it shows
    a curve for each setting, and where two of them cross. TRIAL may have conditions, as for
    `seatrial compare`. Settings that failed are shown with their cause.

    \b
    seatrial scaling sweep --x threads --metric triad --by toolchain
    seatrial scaling v1 v2 --x nodes --by trial --weak
    seatrial scaling osu1 --x bytes --by place
    """
    query = ScalingQuery(**asked)
    every = sides_of(folders, trials, tests, given=True)
    sides = measured_sides(every)
    tables = over_x(sides, query)
    page = scaling_page(tables, query, without_metric(sides, query), given_over(every, tables))
    print_or_draw(page, form)
    return 0
