"""The store: an SQLite index over the journals, in normal form. It can always be deleted.

    with open_store(Path("trials/store.sqlite")) as store:
        store.rows("SELECT tag FROM trials")            # reading
        with store.writing() as database:               # one transaction, whole or not at all
            database.execute(...)

The schema's version is in the file. A store of another version is emptied and filled again from
the journals. A store that cannot be written is read as it is; where there is none, one in memory
serves for the moment. SQLite's own errors become StoreError here.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from seatrial.errors import StoreError

if TYPE_CHECKING:
    import sqlite3

VERSION = 3
APPLICATION = 0x5EA781A1 & 0x7FFFFFFF  # marks the file as ours
WAIT_S = 10.0
LONGEST_HOLD_S = 0.3  # who writes for longer lets others in for a breath: SQLite has no queue
BREATH_S = 0.02
FIELDS_OF_MOUNT = 10

# On these, every process that has the file open is on this host, as SQLite's WAL needs.
LOCAL_FILE_SYSTEMS = frozenset(
    ("ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "bcachefs", "tmpfs", "overlay")
)

# Results and extended results of SQLite, by their lowest byte.
_BUSY, _LOCKED, _READONLY, _CORRUPT, _FULL, _CANTOPEN, _NOTADB = 5, 6, 8, 11, 13, 14, 26

TABLES = """
CREATE TABLE trials (
    id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, tag TEXT NOT NULL,
    created INTEGER NOT NULL, machine TEXT NOT NULL, version TEXT NOT NULL,
    user TEXT NOT NULL, host TEXT NOT NULL,
    cases INTEGER NOT NULL, planned INTEGER NOT NULL,       -- runs that were asked for
    state TEXT NOT NULL, state_time INTEGER NOT NULL,       -- by the journal's word
    started INTEGER, last INTEGER,                          -- first start, last event
    damaged INTEGER NOT NULL,                               -- lines that are no events
    offset INTEGER NOT NULL,                                -- bytes of the journal ingested
    inode INTEGER NOT NULL, size INTEGER NOT NULL, modified INTEGER NOT NULL,
    fingerprint INTEGER NOT NULL,                           -- of bytes below the offset
    plan TEXT NOT NULL, component TEXT NOT NULL, phase TEXT NOT NULL,
    rehearsed INTEGER NOT NULL                              -- 1: nothing of it was measured
);
CREATE TABLE tests (
    id INTEGER PRIMARY KEY, trial INTEGER NOT NULL, name TEXT NOT NULL, app TEXT NOT NULL,
    tags TEXT NOT NULL,                                     -- each between line ends
    UNIQUE (trial, name)
);
CREATE TABLE cases (
    id INTEGER PRIMARY KEY, trial INTEGER NOT NULL, case_id TEXT NOT NULL,
    test INTEGER NOT NULL, name TEXT NOT NULL, toolchain TEXT NOT NULL,
    parameters TEXT NOT NULL,                               -- JSON
    nodes INTEGER, tasks INTEGER, tasks_per_node INTEGER, threads INTEGER, walltime REAL,
    node TEXT NOT NULL, build TEXT NOT NULL, repeat INTEGER NOT NULL,
    UNIQUE (trial, case_id)
);
CREATE TABLE runs (
    id INTEGER PRIMARY KEY, trial INTEGER NOT NULL, run_id TEXT NOT NULL,
    case_row INTEGER NOT NULL, seq INTEGER NOT NULL,        -- order of appearance in the trial
    code INTEGER NOT NULL, why TEXT NOT NULL,
    began INTEGER NOT NULL,                                 -- first event
    started INTEGER, ended INTEGER, elapsed REAL,           -- of its script, in seconds
    finished INTEGER,                                       -- time of the verdict
    exit_code INTEGER, job_id TEXT NOT NULL, nodes TEXT NOT NULL, path TEXT NOT NULL,
    again INTEGER NOT NULL,                                 -- 1: its case runs again
    target TEXT NOT NULL, stage TEXT NOT NULL,              -- where placed, alone or full
    UNIQUE (run_id, trial)
);
CREATE INDEX runs_by_begin ON runs (began);
CREATE INDEX runs_by_trial ON runs (trial, began);
CREATE INDEX runs_by_verdict ON runs (trial, code, again);
CREATE INDEX runs_by_case ON runs (case_row);
CREATE TABLE events (
    run INTEGER, trial INTEGER,                             -- a run's, or else a trial's
    time INTEGER NOT NULL, number INTEGER NOT NULL,
    value, detail TEXT, text TEXT
);
CREATE INDEX events_by_run ON events (run) WHERE run IS NOT NULL;
CREATE INDEX events_by_trial ON events (trial) WHERE trial IS NOT NULL;
CREATE TABLE metric_names (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL, unit TEXT NOT NULL, better TEXT NOT NULL,
    UNIQUE (name, unit, better)
);
CREATE TABLE metrics (
    run INTEGER NOT NULL, metric INTEGER NOT NULL, value REAL NOT NULL,
    PRIMARY KEY (run, metric)
) WITHOUT ROWID;
CREATE TABLE builds (
    trial INTEGER NOT NULL, key TEXT NOT NULL, path TEXT NOT NULL,
    started INTEGER, ended INTEGER, value INTEGER, text TEXT NOT NULL,
    PRIMARY KEY (trial, key)
) WITHOUT ROWID;
"""


class Store:
    """An open store. ``notices`` are lines that a person should see."""

    def __init__(
        self, place: str, connection: sqlite3.Connection, writable: bool, notices: Sequence[str]
    ) -> None:
        self.place = place
        self.writable = writable
        self.notices = list(notices)
        self._connection = connection
        self._held_s = 0.0

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
        """The rows of a query, as tuples."""
        with _told(self.place):
            return self._connection.execute(sql, parameters).fetchall()

    @contextlib.contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction that writes: committed at the end, undone on an exception."""
        with _told(self.place):
            self._connection.execute("BEGIN IMMEDIATE")
            began = time.monotonic()
            try:
                yield self._connection
            except BaseException:
                self._connection.rollback()
                raise
            self._connection.execute("COMMIT")
        self._held_s += time.monotonic() - began
        if self._held_s > LONGEST_HOLD_S:
            time.sleep(BREATH_S)
            self._held_s = 0.0

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def open_store(path: Path, wait_s: float = WAIT_S) -> Store:
    """Open the store of that path, made if missing. Where it cannot be written it is opened for
    reading; where there is none to read, a store in memory stands in. Raises StoreError when it
    is no store of ours, damaged, or locked for longer than ``wait_s``."""
    if _may_write(path):
        connection = _connect(f"{_uri(path)}?mode=rwc", str(path), wait_s)
        try:
            with _told(str(path)):
                notices = _prepare(connection, path)
        except BaseException:
            connection.close()
            raise
        return Store(str(path), connection, True, notices)
    readable = _readable(path, wait_s) if path.exists() else None
    if readable is not None:
        return Store(str(path), readable, False, [])
    reason = "cannot be written" if path.parent.is_dir() else "has no folder to be in"
    notice = f"{path}: {reason}; the journals are read anew each time (name another with --store)"
    return open_memory([notice])


def open_memory(notices: Sequence[str] = ()) -> Store:
    """A store that lives as long as this process."""
    connection = _connect(":memory:", ":memory:", 0)
    for statement in TABLES.split(";"):
        connection.execute(statement)
    return Store(":memory:", connection, True, notices)


def reopen_empty(path: Path, wait_s: float = WAIT_S) -> Store:
    """Open the store with nothing in it, to be filled again. A damaged file is moved aside; a
    database of another program is refused with StoreError."""
    notices = []
    if path.exists() and _is_damaged(path, wait_s):
        aside = path.with_name(path.name + ".damaged")
        with _system_errors_told(path):
            path.replace(aside)
            for ending in ("-wal", "-shm", "-journal"):
                path.with_name(path.name + ending).unlink(missing_ok=True)
        notices.append(f"{path}: was no readable store; it is kept as {aside.name}")
    store = open_store(path, wait_s)
    if store.place != str(path) or not store.writable:
        store.close()
        raise StoreError(f"{path}: cannot be written; name another place with --store")
    with store.writing() as database:
        _create(database)
    store.notices[:0] = notices
    return store


def _may_write(path: Path) -> bool:
    def writable(place: Path) -> bool:
        return os.access(place, os.W_OK, effective_ids=os.access in os.supports_effective_ids)

    folder = path.parent
    return folder.is_dir() and writable(folder) and (not path.exists() or writable(path))


def _uri(path: Path) -> str:
    return path.absolute().as_uri()


def _connect(uri: str, place: str, wait_s: float) -> sqlite3.Connection:
    import sqlite3

    with _told(place):
        connection = sqlite3.connect(uri, timeout=wait_s, isolation_level=None, uri=True)
        connection.execute("PRAGMA cache_size = -65536")
        connection.execute("PRAGMA temp_store = MEMORY")
    return connection


def _prepare(connection: sqlite3.Connection, path: Path) -> list[str]:
    """Make the file ours and of this version; the notices."""
    connection.execute("PRAGMA synchronous = NORMAL")
    if _marks(connection) == (APPLICATION, VERSION):
        _choose_journal(connection, path)
        return []
    connection.execute("BEGIN IMMEDIATE")
    application, version = _marks(connection)  # another process may have been first
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if tables and application != APPLICATION:
        raise StoreError(f"{path}: is a database of another program; name another with --store")
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
    """Drop what is there and make the tables, inside the caller's transaction."""
    names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    for (name,) in names:
        if not name.startswith("sqlite_"):
            connection.execute('DROP TABLE "' + name.replace('"', '""') + '"')
    for statement in TABLES.split(";"):
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {APPLICATION}")
    connection.execute(f"PRAGMA user_version = {VERSION}")


def _choose_journal(connection: sqlite3.Connection, path: Path) -> None:
    """Write-ahead where the file system is this host's own, else the classic rollback: shared
    memory does not reach over a network."""
    import sqlite3

    wanted = "wal" if file_system(path) in LOCAL_FILE_SYSTEMS else "truncate"
    with contextlib.suppress(sqlite3.OperationalError):  # busy, or not to be had: as it is
        if connection.execute("PRAGMA journal_mode").fetchone()[0] != wanted:
            got = connection.execute(f"PRAGMA journal_mode = {wanted}").fetchone()[0]
            if got not in (wanted, "truncate"):
                connection.execute("PRAGMA journal_mode = truncate")


def file_system(path: Path) -> str:
    """The type of the file system that a path is on, such as ext4 or nfs4; "" when unknown."""
    here = os.path.realpath(path)
    best, kind = "", ""
    try:
        lines = Path("/proc/self/mountinfo").read_text(errors="replace").splitlines()
    except OSError:
        return ""
    for line in lines:
        fields = line.split(" ")
        if len(fields) < FIELDS_OF_MOUNT or "-" not in fields:
            continue
        point = fields[4].replace("\\040", " ")
        inside = here == point or here.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):
            best, kind = point, fields[fields.index("-") + 1]
    return kind


def _readable(path: Path, wait_s: float) -> sqlite3.Connection | None:
    """A connection that only reads; None when the file is of another version. In a folder that
    cannot be written, a WAL cannot be joined: the file is then read as last checkpointed."""
    import sqlite3

    for mode in ("mode=ro", "mode=ro&immutable=1"):
        connection = None
        try:
            connection = _connect(f"{_uri(path)}?{mode}", str(path), wait_s)
            ours = _marks(connection) == (APPLICATION, VERSION)
            connection.execute("SELECT count(*) FROM trials WHERE id < 0" if ours else "SELECT 1")
            if ours:
                return connection
            connection.close()
            return None
        except (sqlite3.Error, StoreError) as error:
            if connection is not None:
                connection.close()
            if _kind(error) not in (_CANTOPEN, _READONLY) or "immutable" in mode:
                with _told(str(path)):
                    raise
    return None


def _is_damaged(path: Path, wait_s: float) -> bool:
    import sqlite3

    try:
        with contextlib.closing(_connect(f"{_uri(path)}?mode=ro", str(path), wait_s)) as connection:
            found = connection.execute("PRAGMA quick_check(1)").fetchone()
            return bool(found[0] != "ok")
    except (sqlite3.DatabaseError, StoreError) as error:
        return _kind(error) in (_NOTADB, _CORRUPT)


@contextlib.contextmanager
def _told(place: str) -> Iterator[None]:
    """Turns SQLite's errors into one message that names the file and the remedy."""
    import sqlite3

    try:
        yield
    except sqlite3.Error as error:
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
def _system_errors_told(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"{path}: cannot be replaced: {error.strerror}; remove it, or name another with --store"
        ) from error


def _kind(error: BaseException) -> int:
    source = error.__cause__ if isinstance(error, StoreError) else error
    return int(getattr(source, "sqlite_errorcode", 0) or 0) & 0xFF
