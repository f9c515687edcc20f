"""Runs that Seatrial recalled say nothing of a machine: no study has them among its failures."""

from __future__ import annotations

from pathlib import Path

from seatrial.model.codes import FAILED
from seatrial.results.compare import compare_sides
from seatrial.results.history import histories
from seatrial.results.selection import gather, parse_side
from seatrial.results.store import queries
from seatrial.results.store.ingest import synced
from seatrial.results.store.tables import Filters
from seatrial.results.variability import variability

from .figures import TRIAD, Measuring, bound, steady


def a_trial(folder: Path, tag: str) -> None:
    trial = Measuring(folder, tag, [bound(1, size=1)])
    trial.series(trial.cases[0], TRIAD, steady(100, 6))
    trial.measure(trial.cases[0], verdict=FAILED)
    for number in range(20):
        trial.recalled_run(trial.cases[0], f"{tag}{number}", as_0_1=number % 2 == 0)
    trial.done()


def test_no_comparison_counts_them(tmp_path: Path) -> None:
    for tag in ("a", "b"):
        a_trial(tmp_path, tag)
    with synced(tmp_path / "store.sqlite", tmp_path) as store:
        base, other = (gather(store, parse_side(tag)) for tag in ("a", "b"))
        found = compare_sides(base, other)
    for row in found.rows:
        assert row.first.excluded == row.second.excluded == {"failed": 1}


def test_no_history_counts_them(tmp_path: Path) -> None:
    a_trial(tmp_path, "a")
    with synced(tmp_path / "store.sqlite", tmp_path) as store:
        (found,) = histories(store, "triad", Filters())
    assert found.series.excluded == {"failed": 1}


def test_they_are_neither_usual_nor_outliers(tmp_path: Path) -> None:
    a_trial(tmp_path, "a")
    with synced(tmp_path / "store.sqlite", tmp_path) as store:
        (trial,) = queries.trials(store)
        found = variability(store, trial, None)
    (kind,) = found.kinds
    assert (len(kind.runs), kind.willed) == (7, 0)
    assert found.evidence.left_out == {}
    assert {row.excluded.get("recalled", 0) for row in found.rows} == {0}
