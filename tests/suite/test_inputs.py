"""What input files held when a trial was made."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from seatrial.suite import inputs
from tests.programs import Workplace


def test_a_trial_keeps_the_hashes_of_its_inputs(tmp_path: Path) -> None:
    place = Workplace(tmp_path)
    place.local()
    deck = place.test("reads", "cat deck.txt", inputs=["deck.txt"]) / "deck.txt"
    deck.write_text("1 2 3\n")
    done = place.run("--name", "t")
    assert done.code == 0, done.said
    deck.write_text("4 5 6\n")  # after the trial
    kept = place.trial().record().inputs
    assert list(kept) == [str(deck)]
    assert kept[str(deck)].startswith(hashlib.sha256(b"1 2 3\n").hexdigest())


def test_a_folder_is_hashed_by_its_names_and_files(tmp_path: Path) -> None:
    for name in ("one", "same", "other"):
        (tmp_path / name / "below").mkdir(parents=True)
        (tmp_path / name / "below" / "a").write_text(name.replace("same", "one"))
    digests = {name: inputs.digest(str(tmp_path / name)) for name in ("one", "same", "other")}
    assert digests["one"] == digests["same"] != digests["other"]


def test_what_is_large_or_no_file_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "large").write_text("12345")
    monkeypatch.setattr(inputs, "LARGEST", 4)
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "many").mkdir()
    for number in range(3):
        (tmp_path / "many" / str(number)).touch()
    monkeypatch.setattr(inputs, "MOST_FILES", 2)
    for name in ("large", "fifo", "many", "absent"):
        assert inputs.digest(str(tmp_path / name)) == ""
