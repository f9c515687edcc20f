"""A store in one SQLite file, for a person or a single trial.

    store = open_file(Path("trials/store.sqlite"), wait_s=10)

It has a write-ahead log where the file system is this host's own, else the classic rollback
journal. If the file was moved aside or replaced, the next use opens the file that is there now.
SQLite's own errors become StoreError here.
"""

import contextlib
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

import msgspec

from seatrial.errors import StoreError
from seatrial.files import remove_file
from seatrial.store import sqlite_file
from seatrial.store.columns import Table
from seatrial.store.location import NoStore
from seatrial.store.schema import Store, Writer, columns_of, require_known
from seatrial.store.tables import statements

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

    def __init__(self, opened: sqlite_file.OpenedFile, path: Path | None, wait_s: float) -> None:
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
            return columns_of(self._current().execute(sql, parameters))

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
        if odd and self._path is not None and sqlite_file.is_damaged(self._path, self._wait_s):
            raise StoreError(f"{self.place}: {sqlite_file.REMEDIES['CORRUPT']}")

    def close(self) -> None:
        with self._turn:
            self._opened.connection.close()

    def _current(self) -> sqlite3.Connection:
        """Return the connection to the file that is there now."""
        if not self._opened.connection.in_transaction and self._identity() != self._seen:
            opened = (
                sqlite_file.open_connection(self._path, self._wait_s)
                if self._path is not None
                else None
            )
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
            with sqlite_file.raising_store_errors(self.place):
                yield
        except StoreError as error:
            if sqlite_file.error_kind(error) == "ERROR":  # perhaps the tables are others by now
                with contextlib.suppress(sqlite3.Error):
                    require_known(self.place, sqlite_file.marks_of(self._opened.connection)[1])
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
    opened = sqlite_file.open_connection(path, wait_s)
    if opened is not None:
        return SqliteStore(opened, path, wait_s)
    reason = "cannot be written" if path.parent.is_dir() else "has no folder to be in"
    notice = f"{path}: {reason}; the journals are read anew each time (name another with --store)"
    return in_memory([notice])


def in_memory(notices: Sequence[str]) -> Store:
    """Return a store that lives as long as this process."""
    connection = sqlite_file.connected(None, "", 0)
    for statement in statements():
        connection.execute(statement)
    return SqliteStore(sqlite_file.OpenedFile(connection, True, list(notices)), None, 0)


def reopen_file(path: Path, wait_s: float) -> Store:
    """Return the store at that path with nothing in it."""
    notices = []
    if path.exists() and sqlite_file.is_damaged(path, wait_s):
        if not sqlite_file.was_store(path):
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
    opened = sqlite_file.open_connection(path, wait_s)
    if opened is None or not opened.writable:
        if opened is not None:
            opened.connection.close()
        raise StoreError(f"{path}: cannot be written; name another place with --store")
    with sqlite_file.raising_store_errors(str(path)):
        opened.connection.execute("BEGIN IMMEDIATE")
        sqlite_file.create_tables(opened.connection)
        opened.connection.execute("COMMIT")
    return SqliteStore(opened._replace(notices=notices + opened.notices), path, wait_s)
