"""``seatrial resume``: continue a trial after an interruption or a crash."""

import click

from seatrial.cli import complete
from seatrial.cli.actions import action
from seatrial.cli.options import (
    alert_option,
    fail_on_option,
    quiet_option,
    require_references_option,
)


@click.command("resume")
@click.argument("trial", shell_complete=complete.trials)
@alert_option
@fail_on_option
@require_references_option
@quiet_option
@click.option(
    "--host-is-gone",
    is_flag=True,
    help="The host that ran it is down for good: call what ran there lost.",
)
@click.pass_obj
@action
def command() -> None:
    """Continue a trial after an interruption or a crash.

    TRIAL is its tag or a unique beginning of it. Jobs that were running are found again; what was
    cancelled or lost runs again; nothing is run twice.
    """
