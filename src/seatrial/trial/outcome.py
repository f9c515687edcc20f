"""The outcome of a drive of a trial."""

import errno
from collections import Counter
from typing import Literal

from msgspec import Struct

from seatrial.journal.codes import CODES, ERRORS, KNOWN, PASS

FailOn = Literal["any", "failures", "never"]
"""What makes the exit code 1: any verdict that is not pass, verdicts that the test is to blame for,
or none."""

_ERRORS = frozenset(CODES[number].name for number in ERRORS)

INTERRUPTED = "interrupted by Ctrl-C"
WAS_COMPLETE = "it was complete already"
TWICE = "interrupted twice by Ctrl-C"


class DriveOutcome(Struct, frozen=True):
    """The outcome of a drive: verdicts by name, whether all cases have their runs, the reason if
    not, and the number of runs that are left."""

    verdicts: Counter[str]
    complete: bool
    reason: str
    left: int = 0

    @property
    def failed(self) -> bool:
        """Whether a verdict is neither pass nor known."""
        return bool(self._bad)

    @property
    def _bad(self) -> set[str]:
        return set(self.verdicts) - {PASS.name, KNOWN.name}

    def exit_code(self, fail_on: FailOn = "any") -> int:
        """Return 0, 1, or 3 where not all cases could be judged. By ``failures`` a run that failed
        by the fault of the machine, the scheduler or a person is one that could not."""
        if fail_on == "never":
            return 0 if self.complete else 3
        if self._bad - (_ERRORS if fail_on == "failures" else set()):
            return 1
        return 0 if self.complete and not self._bad else 3


class Stop(Exception):
    """The driver leaves at once. Jobs go on, and the trial can be resumed."""


_REMEDIES = {
    errno.ENOSPC: "free some space",
    errno.EDQUOT: "free some space, or have the quota raised",
    errno.EMFILE: "raise the limit on open files (ulimit -n)",
    errno.ENFILE: "close files: this host has too many open",
    errno.EACCES: "get write permission there",
    errno.EPERM: "get write permission there",
    errno.EROFS: "have the file system mounted writable",
    errno.ENOENT: "restore what is missing",
}


def remedy(error: OSError) -> str:
    """Return what a person can do about an error."""
    return _REMEDIES.get(error.errno or 0, "check the file system")
