"""The checksums of documents that people signed for, made once for each state of a file.

    state.documents.state_of(path, sha256)       # "as it was", "changed", "not here"

A file whose size, inode and times are the same has the same checksum. Large ones are read in the
background; until that is done they count as they were, and then open pages ask again.
"""

import stat
from collections.abc import Callable
from pathlib import Path

from seatrial.acceptance.evidence_status import DocumentState, state_of
from seatrial.web.state.background import BackgroundCompute, ResultSlots, in_time

MAX_DOCUMENTS = 1000


class DocumentCache:
    """The documents that were looked at last. ``announce`` is called when there is something new to
    show."""

    def __init__(self, announce: Callable[[], None]) -> None:
        self._background = BackgroundCompute(announce, workers=1)
        self._states = ResultSlots(MAX_DOCUMENTS)

    def state_of(self, path: Path, sha256: str) -> DocumentState:
        """Return whether a document still has its checksum."""
        version = in_time(lambda: _version_of(path), None)
        if version is None:
            return "not here"
        found = self._background.latest(
            self._states, (path, sha256), version, lambda: state_of(path, sha256)
        )
        return found or "as it was"


def _version_of(path: Path) -> tuple[int, ...] | None:
    """Return what tells one state of a file from another; None where there is no file."""
    try:
        found = path.stat()
    except (OSError, ValueError):
        return None
    if not stat.S_ISREG(found.st_mode):
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
