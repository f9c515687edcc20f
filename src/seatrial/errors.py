"""The exceptions of Seatrial. ``seatrial.cli`` turns them into messages, nobody else does.

Every error names the thing, the value and the place, and says what to do.
"""

import difflib
from collections.abc import Iterable, Sequence

from seatrial import __version__


def with_extra(extra: str) -> str:
    """Return the command that installs what an extra of Seatrial brings. It names the wheel, as a
    package index has no Seatrial, or perhaps one of somebody else."""
    return f"pip install 'seatrial-{__version__}-py3-none-any.whl[{extra}]'"


class SeatrialError(Exception):
    """An error to show to the user. ``exit_code`` is the exit code of the command."""

    exit_code = 3


class UsageError(SeatrialError):
    """A request, or a file that it names, cannot be used as given."""

    exit_code = 2


class InvalidFiles(UsageError):
    """One or more faults in files that people write; each text is ``file:line: key: what``.
    ``remedy``: a sentence on what can be done meanwhile."""

    def __init__(self, faults: Sequence[str], remedy: str = "") -> None:
        self.faults = list(faults)
        count = len(self.faults)
        ending = f"{count} fault{'s' if count != 1 else ''}; nothing was done. {remedy}".rstrip()
        super().__init__("\n".join([*self.faults, ending]))


class JournalError(SeatrialError):
    """A journal cannot be read, written or owned."""


class Owned(JournalError):
    """Another process is writing the journal."""


class TrialError(SeatrialError):
    """A trial cannot be created, found or continued."""


class BackendError(SeatrialError):
    """The scheduler or this machine cannot run jobs."""


class StoreError(SeatrialError):
    """The store cannot be opened, read or written."""


def suggest(name: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """Return "did you mean 'x'?" with the known name nearest to ``name``, or "" if none is near.
    ``cutoff``: least similarity, 0 to 1 (difflib's ratio)."""
    near = difflib.get_close_matches(name[:80], list(known), n=1, cutoff=cutoff)
    return f"did you mean {near[0]!r}?" if near else ""
