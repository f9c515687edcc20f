"""What the tests of rehearsals share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.plugins.rehearsal.stage import Stage


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    """An empty plan on a machine of eight nodes on which nothing is late and nothing fails."""
    return Stage(tmp_path)
