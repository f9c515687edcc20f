"""What a bundle tells of its runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from seatrial.runs.bundle import PROGRESS, BundleLine, read_progress


@pytest.mark.parametrize(
    "odd", ["start r1 nan", "start r1 inf", "start r1 1e999", "end r1 x y", ""]
)
def test_odd_lines_are_left_out(tmp_path: Path, odd: str) -> None:
    """Times that are no numbers, too: a job may write what it likes."""
    (tmp_path / PROGRESS).write_text(f"{odd}\nstart r2 17.5\nend r2 0 done\nstart r3 18")
    found = read_progress(tmp_path, 0)
    assert found is not None
    lines, end = found
    assert lines == [BundleLine("r2", time=17.5), BundleLine("r2", exit_code=0, reason="done")]
    assert end == len(f"{odd}\nstart r2 17.5\nend r2 0 done\n")
