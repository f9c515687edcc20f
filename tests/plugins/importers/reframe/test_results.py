from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.programs import Workplace

DATA = Path(__file__).parent / "data"  # what ReFrame 3.12.0, 4.0.5 and 4.10.4 wrote


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    return Workplace(tmp_path)


def runs(place: Workplace, trial: str = "old") -> list[dict[str, Any]]:
    done = place.seatrial("runs", "--trial", trial, "--limit", "0", "--format", "json")
    assert done.code == 0, done.said
    return list(msgspec.json.decode(done.out))


def show(place: Workplace, run: dict[str, Any]) -> dict[str, Any]:
    done = place.seatrial("show", f"old/{run['run_id']}", "--format", "json")
    assert done.code == 0, done.said
    found = msgspec.json.decode(done.out)
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("version", ["v3.12", "v4.0", "v4.10"])
def test_logs_and_reports_become_one_trial(place: Workplace, version: str) -> None:
    done = place.seatrial("import", "reframe", str(DATA / version), "-o", "old")
    assert done.code == 0, done.said
    assert "old: 4 results of 3 tests on generic, 1 passed, 3 did not" in done.out
    found = {each["case_name"]: each for each in runs(place)}
    assert {name: each["verdict"] for name, each in found.items()} == {
        "StreamTest{threads=1}@builtin": "performance",
        "StreamTest{threads=2}@builtin": "performance",
        "BadTest@builtin": "wrong answer",
        "HelloTest@builtin": "pass",
    }
    stream = found["StreamTest{threads=1}@builtin"]
    assert "triad=9.75" in stream["why"]
    assert stream["job_id"]
    triad = next(each for each in show(place, stream)["metrics"] if each["name"] == "triad")
    assert triad["unit"] == "MB/s"
    assert triad["better"] == "higher"
    shown = place.seatrial("show", f"old/{stream['run_id']}").out
    assert "triad   9.75 MB/s  higher    20 MB/s    -51.2 %" in shown
    history = place.seatrial("history", "triad", "--format", "csv")
    assert history.out.count("9.75") == 2


@pytest.mark.parametrize("version", ["v3.12", "v4.0", "v4.10"])
def test_a_log_alone(place: Workplace, version: str) -> None:
    log = next((DATA / version).glob("StreamTest*.log"))
    done = place.seatrial("import", "reframe", str(log), "-o", "old", "-m", "daint")
    assert done.code == 0, done.said
    found = runs(place)
    assert {each["verdict"] for each in found} == {"performance"}
    assert {each["machine"] for each in found} == {"daint"}


def test_a_log_is_imported_after_its_report(place: Workplace) -> None:
    place.seatrial("import", "reframe", str(DATA / "v4.10/report.json"), "-o", "old")
    again = place.seatrial("import", "reframe", str(DATA / "v4.10/StreamTest.log"), "-o", "more")
    assert again.code == 2
    assert "its results were all imported before (2 in old)" in again.err


def test_which_is_better(place: Workplace) -> None:
    log = DATA / "v4.10/StreamTest.log"
    place.seatrial("import", "reframe", str(log), "-o", "old", "--lower", "copy")
    (copy, triad) = show(place, runs(place)[0])["metrics"]
    assert (copy["better"], triad["better"]) == ("lower", "higher")


# ---- what is damaged, or of another format ------------------------------------------------


def cut_line(folder: Path) -> None:
    log = folder / "StreamTest.log"
    log.write_text(log.read_text()[:-60])


def cut_report(folder: Path) -> None:
    report = folder / "report.json"
    report.write_text(report.read_text()[:-500])


def other_json(folder: Path) -> None:
    (folder / "package.json").write_text('{"name": "web"}')


def other_log(folder: Path) -> None:
    (folder / "install.log").write_text("all is well\n")


def odd_case(folder: Path) -> None:
    report = msgspec.json.decode((folder / "report.json").read_bytes())
    report["runs"][0]["testcases"][0] = {"name": 7}
    (folder / "report.json").write_bytes(msgspec.json.encode(report))


@pytest.mark.parametrize(
    ("damage", "said", "left"),
    [
        (cut_line, "StreamTest.log:3", 4),
        (cut_report, "report.json", 4),
        (other_json, "is JSON, but no run report of ReFrame", 4),
        (other_log, "install.log:1", 4),
        (odd_case, "test case 1 is not as ReFrame writes it", 4),
    ],
)
def test_what_cannot_be_read_is_named(
    place: Workplace, damage: Callable[[Path], None], said: str, left: int
) -> None:
    shutil.copytree(DATA / "v4.10", place.folder / "rfm")
    damage(place.folder / "rfm")
    done = place.seatrial("import", "reframe", "rfm", "-o", "old")
    assert done.code == 3, done.said
    assert said in done.out
    assert len(runs(place)) == left


def test_several_systems(place: Workplace) -> None:
    folder = place.folder / "rfm"
    shutil.copytree(DATA / "v4.10", folder)
    log = (DATA / "v4.10/StreamTest.log").read_text()
    (folder / "other.log").write_text(log.replace("generic", "daint"))
    done = place.seatrial("import", "reframe", "rfm", "-o", "old")
    assert done.code == 2
    assert "several systems, generic (4), daint (2)" in done.err
    done = place.seatrial("import", "reframe", "rfm", "-o", "old", "-m", "daint")
    assert "old: 2 results of 1 test on daint" in done.out


@pytest.mark.parametrize(
    ("name", "text", "what"),
    [
        ("a.log", "", "no result of ReFrame could be imported"),
        ("a.log", "hello\n", "is no line of a performance log of ReFrame 3.x"),
        ("a.txt", "hello\n", "has no performance log"),
    ],
)
def test_nothing_can_be_imported(place: Workplace, name: str, text: str, what: str) -> None:
    (place.folder / "rfm").mkdir()
    (place.folder / "rfm" / name).write_text(text)
    done = place.seatrial("import", "reframe", "rfm", "-o", "old")
    assert done.code == 2
    assert what in done.err
