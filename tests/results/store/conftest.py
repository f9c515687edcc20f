"""What the store's tests share: a place for a store, in each of the two databases."""

from __future__ import annotations

from pathlib import Path

import pytest

from seatrial.results.store.location import Location

from .postgres import PostgresServer, program, shared_server

NEEDS_POSTGRES = pytest.mark.needs(program("initdb"))


@pytest.fixture(scope="session")
def postgres() -> PostgresServer:
    """A server for all tests of a session."""
    return shared_server()


@pytest.fixture(scope="session")
def _shared(postgres: PostgresServer) -> str:
    return postgres.database()


@pytest.fixture
def postgres_url(postgres: PostgresServer, _shared: str) -> str:
    """The writer's URL of an empty store in PostgreSQL, with a viewer beside. A test that changes
    its tables makes a database of its own."""
    postgres.empty(_shared)
    return _shared


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=NEEDS_POSTGRES)])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> Location:
    """Where a store may be: a file below ``tmp_path``, or a database."""
    if request.param == "sqlite":
        return tmp_path / "store.sqlite"
    url: str = request.getfixturevalue("postgres_url")
    return url
