"""Bad evidence at every place that judges: never pass, met, healthy or exit code 0, and named.

A grid (``tests/bad_evidence/grid.py``) of ways in which evidence can be bad by places that judge.
Each pair is a case, or has a reason why it cannot be. What turns an answer is the bad way alone:
each place is green on whole evidence.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bad_evidence import of_files, of_nodes, of_runs, of_trials
from tests.bad_evidence.grid import BAD, GOOD, PLACES, REASONS, WAYS, BadPair

CASES = (of_runs, of_trials, of_nodes, of_files)  # imported for what they note
ENOUGH = 120


@pytest.fixture(autouse=True)
def _at_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.mark.parametrize("place", PLACES)
def test_whole_evidence_is_green(place: str, tmp_path: Path) -> None:
    told = GOOD[place](tmp_path)
    assert told.green, told.said


@pytest.mark.parametrize("pair", BAD, ids=[f"{each.place}-{each.way}" for each in BAD])
def test_bad_evidence_is_not_green_and_is_named(pair: BadPair, tmp_path: Path) -> None:
    told = pair.ask(tmp_path)
    assert not told.green, told.said
    assert "Traceback" not in told.said
    for words in pair.words:
        assert words in told.said, told.said


def test_each_pair_is_a_case_or_has_a_reason() -> None:
    cases = {(each.place, each.way) for each in BAD}
    grid = {(place, way) for place in PLACES for way in WAYS}
    assert not cases & REASONS.keys(), "a case, and a reason why there is none"
    assert grid == cases | REASONS.keys(), sorted(grid - cases - REASONS.keys())
    assert len(cases) >= ENOUGH
    assert all(reason and reason[0].islower() for reason in REASONS.values())
