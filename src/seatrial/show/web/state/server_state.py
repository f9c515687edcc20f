"""The state of a server: the trials below a folder, the store over them, and all caches.

    state = ServerState(Path("trials"), Path("trials/store.sqlite"))
    state.refresh()                        # read the journals' news into the store
    state.store().rows("SELECT ...")       # this thread's own connection
    state.generation                       # grows when there is news

One thread reads the journals (``show.web.watches``). Pages read the store, each thread through a
connection of its own. If the store cannot be written and is out of date, the server uses one in a
temporary folder until it ends.
"""

import tempfile
import threading
from collections.abc import Hashable
from pathlib import Path
from typing import Any, NamedTuple

from seatrial.errors import SeatrialError
from seatrial.hooks import provided
from seatrial.log import logger
from seatrial.results.store.ingest import sync
from seatrial.results.store.opening import open_store
from seatrial.results.store.schema import Store
from seatrial.show.web.state.caches import LruCache, array_bytes
from seatrial.show.web.state.document_cache import DocumentCache, RecordCache, StudyCache
from seatrial.show.web.state.trial_cache import TrialCache

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
        self._documents: DocumentCache | None = None
        self.node_runs: LruCache[Hashable, Any] = LruCache(
            max_size=MAX_NODE_BYTES, size_of=array_bytes
        )
        self._trials: TrialCache | None = None
        self._lock = threading.Lock()
        self._threads = threading.local()
        self._writer: Store | None = None
        self._opening: list[str] = []  # notices from when the store was opened
        self._seen: object = None
        self._stand_in: tempfile.TemporaryDirectory[str] | None = None

    @property
    def trials(self) -> "TrialCache":
        """The trials that pages look at. What judges them is imported when it is first needed."""
        with self._lock:
            if self._trials is None:
                self._trials = TrialCache(self.announce)
            return self._trials

    @property
    def documents(self) -> "DocumentCache":
        """The documents that people signed for. What looks at them is imported when it is first
        needed."""
        with self._lock:
            if self._documents is None:
                self._documents = DocumentCache(self.announce)
            return self._documents

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
        if self._trials is not None:
            self._trials.close()
        self._close_writer()
        if self._stand_in is not None:
            self._stand_in.cleanup()


def news_of_plugins() -> list[str]:
    """Return the SQL whose rows tell that tables of plug-ins have other rows."""
    return [about.news for about in provided("seatrial_tables") if about.news]
