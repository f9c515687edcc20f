"""A store in one SQLite file, for a person or a single trial.

    store = open_file(Path("trials/store.sqlite"), wait_s=10)

It has a write-ahead log where the file system is this host's own, else the classic rollback
journal. If the file was moved aside or replaced, the next use opens the file that is there now.
SQLite's own errors become StoreError here.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from seatrial.errors import StoreError
from seatrial.store.file_system import LOCAL_FILE_SYSTEMS, file_system
from seatrial.store.location import NoStore
from seatrial.store.schema import ROWS_AT_ONCE, Store, Writer, newer_store_error, transposed
from seatrial.store.sqlite_writer import SqliteWriter
from seatrial.store.tables import VERSION, statements

APPLICATION = 0x5EA781A1 & 0x7FFFFFFF  # marks the file as ours
LONGEST_HOLD_S = 0.3  # a writer pauses after so long, as SQLite does not queue waiting writers
PAUSE_S = 0.02

# Results and extended results of SQLite, by their lowest byte.
_ERROR, _BUSY, _LOCKED, _READONLY, _CORRUPT, _FULL = 1, 5, 6, 8, 11, 13
_CANTOPEN, _NOTADB = 14, 26


class _Opened(NamedTuple):
    """A connection and its properties."""

    connection: sqlite3.Connection
    writable: bool
    notices: list[str]
    frozen: bool = False  # reads the file as it was, and sees no change of it


class SqliteStore(Store):
    """An open file, or a store in memory, where ``path`` is None."""

    join_texts = "group_concat({})"

    def __init__(self, opened: _Opened, path: Path | None, wait_s: float) -> None:
        super().__init__(str(path or ":memory:"), opened.writable, opened.notices)
        self._path = path
        self._wait_s = wait_s
        self._held_s = 0.0  # since the last pause
        self._let_go = time.monotonic()
        self._take(opened)

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
        with self._turn, self._raising_store_errors():
            return self._current().execute(sql, parameters).fetchall()

    def columns(self, sql: str, parameters: Sequence[Any] = ()) -> list[list[Any]]:
        with self._turn, self._raising_store_errors():
            cursor = self._current().execute(sql, parameters)
            batches = iter(lambda: cursor.fetchmany(ROWS_AT_ONCE), [])
            return transposed(batches, len(cursor.description))

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
                yield SqliteWriter(connection)
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

    def close(self) -> None:
        with self._turn:
            self._connection.close()

    def _take(self, opened: _Opened) -> None:
        self._connection = opened.connection
        self._frozen = opened.frozen
        self.writable = opened.writable
        self._seen = self._identity()

    def _current(self) -> sqlite3.Connection:
        """Return the connection to the file that is there now."""
        if not self._connection.in_transaction and self._identity() != self._seen:
            opened = _open(self._path, self._wait_s) if self._path is not None else None
            if opened is None:
                raise StoreError(
                    f"{self.place}: is gone; put it back, or name another with --store"
                )
            self._connection.close()
            self.notices += opened.notices
            self._take(opened)
        return self._connection

    def _identity(self) -> tuple[int, ...]:
        if self._path is None:
            return ()
        try:
            found = os.stat(self._path)  # noqa: PTH116 - for every query
        except OSError:
            return ()
        changes = (found.st_size, found.st_mtime_ns) if self._frozen else ()
        return found.st_dev, found.st_ino, *changes

    @contextlib.contextmanager
    def _raising_store_errors(self) -> Iterator[None]:
        try:
            with _raising_store_errors(self.place):
                yield
        except StoreError as error:
            if _kind(error) == _ERROR:  # perhaps the tables are others by now
                with contextlib.suppress(sqlite3.Error):
                    if (version := _marks(self._connection)[1]) > VERSION:
                        raise newer_store_error(self.place, version) from error
            raise


# ---- opening ------------------------------------------------------------------------------


def open_file(path: Path, wait_s: float) -> Store:
    """Return the store at that path, which is made if missing; one in memory where it cannot be
    made."""
    opened = _open(path, wait_s)
    if opened is not None:
        return SqliteStore(opened, path, wait_s)
    reason = "cannot be written" if path.parent.is_dir() else "has no folder to be in"
    notice = f"{path}: {reason}; the journals are read anew each time (name another with --store)"
    return in_memory([notice])


def in_memory(notices: Sequence[str]) -> Store:
    """Return a store that lives as long as this process."""
    connection = _connect(":memory:", ":memory:", 0)
    for statement in statements():
        connection.execute(statement)
    return SqliteStore(_Opened(connection, True, list(notices)), None, 0)


def reopen_file(path: Path, wait_s: float) -> Store:
    """Return the store at that path with nothing in it."""
    notices = []
    if path.exists() and _is_damaged(path, wait_s):
        if not _was_store(path):
            raise NoStore(f"{path}: is no store; name another with --store")
        aside = path.with_name(path.name + ".damaged")
        with _raising_system_errors(path):
            path.replace(aside)
            for ending in ("-wal", "-shm", "-journal"):
                path.with_name(path.name + ending).unlink(missing_ok=True)
        notices.append(f"{path}: was no readable store; it is kept as {aside.name}")
    opened = _open(path, wait_s)
    if opened is None or not opened.writable:
        if opened is not None:
            opened.connection.close()
        raise StoreError(f"{path}: cannot be written; name another place with --store")
    with _raising_store_errors(str(path)):
        opened.connection.execute("BEGIN IMMEDIATE")
        _create(opened.connection)
        opened.connection.execute("COMMIT")
    return SqliteStore(opened._replace(notices=notices + opened.notices), path, wait_s)


def _open(path: Path, wait_s: float) -> _Opened | None:
    """Return a connection that writes if possible, else one that reads; None where there is
    none."""
    if not _may_write(path):
        return _readable(path, wait_s) if path.exists() else None
    connection = _connect(f"{_uri(path)}?mode=rwc", str(path), wait_s)
    try:
        with _raising_store_errors(str(path)):
            return _Opened(connection, True, _prepare(connection, path))
    except BaseException:
        connection.close()
        raise


def _may_write(path: Path) -> bool:
    def writable(place: Path) -> bool:
        return os.access(place, os.W_OK, effective_ids=os.access in os.supports_effective_ids)

    folder = path.parent
    return folder.is_dir() and writable(folder) and (not path.exists() or writable(path))


def _uri(path: Path) -> str:
    return path.absolute().as_uri()


def _connect(uri: str, place: str, wait_s: float) -> sqlite3.Connection:
    with _raising_store_errors(place):
        # Store sees to it that one thread uses a connection at a time.
        connection = sqlite3.connect(
            uri, timeout=wait_s, isolation_level=None, uri=True, check_same_thread=False
        )
        connection.execute("PRAGMA cache_size = -65536")
        connection.execute("PRAGMA temp_store = MEMORY")
    return connection


def _prepare(connection: sqlite3.Connection, path: Path) -> list[str]:
    """Make the file a store of this version. Returns notices."""
    connection.execute("PRAGMA synchronous = NORMAL")
    if _marks(connection) == (APPLICATION, VERSION):
        _choose_journal(connection, path)
        return []
    connection.execute("BEGIN IMMEDIATE")
    application, version = _marks(connection)  # another process may have been first
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if tables and application != APPLICATION:
        raise NoStore(f"{path}: is a database of another program; name another with --store")
    if tables and version > VERSION:
        raise newer_store_error(str(path), version)
    outdated = bool(tables) and version != VERSION
    if outdated or not tables:
        _create(connection)
    connection.execute("COMMIT")
    _choose_journal(connection, path)
    if not outdated:
        return []
    return [f"{path}: was of version {version}, this is {VERSION}; rebuilt from the journals"]


def _marks(connection: sqlite3.Connection) -> tuple[int, int]:
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    return application, connection.execute("PRAGMA user_version").fetchone()[0]


def _create(connection: sqlite3.Connection) -> None:
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


def _readable(path: Path, wait_s: float) -> _Opened | None:
    """Return a connection that only reads; None when the file is of an older version. In a
    folder that cannot be written, nobody can join a WAL: the file is then read as of its last
    checkpoint."""
    for mode in ("mode=ro", "mode=ro&immutable=1"):
        connection = None
        try:
            connection = _connect(f"{_uri(path)}?{mode}", str(path), wait_s)
            application, version = _marks(connection)
            ours = (application, version) == (APPLICATION, VERSION)
            connection.execute("SELECT count(*) FROM trials WHERE id < 0" if ours else "SELECT 1")
        except (sqlite3.Error, StoreError) as error:
            if connection is not None:
                connection.close()
            if _kind(error) not in (_CANTOPEN, _READONLY) or "immutable" in mode:
                with _raising_store_errors(str(path)):
                    raise
            continue
        if ours:
            return _Opened(connection, False, [], frozen="immutable" in mode)
        connection.close()
        if application == APPLICATION and version > VERSION:
            raise newer_store_error(str(path), version)
        return None
    return None


def _is_damaged(path: Path, wait_s: float) -> bool:
    try:
        with contextlib.closing(_connect(f"{_uri(path)}?mode=ro", str(path), wait_s)) as connection:
            found = connection.execute("PRAGMA quick_check(1)").fetchone()
            return bool(found[0] != "ok")
    except (sqlite3.DatabaseError, StoreError) as error:
        return _kind(error) in (_NOTADB, _CORRUPT)


def _was_store(path: Path) -> bool:
    """Return whether a file that cannot be read as a database was a store: by its marks, or, where
    these are damaged, by its name."""
    try:
        with path.open("rb") as file:
            head = file.read(72)
    except OSError:
        return False
    if head.startswith(b"SQLite format 3\0"):
        return int.from_bytes(head[68:72], "big") == APPLICATION
    return path.suffix == ".sqlite"


# ---- errors -------------------------------------------------------------------------------


@contextlib.contextmanager
def _raising_store_errors(place: str) -> Iterator[None]:
    """Turn SQLite's errors into a StoreError with the file and the remedy."""
    try:
        yield
    except sqlite3.Error as error:
        if _kind(error) == _NOTADB and not _was_store(Path(place)):
            raise NoStore(f"{place}: is no store; name another with --store") from error
        remedy = {
            _BUSY: "is locked by another process; wait for it, or name another with --store",
            _LOCKED: "is locked by another process; wait for it, or name another with --store",
            _READONLY: "cannot be written; name another place with --store",
            _CORRUPT: "is damaged; run `seatrial store rebuild`",
            _FULL: "cannot grow: the disk is full; free some space",
            _CANTOPEN: "cannot be opened; check its permissions, or name another with --store",
            _NOTADB: "is not a store; run `seatrial store rebuild`, or name another with --store",
        }.get(_kind(error), "cannot be used; if that stays so, run `seatrial store rebuild`")
        raise StoreError(f"{place}: {remedy} ({error})") from error


@contextlib.contextmanager
def _raising_system_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"{path}: cannot be replaced: {error.strerror}; remove it, or name another with --store"
        ) from error


def _kind(error: BaseException) -> int:
    source = error.__cause__ if isinstance(error, StoreError) else error
    return int(getattr(source, "sqlite_errorcode", 0) or 0) & 0xFF
