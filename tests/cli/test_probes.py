from __future__ import annotations

from pathlib import Path

from seatrial.model.suite import load
from tests.programs import Workplace

SUITES = Path(__file__).parents[2] / "suites"


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_the_probes_are_copied_and_can_be_run(place: Workplace) -> None:
    done = place.seatrial("probes")
    assert done.code == 0, done.said
    assert "seatrial run probes" in done.out
    assert files(place.folder / "probes") == files(SUITES / "probes")
    place.local(cores=2)
    listed = place.seatrial("list", "probes", "-m", "machine.yaml", "-k", "stream")
    assert listed.code == 0, listed.said
    assert "stream" in listed.out


def test_all_suites_are_copied_so_that_they_find_each_other(place: Workplace) -> None:
    done = place.seatrial("probes", "--all", "mine")
    assert done.code == 0, done.said
    assert "seatrial run mine/probes" in done.out
    suite = load([place.folder / "mine" / "placement"])
    suite.require_sound()
    assert len(suite.tests) == 4


def test_what_is_there_is_not_written_over(place: Workplace) -> None:
    (place.folder / "probes").mkdir()
    assert place.seatrial("probes").code == 0  # an empty folder is as good as none
    (place.folder / "probes" / "README.md").write_text("mine")
    done = place.seatrial("probes")
    assert done.code == 2
    assert "probes: is there already" in done.err
    assert "seatrial probes FOLDER" in done.err
    assert (place.folder / "probes" / "README.md").read_text() == "mine"


def test_a_folder_that_cannot_be_written_is_named(place: Workplace) -> None:
    (place.folder / "file").write_text("")
    done = place.seatrial("probes", "file/probes")
    assert done.code != 0
    assert "file/probes" in done.err
    assert "Traceback" not in done.said
