"""Submissions to Slurm: jobs of one shape as a job array, its batch script, and the sbatch
command."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Collection, Sequence
from pathlib import Path

from seatrial.backends.bundles import allocation_of, arranged, bundle_files
from seatrial.backends.protocol import Job, Submission
from seatrial.backends.slurm_parse import PREFIX
from seatrial.files import sync_folder, write_durably
from seatrial.lazy import nodeset
from seatrial.machine.model import Machine, Slurm
from seatrial.runs.environment import write_script
from seatrial.suite.job_options import effective
from seatrial.suite.model import JobOptions

_GROUP = re.compile(r"\([^()]*\)|\[[^\[\]]*\]")

_SCRIPT = """\
#!/bin/bash
# One task of the array is one run: its directory is the line of its index in {runs}
mapfile -t -s "$SLURM_ARRAY_TASK_ID" -n 1 run < {runs}
cd "${{run[0]:?is not in the list}}" && exec bash ./job.sh >> stdout 2>> stderr < /dev/null
"""


def arrange(jobs: Sequence[Job], largest: int) -> list[Submission]:
    """Group jobs by shape into arrays of at most ``largest`` tasks; a bundle is one task. A
    submission has the name of its first run, which is unique, and known before the submission."""
    return arranged(jobs, lambda alone: _arrays(alone, largest), PREFIX)


def _arrays(jobs: Sequence[Job], largest: int) -> list[Submission]:
    shapes: dict[object, list[Job]] = {}
    for job in jobs:
        shape = job._replace(run_id="", path=Path())
        shapes.setdefault(shape, []).append(job)
    return [
        Submission(PREFIX + group[start].run_id, tuple(group[start : start + largest]))
        for group in shapes.values()
        for start in range(0, len(group), largest)
    ]


def write(
    folder: Path, submission: Submission, machine: Machine, unknown: Collection[str] = ()
) -> None:
    """Write the list of runs and the batch script, so that they are on the disk itself before the
    jobs are submitted, and, for people, the command that submits it."""
    folder.mkdir(parents=True, exist_ok=True)
    if submission.is_bundle:
        files = bundle_files(folder, submission)
    else:
        runs = "".join(f"{job.path}\n" for job in submission.jobs)
        script = _SCRIPT.format(runs=shlex.quote(str(folder / "runs")))
        files = {"runs": runs, "job.sh": script}
    for name, text in files.items():
        write_durably(folder / name, text.encode("utf-8", errors="surrogateescape"))
    sync_folder(folder)
    sync_folder(folder.parent)
    line = shlex.join(sbatch_line(folder, submission, machine, unknown))
    write_script(folder / "submit.sh", f"{line}\n")


def output_of(folder: Path, index: int) -> Path:
    """Return the file in which Slurm tells what it does to a task of an array, such as that it
    reached its limit; `job.sh` itself writes into the directory of its run."""
    return folder / f"{index}.out"


def sbatch_line(
    folder: Path, submission: Submission, machine: Machine, unknown: Collection[str] = ()
) -> list[str]:
    """Return the sbatch command of a submission. Slurm does not know the features ``unknown``; jobs
    are kept from the nodes that lack them by the machine's file."""
    slurm = machine.slurm
    job = allocation_of(submission, folder)
    tasks = 1 if submission.is_bundle else len(submission.jobs)
    asked = effective(slurm, job.options)
    line = [
        "sbatch",
        "--parsable",
        *cluster_option(slurm),
        f"--job-name={submission.name}",
        f"--array=0-{tasks - 1}",
        f"--output={str(folder).replace('%', '%%')}/%a.out",
        f"--chdir={folder}",
        "--no-requeue",
        f"--nodes={job.nodes}",
        f"--ntasks={job.tasks}",
        f"--ntasks-per-node={job.tasks_per_node}",
        f"--cpus-per-task={job.threads}",
        f"--time={max(1, math.ceil(job.walltime / 60))}",
    ]
    if job.exclusive:
        line.append("--exclusive")
    if job.node:
        line.append(f"--nodelist={job.node}")
    elif excluded := _excluded(machine, job.avoid, set(unknown) & set(job.features)):
        line.append(f"--exclude={excluded}")
    known = [feature for feature in job.features if feature not in unknown]
    if constraint := _constraint(asked.constraint or "", *known):
        line.append(f"--constraint={constraint}")
    return [*line, *option_words(asked), *asked.options, str(folder / "job.sh")]


def option_words(asked: JobOptions) -> list[str]:
    """Return the options of sbatch for a partition, an account, GPUs and memory."""
    names = ("partition", "account", "qos", "reservation", "gpus_per_node", "gpus_per_task")
    given = [(name.replace("_", "-"), getattr(asked, name)) for name in names]
    words = [f"--{name}={value}" for name, value in given if value]
    return [*words, *([f"--mem={math.ceil(asked.memory / 2**20)}M"] if asked.memory else [])]


def _excluded(machine: Machine, avoid: str, needed: Collection[str] = ()) -> str:
    """Return the nodes that a job must not get: those outside the machine's ``nodelist``, those
    that it excludes, those without the features ``needed``, and those to avoid. The option
    ``--nodelist`` of sbatch would ask for all its nodes."""
    lacking = [kind.names for kind in machine.nodes if set(needed) - set(kind.features)]
    lacking += [machine.slurm.exclude] if machine.slurm.exclude else []
    if not (machine.slurm.nodelist or lacking):
        return avoid
    excluded = nodeset.NodeSet(",".join(filter(None, [*lacking, avoid])), resolver=None)
    if machine.slurm.nodelist:
        kept = nodeset.NodeSet(machine.slurm.nodelist, resolver=None)
        every = nodeset.NodeSet(",".join(kind.names for kind in machine.nodes), resolver=None)
        excluded |= every - kept
    return str(excluded)


def _constraint(*parts: str) -> str:
    """Return the conjunction of constraints. ``|`` binds less tightly than ``&``, and Slurm has no
    nested parentheses; so a part is put into parentheses only where it has a ``|`` outside of its
    own."""
    given = [part for part in parts if part]
    if len(given) > 1:
        given = [f"({part})" if "|" in _GROUP.sub("", part) else part for part in given]
    return "&".join(given)


def cluster_option(slurm: Slurm) -> list[str]:
    return [f"--clusters={slurm.cluster}"] if slurm.cluster else []
