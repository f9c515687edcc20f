from __future__ import annotations

from pathlib import Path

import pytest

from tests.programs import Workplace


@pytest.fixture
def settled(place: Workplace) -> Workplace:
    """A user with settings."""
    place.env["HOME"] = str(place.folder)
    config = place.folder / ".config" / "seatrial" / "config.yaml"
    config.parent.mkdir(parents=True)
    config.write_text("trials: mine\nlog_level: debug\nmachine: machine.yaml\n")
    return place


def test_each_setting_tells_where_it_comes_from(settled: Workplace) -> None:
    settled.env["SEATRIAL_LOG_LEVEL"] = "error"
    settled.env["SEATRIAL_STORE"] = "postgresql://me:secret@db/site"
    done = settled.seatrial("--trials", "typed", "config", "--show-origin")
    words = done.out.split()
    assert done.code == 0, done.said
    found = {
        words[at]: (words[at + 1], words[at + 3])
        for at in range(len(words) - 3)
        if words[at + 2 : at + 3] == ["from"]
    }
    assert found == {
        "machine": ("machine.yaml", "~/.config/seatrial/config.yaml:3"),
        "trials": ("typed", "the"),
        "store": (found["store"][0], "$SEATRIAL_STORE"),
        "log_level": ("error", "$SEATRIAL_LOG_LEVEL"),
    }
    assert "secret" not in done.out


def test_a_script_gets_one_value(settled: Workplace) -> None:
    assert settled.seatrial("config", "trials").out == "mine\n"
    done = settled.seatrial("config", "organisation")
    assert (done.code, done.out) == (1, "\n")
    assert settled.seatrial("config", "colour").code == 2


def test_commands_follow_the_settings(settled: Workplace) -> None:
    settled.local()
    settled.test("t")
    done = settled.seatrial("run", "suite", "--name", "first")
    assert done.code == 0, done.said
    assert (settled.folder / "mine" / "first").is_dir()
    assert "--trials" not in done.out  # what to type next needs no option
    settled.env["SEATRIAL_TRIALS"] = "other"
    assert settled.seatrial("run", "suite", "--name", "second").code == 0
    assert (settled.folder / "other" / "second").is_dir()


def test_a_fault_in_the_settings_is_told_and_nothing_runs(settled: Workplace) -> None:
    (settled.folder / ".config/seatrial/config.yaml").write_text("trails: mine\n")
    done = settled.seatrial("trials")
    assert done.code == 2
    assert "config.yaml:1" in done.err and "trials" in done.err
    assert settled.seatrial("--help").code == 0


@pytest.mark.parametrize(
    ("shell", "check"), [("bash", "complete"), ("zsh", "compdef"), ("fish", "complete")]
)
def test_a_shell_gets_its_completion(place: Workplace, shell: str, check: str) -> None:
    done = place.seatrial("completion", shell)
    assert done.code == 0
    assert check in done.out and "_SEATRIAL_COMPLETE" in done.out


def test_bash_completes_with_it(place: Workplace, tmp_path: Path) -> None:
    import shutil
    import subprocess
    import sys

    script = tmp_path / "completion"
    script.write_text(place.seatrial("completion", "bash").out)
    seatrial = Path(sys.executable).with_name("seatrial")
    assert shutil.which("bash")
    ask = (
        f". {script}; COMP_WORDS=(seatrial com) COMP_CWORD=1; _seatrial_completion {seatrial};"
        ' echo "${COMPREPLY[@]}"'
    )
    done = subprocess.run(["bash", "-c", ask], capture_output=True, text=True, check=True)
    assert {"compare", "compat", "completion"} <= set(done.stdout.split())
