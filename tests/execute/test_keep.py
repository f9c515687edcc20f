"""Removal of outputs while something else removes a run's copy of a deck."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from seatrial.execute.kept_files import removal_rule, remove, removed_by
from seatrial.model.codes import PASS


@pytest.mark.parametrize("call", ["scandir", "open", "stat", "unlink"])
@pytest.mark.parametrize("again", range(1, 5))
def test_a_deck_that_disappears_meanwhile_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, again: int
) -> None:
    """The deck goes before the first, second, ... call to the file system."""
    run, deck = tmp_path / "run", tmp_path / "run" / "deck"
    (deck / "mesh").mkdir(parents=True)
    for name in ("field.dat", "deck/a", "deck/mesh/b"):
        (run / name).write_text("1")
    rule = removal_rule("none", PASS)
    assert rule is not None
    real, calls = getattr(os, call), 0

    def disturbed(path: Any, *args: Any, **keys: Any) -> Any:
        nonlocal calls
        own = isinstance(path, str) and path == str(run)
        calls += not own
        if calls == again and not own:
            with monkeypatch.context() as undone:
                undone.setattr(os, call, real)
                shutil.rmtree(deck, ignore_errors=True)
        return real(path, *args, **keys)

    monkeypatch.setattr(os, call, disturbed)
    assert removed_by(run, rule).files in (1, 2, 3)
    remove(run, rule)
    assert list(run.iterdir()) == []


def test_a_run_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    rule = removal_rule("none", PASS)
    assert rule is not None
    with pytest.raises(FileNotFoundError):
        removed_by(tmp_path / "run", rule)
