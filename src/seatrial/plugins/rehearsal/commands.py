"""The command ``rehearse``."""

from pathlib import Path

import click

from seatrial.cli.commands import act
from seatrial.cli.options import (
    FiniteRange,
    components_option,
    json_option,
    phases_option,
    text_option,
)


@click.command("rehearse")
@click.argument(
    "plans", nargs=-1, required=True, metavar="PLAN...", type=click.Path(path_type=Path)
)
@click.option(
    "--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Seed of all chance."
)
@click.option(
    "--seeds",
    type=click.IntRange(min=1),
    default=1,
    help="Rehearse with so many seeds, from --seed on: how likely is each criterion met?",
)
@click.option(
    "--days",
    type=FiniteRange(min=0, min_open=True, max=3650),
    help="Duration of sustained components, instead of the plan's.",
)
@components_option
@phases_option
@click.option("--compare", is_flag=True, help="Several plans, side by side.")
@text_option("--name", "TAG", "Tag of the trial that is written.")
@json_option
@click.pass_obj
@act("seatrial.plugins.rehearsal.report:rehearse")
def rehearse() -> None:
    """Rehearse a plan: the same conductor on a simulated machine, in virtual time.

    PLAN is a plan.yaml. Its trials are written to the folder of trials, marked as rehearsed, and
    every command works on them. Nothing is built, and no job is run. Exit code 1: a criterion is
    not met.

    \b
    seatrial rehearse plans/stability.yaml --days 2
    seatrial rehearse plans/stability.yaml --seeds 100
    seatrial rehearse --compare plans/stability.yaml plans/other.yaml
    """
