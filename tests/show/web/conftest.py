"""A browser, and a server over many trials. Who uses it is marked ``needs("chromium")``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.show.web.harbour import make_harbour
from tests.show.web.served import Served, chromium

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Its pages are closed after the module."""
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="session")
def harbour(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server over trials of many kinds, see ``tests.show.web.harbour``."""
    trials = tmp_path_factory.mktemp("harbour") / "trials"
    make_harbour(trials)
    with Served(trials) as served:
        served.until_read()
        yield served
