"""Make a store in a PostgreSQL database, for a role that writes it and roles that read it.

    found("postgresql://admin@db/seatrial", writer="collector", viewers=["grafana"])

The schema belongs to the writer, so that it can replace its tables. Every member of that role
collects, too. When it runs again, it only adds what is missing.
"""

from __future__ import annotations

from collections.abc import Sequence

import psycopg

from seatrial.errors import StoreError
from seatrial.store.location import NoStore, shown
from seatrial.store.postgres_server import (
    SCHEMA,
    TABLES_THERE,
    Connection,
    act,
    become_owner,
    connected,
    lock_tables,
    make_tables,
    select,
    store_error,
    version_of,
)
from seatrial.store.schema import WAIT_S, require_known


def found(url: str, writer: str, viewers: Sequence[str]) -> str:
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
                _let_read(connection, viewer)
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
    ((own,),) = select(connection, "SELECT current_user")
    owners = "SELECT pg_get_userbyid(nspowner) FROM pg_namespace WHERE nspname = ?"
    owner = select(connection, owners, (SCHEMA,))
    there = {name for (name,) in select(connection, TABLES_THERE, (SCHEMA,))}
    if there and "about" not in there:
        raise StoreError(f"{place}: has a schema {SCHEMA} of another program; use another database")
    if not owner:
        act(connection, "CREATE SCHEMA {} AUTHORIZATION {}", SCHEMA, writer or own)
    elif writer and owner[0][0] != writer:
        raise StoreError(
            f"{place}: its writer is {owner[0][0]}; make {writer} a member of that role: "
            f"GRANT {owner[0][0]} TO {writer}"
        )


def _make_tables(connection: Connection, place: str) -> str:
    """Make the tables as the schema's owner, which is the role from then on."""
    become_owner(connection)
    if not select(connection, TABLES_THERE, (SCHEMA,)):
        make_tables(connection)
        return "made"
    require_known(place, version_of(connection))
    return "was there"


def _let_read(connection: Connection, viewer: str) -> None:
    act(connection, "GRANT USAGE ON SCHEMA {} TO {}", SCHEMA, viewer)
    act(connection, "GRANT SELECT ON ALL TABLES IN SCHEMA {} TO {}", SCHEMA, viewer)
    future = "ALTER DEFAULT PRIVILEGES IN SCHEMA {} GRANT SELECT ON TABLES TO {}"
    act(connection, future, SCHEMA, viewer)
