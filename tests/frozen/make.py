"""Make the fixtures of a version, by its own commands:

    .venv/bin/python -m tests.frozen.make FOLDER

FOLDER gets a suite, a machine, settings (``home``), and a folder of trials with one that has ended,
one whose driver was killed while runs were on their way, those of a plan with people's acts, a
rehearsed one, notes, a store; and a report with two signatures.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import yaml

from tests.waiting import until

COMMAND = Path(sys.executable).with_name("seatrial")

MACHINE = """\
# machines/frost.yaml
machine: frost
about: Two cores, for fixtures
nodes: [{names: frost, cores: 2, memory: 4GiB}]
toolchains:
  gcc: {cc: gcc}
known_failures:
  - {tests: [known], verdicts: [failed], until: 2030-01-01, reason: the vendor knows it}
"""
RATE = """\
sleep 0.2
cat $BUILD/mode
echo rate $((n * blocks))
echo time 0.$n > times
"""
TESTS = {
    "rate": {
        "app": "awk",
        "about": "Figures with a reference",
        "parameters": {"n": [100, 200], "mode": ["fast", "slow"]},
        "defaults": {"blocks": 4},
        "build": {"script": 'echo "$mode" > mode'},
        "run": {
            "walltime": "2s",
            "script": RATE,
        },
        "verify": [{"contains": "rate"}, {"value": r"rate (\S+)", "at_least": 1}],
        "metrics": {
            "rate": {"find": r"rate (\S+)", "unit": "MB/s", "better": "higher"},
            "time": {"find": r"time (\S+)", "in": "times", "unit": "s", "better": "lower"},
        },
    },
    "fails": {"app": "b", "run": {"script": "echo licence server down >&2; exit 3"}},
    "wrong": {"app": "b", "run": {"script": "echo 41"}, "verify": [{"contains": "42"}]},
    "known": {"app": "b", "run": {"script": "exit 4"}},
    "late": {"app": "b", "run": {"script": "exec sleep 30", "walltime": "1s"}},
    "gate": {
        "app": "b",
        "parameters": {"v": [1, 2, 3, 4]},
        "run": {"script": "[ -e $GATE ] || sleep 3; echo v $v", "walltime": "2m"},
        "environment": {"GATE": "/nonexistent"},
    },
}
REFERENCES = """\
references:
  - {test: rate, metric: rate, value: 400, unit: MB/s, lower: -0.1}
"""
PLAN = {
    "plan": "lab",
    "about": "Acceptance of the fixtures' machine",
    "machine": "machines/frost.yaml",
    "suites": ["suite"],
    "components": [
        {"component": "vendor", "about": "What the vendor shows"},
        {
            "component": "functionality",
            "repeat": 2,
            "tests": ["rate", "wrong"],
            "criteria": [
                {"criterion": "pass_rate", "at_least": "100%"},
                {"criterion": "correct_answers", "at_least": "100%"},
            ],
        },
        {
            "component": "stability",
            "kind": "sustained",
            "duration": "3s",
            "tests": {"rate": {"copies": 1}},
            "settings": {"n": 100, "mode": "fast"},
            "criteria": [{"criterion": "accepted_runs", "at_least": 2}],
            "watch": {"short_for": 0},
        },
    ],
    "rehearsal": {"tests": {"*": {"elapsed": {"mean": "400ms", "sd": "20ms"}}}},
}
SETTINGS = "trials: trials\nname: A. Tester\norganisation: The Centre\n"


class Made:
    """The fixtures, being made."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.env = {
            "PATH": f"{COMMAND.parent}:/usr/bin:/bin",
            "HOME": str(folder / "home"),
            "TZ": "UTC",
            "LC_ALL": "C.UTF-8",
        }

    def write(self) -> None:
        for name, text in {
            "machines/frost.yaml": MACHINE,
            "machines/frost/references.yaml": REFERENCES,
            "home/.config/seatrial/config.yaml": SETTINGS,
            "burn-in.txt": "48 hours, no error\n",
        }.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        for name, about in TESTS.items():
            path = self.folder / "suite" / name / "test.yaml"
            path.parent.mkdir(parents=True)
            path.write_text(yaml.safe_dump(about, sort_keys=False))
        document = (self.folder / "burn-in.txt").read_bytes()
        evidence = {
            "document": "burn-in.txt",
            "sha256": hashlib.sha256(document).hexdigest(),
            "signed_by": "A. Vendor",
            "signed_on": "2026-05-01",
        }
        PLAN["components"][0]["evidence"] = [evidence]  # type: ignore[index]
        (self.folder / "plan.yaml").write_text(yaml.safe_dump(PLAN, sort_keys=False))

    def call(self, *words: str, codes: tuple[int, ...] = (0,)) -> str:
        line = [*words] if words[0] != "seatrial" else [str(COMMAND), *words[1:]]
        done = subprocess.run(
            line, cwd=self.folder, env=self.env, capture_output=True, text=True, timeout=120
        )
        assert done.returncode in codes, (words, done.returncode, done.stdout, done.stderr)
        return done.stdout

    def run(self, *words: str) -> None:
        self.call("seatrial", "run", "suite", "-m", "machines/frost.yaml", *words, codes=(0, 1))

    def ended(self) -> None:
        self.run("--name", "ended", "--repeat", "3", "-k", "not gate")
        journal = (self.folder / "trials/ended/journal.jsonl").read_text().splitlines()
        judged = [json.loads(line) for line in journal if '"check_end"' in line]
        run = next(each["run_id"] for each in judged if each.get("app") == "awk")
        self.call(
            "seatrial",
            "judge",
            run,
            "--exclude",
            "--cause",
            "F2",
            "--comment",
            "beside a copy",
            "--by",
            "A",
            "--by",
            "B",
        )
        self.call("seatrial", "note", "new firmware")

    def running(self) -> None:
        """Kill a driver while two runs are on their way and two wait."""
        line = [str(COMMAND), "run", "suite", "-m", "machines/frost.yaml", "--name", "running"]
        with subprocess.Popen(
            [*line, "-k", "gate or rate"],
            cwd=self.folder,
            env=self.env,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as driver:
            journal = self.folder / "trials/running/journal.jsonl"
            until(
                lambda: journal.exists() and journal.read_text().count('"test":"gate"') > 6,
                "runs of gate are on their way",
            )
            driver.send_signal(signal.SIGKILL)
        subprocess.run(["pkill", "-f", f"{self.folder}/trials/running"], check=False)

    def plan(self) -> None:
        self.call("seatrial", "rehearse", "plan.yaml", codes=(0, 1))
        self.call("seatrial", "accept", "plan.yaml", "-q", codes=(0, 1))
        report = ("lab.html", "--decision", "reservations", "--reservation", "The wrong one by May")
        self.call("seatrial", "report", "plan.yaml", "-o", *report, codes=(0, 1))
        signers = []
        for side in ("vendor", "site"):
            self.call("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"{side}-key")
            self.call(
                "seatrial", "report", "sign", "lab.html", "--key", f"{side}-key", "--as", side
            )
            key = " ".join((self.folder / f"{side}-key.pub").read_text().split()[:2])
            signers.append(f'{side} namespaces="seatrial-report" {key}\n')
            (self.folder / f"{side}-key").unlink()
        (self.folder / "allowed_signers").write_text("".join(signers))


def main() -> None:
    os.umask(0o022)
    made = Made(Path(sys.argv[1]).absolute())
    made.write()
    made.ended()
    made.running()
    made.plan()
    made.call("seatrial", "runs")  # makes the store


if __name__ == "__main__":
    main()
