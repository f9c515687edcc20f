"""A site's store on a PostgreSQL server."""

from __future__ import annotations

from seatrial.hooks import Database, hookimpl


@hookimpl
def seatrial_databases() -> list[Database]:
    place = "seatrial.plugins.postgresql"
    return [
        Database(
            ("postgresql", "postgres"),
            f"{place}.database:PostgresStore",
            f"{place}.database:create",
            "psycopg",
            "postgresql",
        )
    ]
