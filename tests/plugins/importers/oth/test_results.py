from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from seatrial.model.codes import code_of
from tests.programs import Workplace

DAY_S = 86_400
EVENTS = {
    "110_logging_start": 0,
    "120_build_start": 1,
    "130_build_end": 31,
    "140_submit_start": 32,
    "150_submit_end": 33,
    "160_job_queued": 34,
    "170_binary_execute_start": 60,
    "180_binary_execute_end": 360.5,
    "190_check_start": 361,
    "200_check_end": 363,
}
VALUES = {"130_build_end": "0", "150_submit_end": "0", "160_job_queued": "4711"}
LAUNCH = 1_612_137_600  # 2021-02-01 00:00 UTC
EST_S = -5 * 3600
HEAD = "# Start Time Launch ID\n"


class Harness:
    """The folder of the applications of an OLCF Test Harness in New York."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def event(
        self, test: str, launch: float, name: str, value: str, at: float = 0, **members: str
    ) -> Path:
        """Write an event as status_file.py does."""
        number = f"{launch:.2f}"
        file = self.root / test / "Status" / number / f"Event_{name}.txt"
        file.parent.mkdir(parents=True, exist_ok=True)
        moment = time.gmtime(launch + at + EST_S)
        fraction = f"{launch + at:.6f}".partition(".")[2]
        stamp = f"{time.strftime('%Y-%m-%dT%H:%M:%S', moment)}.{fraction}"
        known = {"rgt_system_log_tag": "accept", "machine": "frontier", "test_id": number}
        known |= {"event_name": name[4:], "check_alias": "[NO_VALUE]", **members}
        fields = "".join(f"\t{key}={each}" for key, each in known.items())
        file.write_text(f"{stamp}\t{value}{fields}\n")
        return file

    def run(self, test: str, launch: float, check: str = "0", **members: str) -> Path:
        """Write a run from its launch to the end of its check; return its archive."""
        for name, at in EVENTS.items():
            value = check if name == "200_check_end" else VALUES.get(name, "[NO_VALUE]")
            self.event(test, launch, name, value, at, **members)
        return self.archive(test, launch)

    def archive(self, test: str, launch: float, **files: str) -> Path:
        folder = self.root / test / "Run_Archive" / f"{launch:.2f}"
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / f"{name}.txt").write_text(text)
        return folder


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    return Harness(tmp_path / "applications")


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    return Workplace(tmp_path)


def runs(place: Workplace, trial: str = "old") -> dict[str, dict[str, Any]]:
    """Return the runs of a trial by the ends of their directories, or their job ids."""
    done = place.seatrial("runs", "--trial", trial, "--limit", "0", "--format", "json")
    assert done.code == 0, done.said
    return {
        each["path"].rpartition("/")[2] or each["why"]: each
        for each in msgspec.json.decode(done.out)
    }


def test_results_become_a_trial_that_commands_know(place: Workplace, harness: Harness) -> None:
    for number in range(6):
        launch = LAUNCH + number * DAY_S
        archive = harness.run("gups/large", launch)
        (archive / "metrics.txt").write_text(f"# GUPS\nrate = {12 + number / 10}\nnote = text\n")
    harness.run("gups/large", LAUNCH + 7 * DAY_S, "2", check_alias="RESIDUAL")
    harness.archive("gups/large", LAUNCH + 7 * DAY_S, output_check="residual 0.3\nis too large\n\n")
    (harness.root / "gups/large/Status/latest").symlink_to(f"{LAUNCH:.2f}")

    done = place.seatrial("import", "oth-results", "applications", "-o", "old")

    assert done.code == 0, done.said
    assert "old: 7 results of 1 test on frontier, 6 passed, 1 did not" in done.out
    found = runs(place)
    first = found[f"{LAUNCH:.2f}"]
    assert first["test"] == "gups/large"
    assert first["created"] == "2021-02-01T00:00:00.000000Z"  # its zone is not that of this host
    assert first["elapsed"] == 300.5
    assert first["job_id"] == "4711"
    wrong = found[f"{LAUNCH + 7 * DAY_S:.2f}"]
    assert wrong["verdict"] == "wrong answer"
    assert wrong["why"].startswith("is too large (")
    assert wrong["cause"] == "RESIDUAL"
    trials = place.seatrial("trials").out
    assert "imported" in trials
    rate = place.seatrial("history", "rate", "--format", "csv").out
    assert rate.count("gups/large") == 6
    assert "12.5" in rate
    build = place.seatrial("history", "build_time", "--trial", "old", "--format", "csv").out
    assert ",30" in build
    done = place.seatrial("report", "old", "-o", "report.html")
    assert done.code == 0, done.said
    text = (place.folder / "report.html").read_text()
    assert "The runs of this trial were made with OLCF Test Harness" in text
    sides = ("old:until=2021-02-03", "old:since=2021-02-03")
    assert "rate" in place.seatrial("compare", *sides).out


def test_nothing_of_it_runs(place: Workplace, harness: Harness) -> None:
    harness.run("a/t", LAUNCH)
    place.seatrial("import", "oth-results", "applications", "-o", "old")
    for command in (("resume", "old"), ("judge", "old")):
        done = place.seatrial(*command)
        assert done.code != 0
        assert "OLCF Test Harness" in done.err


@pytest.mark.parametrize(
    ("check", "verdict"),
    [
        ("0", 0),
        ("1", 1),
        ("2", 2),
        ("5", 5),
        ("9", 9),
        ("21", 21),
        ("23", 23),
        ("127", 42),  # of a script that is missing: no result
        ("31", 42),  # a number that Seatrial has for something else
        ("[NO_VALUE]", 39),
    ],
)
def test_codes(place: Workplace, harness: Harness, check: str, verdict: int) -> None:
    harness.run("a/t", LAUNCH, check)
    done = place.seatrial("import", "oth-results", "applications", "-o", "old")
    assert done.code == 0, done.said
    (run,) = runs(place).values()
    assert run["verdict"] == code_of(verdict).name


def test_builds_and_submissions_that_failed(place: Workplace, harness: Harness) -> None:
    harness.event("a/t", LAUNCH, "110_logging_start", "[NO_VALUE]")
    harness.event("a/t", LAUNCH, "130_build_end", "2", 40)
    harness.event("a/u", LAUNCH + 1, "110_logging_start", "[NO_VALUE]")
    harness.event("a/u", LAUNCH + 1, "150_submit_end", "1", 40)
    done = place.seatrial("import", "oth-results", "applications", "-o", "old")
    assert done.code == 0, done.said
    verdicts = {each["test"]: each["verdict"] for each in runs(place).values()}
    assert verdicts == {"a/t": "build failed", "a/u": "launch failed"}


def test_what_nodes_said(place: Workplace, harness: Harness) -> None:
    harness.run("a/t", LAUNCH)
    lines = "n001 OK\nn002 PERF-FAIL 12 GB/s\nn003 SUCCESS\nn004 PERHAPS\n\n# n005 OK\n"
    harness.archive("a/t", LAUNCH, nodecheck=lines)
    done = place.seatrial("import", "oth-results", "applications", "-o", "old")
    assert re.findall(r"nodecheck\.txt:(\d+)", done.out) == ["4"]
    (run,) = runs(place).values()
    assert run["nodes"] == "n[001-003]"
    figures = place.seatrial("show", f"old/{run['run_id']}").out
    assert "failed_node{node=n002}" in figures


# ---- what is damaged ----------------------------------------------------------------------


def test_what_is_half_written_is_named_and_the_rest_comes(
    place: Workplace, harness: Harness
) -> None:
    harness.run("a/t", LAUNCH)
    harness.archive("a/t", LAUNCH, metrics="rate = 1\nspeed = 1.2.3\nrate = 2\nbuild_time = 9\n")
    cut = harness.event("a/t", LAUNCH + 100, "110_logging_start", "[NO_VALUE]")
    cut.write_text("")
    (cut.parent / "Event_gpu_health.txt").write_text("2021-02-01T00:00:00\t1\n")
    lost = harness.event("a/t", LAUNCH + 200, "160_job_queued", "12")
    lost.rename(lost.with_name(f"partial.{lost.name}"))
    harness.event("a/t", LAUNCH + 200, "110_logging_start", "[NO_VALUE]")
    harness.event("a/t", time.time() - 100, "110_logging_start", "[NO_VALUE]")
    harness.archive("a/t", LAUNCH + 300)
    row = "2021-02-01T00:06:40.5 accept/me@2021 1612138000.5 1/1 99 0 0 5\n"
    table = harness.root / "a/t/Status/rgt_status.txt"
    table.write_text(f"{HEAD}{row}2021-02-01T00:06:40.5 accept/m\n")

    done = place.seatrial("import", "oth-results", "applications", "-o", "old")

    assert done.code == 3, done.said
    notes = (place.folder / "trials/old/import.md").read_text()
    for place_of in (
        f"Status/{LAUNCH + 100:.2f}/Event_110_logging_start.txt",
        f"Status/{LAUNCH + 200:.2f}/partial.Event_160_job_queued.txt",
        f"Run_Archive/{LAUNCH + 300:.2f}\n",
        f"Status/{LAUNCH + 100:.2f}/Event_gpu_health.txt\n",
        "is an event of the test's own: left out",
        "metrics.txt:2\n",
        "metrics.txt:4\n",
        "rgt_status.txt:3\n",
        "it may run: left out",
    ):
        assert place_of in notes
    assert "is there again: the last one counts, as with the harness | no, a remark | 1 |" in notes
    assert "Z,2.0," in place.seatrial("history", "rate", "--format", "csv").out
    found = {each["verdict"]: each for each in runs(place).values()}
    assert set(found) == {"pass", "lost", "performance"}
    assert found["performance"]["created"].startswith("2021-02-01T00:06:40")


def test_results_that_are_there_already(place: Workplace, harness: Harness) -> None:
    harness.run("a/t", LAUNCH)
    first = place.seatrial("import", "oth-results", "applications", "-o", "old")
    again = place.seatrial("import", "oth-results", "applications", "-o", "again")
    harness.run("a/t", LAUNCH + 100)
    more = place.seatrial("import", "oth-results", "applications", "-o", "more")
    assert first.code == 0, first.said
    assert again.code == 2
    assert "its results were all imported before (1 in old)" in again.err
    assert not (place.folder / "trials/again").exists()
    assert "more: 1 result of 1 test" in more.out
    assert "1 result left out, as old has them" in more.out


def test_a_copy_of_the_tree_beside_it(place: Workplace, harness: Harness) -> None:
    harness.run("a/t", LAUNCH)
    Harness(harness.root / "copy").run("a/t", LAUNCH)
    Harness(harness.root / "other").run("a/t", LAUNCH, "1")
    done = place.seatrial("import", "oth-results", "applications", "-o", "old")
    assert "old: 1 result" in done.out
    assert "the result is there twice; one was imported" in done.out
    assert "the result is there twice and differs; the first was imported" in done.out


def test_several_machines_and_tags(place: Workplace, harness: Harness) -> None:
    harness.run("a/t", LAUNCH)
    harness.run("a/t", LAUNCH + 100, machine="summit", rgt_system_log_tag="nightly-1")
    harness.run("a/t", LAUNCH + 200, machine="summit")
    both = place.seatrial("import", "oth-results", "applications", "-o", "old")
    assert both.code == 2
    assert "several machines, summit (2), frontier (1)" in both.err
    options = ("-m", "summit", "--tag", "nightly-*")
    one = place.seatrial("import", "oth-results", "applications", "-o", "old", *options)
    assert "old: 1 result of 1 test on summit" in one.out


def test_other_folders(place: Workplace, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = place.seatrial("import", "oth-results", "empty", "-o", "old")
    assert done.code == 2
    assert "has no test with a folder Status or Run_Archive" in done.err
