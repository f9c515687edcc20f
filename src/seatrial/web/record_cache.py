"""The records of trials, and what they judge by, read once and kept while the files are the same.

record_of(trial)          # trial.json, or None where it is gone or damaged
references_of(trial)
"""

from __future__ import annotations

import functools
from pathlib import Path

from seatrial.errors import SeatrialError
from seatrial.store.rows import TrialRow
from seatrial.trial.folder import Record, TrialFolder
from seatrial.trial.folder import references_of as references_in
from seatrial.verify.references import References
from seatrial.web.output.run_files import in_time

LARGEST = 64 << 20
KEPT = 16


def record_of(trial: TrialRow) -> Record | None:
    """What was asked of a trial; None where its folder is gone or its record cannot be read."""
    return _known(trial)[0]


def references_of(trial: TrialRow) -> References:
    """The references that a trial judges by; none where its folder cannot be read any more."""
    return _known(trial)[1]


def _known(trial: TrialRow) -> tuple[Record | None, References]:
    try:
        found = (Path(trial.path) / "trial.json").stat()
    except (OSError, ValueError):
        return None, References()
    if found.st_size > LARGEST:
        return None, References()
    seen = (trial.path, found.st_ino, found.st_size, found.st_mtime_ns)
    unread: tuple[Record | None, References] = (None, References())
    return in_time(lambda: _read(*seen), unread)


@functools.lru_cache(maxsize=KEPT)
def _read(path: str, inode: int, size: int, modified: int) -> tuple[Record | None, References]:
    try:
        record = TrialFolder(Path(path)).record()
        return record, references_in(record)
    except SeatrialError:
        return None, References()
