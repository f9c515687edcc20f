"""The records of trials and their references, read once and kept while the files are the same.

state.records.record(trial)               # trial.json, None if it is gone or damaged
state.records.references(store, trial)
"""

from pathlib import Path

from seatrial.errors import SeatrialError
from seatrial.store import queries
from seatrial.store.rows import TrialRow
from seatrial.store.schema import Store
from seatrial.trial.corrected_references import references_by_now
from seatrial.trial.folder import TrialFolder
from seatrial.trial.record import Record, references_of
from seatrial.verify.references import References
from seatrial.web.state.background import in_time
from seatrial.web.state.cache import LruCache

MAX_BYTES = 64 << 20
MAX_RECORDS = 16


class RecordCache:
    """The records that were read last."""

    def __init__(self) -> None:
        self._known: LruCache[tuple[object, ...], Record] = LruCache(MAX_RECORDS)
        self._references: LruCache[tuple[object, ...], References] = LruCache(MAX_RECORDS)

    def record(self, trial: TrialRow) -> Record | None:
        """Return the record of a trial; None if it cannot be read."""
        return in_time(lambda: self._read(Path(trial.path)), None)

    def references(self, store: Store, trial: TrialRow) -> References:
        """Return the references by which a trial is judged; none if they cannot be read."""
        record = self.record(trial)
        if record is None or not queries.has_other_references(store, trial):
            return References() if record is None else references_of(record)
        return in_time(lambda: self._by_now(TrialFolder(Path(trial.path)), record), References())

    def _by_now(self, folder: TrialFolder, record: Record) -> References:
        try:
            key = (folder.path, folder.journal.stat().st_size)
            return self._references.get_or_make(key, lambda: references_by_now(folder, record))
        except (SeatrialError, OSError):
            return references_of(record)

    def _read(self, path: Path) -> Record | None:
        try:
            file = (path / "trial.json").stat()
            if file.st_size > MAX_BYTES:
                return None
            key = (path, file.st_ino, file.st_size, file.st_mtime_ns)
            return self._known.get_or_make(key, lambda: _decoded(path))
        except (SeatrialError, OSError, ValueError):
            return None


def _decoded(path: Path) -> Record:
    record = TrialFolder(path).record()
    references_of(record)  # keeps them with the record; raises InvalidFiles
    return record
