"""``seatrial reference``: the expected values of metrics on a machine."""

import click

from seatrial.cli import complete
from seatrial.cli.actions import action
from seatrial.cli.options import MOMENT, STAGES, machine_option, value_option


@click.group("reference")
def command() -> None:
    """Accept measured figures as references, or list those of a machine.

    References stand beside the machine, in machines/NAME/references.yaml. A run whose figure
    misses its reference gets the verdict `performance`.
    """


@command.command("accept", short_help="Write references from measured medians.")
@click.argument("trials", nargs=-1, metavar="[TRIAL]...", shell_complete=complete.trials)
@click.option(
    "--metric", default="", help="Only this metric; `elapsed`, the time of the script, is one."
)
@click.option(
    "--stage",
    type=click.Choice(STAGES),
    default="alone",
    help="Of runs at full machine (full), or of all others.  [default: alone]",
)
@value_option(
    "--since", "TIME", "Only runs created since: 30d or 2026-11-20.", type=MOMENT, default=0
)
@click.option("-m", "--machine", default="", help="With --since alone: the machine, by its name.")
@click.option("--two-sided", is_flag=True, help="Bound the better side, too.")
@click.option("--force", is_flag=True, help="Even references that allow 50 % or more.")
@click.option("--rehearsed", is_flag=True, help="Even of a rehearsal, which measured nothing.")
@click.option("--damaged", is_flag=True, help="Even of a trial whose journal is damaged.")
@click.option("--dry-run", is_flag=True, help="Show what would be written, write nothing.")
@click.pass_obj
@action
def accept() -> None:
    """Write references from the measured medians of TRIAL, of several, or of all --since a time.

    The tolerance of each is learned from the spread of its figures: more spread gives a wider
    tolerance. One that would allow 50 % or more is left out. Of several trials, only figures since
    the last confirmed change of level count. An existing reference for the same case is replaced;
    others stay as they are. Sums of files that must be `identical` are learned, too, where all runs
    with a right answer wrote the same.
    """


@command.command("list")
@machine_option
@action
def list_references() -> None:
    """List the references of a machine."""
