"""The machine of a trial, for commands that read the store."""

from pathlib import Path
from typing import TYPE_CHECKING

from seatrial.errors import SeatrialError
from seatrial.store.rows import TrialRow
from seatrial.trial.folder import TrialFolder

if TYPE_CHECKING:
    from seatrial.machine.model import Machine


def known_machine(trial: TrialRow) -> "Machine | None":
    """Return the machine of a trial; None if its record cannot be read: it is gone, or another
    version wrote it."""
    try:
        return TrialFolder(Path(trial.path)).record().machine
    except (SeatrialError, ValueError):
        return None
