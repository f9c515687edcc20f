"""``seatrial resume``: continue a trial after an interruption or a crash."""

from seatrial.cli import Folders
from seatrial.cli.run_driver import drive_and_tell
from seatrial.trial.folder import find
from seatrial.trial.outcome import FailOn


def command(
    folders: Folders, trial: str, alert: str, fail_on: FailOn, quiet: bool, host_is_gone: bool
) -> int:
    return drive_and_tell(find(folders.trials, trial), folders, quiet, host_is_gone, alert, fail_on)
