"""What a terminal shows of a trial while it is driven."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path

import pytest

from seatrial.cli.progress import Progress
from tests.programs import Workplace


def test_nothing_is_said_of_a_trial_before_its_journal_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another driver may have it, and what is left of it is not known yet."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    progress = Progress(quiet=False)
    with closing(progress):
        assert progress._live is None
        progress.on_open(2, 3)
        assert progress._live is not None
        assert progress._status().plain.startswith("2/3 done")
    assert progress._live is None


def test_figures_have_their_units_and_a_pure_number_has_none(tmp_path: Path) -> None:
    place = Workplace(tmp_path)
    place.local()
    metrics = {
        "speedup": {"find": r"speedup (\S+)", "unit": "1", "better": "higher"},
        "rate": {"find": r"rate (\S+)", "unit": "GB/s", "better": "higher"},
    }
    place.test("one", "echo speedup 3.5; echo rate 12", metrics=metrics)
    said = place.run("--name", "t").out
    (line,) = [line for line in said.splitlines() if "speedup 3.5" in line and "12" in line]
    assert line.endswith("speedup 3.5, rate 12 GB/s")
