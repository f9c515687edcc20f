"""A store in a PostgreSQL database, for a site with several collectors and viewers.

    store = PostgresStore("postgresql://ana@db.example.org/seatrial", wait_s=10)

All tables are in the schema ``seatrial``, which ``postgres_server`` makes. A collector holds a lock
on the trial that it writes, and a shared lock on the tables, so that nobody can replace them
meanwhile. Journals can be read again, so commits do not wait for the disk. A query over a
connection that turns out to be lost is repeated once over a new one.
"""

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import msgspec
import psycopg
from psycopg.pq import TransactionStatus

from seatrial.errors import StoreError
from seatrial.lazy import Ints
from seatrial.plugins.postgresql import server
from seatrial.results.store.location import shown
from seatrial.results.store.schema import (
    ServerStore,
    Writer,
    fetched_columns,
    fetched_numbers,
    require_known,
)
from seatrial.results.store.tables import VERSION, Table

T = TypeVar("T")

MAX_SINGLY = 100  # rows that are inserted one by one
_NAMED = server.TABLES_LOCK + 1  # the class of the other advisory locks


class PostgresStore(ServerStore):
    """An open database. ``role`` is the connected role."""

    def __init__(self, url: str, wait_s: float) -> None:
        super().__init__(shown(url), False, [])
        self.role = ""
        self._url = url
        self._wait_s = wait_s
        self._connection: server.Connection | None = None

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
        return self._once_more(lambda connection: server.select(connection, sql, parameters))

    def columns(self, sql: str, parameters: Sequence[Any] = ()) -> list[list[Any]]:
        return self._once_more(
            lambda connection: fetched_columns(server.execute(connection, sql, parameters))
        )

    def numbers(self, sql: str, parameters: Sequence[Any] = ()) -> list[Ints]:
        return self._once_more(
            lambda connection: fetched_numbers(server.execute(connection, sql, parameters))
        )

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        with self._turn:
            if self._inside():
                yield
                return
            with self._transaction("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"):
                yield

    @contextlib.contextmanager
    def writing(self) -> Iterator[Writer]:
        with self._turn, self._transaction("BEGIN") as connection, self._raising_store_errors():
            self._require_writable()
            server.do(connection, f"SELECT pg_advisory_xact_lock_shared({server.TABLES_LOCK}, 0)")
            self._check_version(connection)
            yield _Writer(connection)

    def size(self) -> int:
        sql = (
            "SELECT CAST(sum(pg_total_relation_size(oid)) AS BIGINT) FROM pg_class"
            f" WHERE relnamespace = '{server.SCHEMA}'::regnamespace AND relkind = 'r'"
        )
        return int(self.rows(sql)[0][0] or 0)

    def kind(self) -> str:
        ((version,),) = self.rows("SHOW server_version")
        may = "writer" if self.writable else "viewer"
        return f"PostgreSQL {version.partition(' ')[0]}, as {may} {self.role}"

    def close(self) -> None:
        with self._turn:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def empty(self) -> None:
        """Make the tables anew, with nothing in them."""
        with self._turn, self._raising_store_errors():
            connection = self._open()
            self._require_writable()
            with connection.transaction():
                server.lock_tables(connection)
                server.make_tables(connection)

    # ---- the connection -------------------------------------------------------------------

    def _once_more(self, act: Callable[[server.Connection], T]) -> T:
        """Call ``act``, and once more over a new connection if the present one is lost."""
        with self._turn:
            kept = self._connection is not None and not self._inside()
            try:
                with self._raising_store_errors():
                    return act(self._open())
            except server.Away:
                if not kept:
                    raise
            with self._raising_store_errors():
                return act(self._open())

    def _inside(self) -> bool:
        """Return whether a transaction is open."""
        connection = self._connection
        return connection is not None and connection.info.transaction_status not in (
            TransactionStatus.IDLE,
            TransactionStatus.UNKNOWN,
        )

    def _open(self) -> server.Connection:
        if self._connection is None:
            connection = server.connected(self._url, self._wait_s)
            self._connection = connection
            try:
                self._look(connection)
            except BaseException:
                self._connection = None
                connection.close()
                raise
        return self._connection

    def _look(self, connection: server.Connection) -> None:
        """Find out the role, its rights, and whether the tables are of this version."""
        ((self.role,),) = server.select(connection, "SELECT current_user")
        sql = (
            f"SELECT has_table_privilege('{server.SCHEMA}.trials', 'INSERT')"
            " AND NOT pg_is_in_recovery()"
            " AND current_setting('default_transaction_read_only') = 'off'"
        )
        ((self.writable,),) = server.select(connection, sql)
        version = server.version_of(connection)
        if version < VERSION and self.writable:
            with connection.transaction():
                server.lock_tables(connection)
                if server.version_of(connection) < VERSION:  # another process may have been first
                    server.make_tables(connection)
            self.notices.append(
                f"{self.place}: was of version {version}, this is {VERSION}; rebuilt from the"
                " journals below the folder of trials"
            )
        self._check_version(connection)
        if self.writable:
            server.add_tables(connection)

    def _require_writable(self) -> None:
        if not self.writable:
            raise StoreError(
                f"{self.place}: {self.role} may read it and not write it; connect as its writer"
            )

    def _check_version(self, connection: server.Connection) -> None:
        version = server.version_of(connection)
        require_known(self.place, version)
        if version < VERSION:
            raise StoreError(
                f"{self.place}: is of version {version}, this reads {VERSION}, and {self.role} may "
                "not write it; ask who collects into it to upgrade Seatrial and collect once"
            )

    @contextlib.contextmanager
    def _transaction(self, begin: str) -> Iterator[server.Connection]:
        """Commit what is done within, or undo it on an exception."""
        self._once_more(lambda connection: server.do(connection, begin))
        connection = self._open()
        try:
            yield connection
        except BaseException:
            with contextlib.suppress(psycopg.Error):
                connection.rollback()
            raise
        with self._raising_store_errors():
            if self._connection is not connection:
                raise server.Away(f"{self.place}: went away in the middle; ask again")
            server.do(connection, "COMMIT")

    @contextlib.contextmanager
    def _raising_store_errors(self) -> Iterator[None]:
        """Turn psycopg's errors into a message with the place and the remedy. A lost connection is
        given up."""
        try:
            yield
        except psycopg.Error as error:
            lost = self._connection is None or self._connection.closed
            shown = server.store_error(self.place, error, self.role, bool(lost))
            if isinstance(shown, server.Away) and self._connection is not None:
                self._connection.close()
                self._connection = None
            raise shown from error


class _Writer:
    """A transaction of PostgreSQL."""

    def __init__(self, connection: server.Connection) -> None:
        self._connection = connection

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
        return server.select(self._connection, sql, parameters)

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> None:
        server.do(self._connection, sql, parameters)

    def insert(self, table: Table, rows: Iterable[object]) -> None:
        self._copy(table.name, table, rows)

    def _copy(self, name: str, table: Table, rows: Iterable[object]) -> None:
        """Copy rows into the table of that name, which has the columns of ``table``."""
        copying = f"COPY {name} ({', '.join(table.names)}) FROM STDIN".encode()
        with self._connection.cursor() as cursor, cursor.copy(copying) as copy:
            for row in rows:
                copy.write_row(_values(table, row))

    def upsert(self, table: Table, rows: Iterable[object]) -> None:
        some = list(rows)
        if len(some) > MAX_SINGLY:
            self._upsert_many(table, some)
            return
        with self._connection.cursor() as cursor:
            cursor.executemany(
                table.upsert_sql("%s").encode(), [_values(table, row) for row in some]
            )

    def _upsert_many(self, table: Table, rows: Sequence[object]) -> None:
        """Copy rows beside the table, and move them into it by one statement. Of rows with the same
        key the last one counts."""
        name, names = f"incoming_{table.name}", ", ".join(table.names)
        self.execute(f"CREATE TEMP TABLE IF NOT EXISTS {name} (LIKE {table.name}) ON COMMIT DROP")
        self.execute(f"TRUNCATE {name}")
        self._copy(name, table, rows)
        self.execute(
            f"INSERT INTO {table.name} ({names}) SELECT DISTINCT ON ({table.key}) {names}"
            f" FROM {name} ORDER BY {table.key}, ctid DESC{table.on_conflict}"
        )

    def new_ids(self, table: Table, count: int) -> Sequence[int]:
        sql = (
            f"SELECT nextval(pg_get_serial_sequence('{table.name}', 'id'))"
            " FROM generate_series(1, ?)"
        )
        return sorted(number for (number,) in self.rows(sql, (count,)))

    def lock(self, what: str) -> None:
        self.execute(f"SELECT pg_advisory_xact_lock({_NAMED}, hashtext(?))", (what,))


def _values(table: Table, row: object) -> list[Any]:
    """Return the values of a row as PostgreSQL holds them."""
    values = server.clean(table.values(row))
    return [
        _json(value) if column.sql == "BLOB" else value
        for column, value in zip(table.columns, values, strict=True)
    ]


def _json(value: int | float | str | None) -> int | str | None:
    """Return a value of an event as JSON."""
    if value is None or value.__class__ is int:
        return value
    finite = str(value) if isinstance(value, float) and not math.isfinite(value) else value
    return msgspec.json.encode(finite).decode()
