"""`--alert`: a command that is told the end of a trial, and its alerts."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from seatrial.journal.events import ScriptStarted
from tests.programs import Workplace


@pytest.fixture
def said(place: Workplace) -> Path:
    return place.folder / "said"


def command(said: Path) -> str:
    return f'echo "$ALERT_KIND|$TRIAL|$MACHINE|$EXIT_CODE|$ALERT" >> {said}'


def test_the_end_is_told_with_the_counts_and_the_exit_code(place: Workplace, said: Path) -> None:
    place.test("good")
    place.test("bad", "exit 7")
    assert place.run("--name", "t", "--alert", command(said)).code == 1
    assert said.read_text() == "end|t|here|1|t: 1 passed, 1 failed\n"
    assert place.seatrial("resume", "t", "--alert", command(said)).code == 1
    assert len(said.read_text().splitlines()) == 1, "nothing ended"


def test_who_is_stopped_or_cannot_go_on_says_so(place: Workplace, said: Path) -> None:
    place.test("long", "sleep 600")
    with place.start_run("--name", "t", "--alert", command(said)) as driving:
        driving.until(lambda: len(place.ran()) == 1, "it runs")
        second = place.seatrial("resume", "t", "--alert", command(said))
        assert second.code == 3 and not said.exists(), "another drives it: no news"
        driving.send(signal.SIGTERM)
        assert driving.end().code == 3
    assert "end|t|here|3|t: its driver was told to stop" in said.read_text()
    place.seatrial("cancel", "t")
    assert place.count(ScriptStarted) <= 1


def test_the_settings_of_a_user_name_it(place: Workplace, said: Path) -> None:
    folder = place.folder / ".config/seatrial"
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(f"alert: |\n  {command(said)}\n")
    place.env["HOME"] = str(place.folder)
    place.test("good")
    assert place.run("--name", "t").code == 0
    assert said.read_text() == "end|t|here|0|t: 1 passed\n"


def test_a_command_that_fails_changes_nothing(place: Workplace) -> None:
    place.test("good")
    done = place.run("--name", "t", "--alert", "echo broken >&2; exit 3")
    assert done.code == 0 and "the command of --alert fails" in done.err and "broken" in done.err
