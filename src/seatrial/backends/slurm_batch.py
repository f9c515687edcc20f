"""Submissions to Slurm: a job array, and the sbatch command."""

import math
from collections.abc import Collection
from pathlib import Path

from seatrial.backends.bundles import allocation_of
from seatrial.backends.job_arrays import write_submission
from seatrial.backends.protocol import Job, Submission
from seatrial.lazy import nodeset, regex
from seatrial.machine.model import Machine
from seatrial.machine.schedulers import Slurm
from seatrial.suite.job_options import effective
from seatrial.suite.model import JobOptions

_JOB_ID = "${SLURM_ARRAY_JOB_ID-}_${SLURM_ARRAY_TASK_ID-}"
_GROUP = regex(r"\([^()]*\)|\[[^\[\]]*\]")


def write(
    folder: Path, submission: Submission, machine: Machine, unknown: Collection[str] = ()
) -> None:
    """Write the files of a submission, and the command that submits it."""
    line = sbatch_line(folder, submission, machine, unknown)
    write_submission(folder, submission, "$SLURM_ARRAY_TASK_ID", line, _JOB_ID)


def sbatch_line(
    folder: Path, submission: Submission, machine: Machine, unknown: Collection[str] = ()
) -> list[str]:
    """Return the sbatch command of a submission. Slurm does not know the features ``unknown``; jobs
    are kept from the nodes that lack them by the machine's file."""
    slurm = machine.slurm
    job = allocation_of(submission, folder)
    tasks = 1 if submission.is_bundle else len(submission.jobs)
    line = [
        "sbatch",
        "--parsable",
        *cluster_option(slurm),
        f"--job-name={submission.name}",
        f"--array=0-{tasks - 1}",
        f"--output={str(folder).replace('%', '%%')}/%a.out",
        f"--chdir={folder}",
        "--no-requeue",
    ]
    return [*line, *request_words(job, machine, unknown), str(folder / "job.sh")]


def request_words(job: Job, machine: Machine, unknown: Collection[str] = ()) -> list[str]:
    """Return the options of sbatch by which a job asks for its nodes, its time and its
    partition."""
    asked = effective(machine.slurm, job.options)
    words = [
        f"--nodes={job.nodes}",
        f"--ntasks={job.tasks}",
        f"--ntasks-per-node={job.tasks_per_node}",
        f"--cpus-per-task={job.threads}",
        f"--time={max(1, math.ceil(job.walltime / 60))}",
    ]
    if job.exclusive:
        words.append("--exclusive")
    if job.node:
        words.append(f"--nodelist={job.node}")
    elif excluded := _excluded(machine, job.avoid, set(unknown) & set(job.features)):
        words.append(f"--exclude={excluded}")
    known = [feature for feature in job.features if feature not in unknown]
    if constraint := _constraint(asked.constraint or "", *known):
        words.append(f"--constraint={constraint}")
    return [*words, *_option_words(asked), *asked.options]


def _option_words(asked: JobOptions) -> list[str]:
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
