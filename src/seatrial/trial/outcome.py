"""The outcome of a drive of a trial."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from seatrial.journal.codes import KNOWN, PASS

INTERRUPTED = "interrupted by Ctrl-C"
WAS_COMPLETE = "it was complete already"
TWICE = "interrupted twice by Ctrl-C"


class DriveOutcome(NamedTuple):
    """The outcome of a drive: verdicts by name, whether all cases have their runs, the reason if
    not, and the number of runs that are left."""

    verdicts: Counter[str]
    complete: bool
    reason: str
    left: int = 0

    @property
    def failed(self) -> bool:
        """Whether a verdict is neither pass nor known."""
        return not set(self.verdicts) <= {PASS.name, KNOWN.name}


class Stop(Exception):
    """The driver leaves at once. Jobs go on, and the trial can be resumed."""
