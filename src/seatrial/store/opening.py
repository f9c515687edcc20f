"""Open and make stores. The location decides which database it is.

psycopg is an extra, so only what opens a store of PostgreSQL imports it.

with open_store(Path("trials/store.sqlite")) as store: ...
with open_store("postgresql://ana@db/seatrial") as store: ...
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from seatrial.errors import StoreError
from seatrial.store.location import Location, NoStore, shown
from seatrial.store.schema import WAIT_S, Store
from seatrial.store.sqlite import in_memory, open_file, reopen_file

if TYPE_CHECKING:
    from seatrial.store.postgres import PostgresStore


def open_store(location: Location, wait_s: float = WAIT_S) -> Store:
    """Open the store at a path, which is made if missing, or at a URL, where it must exist. A file
    that cannot be written is opened for reading; where there is none to read, a store in memory
    replaces it. Raises StoreError if it is not our store, of a newer version, damaged, out of
    reach, or locked for longer than ``wait_s``."""
    if isinstance(location, Path):
        return open_file(location, wait_s)
    store = _postgres_store(location, wait_s)
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
    store = _postgres_store(location, wait_s)
    store.empty()
    return store


def create(url: str, writer: str = "", viewers: Sequence[str] = ()) -> str:
    """Make a store in a database of PostgreSQL, owned by ``writer`` ("": the connected role) and
    read by ``viewers``. Returns what was done. Raises StoreError."""
    _require_psycopg(url)
    from seatrial.store.postgres_server import found

    return found(url, writer, viewers)


def _postgres_store(location: str, wait_s: float) -> "PostgresStore":
    _require_psycopg(location)
    from seatrial.store.postgres import PostgresStore

    return PostgresStore(location, wait_s)


def _require_psycopg(location: str) -> None:
    if not location.startswith(("postgresql://", "postgres://")):
        raise NoStore(
            f"{shown(location)}: is no store; name a file, or postgresql://USER@HOST/DATABASE"
        )
    try:
        import psycopg  # noqa: F401
    except ImportError as error:
        raise StoreError(
            f"{shown(location)}: needs psycopg: pip install 'seatrial[postgresql]'"
        ) from error
