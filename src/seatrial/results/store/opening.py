"""Open and make stores. The location decides which database it is.

A file is a database of SQLite. Databases on servers come from plug-ins.

with open_store(Path("trials/store.sqlite")) as store: ...
with open_store("postgresql://ana@db/seatrial") as store: ...
"""

import importlib.util
from collections.abc import Sequence
from pathlib import Path

from seatrial.errors import StoreError, with_extra
from seatrial.hooks import Database, load, provided
from seatrial.results.store.location import Location, NoStore, shown
from seatrial.results.store.schema import WAIT_S, ServerStore, Store
from seatrial.results.store.sqlite import in_memory, open_file, reopen_file


def open_store(location: Location, wait_s: float = WAIT_S) -> Store:
    """Open the store at a path, which is made if missing, or at a URL, where it must exist. A file
    that cannot be written is opened for reading; where there is none to read, a store in memory
    replaces it. Raises StoreError if it is not our store, of a newer version, damaged, out of
    reach, or locked for longer than ``wait_s``."""
    if isinstance(location, Path):
        return open_file(location, wait_s)
    store = _store_at(location, wait_s)
    store.rows("SELECT 1")
    return store


def open_memory(notices: Sequence[str] = ()) -> Store:
    """Return a store that lives as long as this process."""
    return in_memory(notices)


def reopen_empty(location: Location, wait_s: float = WAIT_S) -> Store:
    """Open the store with nothing in it, to be filled again. A damaged file is moved aside if it
    was a store. Raises StoreError for a newer version, and NoStore for anything else."""
    if isinstance(location, Path):
        return reopen_file(location, wait_s)
    store = _store_at(location, wait_s)
    store.empty()
    return store


def create(url: str, writer: str = "", viewers: Sequence[str] = ()) -> str:
    """Make a store in a database, owned by ``writer`` ("": the connected role) and read by
    ``viewers``. Returns what was done. Raises StoreError."""
    told: str = load(_database(url).create)(url, writer, viewers)
    return told


def _store_at(url: str, wait_s: float) -> ServerStore:
    store: ServerStore = load(_database(url).store)(url, wait_s)
    return store


def _database(url: str) -> Database:
    """Return the kind of database that a URL names. Raises StoreError where it is not known, or
    lacks its package."""
    scheme = url.partition("://")[0]
    known = [kind for kind in provided("seatrial_databases") if scheme in kind.schemes]
    if not known:
        raise NoStore(f"{shown(url)}: is no store; name a file, or postgresql://USER@HOST/DATABASE")
    database: Database = known[0]
    if importlib.util.find_spec(database.needs) is None:
        raise StoreError(f"{shown(url)}: needs {database.needs}: {with_extra(database.extra)}")
    return database
