"""What a server shows: the trials below a folder, and the store over them.

    site = ServerState(Path("trials"), Path("trials/store.sqlite"))
    site.refresh()                        # the journals' news into the store
    site.store().rows("SELECT ...")       # this thread's own connection
    site.generation                       # grows when there is news

One thread reads the journals (``web.journal_watch``); pages read the store, each thread through a
connection of its own. Where the store cannot be written and is not up to date, one in a temporary
folder stands in for as long as the server runs.
"""

from __future__ import annotations

import sys
import tempfile
import threading
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

from seatrial.errors import SeatrialError
from seatrial.store.ingest import sync
from seatrial.store.opening import open_store
from seatrial.store.rows import TrialRow
from seatrial.store.schema import Store
from seatrial.web.trials.trial_cache import TrialCache

if TYPE_CHECKING:
    from seatrial.trial.folder import TrialFolder

WAIT_S = 3.0  # for a store that another process holds: people wait for the answer


class RefreshProgress:
    """How far a long refresh is: ``done`` of ``size`` bytes of the journal of ``tag``."""

    def __init__(self, tag: str, done: int, size: int) -> None:
        self.tag = tag
        self.done = done
        self.size = size


class ServerState:
    """The trials and the store. ``trouble`` is why the last refresh failed, or ""."""

    def __init__(self, trials: Path, place: Path | str) -> None:
        self.trials = trials
        self.place = place
        self.generation = 0
        self.trouble = ""
        self.notices: list[str] = []
        self.reading: RefreshProgress | None = None
        self.followed = TrialCache(self.stir)
        self._threads = threading.local()
        self._writer: Store | None = None
        self._opening: list[str] = []  # what was odd about the store when it was opened
        self._seen: object = None
        self._stand_in: tempfile.TemporaryDirectory[str] | None = None

    def store(self) -> Store:
        """This thread's store, open until the thread ends. Raises StoreError."""
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

    def folder(self, trial: TrialRow) -> TrialFolder:
        """The trial's folder, which may be gone, or on another machine."""
        from seatrial.trial.folder import TrialFolder

        return TrialFolder(Path(trial.path))

    def stir(self) -> None:
        """Have open pages ask again: something that was made beside them is there."""
        self.generation += 1

    def refresh(self) -> bool:
        """Read what is new in the journals; whether there was anything. To be called by one thread
        only. A failure is kept in ``trouble``, not raised: pages show what there is, and say so."""
        before = self.generation, self.trouble
        try:
            self._read()
            self.trouble = ""
        except (SeatrialError, OSError) as error:
            self._fail(str(error))
        except Exception:  # else nobody would look at the journals any more
            traceback.print_exc(file=sys.stderr)
            self._fail("this is a defect of Seatrial; the server's log has more")
        self.reading = None
        if self.trouble != before[1]:
            self.generation += 1
        return self.generation != before[0]

    def _fail(self, why: str) -> None:
        self.trouble = why
        self._close_writer()

    def _read(self) -> None:
        if self._writer is None:
            self._writer = self._open_writer()
            self._opening = list(self._writer.notices)
        store = self._writer
        store.notices.clear()
        if self.trials.is_dir():
            sync(store, self.trials, self._tell)
        self.notices = list(dict.fromkeys((*self._opening, *store.notices)))
        seen = store.rows("SELECT count(*), sum(ingested), max(state_time) FROM trials")
        if seen != self._seen:
            self._seen = seen
            self.generation += 1

    def _open_writer(self) -> Store:
        """The store, or one in a temporary folder where it can neither be written nor read."""
        store = open_store(self.place, WAIT_S)
        if store.place == str(self.place) or not isinstance(self.place, Path):
            return store
        store.close()
        self._stand_in = tempfile.TemporaryDirectory(prefix="seatrial-store-")
        self.place = Path(self._stand_in.name) / "store.sqlite"
        return open_store(self.place)

    def _tell(self, tag: str, done: int, size: int) -> None:
        self.reading = RefreshProgress(tag, done, size)

    def _close_writer(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def close(self) -> None:
        """Close what the refresh holds open."""
        self.followed.close()
        self._close_writer()
        if self._stand_in is not None:
            self._stand_in.cleanup()
