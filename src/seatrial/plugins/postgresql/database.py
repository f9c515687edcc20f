"""A store in a PostgreSQL database, for a site with several collectors and viewers.

    store = PostgresStore("postgresql://ana@db.example.org/seatrial", wait_s=10)
    create("postgresql://admin@db/seatrial", writer="collector", viewers=["grafana"])

All tables are in the schema ``seatrial``, which ``create`` makes. It belongs to the writer, so that
it can replace its tables; every member of that role collects, too. A collector holds a lock
on the trial that it writes, and a shared lock on the tables, so that nobody can replace them
meanwhile. Journals can be read again, so commits do not wait for the disk. A query over a
connection that turns out to be lost is repeated once over a new one.
"""

import contextlib
import functools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import msgspec
import psycopg
from psycopg import errors, sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus
from psycopg.types.numeric import FloatLoader

from seatrial.errors import StoreError
from seatrial.lazy import Ints
from seatrial.results.store.location import NoStore, shown
from seatrial.results.store.schema import (
    WAIT_S,
    ServerStore,
    Writer,
    fetched_columns,
    fetched_numbers,
    require_known,
)
from seatrial.results.store.tables import VERSION, Table, plugin_tables, statements

Connection = psycopg.Connection[tuple[Any, ...]]

SCHEMA = "seatrial"
TABLES_LOCK = 0x5EA7  # the class of the advisory lock on all tables
_DEFAULTS = {
    "connect_timeout": 10,  # seconds for an answer to a new connection
    "tcp_user_timeout": 20_000,  # ms; a server that is silent for longer is gone
    "application_name": "seatrial",
}


_NO_STORE = "has no store in it; its owner makes one: seatrial store create"


class Away(StoreError):
    """The server cannot be reached, or went away."""


# ---- connections and statements -----------------------------------------------------------


def connected(url: str, wait_s: float) -> Connection:
    """Return a connection that finds our tables and waits so long for locks. Raises NoStore for
    what is no URL, and psycopg's errors if nothing answers."""
    try:
        given = conninfo_to_dict(url)
    except psycopg.Error:  # its text may hold a password
        raise NoStore(
            f"{shown(url)}: cannot be read as a URL; write postgresql://USER@HOST:PORT/DATABASE, "
            "with special characters as %XX"
        ) from None
    merged: dict[str, Any] = {**_DEFAULTS, **given, "client_encoding": "UTF8"}
    settings = make_conninfo("", **merged)
    # Statements are planned for what is asked: with our filters, one plan does not fit all.
    connection = psycopg.connect(settings, autocommit=True, prepare_threshold=None)
    try:
        connection.adapters.register_loader("numeric", FloatLoader)
        do(connection, f"SET search_path TO {SCHEMA}")
        do(connection, f"SET lock_timeout TO {int(wait_s * 1000)}")
        do(connection, "SET synchronous_commit TO off")  # the journals are the truth
    except BaseException:
        connection.close()
        raise
    return connection


def select(connection: Connection, text: str, parameters: Sequence[Any] = ()) -> list[Any]:
    """Return the rows of a query that has ``?`` as parameters."""
    return execute(connection, text, parameters).fetchall()


def execute(
    connection: Connection, text: str, parameters: Sequence[Any]
) -> psycopg.Cursor[tuple[Any, ...]]:
    """Execute a query that has ``?`` as parameters. Its rows are still to be fetched."""
    return connection.execute(_marked(text), clean(parameters))


def do(connection: Connection, text: str, parameters: Sequence[Any] = ()) -> None:
    """Execute one statement that has ``?`` as parameters."""
    connection.execute(_marked(text), clean(parameters))


@functools.lru_cache(maxsize=512)
def _marked(text: str) -> bytes:
    return text.replace("%", "%%").replace("?", "%s").encode()


def clean(values: Sequence[Any]) -> list[Any]:
    """Return the values of a row or query without NUL, which its texts cannot hold."""
    return [
        value.replace("\0", "\ufffd") if isinstance(value, str) and "\0" in value else value
        for value in values
    ]


def _act(connection: Connection, text: str, *names: str) -> None:
    """Execute a statement about things with these names."""
    connection.execute(sql.SQL(text).format(*map(sql.Identifier, names)))


# ---- tables -------------------------------------------------------------------------------


def lock_tables(connection: Connection) -> None:
    """Keep all others away from the tables, until the caller's transaction ends."""
    do(connection, f"SELECT pg_advisory_xact_lock({TABLES_LOCK}, 0)")


def version_of(connection: Connection) -> int:
    """Return the version of the tables. Raises psycopg's UndefinedTable where there are none."""
    ((version,),) = select(connection, f"SELECT version FROM {SCHEMA}.about")
    return int(version)


def make_tables(connection: Connection) -> None:
    """Drop everything in the schema and make the tables, as its owner, inside the caller's
    transaction."""
    do(connection, "SET LOCAL synchronous_commit TO on")
    _become_owner(connection)
    for (name,) in select(connection, _TABLES_THERE, (SCHEMA,)):
        _act(connection, "DROP TABLE {}.{} CASCADE", SCHEMA, name)
    do(connection, "CREATE TABLE about (version INTEGER NOT NULL)")
    for statement in statements():
        do(connection, _of_postgres(statement))
    do(connection, "CREATE INDEX events_by_run ON events (run)")
    do(connection, "INSERT INTO about VALUES (?)", (VERSION,))


def add_tables(connection: Connection) -> None:
    """Make the tables of plug-ins that came after the store."""
    if _missing_tables(connection):
        with connection.transaction():
            lock_tables(connection)
            missing = _missing_tables(connection)  # another process may have been first
            _become_owner(connection)
            for table in missing:
                for statement in table.statements():
                    do(connection, _of_postgres(statement))


def _missing_tables(connection: Connection) -> list[Table]:
    there = {name for (name,) in select(connection, _TABLES_THERE, (SCHEMA,))}
    return [table for table in plugin_tables() if table.name not in there]


def _become_owner(connection: Connection) -> None:
    """Become the role that owns the schema, for the rest of the caller's transaction."""
    owner = "SELECT nspowner::regrole::text FROM pg_namespace WHERE nspname = ?"
    ((role,),) = select(connection, owner, (SCHEMA,))
    do(connection, f"SET LOCAL ROLE {role}")  # quoted by the server where it must be


_TABLES_THERE = "SELECT tablename FROM pg_tables WHERE schemaname = ?"


def _of_postgres(statement: str) -> str:
    """Return a statement that makes a table, for PostgreSQL. Text is compared as bytes, whatever
    the database's own rule is."""
    for ours, theirs in (
        ("id INTEGER PRIMARY KEY", "id BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY"),
        (" TEXT", ' TEXT COLLATE "C"'),
        (" BLOB", " JSONB"),
        (" WITHOUT ROWID", ""),
        (", PRIMARY KEY (run, time, seq)", ""),  # an index by run is a tenth of it
    ):
        statement = statement.replace(ours, theirs)
    return statement


# ---- making a store -----------------------------------------------------------------------


_GRANTS = (
    "GRANT USAGE ON SCHEMA {} TO {}",
    "GRANT SELECT ON ALL TABLES IN SCHEMA {} TO {}",
    "ALTER DEFAULT PRIVILEGES IN SCHEMA {} GRANT SELECT ON TABLES TO {}",
)


def create(url: str, writer: str, viewers: Sequence[str]) -> str:
    """Make the schema, owned by ``writer`` ("": the connected role), and the tables where they are
    missing, and let ``viewers`` read them. Returns what was done. Raises StoreError."""
    place = shown(url)
    try:
        with connected(url, WAIT_S) as connection, connection.transaction():
            _require(connection, place, [writer, *viewers])
            lock_tables(connection)
            _make_schema(connection, place, writer)
            done = _make_tables(connection, place)
            for viewer in viewers:
                for grant in _GRANTS:
                    _act(connection, grant, SCHEMA, viewer)
    except psycopg.Error as error:
        raise store_error(place, error, "", lost=False) from error
    return done


def _require(connection: Connection, place: str, roles: Sequence[str]) -> None:
    ((encoding,),) = select(connection, "SHOW server_encoding")
    if encoding != "UTF8":
        raise StoreError(
            f"{place}: keeps text as {encoding}; make a database for it: CREATE DATABASE"
            " seatrial ENCODING 'UTF8' TEMPLATE template0"
        )
    for role in roles:
        if role and not select(connection, "SELECT 1 FROM pg_roles WHERE rolname = ?", (role,)):
            raise NoStore(f"{place}: has no role {role}; first: CREATE ROLE {role} LOGIN")


def _make_schema(connection: Connection, place: str, writer: str) -> None:
    ((role,),) = select(connection, "SELECT current_user")
    owners = "SELECT pg_get_userbyid(nspowner) FROM pg_namespace WHERE nspname = ?"
    owner = select(connection, owners, (SCHEMA,))
    present = {name for (name,) in select(connection, _TABLES_THERE, (SCHEMA,))}
    if present and "about" not in present:
        raise StoreError(f"{place}: has a schema {SCHEMA} of another program; use another database")
    if not owner:
        _act(connection, "CREATE SCHEMA {} AUTHORIZATION {}", SCHEMA, writer or role)
    elif writer and owner[0][0] != writer:
        raise StoreError(
            f"{place}: its writer is {owner[0][0]}; make {writer} a member of that role: "
            f"GRANT {owner[0][0]} TO {writer}"
        )


def _make_tables(connection: Connection, place: str) -> str:
    """Make the tables as the schema's owner, which is the role from then on."""
    _become_owner(connection)
    if not select(connection, _TABLES_THERE, (SCHEMA,)):
        make_tables(connection)
        return "made"
    require_known(place, version_of(connection))
    return "was there"


# ---- errors -------------------------------------------------------------------------------


def _way_to_reach(text: str, state: str) -> str:
    """Return what people can do about a server that cannot be reached."""
    if "password" in text or state.startswith("28"):
        return "see to the user, and to the password in ~/.pgpass or $PGPASSWORD"
    if "does not exist" in text or state.startswith("3D"):
        return "see to the name of the database and of the user"
    return "see that its server runs and can be reached, then ask again"


def store_error(place: str, error: psycopg.Error, role: str, lost: bool) -> StoreError:
    """Return an error as one message with the place and the remedy."""
    text = str(error).strip().partition("\n")[0]
    state = error.sqlstate or ""
    if (lost and not state) or state.startswith(("08", "57P")):
        return Away(f"{place}: cannot be reached; {_way_to_reach(text, state)} ({text})")
    remedies: tuple[tuple[type[psycopg.Error], str], ...] = (
        (errors.LockNotAvailable, "is locked by another collector; wait for it"),
        (errors.DeadlockDetected, "is locked by another collector; ask again"),
        (errors.InsufficientPrivilege, f"{role or 'this role'} may not do that; ask its owner"),
        (errors.ReadOnlySqlTransaction, "cannot be written now; connect to the server that can"),
        (errors.DiskFull, "cannot grow: the server's disk is full; free some space"),
        (errors.UndefinedTable, _NO_STORE),
        (errors.InvalidSchemaName, _NO_STORE),
        (errors.QueryCanceled, "took too long to answer; ask for less"),
    )
    for kind, remedy in remedies:
        if isinstance(error, kind):
            return StoreError(f"{place}: {remedy} ({text})")
    return StoreError(
        f"{place}: cannot be used; if that stays so, run `seatrial store rebuild` ({text})"
    )


# ---- the store -----------------------------------------------------------------------------------


T = TypeVar("T")

MAX_SINGLY = 100  # rows that are inserted one by one
_NAMED = TABLES_LOCK + 1  # the class of the other advisory locks


class PostgresStore(ServerStore):
    """An open database. ``role`` is the connected role."""

    def __init__(self, url: str, wait_s: float) -> None:
        super().__init__(shown(url), False, [])
        self.role = ""
        self._url = url
        self._wait_s = wait_s
        self._connection: Connection | None = None

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
        return self._once_more(lambda connection: select(connection, sql, parameters))

    def columns(self, sql: str, parameters: Sequence[Any] = ()) -> list[list[Any]]:
        return self._once_more(
            lambda connection: fetched_columns(execute(connection, sql, parameters))
        )

    def numbers(self, sql: str, parameters: Sequence[Any] = ()) -> list[Ints]:
        return self._once_more(
            lambda connection: fetched_numbers(execute(connection, sql, parameters))
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
            do(connection, f"SELECT pg_advisory_xact_lock_shared({TABLES_LOCK}, 0)")
            self._check_version(connection)
            yield _Writer(connection)

    def size(self) -> int:
        sql = (
            "SELECT CAST(sum(pg_total_relation_size(oid)) AS BIGINT) FROM pg_class"
            f" WHERE relnamespace = '{SCHEMA}'::regnamespace AND relkind = 'r'"
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
                lock_tables(connection)
                make_tables(connection)

    # ---- the connection -------------------------------------------------------------------

    def _once_more(self, act: Callable[[Connection], T]) -> T:
        """Call ``act``, and once more over a new connection if the present one is lost."""
        with self._turn:
            kept = self._connection is not None and not self._inside()
            try:
                with self._raising_store_errors():
                    return act(self._open())
            except Away:
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

    def _open(self) -> Connection:
        if self._connection is None:
            connection = connected(self._url, self._wait_s)
            self._connection = connection
            try:
                self._look(connection)
            except BaseException:
                self._connection = None
                connection.close()
                raise
        return self._connection

    def _look(self, connection: Connection) -> None:
        """Find out the role, its rights, and whether the tables are of this version."""
        ((self.role,),) = select(connection, "SELECT current_user")
        sql = (
            f"SELECT has_table_privilege('{SCHEMA}.trials', 'INSERT')"
            " AND NOT pg_is_in_recovery()"
            " AND current_setting('default_transaction_read_only') = 'off'"
        )
        ((self.writable,),) = select(connection, sql)
        version = version_of(connection)
        if version < VERSION and self.writable:
            with connection.transaction():
                lock_tables(connection)
                if version_of(connection) < VERSION:  # another process may have been first
                    make_tables(connection)
            self.notices.append(
                f"{self.place}: was of version {version}, this is {VERSION}; rebuilt from the"
                " journals below the folder of trials"
            )
        self._check_version(connection)
        if self.writable:
            add_tables(connection)

    def _require_writable(self) -> None:
        if not self.writable:
            raise StoreError(
                f"{self.place}: {self.role} may read it and not write it; connect as its writer"
            )

    def _check_version(self, connection: Connection) -> None:
        version = version_of(connection)
        require_known(self.place, version)
        if version < VERSION:
            raise StoreError(
                f"{self.place}: is of version {version}, this reads {VERSION}, and {self.role} may "
                "not write it; ask who collects into it to upgrade Seatrial and collect once"
            )

    @contextlib.contextmanager
    def _transaction(self, begin: str) -> Iterator[Connection]:
        """Commit what is done within, or undo it on an exception."""
        self._once_more(lambda connection: do(connection, begin))
        connection = self._open()
        try:
            yield connection
        except BaseException:
            with contextlib.suppress(psycopg.Error):
                connection.rollback()
            raise
        with self._raising_store_errors():
            if self._connection is not connection:
                raise Away(f"{self.place}: went away in the middle; ask again")
            do(connection, "COMMIT")

    @contextlib.contextmanager
    def _raising_store_errors(self) -> Iterator[None]:
        """Turn psycopg's errors into a message with the place and the remedy. A lost connection is
        given up."""
        try:
            yield
        except psycopg.Error as error:
            lost = self._connection is None or self._connection.closed
            shown = store_error(self.place, error, self.role, bool(lost))
            if isinstance(shown, Away) and self._connection is not None:
                self._connection.close()
                self._connection = None
            raise shown from error


class _Writer:
    """A transaction of PostgreSQL."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
        return select(self._connection, sql, parameters)

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> None:
        do(self._connection, sql, parameters)

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
    values = clean(table.values(row))
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
