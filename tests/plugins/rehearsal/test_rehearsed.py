"""What commands show of rehearsals: where they are asked for, and marked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.test_query_common import ask
from tests.results.store.trials import NOON, a_trial


@pytest.fixture
def trials(tmp_path: Path) -> Path:
    a_trial(tmp_path, "real", created=NOON + 1)
    a_trial(tmp_path, "made-up", rehearsed=True)
    return tmp_path


def test_trials_are_marked(trials: Path) -> None:
    real, told = ask(trials, "trials").out.splitlines()[1:]
    assert real.startswith("real")
    assert told.startswith("1 rehearsal not shown")
    real, made_up = ask(trials, "trials", "--rehearsed").out.splitlines()[1:]
    assert "rehearsed" not in real and made_up.endswith("rehearsed")


def test_runs_leave_them_out_unless_they_are_asked_for(trials: Path) -> None:
    def found(*words: str) -> set[str]:
        answer = ask(trials, "runs", "--format", "json", *words)
        return {f"{run['trial']} {run['rehearsed']}" for run in json.loads(answer.out)}

    assert found() == {"real False"}
    assert found("--trial", "made-up") == {"made-up True"}
    assert found("--rehearsed") == {"real False", "made-up True"}
    assert "all of trial made-up, a rehearsal" in ask(trials, "runs", "--trial", "made-up").out
    assert "made-up/aaaa1111made-up, rehearsed" in ask(trials, "show", "made-up/aaaa1").out


def test_references_are_not_accepted_from_them_by_chance(trials: Path) -> None:
    refused = ask(trials, "reference", "accept", "made-up", "--dry-run")
    assert refused.code == 2 and "is a rehearsal" in refused.err and "--rehearsed" in refused.err
    accepted = ask(trials, "reference", "accept", "made-up", "--rehearsed", "--dry-run")
    assert accepted.code == 0 and "triad" in accepted.out
