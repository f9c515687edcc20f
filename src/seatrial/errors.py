"""The one exception tree. It becomes text in one place: ``seatrial.cli``.

Every error names the thing, the value and the place, and says what to do.
"""

from __future__ import annotations

from collections.abc import Sequence


class SeatrialError(Exception):
    """Something a person must know. ``exit_code`` is what the command line ends with."""

    exit_code = 3


class UsageError(SeatrialError):
    """What was asked, or the files it names, cannot be used as given."""

    exit_code = 2


class InvalidFiles(UsageError):
    """One or more faults in files that people write; each text is ``file:line: key: what``."""

    def __init__(self, faults: Sequence[str]) -> None:
        self.faults = list(faults)
        count = len(self.faults)
        ending = f"{count} fault{'s' if count != 1 else ''}; nothing was run."
        super().__init__("\n".join([*self.faults, ending]))


class JournalError(SeatrialError):
    """A journal cannot be read, written or owned."""


class Owned(JournalError):
    """Another process is writing the journal."""


class TrialError(SeatrialError):
    """A trial cannot be created, found or carried on."""


class BackendError(SeatrialError):
    """The scheduler, or this machine, cannot run jobs at all."""


class StoreError(SeatrialError):
    """The store cannot be opened, read or written."""
