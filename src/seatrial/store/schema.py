"""The store: an index over the journals, in SQLite or PostgreSQL. It can always be deleted.

    with open_store(Path("trials/store.sqlite")) as store:     # of ``opening``; or a URL
        store.rows("SELECT tag FROM trials WHERE id = ?", (1,))   # reading
        with store.reading():                          # several queries that see one moment
            ...
        with store.writing() as writer:                # one transaction, whole or not at all
            writer.insert("metrics", ("run", "metric", "value"), rows)

The tables are in ``tables``. One SQL serves both databases, by these rules:

- Marks are ``?``, never within quotes. Numbers of our own may be written into the text.
- ``again`` and ``rehearsed`` are true or false: ``WHERE NOT runs.again``; to count them write
  ``CASE WHEN runs.again THEN 1 ELSE 0 END``; of what comes back take ``bool``.
- No patterns (LIKE, GLOB), ``instr``, ``rowid``, PRAGMA, OR REPLACE, scalar ``max(a, b)``.
  Patterns are matched in Python on the small tables (``tests``, ``trials``), and their ids go into
  the query: ``choosing.conditions`` does so for ``Filters``, and asks of the table ``runs`` alone.
- LEFT JOIN, or CROSS JOIN with its condition in WHERE, in the order in which tables are to be
  looked up: SQLite keeps to it, and has no statistics to find a better one.
- Whatever is selected is in GROUP BY, or in an aggregate. For GROUP BY over many runs SQLite sorts,
  unless an index has that order: ``queries.codes_of`` counts by state and code.
- ORDER BY no column that may be NULL: the two disagree where NULL is. Events are ordered by
  ``time, seq``; ``seq`` is their place in the trial's journal.
- ``IN ()`` is no SQL: where nothing is chosen say ``1 = 0``.
- ``events.value`` is a number, a text or NULL, to be shown: no query may compute with it.
- A sum of BIGINT is ``CAST(sum(x) AS BIGINT)``.
- Text has no NUL in PostgreSQL: there it is kept as U+FFFD.

A store may be used by any thread, by one at a time: others wait. Who wants to read in parallel
opens one for each thread. A database that went away makes each use one StoreError; the next use
connects anew. The schema's version is in the store: one of an older version is emptied and filled
again from the journals, one of a newer version is refused. What cannot be written is read as it is.
"""

from __future__ import annotations

import contextlib
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

from seatrial.errors import StoreError
from seatrial.store.tables import VERSION

T = TypeVar("T")

WAIT_S = 10.0
ROWS_AT_ONCE = 500


class Writer(Protocol):
    """A transaction that writes."""

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
        """The rows of a query, as tuples."""

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> None:
        """One statement that answers nothing."""

    def insert(self, table: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Many rows that are not there yet."""

    def upsert(
        self, table: str, columns: Sequence[str], key: str, rows: Iterable[Sequence[Any]]
    ) -> None:
        """Some rows that take the place of those with the same ``key`` (columns with commas)."""

    def new_ids(self, table: str, count: int) -> Sequence[int]:
        """So many ids that no row of the table has or will have by another writer, ascending."""

    def lock(self, what: str) -> None:
        """Keep other writers out of what is so named until the transaction ends."""


class Store(ABC):
    """An open store. ``place`` is what to call it; ``notices`` are lines that a person should
    see."""

    def __init__(self, place: str, writable: bool, notices: Sequence[str]) -> None:
        self.place = place
        self.writable = writable
        self.notices = list(notices)
        self._turn = threading.RLock()

    @abstractmethod
    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
        """The rows of a query, as tuples. Raises StoreError."""

    @abstractmethod
    def columns(self, sql: str, parameters: Sequence[Any] = ()) -> list[list[Any]]:
        """The columns of a query, for many rows: twice as fast as to turn its rows around.
        Raises StoreError."""

    @abstractmethod
    def writing(self) -> contextlib.AbstractContextManager[Writer]:
        """A transaction that writes: committed at the end, undone on an exception."""

    @abstractmethod
    def reading(self) -> contextlib.AbstractContextManager[None]:
        """What is asked within sees one moment of the store."""

    @abstractmethod
    def size(self) -> int:
        """Bytes on disk."""

    @abstractmethod
    def kind(self) -> str:
        """What it is and how it works, in a few words."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the database."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def marks(count: int) -> str:
    """Return the marks of ``count`` parameters: ``?, ?, ?``."""
    return ", ".join("?" * count)


def chunks(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """Yield parts of at most ROWS_AT_ONCE items: a query has a limited number of parameters."""
    for start in range(0, len(items), ROWS_AT_ONCE):
        yield items[start : start + ROWS_AT_ONCE]


def turned(batches: Iterable[Sequence[Sequence[Any]]], width: int) -> list[list[Any]]:
    """Rows that come in batches as columns; none is kept for long."""
    columns: list[list[Any]] = [[] for _ in range(width)]
    for batch in batches:
        for column, values in zip(columns, zip(*batch, strict=True), strict=True):
            column.extend(values)
    return columns


def upsert_sql(table: str, columns: Sequence[str], key: str, mark: str) -> str:
    """The statement of ``Writer.upsert`` with a database's own mark."""
    keys = key.split(", ")
    changes = ", ".join(f"{name} = excluded.{name}" for name in columns if name not in keys)
    return f"{insert_sql(table, columns, mark)} ON CONFLICT ({key}) DO UPDATE SET {changes}"


def insert_sql(table: str, columns: Sequence[str], mark: str, rows: int = 1) -> str:
    """The statement of ``Writer.insert`` for so many rows."""
    marks = f"({', '.join([mark] * len(columns))})"
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES {', '.join([marks] * rows)}"


def newer(place: str, version: int) -> StoreError:
    """The refusal of a store that a newer Seatrial made."""
    return StoreError(
        f"{place}: is of version {version}, made by a newer Seatrial; this one knows {VERSION}: "
        "upgrade it, or name another store with --store"
    )
