from __future__ import annotations

from pathlib import Path

import pytest

from tests.model.suite.helpers import Place


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """An empty suite, and a machine of four nodes with eight cores and one toolchain."""
    return Place(tmp_path)
