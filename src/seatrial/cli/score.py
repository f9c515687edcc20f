"""``seatrial score``: SSP, SSI, HPL, HPCG, Graph500 and IO500, with their parts."""

from pathlib import Path

import click

from seatrial.cli.actions import action
from seatrial.cli.options import format_option, trials_argument


@click.command("score")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@trials_argument
@format_option("table", "json")
@click.pass_obj
@action
def command() -> None:
    """Compute the score that FILE (a score.yaml) describes from the figures of TRIAL.

    The parts come first: a score hides them. Each TRIAL has its own score; where the file has
    phases, the first TRIAL is of the first phase, and so on, and what they deliver in all their
    time is the sum. TRIAL may have conditions, as for `seatrial compare`. Exit code 1: a part has
    no figure, so there is no score.
    """
