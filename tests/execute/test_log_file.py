"""What the driver and the sinks' process write to the trial's log files."""

from __future__ import annotations

import re
import shutil

import pytest

from seatrial.plugins.sinks.lifetime import holder, sink_lags
from tests.programs import Workplace, until


def messages(place: Workplace, of: str) -> list[tuple[str, str]]:
    """(level, module and message) of each message of a trial's log."""
    found = []
    for line in place.trial().log(of).read_text().splitlines():
        match = re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} ([A-Z]+) (seatrial\..*)", line)
        assert match, line
        found.append((match[1], match[2]))
    return found


def test_a_trial_that_goes_well_writes_no_log(place: Workplace) -> None:
    place.test("one")
    assert place.run("--name", "t").code == 0
    assert not place.trial().log("driver").exists()


@pytest.mark.parametrize("level", ["info", "debug"])
def test_the_driver_says_what_it_does_and_what_it_was_told(place: Workplace, level: str) -> None:
    place.env["SEATRIAL_LOG_LEVEL"] = level
    place.test("one")
    assert place.run("--name", "t").code == 0
    said = messages(place, "driver")
    done = [text for kind, text in said if kind == "INFO"]
    assert any("launches: Launch(" in text for text in done)
    waited = [text for kind, text in said if kind == "DEBUG"]
    if level == "debug":
        assert any("waiting" in text for text in waited)
        assert any("told JobEnd(" in text for text in waited)
    else:
        assert waited == []


def test_the_sinks_process_says_what_it_delivers(place: Workplace) -> None:
    place.local(sinks=[{"name": "file", "kind": "file", "path": str(place.folder / "out")}])
    place.test("one")
    line = ("--log-level", "debug", "run", "suite", "-m", str(place.machine), "--name", "t")
    assert place.seatrial(*line).code == 0
    until(lambda: bool(sink_lags(place.trial())) and not holder(place.trial()), "its end")
    said = messages(place, "sinks")
    assert any(kind == "DEBUG" and "file: " in text and "taken" in text for kind, text in said)


def test_a_log_that_cannot_be_written_ends_no_trial(place: Workplace) -> None:
    place.env["SEATRIAL_LOG_LEVEL"] = "debug"
    place.test("one")
    assert place.run("--name", "t", "--dry-run").code == 0
    log = place.trial().log("driver")
    log.parent.mkdir()
    log.symlink_to("/dev/full")
    done = place.resume()
    assert done.code == 0
    assert "log" not in done.err.lower()
    place.audit()


def test_a_drive_that_fails_leaves_its_traceback(place: Workplace) -> None:
    place.test("one")
    assert place.run("--name", "t", "--dry-run").code == 0
    runs = place.trial().path / "runs"
    shutil.rmtree(runs)
    runs.write_text("in the way")
    assert place.resume().code == 3
    log = place.trial().log("driver").read_text()
    assert "ERROR seatrial.execute.driver: the drive ends" in log
    assert "Traceback" in log
