"""The writer of a SQLite transaction.

writer = SqliteWriter(connection)            # within BEGIN IMMEDIATE and COMMIT
writer.insert("metrics", ("run", "metric", "value"), rows)
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from itertools import chain, islice
from typing import Any

from seatrial.store.schema import insert_sql, upsert_sql

MAX_PLACEHOLDERS = 900  # of a statement; old SQLites take 999


class SqliteWriter:
    """A transaction of SQLite. SQLite has one writer at a time, so no further lock is needed."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
        return self._connection.execute(sql, parameters).fetchall()

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> None:
        self._connection.execute(sql, parameters)

    def insert(self, table: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        # A statement of many rows takes half as long as one for each.
        at_once = MAX_PLACEHOLDERS // len(columns)
        sql = insert_sql(table, columns, "?", at_once)
        rows = iter(rows)
        while len(some := list(islice(rows, at_once))) == at_once:
            self._connection.execute(sql, list(chain.from_iterable(some)))
        self._connection.executemany(insert_sql(table, columns, "?"), some)

    def upsert(
        self, table: str, columns: Sequence[str], key: str, rows: Iterable[Sequence[Any]]
    ) -> None:
        self._connection.executemany(upsert_sql(table, columns, key, "?"), rows)

    def new_ids(self, table: str, count: int) -> Sequence[int]:
        sql = f"SELECT coalesce(max(id), 0) + 1 FROM {table}"
        (first,) = self._connection.execute(sql).fetchone()
        return range(first, first + count)

    def lock(self, what: str) -> None:
        return
