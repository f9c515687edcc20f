"""Open and make stores. The location decides which database it is.

A file is a database of SQLite. Databases on servers come from plug-ins.

with open_store(Path("trials/store.sqlite")) as store: ...
with open_store("postgresql://ana@db/seatrial") as store: ...
"""

import contextlib
import importlib.util
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from seatrial.errors import StoreError, with_extra
from seatrial.files import is_full, open_regular, remove_file
from seatrial.hooks import Database, load, provided
from seatrial.lazy import Ints
from seatrial.results.store.location import (
    LOCAL_FILE_SYSTEMS,
    Location,
    NoStore,
    file_system,
    shown,
)
from seatrial.results.store.schema import (
    WAIT_S,
    CannotGrow,
    ServerStore,
    Store,
    Writer,
    fetched_columns,
    fetched_numbers,
    require_known,
)
from seatrial.results.store.tables import VERSION, Table, plugin_tables, statements


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


# ---- file of SQLite ------------------------------------------------------------------------------
#
# The file of a SQLite store: opened, made, checked; its marks, and what SQLite's errors mean.
#
# SQLite's own errors become StoreError here.


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
        connection.execute("PRAGMA secure_delete = ON")  # names that are removed are gone
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
    _add_tables(connection)
    _choose_journal(connection, path)
    return notices


def _add_tables(connection: sqlite3.Connection) -> None:
    """Make the tables of plug-ins that came after the store."""
    there = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    for table in plugin_tables():
        if table.name not in there:
            for statement in table.statements():
                connection.execute(statement)


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


# ---- store in a file -----------------------------------------------------------------------------
#
# A store in one SQLite file, for a person or a single trial.
#
#     store = open_file(Path("trials/store.sqlite"), wait_s=10)
#
# It has a write-ahead log where the file system is this host's own, else the classic rollback
# journal. If the file was moved aside or replaced, the next use opens the file that is there now.
# SQLite's own errors become StoreError here.


LONGEST_HOLD_S = 0.3  # a writer pauses after so long, as SQLite does not queue waiting writers
PAUSE_S = 0.02
MAX_PLACEHOLDERS = 900  # of a statement; old SQLites take 999


_ODD_VALUES = (
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
    ArithmeticError,
    msgspec.MsgspecError,
)

sqlite3.register_converter("BOOLEAN", lambda text: text != b"0")


class SqliteStore(Store):
    """An open file, or a store in memory, where ``path`` is None."""

    def __init__(self, opened: OpenedFile, path: Path | None, wait_s: float) -> None:
        super().__init__(str(path or ":memory:"), opened.writable, opened.notices)
        self._path = path
        self._wait_s = wait_s
        self._held_s = 0.0  # since the last pause
        self._let_go = time.monotonic()
        self._opened = opened
        self._seen = self._identity()

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
        with self._turn, self._raising_store_errors():
            return self._current().execute(sql, parameters).fetchall()

    def columns(self, sql: str, parameters: Sequence[Any] = ()) -> list[list[Any]]:
        with self._turn, self._raising_store_errors():
            return fetched_columns(self._current().execute(sql, parameters))

    def numbers(self, sql: str, parameters: Sequence[Any] = ()) -> list[Ints]:
        with self._turn, self._raising_store_errors():
            return fetched_numbers(self._current().execute(sql, parameters))

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        with self._turn, self._raising_store_errors():
            connection = self._current()
            if connection.in_transaction:
                yield
                return
            connection.execute("BEGIN")
            try:
                yield
            finally:
                connection.rollback()

    @contextlib.contextmanager
    def writing(self) -> Iterator[Writer]:
        self._pause_for_others()
        with self._turn, self._raising_store_errors():
            connection = self._current()
            connection.execute("BEGIN IMMEDIATE")
            began = time.monotonic()
            try:
                yield _Writer(connection)
            except BaseException:
                connection.rollback()
                raise
            connection.execute("COMMIT")
        self._let_go = time.monotonic()
        self._held_s += self._let_go - began

    def _pause_for_others(self) -> None:
        """Pause after a long hold, less what has passed since."""
        since = time.monotonic() - self._let_go
        if since < PAUSE_S and self._held_s > LONGEST_HOLD_S:
            time.sleep(PAUSE_S - since)
            since = PAUSE_S
        if since >= PAUSE_S:
            self._held_s = 0.0

    def size(self) -> int:
        return self._path.stat().st_size if self._path is not None and self._path.exists() else 0

    def kind(self) -> str:
        return f"SQLite, journal mode {self.rows('PRAGMA journal_mode')[0][0]}"

    def __exit__(self, *raised: object) -> None:
        """Close it. If values were read that nobody writes, and the file is damaged, say so."""
        self.close()
        odd = any(isinstance(error, _ODD_VALUES) for error in raised)
        if odd and self._path is not None and is_damaged(self._path, self._wait_s):
            raise StoreError(f"{self.place}: {REMEDIES['CORRUPT']}")

    def close(self) -> None:
        with self._turn:
            self._opened.connection.close()

    def _current(self) -> sqlite3.Connection:
        """Return the connection to the file that is there now."""
        if not self._opened.connection.in_transaction and self._identity() != self._seen:
            opened = open_connection(self._path, self._wait_s) if self._path is not None else None
            if opened is None:
                raise StoreError(
                    f"{self.place}: is gone; put it back, or name another with --store"
                )
            self._opened.connection.close()
            self._opened, self.writable = opened, opened.writable
            self.notices += opened.notices
            self._seen = self._identity()
        return self._opened.connection

    def _identity(self) -> tuple[int, ...]:
        if self._path is None:
            return ()
        try:
            found = os.stat(self._path)  # noqa: PTH116 - for every query
        except OSError:
            return ()
        changes = (found.st_size, found.st_mtime_ns) if self._opened.frozen else ()
        return found.st_dev, found.st_ino, *changes

    @contextlib.contextmanager
    def _raising_store_errors(self) -> Iterator[None]:
        try:
            with raising_store_errors(self.place):
                yield
        except StoreError as error:
            if error_kind(error) == "ERROR":  # perhaps the tables are others by now
                with contextlib.suppress(sqlite3.Error):
                    require_known(self.place, marks_of(self._opened.connection)[1])
            raise


class _Writer:
    """A transaction of SQLite. SQLite has one writer at a time, so no further lock is needed."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._next_ids: dict[str, int] = {}  # by table

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
        return self._connection.execute(sql, parameters).fetchall()

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> None:
        self._connection.execute(sql, parameters)

    def insert(self, table: Table, rows: Iterable[object]) -> None:
        at_once = MAX_PLACEHOLDERS // len(table.columns)
        values = map(table.values, rows)
        while some := list(islice(values, at_once)):
            sql = table.insert_sql("?", len(some))
            self._connection.execute(sql, list(chain.from_iterable(some)))

    def upsert(self, table: Table, rows: Iterable[object]) -> None:
        self._connection.executemany(table.upsert_sql("?"), map(table.values, rows))

    def new_ids(self, table: Table, count: int) -> Sequence[int]:
        if table.name not in self._next_ids:
            sql = f"SELECT coalesce(max(id), 0) + 1 FROM {table.name}"
            (self._next_ids[table.name],) = self._connection.execute(sql).fetchone()
        first = self._next_ids[table.name]
        self._next_ids[table.name] += count
        return range(first, first + count)

    def lock(self, what: str) -> None:
        return


# ---- opening ------------------------------------------------------------------------------


def open_file(path: Path, wait_s: float) -> Store:
    """Return the store at that path, which is made if missing; one in memory where it cannot be
    made."""
    opened = open_connection(path, wait_s)
    if opened is not None:
        return SqliteStore(opened, path, wait_s)
    reason = "cannot be written" if path.parent.is_dir() else "has no folder to be in"
    notice = f"{path}: {reason}; the journals are read anew each time (name another with --store)"
    return in_memory([notice])


def in_memory(notices: Sequence[str]) -> Store:
    """Return a store that lives as long as this process."""
    connection = connected(None, "", 0)
    for statement in statements():
        connection.execute(statement)
    return SqliteStore(OpenedFile(connection, True, list(notices)), None, 0)


def reopen_file(path: Path, wait_s: float) -> Store:
    """Return the store at that path with nothing in it."""
    notices = []
    if path.exists() and is_damaged(path, wait_s):
        if not was_store(path):
            raise NoStore(f"{path}: is no store; name another with --store")
        aside = path.with_name(path.name + ".damaged")
        try:
            path.replace(aside)
            for ending in ("-wal", "-shm", "-journal"):
                remove_file(path.with_name(path.name + ending), missing_ok=True, follow=True)
        except OSError as error:
            raise StoreError(
                f"{path}: cannot be replaced: {error.strerror}; remove it, or name another with"
                " --store"
            ) from error
        notices.append(f"{path}: was no readable store; it is kept as {aside.name}")
    opened = open_connection(path, wait_s)
    if opened is None or not opened.writable:
        if opened is not None:
            opened.connection.close()
        raise StoreError(f"{path}: cannot be written; name another place with --store")
    with raising_store_errors(str(path)):
        opened.connection.execute("BEGIN IMMEDIATE")
        create_tables(opened.connection)
        opened.connection.execute("COMMIT")
    return SqliteStore(opened._replace(notices=notices + opened.notices), path, wait_s)
