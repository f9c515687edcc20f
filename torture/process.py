"""Attacks on the processes and the disk of a trial on this host: kills, stops, a full disk."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path
from random import Random

from tests.programs import LONG_S, until

from torture.attack import Outcome, end_jobs, moment, outcome, resume_to_end, workplace

LONGEST_S = 3.0
STOP_S = 3.0


def kill(folder: Path, number: int, chance: Random, _kind: str) -> Outcome:
    """Kill the driver three times at random moments, and resume it each time."""
    with workplace(folder, number) as place:
        place.local(cores=4)
        first = ("run", "suite", "-m", str(place.machine), "--name", "t", "--jobs", "4")
        for words in (first, ("resume", "t"), ("resume", "t")):
            with place.start(*words) as driving:
                until(lambda: not driving.alive or place.trial().journal.exists(), "the trial")
                moment(chance, LONGEST_S)
                driving.kill()
        return outcome(place, resume_to_end(place))


def stop(folder: Path, number: int, chance: Random, _kind: str) -> Outcome:
    """Stop the driver for longer than the walltime of a run, and let it go on."""
    with workplace(folder, number) as place:
        place.local(cores=4)
        for test in place.suite.glob("*/test.yaml"):
            test.write_text(test.read_text().replace("walltime: 2m", "walltime: 2s"))
        with place.start_run("--name", "t", "--jobs", "4") as driving:
            driving.until(lambda: "runs on" in driving.said, "the trial", timeout=2 * LONG_S)
            moment(chance, LONGEST_S)
            if driving.alive:
                driving.send(signal.SIGSTOP)
                time.sleep(STOP_S)
                driving.send(signal.SIGCONT)
            done = driving.end(300)
        return outcome(place, done)


def full(folder: Path, number: int, chance: Random, _kind: str) -> Outcome:
    """Fill the file system of the trial at a random moment, with bytes or with files; free it, and
    resume the trial."""
    with workplace(folder, number) as place:
        place.local(cores=4)
        place.env["SEATRIAL_STORE"] = str(place.folder / "store.sqlite")
        place.trials.mkdir()
        limit = chance.choice(["size=2m", "nr_inodes=400"])
        mount = ["mount", "-t", "tmpfs", "-o", limit, "tmpfs", str(place.trials)]
        subprocess.run(mount, check=True)
        try:
            with place.start_run("--name", "t", "--jobs", "4") as driving:
                driving.until(lambda: "runs on" in driving.said, "the trial", timeout=2 * LONG_S)
                moment(chance, LONGEST_S)
                _fill(place.trials, limit)
                driving.end(300)
            end_jobs(place)
            free = ["mount", "-o", "remount,size=100m,nr_inodes=0", str(place.trials)]
            subprocess.run(free, check=True)
            return outcome(place, resume_to_end(place))
        finally:
            subprocess.run(["umount", "--lazy", str(place.trials)], check=True)


def _fill(folder: Path, limit: str) -> None:
    try:
        if limit.startswith("size"):
            with (folder / "filler").open("wb") as file:
                while True:
                    file.write(b"x" * 4096)
                    file.flush()
        for number in range(1000):
            (folder / f"filler{number}").touch()
    except OSError:
        return
