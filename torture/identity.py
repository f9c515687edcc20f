"""Attacks on what tells one from another: trials that are resumed by another path, drivers in jobs
that were requeued, locks that hosts do not share."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import yaml
from tests.execute.test_unshared_locks import SHIM
from tests.programs import LONG_S, Workplace, until
from tests.slurm.cluster import ClusterOptions, SlurmCluster

from seatrial.journal.journal import read
from torture.attack import Outcome, end_jobs, moment, outcome, resume_to_end, workplace

LONGEST_S = 3.0
NODES = 4
WAYS = ("link", "mount", "moved")

# Submits, and keeps the answer back for up to two seconds: a driver that is killed may not see it.
_SLOW = """#!/bin/bash
said=$({real} "$@"); code=$?
sleep $((RANDOM % 2)).$((RANDOM % 10))
echo "$said"
exit $code
"""
_OF_A_REQUEUED_JOB = {
    "SLURM_RESTART_COUNT": "2",
    "SLURM_JOB_ID": "4711",
    "SLURM_ARRAY_JOB_ID": "4711",
    "SLURM_ARRAY_TASK_ID": "3",
    "SLURM_MEM_PER_NODE": "1",
    "SLURM_STEP_ID": "0",
}


def moved_local(folder: Path, number: int, chance: Random, _kind: str) -> Outcome:
    """Kill the driver at a random moment, and resume its trial by another path, on this host."""
    how = chance.choice(WAYS)
    with workplace(folder, number) as place, _mounted(place, how):
        place.local(cores=4)
        return _elsewhere(place, chance, how)


def moved_slurm(folder: Path, number: int, chance: Random, _kind: str) -> Outcome:
    """The same on an emulated cluster, whose sbatch answers late. Its nodes, which have mounts of
    their own, see both paths from the start."""
    how = chance.choice(WAYS)
    with (
        workplace(folder, number) as place,
        _mounted(place, how),
        SlurmCluster(place.folder / "cluster", ClusterOptions(nodes=NODES)) as cluster,
    ):
        place.slurm(cluster, {"lost_after": "2s", "visible_after": "1s"})
        _slow_sbatch(place)
        return _elsewhere(place, chance, how)


@contextmanager
def _mounted(place: Workplace, how: str) -> Iterator[None]:
    """Have the trials at a second place, where that is the way."""
    if how != "mount":
        yield
        return
    other = place.folder / how
    for path in (place.trials, other):
        path.mkdir()
    subprocess.run(["mount", "--bind", place.trials, other], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(other)], check=True)


def _elsewhere(place: Workplace, chance: Random, how: str) -> Outcome:
    place.env["SEATRIAL_STORE"] = str(place.folder / "store.sqlite")
    with place.start_run("--name", "t") as driving:
        until(lambda: not driving.alive or place.trial().journal.exists(), "the trial")
        moment(chance, LONGEST_S)
        driving.kill()
    other = place.folder / how
    if how == "link":
        other.symlink_to(place.trials)
    elif how == "moved":
        place.trials.rename(other)
    place.trials = other
    place.env["SEATRIAL_TRIALS"] = str(other)
    return outcome(place, resume_to_end(place))


def _slow_sbatch(place: Workplace) -> None:
    tools = place.folder / "tools"
    tools.mkdir()
    sbatch = tools / "sbatch"
    path = place.env.get("PATH", os.environ["PATH"])
    sbatch.write_text(_SLOW.format(real=shutil.which("sbatch", path=path)))
    sbatch.chmod(0o755)
    place.env["PATH"] = f"{tools}:{path}"


def requeued(folder: Path, number: int, chance: Random, _kind: str) -> Outcome:
    """The driver has the variables of a job that was requeued. It is killed at a random moment,
    and a person submits what it had submitted once more. Runs that were done twice are false."""
    with workplace(folder, number) as place:
        test = place.suite / "well" / "test.yaml"
        about = yaml.safe_load(test.read_text())
        about["run"]["script"] = f'echo "$SEATRIAL_RUN" >> {place.log}\n{about["run"]["script"]}'
        test.write_text(yaml.safe_dump(about))
        with SlurmCluster(place.folder / "cluster", ClusterOptions(nodes=NODES)) as cluster:
            place.slurm(cluster, {"lost_after": "2s", "visible_after": "1s"})
            place.env |= _OF_A_REQUEUED_JOB
            with place.start_run("--name", "t") as driving:
                until(lambda: _submitted(place) or not driving.alive, "a submission")
                moment(chance, LONGEST_S)
                if chance.random() < 0.5:
                    driving.kill()
                for script in _submitted(place):
                    again = ["bash", str(script)]
                    subprocess.run(again, env={**os.environ, **place.env}, check=False)
                if driving.alive:
                    driving.end(300)
            found = outcome(place, resume_to_end(place))
        doubled = sum(times > 1 for times in Counter(place.ran()).values())
        return found._replace(false_verdicts=found.false_verdicts + doubled)


def _submitted(place: Workplace) -> list[Path]:
    return list(place.trial().submissions.glob("*/submit.sh"))


def unshared(folder: Path, number: int, chance: Random, _kind: str) -> Outcome:
    """A second driver, which sees no lock, takes the trial at a random moment; the first one may be
    stopped meanwhile. A journal with a damaged line counts as one that cannot go on."""
    with workplace(folder, number) as place:
        place.local(cores=4)
        (place.folder / "shim.c").write_text(SHIM)
        line = ["gcc", "-shared", "-fPIC", "-o", "shim.so", "shim.c"]
        subprocess.run(line, cwd=place.folder, check=True)
        place.fresh = True
        place.env["LD_PRELOAD"] = str(place.folder / "shim.so")
        with place.start_run("--name", "t", "--jobs", "4") as first:
            first.until(lambda: "runs on" in first.said, "the trial", timeout=2 * LONG_S)
            moment(chance, LONGEST_S)
            stopped = first.alive and chance.random() < 0.5
            if stopped:
                first.send(signal.SIGSTOP)
            with place.start("resume", "t", "--host-is-gone") as second:
                moment(chance, LONGEST_S)
                if stopped:
                    first.send(signal.SIGCONT)
                second.end(300)
            first.end(60)
        end_jobs(place)
        found = outcome(place, resume_to_end(place))
        reading = read(place.trial().journal)
        list(reading)
        return found._replace(stuck=found.stuck + (reading.damaged > 0))
