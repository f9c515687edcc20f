"""The store: an index over the journals, in SQLite or PostgreSQL. It can be deleted at any time.

    with open_store(Path("trials/store.sqlite")) as store:     # of ``opening``; or a URL
        store.rows("SELECT tag FROM trials WHERE id = ?", (1,))   # reading
        with store.reading():                          # several queries that see one moment
            ...
        with store.writing() as writer:                # one transaction, whole or not at all
            writer.insert(METRICS, [Metric(run=1, metric=2, value=3.5)])

The tables are in ``tables``. One SQL serves both databases, by these rules:

- Parameters are ``?``, never within quotes. Numbers of our own may be written into the text.
- ``again`` and ``rehearsed`` are true or false: ``WHERE NOT runs.again``. Count them with
  ``CASE WHEN runs.again THEN 1 ELSE 0 END``. The column itself is selected as a ``bool``.
- No patterns (LIKE, GLOB), ``instr``, ``rowid``, PRAGMA, OR REPLACE, scalar ``max(a, b)``.
  Patterns are matched in Python on the small tables (``tests``, ``trials``), and their ids go into
  the query: ``sql_filters.conditions`` does so for ``Filters``, and queries ``runs`` alone.
- LEFT JOIN, or CROSS JOIN with its condition in WHERE, in the order in which the tables should be
  read. SQLite keeps this order, and has no statistics to find a better one.
- Each selected column is in GROUP BY, or in an aggregate. SQLite sorts for a GROUP BY over many
  runs, unless an index has that order: ``queries.codes_of`` counts by state and code.
- ORDER BY no column that may be NULL: the two databases sort NULL differently. Events are ordered
  by ``time, seq``; ``seq`` is their place in the trial's journal.
- ``IN ()`` is no SQL: write ``1 = 0`` where nothing is chosen.
- ``events.value`` is a number, a text or NULL, to be shown. No query may compute with it.
- A sum of BIGINT is ``CAST(sum(x) AS BIGINT)``.
- Text has no NUL in PostgreSQL, which keeps it as U+FFFD.

Any thread may use a store, one at a time: others wait. To read in parallel, open one for each
thread. When the database goes away, each use raises a StoreError, and the next use connects
anew. The version of the schema is in the store. A store of an older version is emptied and
filled again from the journals; one of a newer version is refused. One that cannot be written is
read as it is.
"""

import contextlib
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, Protocol, Self

from seatrial.errors import StoreError
from seatrial.lazy import Ints, np
from seatrial.results.store.tables import ROWS_AT_ONCE, VERSION, Table

WAIT_S = 10.0


class CannotGrow(StoreError):
    """The file system of a store is full, over quota, or fails."""


class Writer(Protocol):
    """A transaction that writes."""

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
        """Return the rows of a query, as tuples."""

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> None:
        """Execute one statement that returns no rows."""

    def insert(self, table: Table, rows: Iterable[object]) -> None:
        """Insert many new rows: objects with the attributes of the table."""

    def upsert(self, table: Table, rows: Iterable[object]) -> None:
        """Insert some rows, or replace those with the same key."""

    def new_ids(self, table: Table, count: int) -> Sequence[int]:
        """Return so many ids in ascending order. No row of the table has one of them, and no other
        writer will get them."""

    def lock(self, what: str) -> None:
        """Keep other writers away from what has this name, until the transaction ends."""


class Store(ABC):
    """An open store. ``place`` is its name in messages; ``notices`` are lines that a person should
    see, ``left_out`` those of them on journals that could not be read when it was brought up to
    date."""

    def __init__(self, place: str, writable: bool, notices: Sequence[str]) -> None:
        self.place = place
        self.writable = writable
        self.notices = list(notices)
        self.left_out: list[str] = []
        self._turn = threading.RLock()

    @abstractmethod
    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
        """Return the rows of a query, as tuples. Raises StoreError."""

    @abstractmethod
    def columns(self, sql: str, parameters: Sequence[Any] = ()) -> list[list[Any]]:
        """Return the columns of a query. For many rows this is twice as fast as transposing its
        rows. Raises StoreError."""

    @abstractmethod
    def numbers(self, sql: str, parameters: Sequence[Any] = ()) -> list[Ints]:
        """Return the columns of a query, all whole numbers and none of them NULL, as arrays. Raises
        StoreError."""

    @abstractmethod
    def writing(self) -> contextlib.AbstractContextManager[Writer]:
        """Open a transaction that writes. It is committed at the end, and undone on an
        exception."""

    @abstractmethod
    def reading(self) -> contextlib.AbstractContextManager[None]:
        """Make all queries within see one moment of the store."""

    @abstractmethod
    def size(self) -> int:
        """Return its size on disk in bytes."""

    @abstractmethod
    def kind(self) -> str:
        """Say in a few words which database it is and how it works."""

    @abstractmethod
    def close(self) -> None:
        """Close the database."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class ServerStore(Store):
    """A store in a database on a server."""

    @abstractmethod
    def empty(self) -> None:
        """Make the tables anew, with nothing in them."""


def marks(count: int) -> str:
    """Return the marks of ``count`` parameters: ``?, ?, ?``."""
    return ", ".join("?" * count)


def fetched_columns(cursor: Any) -> list[list[Any]]:
    """Return the columns of what a database's cursor selects. No batch of rows is kept for long."""
    columns: list[list[Any]] = [[] for _ in cursor.description]
    while batch := cursor.fetchmany(ROWS_AT_ONCE):
        for column, values in zip(columns, zip(*batch, strict=True), strict=True):
            column.extend(values)
    return columns


def fetched_numbers(cursor: Any) -> list[Ints]:
    """Return the columns of what a database's cursor selects, all whole numbers, as arrays. No
    batch of Python's numbers, which take five times the memory, is kept for long."""
    parts: list[list[Ints]] = [[np.zeros(0, dtype=np.int64)] for _ in cursor.description]
    while batch := cursor.fetchmany(ROWS_AT_ONCE):
        for column, values in zip(parts, zip(*batch, strict=True), strict=True):
            column.append(np.array(values, dtype=np.int64))
    return [np.concatenate(column) for column in parts]


def require_known(place: str, version: int) -> None:
    """Raise StoreError for a store that a newer Seatrial made."""
    if version > VERSION:
        raise StoreError(
            f"{place}: is of version {version}, made by a newer Seatrial; this one knows {VERSION}:"
            " upgrade it, or name another store with --store"
        )
