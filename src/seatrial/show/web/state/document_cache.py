"""The checksums of documents that people signed for, made once for each state of a file.

    state.documents.state_of(path, sha256)       # "as it was", "changed", "not here"

A file whose size, inode and times are the same has the same checksum. Large ones are read in the
background; until that is done they count as they were, and then open pages ask again.
"""

import stat
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Generic, Literal, NamedTuple, TypeVar

from seatrial.errors import SeatrialError, UsageError
from seatrial.execute.trial_folder import TrialFolder, references_by_now
from seatrial.execute.trial_record import Record, references_of
from seatrial.judge.references import References
from seatrial.results.evidence import DocumentState, state_of
from seatrial.results.store import queries
from seatrial.results.store.schema import Store
from seatrial.results.store.tables import TrialRow
from seatrial.show.web.state.caches import BackgroundCompute, LruCache, ResultSlots, in_time

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
        state = self._background.latest(
            self._states, (path, sha256), version, lambda: state_of(path, sha256)
        )
        return state or "as it was"


def _version_of(path: Path) -> tuple[int, ...] | None:
    """Return what tells one state of a file from another; None where there is no file."""
    try:
        status = path.stat()
    except (OSError, ValueError):
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


# ---- record cache --------------------------------------------------------------------------------
#
# The records of trials and their references, read once and kept while the files are the same.


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


# ---- study cache ---------------------------------------------------------------------------------
#
# Studies over many runs: made in the background, few of them kept.


T = TypeVar("T")

MAX_STUDIES = 48
MAX_LARGE = 3  # studies of tens of megabytes each
WORKERS = 2
MAX_WAITING = 16  # studies that are being made or wait for that


class StudyAnswer(NamedTuple, Generic[T]):
    """A study for a page with a form. Without a ``value`` the page's ``state`` is "judging", or
    "asked" (the form is not filled in), or "refused" for a ``reason``. ``rehearsed``: it is of
    rehearsals, where that is known."""

    value: T | None
    state: Literal["asked", "judging", "judged", "refused"]
    reason: str = ""
    rehearsed: bool = False


class StudyCache:
    """The studies of a server. ``on_update`` is called when one is ready that a page did not wait
    for."""

    def __init__(self, on_update: Callable[[], None]) -> None:
        self._background = BackgroundCompute(on_update, WORKERS)
        self._small = ResultSlots(MAX_STUDIES)
        self._large = ResultSlots(MAX_LARGE)

    def latest(
        self,
        name: Hashable,
        version: Hashable,
        make: Callable[[], T],
        large: bool = False,
    ) -> T | None:
        """Return the study of this name, of an older version while this one is being made; None if
        there is none yet. While too many wait, a new one is not begun. Raises what ``make``
        raised."""
        slots = self._large if large else self._small
        is_new = name not in slots.results and name not in slots.tasks
        if is_new and len(self._small.tasks) + len(self._large.tasks) >= MAX_WAITING:
            return None
        return self._background.latest(slots, name, version, make)

    def answer(self, name: Hashable, version: Hashable, make: Callable[[], T]) -> StudyAnswer[T]:
        """Return the study, or why there is none."""
        try:
            value = self.latest(name, version, make)
        except UsageError as error:
            return StudyAnswer(None, "refused", str(error))
        return StudyAnswer(value, "judging" if value is None else "judged")

    def close(self) -> None:
        """Begin no new work."""
        self._background.close()
