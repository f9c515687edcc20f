"""What a terminal shows of a trial while it is driven."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path

import pytest

from seatrial.cli.run_driver import Progress
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
    assert line.endswith("rate 12 GB/s, speedup 3.5")


def test_the_summary_has_one_row_for_a_case_that_failed_without_figures(tmp_path: Path) -> None:
    place = Workplace(tmp_path)
    place.local()
    metrics = {
        name: {"find": name + r" (\S+)", "unit": "s", "better": "lower"} for name in ("a", "b")
    }
    place.test("bad", "exit 3", metrics=metrics)
    place.test("half", "echo a 1; exit 3", metrics=metrics)
    place.test("good", "echo a 1; echo b 2", metrics=metrics)
    lines = place.run("--name", "t").out.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("case "))
    rows = [line.split() for line in lines[at + 1 :] if "@plain  " in line]
    assert [row for row in rows if row[0] == "bad@plain"] == [["bad@plain", "failed"]]
    assert [row[1] for row in rows if row[0] == "good@plain"] == ["a", "b"]
    assert not [row for row in rows if "none" in row]
