"""What the tests of sinks share: a trial that has ended, a server, and no long pauses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from seatrial.execute.trial_folder import TrialFolder
from seatrial.plugins.sinks import process
from tests.plugins.sinks.influx import Influx
from tests.results.store.postgres import PostgresServer, shared_server
from tests.results.store.trials import a_trial


@pytest.fixture(autouse=True)
def _soon_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(process, "LONGEST_PAUSE_S", 0.02)


@pytest.fixture
def folder(tmp_path: Path) -> TrialFolder:
    """A trial that has ended: three runs, 27 events."""
    return a_trial(tmp_path / "trials").folder


@pytest.fixture(scope="session")
def postgres() -> PostgresServer:
    """A server for all tests of a session."""
    return shared_server()


@pytest.fixture(scope="session")
def _influx(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Influx]:
    with Influx(Path(tmp_path_factory.mktemp("influx"))) as server:
        yield server


@pytest.fixture
def influx(_influx: Influx) -> Influx:
    """A server with an empty database ``trials``, shared by the tests of a session."""
    _influx.query("DROP DATABASE trials")
    _influx.query("CREATE DATABASE trials")
    return _influx
