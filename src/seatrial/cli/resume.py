"""``seatrial resume``: continue a trial after an interruption or a crash."""

from typing import TYPE_CHECKING

import click

from seatrial.cli import Folders, complete
from seatrial.cli.options import alert_option, fail_on_option, quiet_option

if TYPE_CHECKING:
    from seatrial.trial.outcome import FailOn


@click.command("resume")
@click.argument("trial", shell_complete=complete.trials)
@alert_option
@fail_on_option
@quiet_option
@click.option(
    "--host-is-gone",
    is_flag=True,
    help="The host that ran it is down for good: call what ran there lost.",
)
@click.pass_obj
def command(
    folders: Folders, trial: str, alert: str, fail_on: "FailOn", quiet: bool, host_is_gone: bool
) -> int:
    """Continue a trial after an interruption or a crash.

    TRIAL is its tag or a unique beginning of it. Jobs that were running are found again; what was
    cancelled or lost runs again; nothing is run twice.
    """
    from seatrial.cli.run_driver import drive_and_tell
    from seatrial.trial.folder import find

    return drive_and_tell(find(folders.trials, trial), folders, quiet, host_is_gone, alert, fail_on)
