"""How a drive of a trial ends."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from seatrial.journal.codes import PASS

INTERRUPTED = "interrupted by Ctrl-C"
TWICE = "interrupted twice by Ctrl-C"


class DriveOutcome(NamedTuple):
    """How a drive ended: verdicts by name, whether all cases have their runs, why if not, and the
    number of runs that are left."""

    verdicts: Counter[str]
    complete: bool
    why: str
    left: int = 0

    @property
    def failed(self) -> bool:
        """Whether some verdict is not pass."""
        return not set(self.verdicts) <= {PASS.name}


class Stop(Exception):
    """The driver leaves at once; jobs go on, and the trial can be resumed."""
