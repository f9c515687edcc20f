"""The file of a SQLite store: opened, made, checked; its marks, and what SQLite's errors mean.

SQLite's own errors become StoreError here.
"""

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from seatrial.errors import StoreError
from seatrial.files import is_full, open_regular
from seatrial.store.location import LOCAL_FILE_SYSTEMS, NoStore, file_system
from seatrial.store.schema import CannotGrow, require_known
from seatrial.store.tables import VERSION, statements

APPLICATION = 0x5EA781A1 & 0x7FFFFFFF  # marks the file as ours
_OWN = os.access in os.supports_effective_ids  # whether access can be asked for this process
_IS_LOCKED = "is locked by another process; wait for it, or name another with --store"
REMEDIES = {
    "": "cannot be used; if that stays so, run `seatrial store rebuild`",
    "BUSY": _IS_LOCKED,
    "LOCKED": _IS_LOCKED,
    "READONLY": "cannot be written; name another place with --store",
    "CORRUPT": "is damaged; run `seatrial store rebuild`",
    "FULL": "cannot grow: its disk is full or fails; free some space",
    "CANTOPEN": "cannot be opened; check its permissions, or name another with --store",
    "NOTADB": "is not a store; run `seatrial store rebuild`, or name another with --store",
}


class OpenedFile(NamedTuple):
    """A connection and its properties."""

    connection: sqlite3.Connection
    writable: bool
    notices: list[str]
    frozen: bool = False  # reads the file as it was, and sees no change of it


def open_connection(path: Path, wait_s: float) -> OpenedFile | None:
    """Return a connection that writes if possible, else one that reads; None where there is
    none."""
    if not _may_write(path):
        return _readable(path, wait_s) if os.access(path, os.R_OK, effective_ids=_OWN) else None
    connection = connected(path, "mode=rwc", wait_s)
    try:
        with raising_store_errors(str(path)):
            return OpenedFile(connection, True, _prepare(connection, path))
    except BaseException:
        connection.close()
        raise


def _may_write(path: Path) -> bool:
    places = [path.parent, path] if path.exists() else [path.parent]
    return path.parent.is_dir() and all(os.access(p, os.W_OK, effective_ids=_OWN) for p in places)


def connected(path: Path | None, mode: str, wait_s: float) -> sqlite3.Connection:
    if path is not None and path.exists() and not path.is_file():  # a FIFO is waited for
        raise NoStore(f"{path}: is no regular file; name another with --store")
    with raising_store_errors(str(path or ":memory:")):
        # Store sees to it that one thread uses a connection at a time.
        connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?{mode}" if path else ":memory:",
            timeout=wait_s,
            detect_types=sqlite3.PARSE_DECLTYPES,
            isolation_level=None,
            check_same_thread=False,
            uri=True,
        )
        connection.execute("PRAGMA cache_size = -65536")
        connection.execute("PRAGMA temp_store = MEMORY")
    return connection


def _prepare(connection: sqlite3.Connection, path: Path) -> list[str]:
    """Make the file a store of this version. Returns notices."""
    connection.execute("PRAGMA synchronous = NORMAL")
    notices = []
    if marks_of(connection) != (APPLICATION, VERSION):
        connection.execute("BEGIN IMMEDIATE")
        application, version = marks_of(connection)  # another process may have been first
        tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if tables and application != APPLICATION:
            raise NoStore(f"{path}: is a database of another program; name another with --store")
        if tables and version != VERSION:
            require_known(str(path), version)
            notices.append(
                f"{path}: was of version {version}, this is {VERSION}; rebuilt from the journals"
            )
        if notices or not tables:
            create_tables(connection)
        connection.execute("COMMIT")
    _choose_journal(connection, path)
    return notices


def marks_of(connection: sqlite3.Connection) -> tuple[int, int]:
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    return application, connection.execute("PRAGMA user_version").fetchone()[0]


def create_tables(connection: sqlite3.Connection) -> None:
    """Drop everything and make the tables, inside the caller's transaction."""
    names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    for (name,) in names:
        if not name.startswith("sqlite_"):
            connection.execute('DROP TABLE "' + name.replace('"', '""') + '"')
    for statement in statements():
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {APPLICATION}")
    connection.execute(f"PRAGMA user_version = {VERSION}")


def _choose_journal(connection: sqlite3.Connection, path: Path) -> None:
    """Use a write-ahead log where the file system is this host's own, else the classic rollback
    journal, as the log's shared memory does not work over a network."""
    wanted = "wal" if file_system(path) in LOCAL_FILE_SYSTEMS else "truncate"
    with contextlib.suppress(sqlite3.OperationalError):  # busy, or not to be had: as it is
        if connection.execute("PRAGMA journal_mode").fetchone()[0] != wanted:
            got = connection.execute(f"PRAGMA journal_mode = {wanted}").fetchone()[0]
            if got not in (wanted, "truncate"):
                connection.execute("PRAGMA journal_mode = truncate")


def _readable(path: Path, wait_s: float) -> OpenedFile | None:
    """Return a connection that only reads; None when the file is of an older version. It leaves no
    files: those of a WAL would belong to this user, and keep the store's owner from writing. Where
    the owner's are not there, or cannot be joined, the file is read as of its last checkpoint."""
    shared = all(path.with_name(path.name + ending).exists() for ending in ("-wal", "-shm"))
    modes = ["mode=ro&readonly_shm=1"] if shared else []
    for mode in (*modes, "mode=ro&immutable=1"):
        connection = None
        try:
            connection = connected(path, mode, wait_s)
            application, version = marks_of(connection)
            ours = (application, version) == (APPLICATION, VERSION)
            connection.execute("SELECT count(*) FROM trials WHERE id < 0" if ours else "SELECT 1")
        except (sqlite3.Error, StoreError) as error:
            if connection is not None:
                connection.close()
            if error_kind(error) not in ("CANTOPEN", "READONLY") or "immutable" in mode:
                with raising_store_errors(str(path)):
                    raise
            continue
        if ours:
            return OpenedFile(connection, False, [], frozen="immutable" in mode)
        connection.close()
        if application == APPLICATION:
            require_known(str(path), version)
        return None
    return None


def is_damaged(path: Path, wait_s: float) -> bool:
    """Return whether a file is damaged: its pages, its tables, which then allow values that nobody
    writes, or what belongs together in them."""
    try:
        with contextlib.closing(connected(path, "mode=ro", wait_s)) as connection:
            found = connection.execute("PRAGMA quick_check(1)").fetchone()
            if found[0] != "ok" or not _has_our_tables(connection):
                return True
            return connection.execute(_ORPHANS).fetchone() is not None
    except (sqlite3.DatabaseError, StoreError) as error:
        return error_kind(error) in ("NOTADB", "CORRUPT")


# A run whose trial, case or test is not there.
_ORPHANS = (
    "SELECT 1 FROM runs LEFT JOIN trials ON trials.id = runs.trial"
    " LEFT JOIN cases ON cases.id = runs.case_row LEFT JOIN tests ON tests.id = runs.test"
    " WHERE trials.id IS NULL OR cases.id IS NULL OR tests.id IS NULL LIMIT 1"
)
# What the columns of all tables are, and those of their indexes.
_COLUMNS = (
    'SELECT tables.name, columns.name, columns.type, columns."notnull", columns.pk'
    " FROM sqlite_master AS tables JOIN pragma_table_info(tables.name) AS columns"
    " WHERE tables.type = 'table'"
)
_INDEXES = (
    'SELECT tables.name, indexes."unique", indexes.partial, parts.seqno, parts.name'
    " FROM sqlite_master AS tables JOIN pragma_index_list(tables.name) AS indexes"
    " JOIN pragma_index_info(indexes.name) AS parts WHERE tables.type = 'table'"
)


def _has_our_tables(connection: sqlite3.Connection) -> bool:
    """Return whether the tables and indexes are those that this version makes."""
    if marks_of(connection) != (APPLICATION, VERSION):
        return True  # of another version, which is told elsewhere
    with contextlib.closing(sqlite3.connect(":memory:")) as fresh:
        for statement in statements():
            fresh.execute(statement)
        return all(
            set(connection.execute(query)) == set(fresh.execute(query))
            for query in (_COLUMNS, _INDEXES)
        )


def was_store(path: Path) -> bool:
    """Return whether a file that cannot be read as a database was a store: by its marks, or, where
    these are damaged, by its name."""
    try:
        with open_regular(path) as file:
            head = file.read(72)
    except OSError:
        return False
    if head.startswith(b"SQLite format 3\0"):
        return int.from_bytes(head[68:72], "big") == APPLICATION
    return path.suffix == ".sqlite"


@contextlib.contextmanager
def raising_store_errors(place: str) -> Iterator[None]:
    """Turn SQLite's errors into a StoreError with the file and the remedy."""
    try:
        yield
    except sqlite3.Error as error:
        if error_kind(error) == "NOTADB" and not was_store(Path(place)):
            raise NoStore(f"{place}: is no store; name another with --store") from error
        kind = error_kind(error)
        full = kind in ("FULL", "IOERR") or (kind == "CANTOPEN" and is_full(Path(place).parent))
        remedy = REMEDIES["FULL" if full else kind if kind in REMEDIES else ""]
        raise (CannotGrow if full else StoreError)(f"{place}: {remedy} ({error})") from error
    except UnicodeDecodeError as error:  # an error message of SQLite with the bytes at fault
        raise StoreError(f"{place}: {REMEDIES['CORRUPT']}") from error


def error_kind(error: BaseException) -> str:
    """Return the kind of an error of SQLite, such as BUSY; "" for any other error."""
    source = error.__cause__ if isinstance(error, StoreError) else error
    if isinstance(source, UnicodeDecodeError):
        return "CORRUPT"
    return f"{getattr(source, 'sqlite_errorname', '')}_".split("_")[1]
