"""docs/unattended.md: its files, as they are there, are right and do what it says."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
import yaml

from seatrial.journal.events import RunJudged
from tests.programs import COMMAND, Workplace
from tests.waiting import until

PAGE = (Path(__file__).parents[1] / "docs/unattended.md").read_text()


def example(language: str) -> str:
    (found,) = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.M | re.S)
    return str(found)


def cron_line(place: Workplace, number: int) -> str:
    """A command of the crontab, for this folder and this seatrial."""
    lines = [line for line in example("crontab").splitlines() if not line.startswith("#")]
    command = re.sub(r"^(@reboot|\S+ \S+ \S+ \S+ \S+)\s+", "", lines[number])
    assert command.startswith("cd /scratch/acceptance && ")
    command = command.replace("/scratch/acceptance", str(place.folder))
    return command.replace("$HOME/bin/seatrial", str(COMMAND))


def begin(place: Workplace, number: int = 1) -> subprocess.Popen[bytes]:
    """Run a line as cron does: by sh, with a short PATH."""
    env = {"PATH": "/usr/bin:/bin", "HOME": str(place.folder), **place.env}
    return subprocess.Popen(["/bin/sh", "-c", cron_line(place, number)], env=env)


def seatrial_below(shell: subprocess.Popen[bytes]) -> int:
    """The driver's process, below the shell and flock."""
    line = ["ps", "-ww", "-eo", "pid,ppid,args"]
    found = subprocess.run(line, capture_output=True, text=True).stdout
    rows = [line.split(None, 2) for line in found.splitlines()[1:]]
    below = {shell.pid}
    for _ in range(3):
        below |= {int(pid) for pid, parent, _ in rows if int(parent) in below}
    drivers = [int(pid) for pid, _, args in rows if int(pid) in below and " accept " in args]
    return max(drivers, default=0)


def test_the_line_of_cron_twice_at_once_and_after_a_kill(place: Workplace) -> None:
    if shutil.which("flock") is None:
        pytest.skip("there is no flock")
    (place.folder / "plans").mkdir()
    plan: dict[str, object] = {"plan": "frost", "machine": str(place.machine)}
    plan |= {"suites": [str(place.suite)], "components": [{"component": "all", "repeat": 3}]}
    (place.folder / "plans/frost.yaml").write_text(yaml.safe_dump(plan))
    go = place.folder / "go"
    place.test("waits", f"until [ -e {go} ]; do sleep 0.05; done")
    first = begin(place, 0)
    until(lambda: place.ran(), "a run")
    assert begin(place).wait(30) == 1, "flock ends at once"
    again = place.seatrial("accept", "plans/frost.yaml", "-q")
    assert again.code == 3, "without flock the driver's own lock refuses"
    os.kill(seatrial_below(first), signal.SIGKILL)
    assert first.wait(30) != 0
    second = begin(place)
    assert begin(place, 2).wait(60) == 0, "the dead man's alarm, with a driver that is alive"
    go.touch()
    assert second.wait(60) == 0
    assert len(place.events("frost-all", RunJudged)) == 3
    place.audit("frost-all")
    ran = len(place.ran())
    silent = place.trial("frost-all").heartbeat
    os.utime(silent, (0, 0))
    assert begin(place, 2).wait(60) == 0, "a complete trial should not run"
    assert begin(place).wait(60) == 0 and len(place.ran()) == ran == 3


def test_the_unit_is_right(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("there is no systemd-analyze")
    unit = example("ini")
    assert "Restart=on-abnormal" in unit and "KillMode=process" in unit
    file = tmp_path / "seatrial-acceptance.service"
    file.write_text(unit.replace("%h/bin/seatrial", str(COMMAND)))
    env = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)}
    line = ["systemd-analyze", "--user", "verify", str(file)]
    done = subprocess.run(line, env=env, capture_output=True, text=True, timeout=60)
    about = [line for line in done.stderr.splitlines() if file.name in line]
    assert (done.returncode, about) == (0, []), done.stderr
    file.write_text(file.read_text().replace("Restart=on-abnormal", "Restart=perhaps"))
    broken = subprocess.run(line, env=env, capture_output=True, text=True, timeout=60)
    assert "perhaps" in broken.stderr, "the check would find a fault"


def test_the_job_of_gitlab_is_yaml_and_its_commands_are_there(place: Workplace) -> None:
    job = yaml.safe_load(example("gitlab"))["acceptance"]
    for line in (*job["script"], *job["after_script"]):
        words = line.replace('"', "").split()
        assert words[0] == "seatrial"
        told = place.seatrial(words[1], "--help").out
        assert all(word in told for word in words if word.startswith("--"))
