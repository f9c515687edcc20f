"""Enter a running compat job from outside: which command does it, and who may.

    job = find_job("4711")                              # asks Slurm
    os.execvp(*attach(job, "n002", ["hostname"], ...))

A job of Slurm is entered by a step of it, so Slurm itself keeps others out. On a host without Slurm
the job is found among the processes of the user.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from seatrial.errors import UsageError
from seatrial.model.node_set import unfold

PATIENCE_SECONDS = 30.0

_OWNER = re.compile(r"\bUserId=(\S+?)\((\d+)\)")
_BINDS = re.compile(r"^TaskPlugin\s*=.*\b(?:affinity|cgroup)", re.MULTILINE)


class RunningJob(NamedTuple):
    """A running job: its own id, which is never that of an array, and its nodes; none on a host
    without Slurm."""

    job_id: str
    nodes: tuple[str, ...] = ()


def find_job(job: str) -> RunningJob:
    """Return a running job of this user. Raises UsageError: it is not there, not running, or
    somebody else's."""
    if not re.fullmatch(r"[0-9]+(_[0-9]+)?", job):
        raise UsageError(f"{job!r} is no id of a job; `squeue --me` shows them")
    if shutil.which("scontrol") is None:
        return RunningJob(job)
    shown = _said("scontrol", "--oneliner", "show", "job", job)
    fields = dict(re.findall(r"(\w+)=(\S*)", shown))
    if fields.get("JobState") is None:
        raise UsageError(f"Slurm knows no job {job}; `squeue --me` shows yours")
    owner = _OWNER.search(shown)
    if owner is None or int(owner[2]) != os.getuid():
        whose = owner[1] if owner else "somebody else"
        raise UsageError(f"job {job} is {whose}'s: only its owner can enter it")
    if fields["JobState"] != "RUNNING":
        raise UsageError(f"job {job} is not running: its state is {fields['JobState']}")
    return RunningJob(fields["JobId"], unfold(fields["NodeList"]))


def node_of(job: RunningJob, node: str) -> str:
    """Return the node that is entered: the one that is asked for, else the job's first. Raises
    UsageError if it is none of the job's."""
    if not job.nodes:
        if node in ("", os.uname().nodename, "localhost"):
            return ""
        raise UsageError(f"{node} is not this host, and there is no Slurm to ask for it")
    if node and node not in job.nodes:
        shown = ", ".join(job.nodes[:8]) + (", ..." if len(job.nodes) > 8 else "")
        raise UsageError(f"{node} is no node of job {job.job_id}, which has {shown}")
    return node or job.nodes[0]


def attach(
    job: RunningJob, node: str, command: Sequence[str], *, terminal: bool, x11: bool
) -> list[str]:
    """Return the line that becomes a program of the job on a node, without one a shell there. With
    ``x11`` it refuses to where the job has no display: srun has --x11 for new jobs alone."""
    script = Path(__file__).with_name("attach.sh").read_text()
    inside = ["bash", "-c", script, "attach", job.job_id, "x11" if x11 else "-", *command]
    if not job.nodes:
        return inside
    step = [f"--jobid={job.job_id}", "--overlap", "--nodes=1", "--ntasks=1", f"--nodelist={node}"]
    step += ["--mem=0", "--mpi=none", "--chdir=/"]
    if _BINDS.search(_said("scontrol", "show", "config")):
        step.append("--cpu-bind=none")
    step += ["--pty"] * terminal
    return ["srun", "--quiet", "--quiet", *step, *inside]


def outside(environment: Mapping[str, str], job: RunningJob) -> dict[str, str]:
    """Return an environment without the variables of a job in which this process may be, and on
    other hosts without the display of this one."""
    left_out = ("DISPLAY", "XAUTHORITY") if job.nodes else ()
    return {
        name: text
        for name, text in environment.items()
        if name == "SLURM_CONF"
        or not (name in left_out or name.startswith(("SLURM_", "SEATRIAL_COMPAT")))
    }


def _said(*words: str) -> str:
    """Return what a command of Slurm says, "" where it fails. Raises UsageError if it hangs."""
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise UsageError(f"{' '.join(words)} does not answer; try again later") from None
    return done.stdout if done.returncode == 0 else ""
