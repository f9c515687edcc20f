"""A PostgreSQL server: connections, statements, tables and errors; and the making of a store.

    with connected("postgresql://ana@db/seatrial", wait_s=10) as connection:
        select(connection, "SELECT tag FROM trials WHERE id = ?", (1,))
    create("postgresql://admin@db/seatrial", writer="collector", viewers=["grafana"])

The schema belongs to the writer, so that it can replace its tables. Every member of that role
collects, too.
"""

import functools
from collections.abc import Sequence
from typing import Any

import psycopg
from psycopg import errors, sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.types.numeric import FloatLoader

from seatrial.errors import StoreError
from seatrial.results.store.location import NoStore, shown
from seatrial.results.store.schema import WAIT_S, require_known
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
