"""``seatrial resume``: continue a trial after an interruption or a crash."""

import click

from seatrial.cli import Folders, options, run_driver
from seatrial.cli.options import (
    alert_option,
    fail_on_option,
    quiet_option,
    require_references_option,
)
from seatrial.execute.requests import FailOn
from seatrial.execute.trial_folder import find


@click.command("resume")
@click.argument("trial", shell_complete=options.complete("trials"))
@alert_option
@fail_on_option
@require_references_option
@quiet_option
@click.option(
    "--host-is-gone",
    is_flag=True,
    help="The host that ran it is down for good: what ran there is lost and runs again, and its "
    "driver's signs of life do not count.",
)
@click.pass_obj
def command(
    folders: Folders,
    trial: str,
    alert: str,
    fail_on: FailOn,
    require_references: bool,
    quiet: bool,
    host_is_gone: bool,
) -> int:
    """Continue a trial after an interruption or a crash.

    TRIAL is its tag or a unique beginning of it. Jobs that were running are found again; what was
    cancelled or lost runs again; nothing is run twice.
    """
    folder = find(folders.trials, trial)
    return run_driver.drive_and_tell(
        folder, folders, quiet, host_is_gone, alert, fail_on, require_references
    )
