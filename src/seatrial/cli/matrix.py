"""``seatrial matrix``: tests by toolchains, or by another attribute."""

import click

from seatrial.cli.actions import action
from seatrial.cli.options import format_option, tests_filter, trials_argument


@click.command("matrix")
@trials_argument
@click.option(
    "--by",
    default="toolchain",
    show_default=True,
    metavar="NAME",
    help="The columns: toolchain, a parameter, nodes, trial, machine.",
)
@click.option("--metric", default="", help="The figure; default: the first of each test.")
@click.option("--cases", "each_case", is_flag=True, help="A row for each case, not for each test.")
@tests_filter
@format_option("table", "json")
@click.pass_obj
@action
def command() -> None:
    """Show tests by toolchains: passed, failed, build failed, with the figure of merit.

    TRIAL may have conditions, as for `seatrial compare`. A figure is the median of the runs with a
    right answer. Exit code 1: something failed or was not built; 3: else, something was not run.

    \b
    seatrial matrix ft
    seatrial matrix ft --by compiler_flags --cases
    seatrial matrix ft:tag=library --format json
    """
