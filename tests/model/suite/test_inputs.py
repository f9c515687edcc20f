"""What input files held when a trial was made."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from seatrial.model import build
from seatrial.model.build import digest_of
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
    digests = {name: build.digest(str(tmp_path / name)) for name in ("one", "same", "other")}
    assert digests["one"] == digests["same"] != digests["other"]


@pytest.mark.parametrize("target", ["shared/mesh.dat", "shared"])
def test_what_a_link_leads_to_counts(tmp_path: Path, target: str) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "deck").mkdir()
    mesh = tmp_path / "shared" / "mesh.dat"
    mesh.write_text("1")
    (tmp_path / "deck" / "link").symlink_to(tmp_path / target)
    before = build.digest(str(tmp_path / "deck"))
    mesh.write_text("2")
    assert "" != before != build.digest(str(tmp_path / "deck")) != ""


def test_links_in_a_circle_end(tmp_path: Path) -> None:
    for name, other in (("one", "two"), ("two", "one")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
        (tmp_path / name / "other").symlink_to(tmp_path / other)
        (tmp_path / name / "above").symlink_to("..")
    before = build.digest(str(tmp_path / "one"))
    (tmp_path / "two" / "file").write_text("3")
    assert "" != before != build.digest(str(tmp_path / "one")) != ""
    (tmp_path / "one" / "itself").symlink_to("itself")
    assert len(digest_of(tmp_path / "one")) == 64


def test_what_is_large_behind_a_link_counts_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "MAX_FILES", 2)
    for name in ("deck", "much"):
        (tmp_path / name).mkdir()
    for number in range(3):
        (tmp_path / "much" / str(number)).touch()
    (tmp_path / "deck" / "link").symlink_to(tmp_path / "much")
    before = digest_of(tmp_path / "deck")
    (tmp_path / "much" / "0").write_text("1")
    assert digest_of(tmp_path / "deck") == before


def test_what_is_large_or_no_file_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "large").write_text("12345")
    monkeypatch.setattr(build, "MAX_BYTES", 4)
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "many").mkdir()
    for number in range(3):
        (tmp_path / "many" / str(number)).touch()
    monkeypatch.setattr(build, "MAX_FILES", 2)
    for name in ("large", "fifo", "many", "absent"):
        assert build.digest(str(tmp_path / name)) == ""
