"""``seatrial resume``: continue a trial after an interruption or a crash."""

from typing import TYPE_CHECKING

from seatrial.cli import Folders
from seatrial.lazy import LazyModule
from seatrial.trial.folder import find
from seatrial.trial.outcome import FailOn

if TYPE_CHECKING:
    from seatrial.cli import run_driver
else:  # for a trial that was found
    run_driver = LazyModule("seatrial.cli.run_driver")


def command(
    folders: Folders,
    trial: str,
    alert: str,
    fail_on: FailOn,
    require_references: bool,
    quiet: bool,
    host_is_gone: bool,
) -> int:
    folder = find(folders.trials, trial)
    return run_driver.drive_and_tell(
        folder, folders, quiet, host_is_gone, alert, fail_on, require_references
    )
