"""``seatrial config``: the settings, and where each comes from."""

import click

from seatrial.cli.actions import action

NAMES = ("machine", "trials", "store", "log_level", "name", "organisation", "alert")


@click.command("config")
@click.argument("key", required=False, type=click.Choice(NAMES))
@click.option("--show-origin", is_flag=True, help="Show where each value comes from.")
@click.pass_context
@action
def command() -> None:
    """Show the settings: those of KEY alone, or all.

    A command line comes first, then the variables SEATRIAL_MACHINE, SEATRIAL_TRIALS, SEATRIAL_STORE
    and SEATRIAL_LOG_LEVEL, then ~/.config/seatrial/config.yaml, then /etc/seatrial/config.yaml. A
    line of these files is such as `trials: /scratch/me/trials`.
    """
