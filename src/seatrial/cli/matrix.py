"""``seatrial matrix``: tests by toolchains, or by another attribute."""

from __future__ import annotations

from typing import Any

import click

from seatrial.cli import Folders
from seatrial.cli.options import format_option, tests_filter, trials_argument
from seatrial.cli.query_common import opened, print_page, tell_damage
from seatrial.results import matrix
from seatrial.results.selection import gather, parse_side, trials_of
from seatrial.show.matrix import matrix_page

NOT_PASSED, NOT_RUN = 1, 3


@click.command("matrix")
@trials_argument
@click.option(
    "--by",
    default="toolchain",
    show_default=True,
    metavar="NAME",
    help="The columns: toolchain, a parameter, nodes, tasks, threads, cores, machine, trial, "
    "stage or node.",
)
@click.option("--metric", default="", help="The figure; default: the first of each test.")
@click.option("--cases", "each_case", is_flag=True, help="A row for each case, not for each test.")
@tests_filter
@format_option("table", "json")
@click.pass_obj
def command(
    folders: Folders, /, trials: tuple[str, ...], tests: tuple[str, ...], form: str, **asked: Any
) -> int:
    """Show tests by toolchains: passed, failed, build failed, with the figure of merit.

    TRIAL may have conditions, as for `seatrial compare`. A figure is the median of the runs with a
    right answer. Exit code 1: something failed or was not built; 3: else, something was not run.

    \b
    seatrial matrix ft
    seatrial matrix ft --by compiler_flags --cases
    seatrial matrix ft:tag=library --format json
    """
    with opened(folders) as store:
        sides = [gather(store, parse_side(trial), tests) for trial in trials]
        damaged = [trial for trial in trials_of(sides) if trial.damaged]
        tell_damage(store, damaged)
        reasons = matrix.reasons_of(store, trials_of(sides), tests)
    result = matrix.result_matrix(sides, matrix.MatrixQuery(**asked), reasons)
    print_page(matrix_page(result), form)
    return exit_code(result) or (NOT_RUN if damaged else 0)


def exit_code(result: matrix.ResultMatrix) -> int:
    """Return 0 if all passed, 1 if something failed or was not built, 3 if else something was not
    run."""
    total = result.total
    if total.get("failed") or total.get("build failed"):
        return NOT_PASSED
    return NOT_RUN if total.get("not run") else 0
