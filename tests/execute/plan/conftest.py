from __future__ import annotations

from pathlib import Path

import pytest

from .helpers import PlanPlace


@pytest.fixture
def place(tmp_path: Path) -> PlanPlace:
    """A machine of eight nodes, of which phase one has four; four tests; a plan to be written."""
    return PlanPlace(tmp_path)
