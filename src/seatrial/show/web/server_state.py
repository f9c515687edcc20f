"""The state of a server: the trials below a folder, the store over them, and all caches.

    state = ServerState(Path("trials"), Path("trials/store.sqlite"))
    state.refresh()                        # read the journals' news into the store
    state.store().rows("SELECT ...")       # this thread's own connection
    state.generation                       # grows when there is news

One thread reads the journals (``show.web.watches``). Pages read the store, each thread through a
connection of its own. If the store cannot be written and is out of date, the server uses one in a
temporary folder until it ends.
"""

import stat
import tempfile
import threading
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from seatrial.errors import SeatrialError, UsageError
from seatrial.execute.trial_folder import Record, TrialFolder, references_by_now, references_of
from seatrial.hooks import provided
from seatrial.judge.references import References
from seatrial.log import logger
from seatrial.results.records import DocumentState, state_of_document
from seatrial.results.store import queries
from seatrial.results.store.ingest import sync
from seatrial.results.store.opening import open_store
from seatrial.results.store.schema import Store
from seatrial.results.store.tables import TrialRow
from seatrial.show.web.caches import (
    BackgroundCompute,
    LruCache,
    ResultSlots,
    array_bytes,
    in_time,
)
from seatrial.show.web.trial_cache import TrialCache

_log = logger(__name__)

_NEWS = "SELECT count(*), sum(ingested), max(state_time) FROM trials"

WAIT_S = 3.0  # for a store that another process holds: people wait for the answer
MAX_NODE_BYTES = 256 << 20  # of runs and figures for the pages of nodes


class RefreshProgress(NamedTuple):
    """How far a long refresh is: ``done`` of ``size`` bytes of the journal of ``tag``."""

    tag: str
    done: int
    size: int


class ServerState:
    """The folder of the trials, the place of the store, and the caches. ``trouble`` is why the last
    refresh failed, or ""."""

    def __init__(self, folder: Path, place: Path | str) -> None:
        self.folder = folder
        self.place = place
        self.generation = 0
        self.trouble = ""
        self.notices: list[str] = []
        self.reading: RefreshProgress | None = None
        self.studies = StudyCache(self.announce)
        self.records = RecordCache()
        self.documents = DocumentCache(self.announce)
        self.node_runs: LruCache[Hashable, Any] = LruCache(
            max_size=MAX_NODE_BYTES, size_of=array_bytes
        )
        self.trials = TrialCache(self.announce)
        self._threads = threading.local()
        self._writer: Store | None = None
        self._opening: list[str] = []  # notices from when the store was opened
        self._seen: object = None
        self._stand_in: tempfile.TemporaryDirectory[str] | None = None

    def store(self) -> Store:
        """Return this thread's store, which is open until the thread ends. Raises StoreError."""
        store: Store | None = getattr(self._threads, "store", None)
        if store is None or getattr(self._threads, "place", None) != self.place:
            store = open_store(self.place, WAIT_S)
            self._threads.store, self._threads.place = store, self.place
        return store

    def forget(self) -> None:
        """Close this thread's store, so that the next use opens it anew."""
        store: Store | None = getattr(self._threads, "store", None)
        if store is not None:
            self._threads.store = None
            store.close()

    def announce(self) -> None:
        """Make open pages ask again, because a result of the background is ready."""
        self.generation += 1

    def refresh(self) -> None:
        """Read what is new in the journals. To be called by one thread only. A failure is kept in
        ``trouble``; pages show it."""
        before = self.trouble
        try:
            self._read()
            self.trouble = ""
        except (SeatrialError, OSError) as error:
            self._fail(str(error))
        except Exception:  # the thread must go on reading the journals
            _log.exception("the journals cannot be read")
            self._fail("this is a defect of Seatrial; the server's log has more")
        self.reading = None
        if self.trouble != before:
            self.generation += 1

    def _fail(self, reason: str) -> None:
        self.trouble = reason
        self._close_writer()

    def _read(self) -> None:
        if self._writer is None:
            self._writer = self._open_writer()
            self._opening = list(self._writer.notices)
        store = self._writer
        store.notices.clear()
        if self.folder.is_dir():
            sync(store, self.folder, self._on_progress)
        self.notices = list(dict.fromkeys((*self._opening, *store.notices)))
        seen = [store.rows(sql) for sql in (_NEWS, *news_of_plugins())]
        if seen != self._seen:
            self._seen = seen
            self.generation += 1

    def _open_writer(self) -> Store:
        """Open the store, or one in a temporary folder if it can be neither written nor read."""
        store = open_store(self.place, WAIT_S)
        if store.place == str(self.place) or not isinstance(self.place, Path):
            return store
        store.close()
        self._stand_in = tempfile.TemporaryDirectory(prefix="seatrial-store-")
        self.place = Path(self._stand_in.name) / "store.sqlite"
        return open_store(self.place)

    def _on_progress(self, tag: str, done: int, size: int) -> None:
        self.reading = RefreshProgress(tag, done, size)

    def _close_writer(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def close(self) -> None:
        """Begin no new work, and close what the refresh holds open."""
        self.studies.close()
        self.trials.close()
        self._close_writer()
        if self._stand_in is not None:
            self._stand_in.cleanup()


def news_of_plugins() -> list[str]:
    """Return the SQL whose rows tell that tables of plug-ins have other rows."""
    return [about.news for about in provided("seatrial_tables") if about.news]


# ---- document cache ------------------------------------------------------------------------------
#
# The checksums of documents that people signed for, made once for each state of a file.
#
#     state.documents.state_of(path, sha256)       # "as it was", "changed", "not here"
#
# A file whose size, inode and times are the same has the same checksum. Large ones are read in the
# background; until that is done they count as they were, and then open pages ask again.


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
            self._states, (path, sha256), version, lambda: state_of_document(path, sha256)
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
