"""The records of trials and their references, read once and kept while the files are the same.

state.records.record(trial)               # trial.json, None if it is gone or damaged
state.records.references(trial)
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from seatrial.errors import SeatrialError
from seatrial.store.rows import TrialRow
from seatrial.trial.folder import Record, TrialFolder, references_of
from seatrial.verify.references import References
from seatrial.web.state.background import in_time
from seatrial.web.state.cache import LruCache

MAX_BYTES = 64 << 20
MAX_RECORDS = 16


class _Known(NamedTuple):
    record: Record | None
    references: References


class RecordCache:
    """The records that were read last."""

    def __init__(self) -> None:
        self._known: LruCache[tuple[object, ...], _Known] = LruCache(MAX_RECORDS)

    def record(self, trial: TrialRow) -> Record | None:
        """Return the record of a trial; None if it cannot be read."""
        return self._read(trial).record

    def references(self, trial: TrialRow) -> References:
        """Return the references by which a trial is judged; none if they cannot be read."""
        return self._read(trial).references

    def _read(self, trial: TrialRow) -> _Known:
        nothing = _Known(None, References())
        return in_time(lambda: self._read_file(trial) or nothing, nothing)

    def _read_file(self, trial: TrialRow) -> _Known | None:
        try:
            file = (Path(trial.path) / "trial.json").stat()
        except (OSError, ValueError):
            return None
        if file.st_size > MAX_BYTES:
            return None
        key = (trial.path, file.st_ino, file.st_size, file.st_mtime_ns)
        return self._known.get_or_make(key, lambda: _decoded(Path(trial.path)))


def _decoded(path: Path) -> _Known:
    try:
        record = TrialFolder(path).record()
        return _Known(record, references_of(record))
    except SeatrialError:
        return _Known(None, References())
