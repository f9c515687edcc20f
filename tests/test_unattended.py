"""docs/how-to/unattended.md: its files, as they are there, are right and do what it says."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from seatrial.journal.events import RunJudged
from tests.gates import wait_for
from tests.programs import COMMAND, Workplace
from tests.waiting import LONG_S, until

PAGE = (Path(__file__).parents[1] / "docs/how-to/unattended.md").read_text()


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
    place.test("waits", wait_for(go))
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


CI = Path(__file__).parents[1] / "ci"


class Shell(NamedTuple):
    """How a script of a CI job ended."""

    code: int
    out: str


def ci_shell(place: Workplace, script: str, **variables: str) -> Shell:
    """Run a script of a job as its runner does: bash that ends at the first error."""
    words = {"SUITE": "suite", "REPEAT": "1", "BASELINE": "", "SELECT": "", "CI_TRIAL": "ci-7"}
    words |= {"SEATRIAL_MACHINE": str(place.machine), "SEATRIAL_TRIALS": str(place.trials)}
    words |= {"PATH": f"{COMMAND.parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", script],
        cwd=place.folder,
        env={**os.environ, **place.env, **words, **variables},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=LONG_S,
    )
    return Shell(done.returncode, done.stdout)


def cases_of(place: Workplace) -> dict[str | None, list[str]]:
    """The test cases of the JUnit file that a job kept, with what each says."""
    root = ET.parse(place.folder / "junit.xml").getroot()
    words = ("failure", "error", "skipped")
    return {
        case.get("name"): [one.tag for one in case if one.tag in words]
        for case in root.iter("testcase")
    }


def test_the_job_of_gitlab_does_what_it_says(place: Workplace) -> None:
    job = yaml.safe_load((CI / "gitlab-ci.yml").read_text())[".seatrial"]
    mine = yaml.safe_load(example("gitlab"))["acceptance"]
    assert mine["extends"] == ".seatrial"
    assert {*mine["variables"]} <= {*job["variables"], "SEATRIAL_MACHINE", "SEATRIAL_TRIALS"}
    script, after = "\n".join(job["script"]), "\n".join(job["after_script"])
    place.test("good")
    assert ci_shell(place, script, CI_TRIAL="before").code == 0
    done = ci_shell(place, script, BASELINE="before")
    assert (
        done.code in job["allow_failure"]["exit_codes"]
    )  # one run says nothing of better or worse
    done = ci_shell(place, after)
    assert done.code == 0, done.out
    assert cases_of(place) == {"good@plain": []}


def test_the_workflow_of_github_does_what_it_says(place: Workplace) -> None:
    job = yaml.safe_load((CI / "github-workflow.yml").read_text())["jobs"]["acceptance"]
    steps = {step.get("name"): step.get("run") for step in job["steps"]}
    place.test("good")
    unjudged = place.test(
        "unjudged", verify=[{"script": "check.sh", "codes": {"9": "node failure"}}]
    )
    (unjudged / "check.sh").write_text("exit 9\n")
    done = ci_shell(place, steps["Run the suite"], CI_TRIAL="warned")
    assert done.code == 0, done.out
    assert "::warning::the machine kept" in done.out
    place.test("bad", "exit 7")
    done = ci_shell(place, steps["Run the suite"])
    assert done.code == 1, done.out
    assert ci_shell(place, steps["Write JUnit"]).code == 0
    found = {"good@plain": [], "bad@plain": ["failure"], "unjudged@plain": ["error"]}
    assert cases_of(place) == found
    assert ci_shell(place, steps["Cancel what still runs"]).code == 0
    place.env["GITHUB_STEP_SUMMARY"] = str(place.folder / "summary.md")
    done = ci_shell(place, steps["Compare with the baseline"], BASELINE="ci-7")
    assert done.code == 0, done.out
    assert "::warning::too few" in done.out
