"""``seatrial advise``: the best setting that a tuning found, and what it could not tell."""

import click

from seatrial.cli import complete
from seatrial.cli.actions import action
from seatrial.cli.options import format_option


@click.command("advise")
@click.argument("trial", shell_complete=complete.trials)
@format_option("table", "json")
@click.pass_obj
@action
def command() -> None:
    """Show which setting to use by the tuning TRIAL, how sure that is, and what it cost."""
