"""``seatrial trials``: list the trials."""

import click

from seatrial.cli.actions import action
from seatrial.cli.options import format_option


@click.command("trials")
@click.option("--limit", type=click.IntRange(min=0), help="Most trials; 0: all. Default: 50.")
@click.option("--rehearsed", is_flag=True, help="Rehearsals, too.")
@format_option("table", "json")
@click.pass_obj
@action
def command() -> None:
    """List the trials, newest first: state, and how many runs passed.

    The state is running, paused, cancelled, ended, abandoned, imported from another tool, or
    interrupted: nobody drives it any more, and `seatrial resume` would continue it. Rehearsals are
    listed with --rehearsed, or where there is nothing else. On a narrow terminal, columns are left
    out before tags are folded.
    """
