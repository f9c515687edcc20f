"""Submissions to Grid Engine: a job array, and the qsub command."""

import math
from collections.abc import Mapping
from pathlib import Path

from seatrial.backends.bundles import allocation_of
from seatrial.backends.job_arrays import write_submission
from seatrial.backends.protocol import Job, Submission
from seatrial.backends.scheduler_client import SubmissionRefused
from seatrial.machine.model import Machine
from seatrial.machine.node_sets import unfold
from seatrial.suite.job_options import effective


def write(folder: Path, submission: Submission, machine: Machine) -> None:
    """Write the files of a submission, and the command that submits it. Raises SubmissionRefused
    where the machine has no parallel environment for it."""
    line = qsub_line(folder, submission, machine)
    write_submission(folder, submission, "$((SGE_TASK_ID - 1))", line)


def qsub_line(folder: Path, submission: Submission, machine: Machine) -> list[str]:
    """Return the qsub command of a submission. Tasks of an array are numbered from 1. Raises
    SubmissionRefused as `write`."""
    job = allocation_of(submission, folder)
    tasks = 1 if submission.is_bundle else len(submission.jobs)
    line = ["qsub", "-terse", "-N", submission.name, "-S", "/bin/bash", "-t", f"1-{tasks}"]
    line += ["-r", "n", "-m", "n", "-j", "y", "-o", f"{folder}/$TASK_ID.out"]
    return [*line, *request_words(job, machine), str(folder / "job.sh")]


def request_words(job: Job, machine: Machine) -> list[str]:
    """Return the options of qsub by which a job asks for its nodes, its time and its queue. Raises
    SubmissionRefused where the machine has no parallel environment for it."""
    settings = machine.gridengine
    asked = effective(settings, job.options)
    resources = [f"h_rt={max(1, math.ceil(job.walltime))}", settings.resources]
    resources += [feature if "=" in feature else f"{feature}=true" for feature in job.features]
    resources += [f"{settings.exclusive}=true"] if job.exclusive and settings.exclusive else []
    slots = job.tasks_per_node * job.threads
    if asked.memory:
        share = math.ceil(asked.memory / slots / 2**20)
        resources.append(f"{settings.memory}={share}M")
    gpus = asked.gpus_per_node or asked.gpus_per_task * job.tasks_per_node
    resources += [f"{settings.gpus}={gpus}"] if gpus else []
    if job.node or job.avoid:
        avoided = f"!({'|'.join(unfold(job.avoid))})" if job.avoid else ""
        resources.append(f"hostname={job.node or avoided}")
    words = ["-l", ",".join(filter(None, resources))]
    if job.nodes > 1 or slots > 1:
        environment = parallel_environment(job.nodes, slots, settings.parallel)
        words += ["-pe", environment, str(job.nodes * slots)]
    for option, value in (
        ("-q", asked.partition),
        ("-ar", asked.reservation),
        ("-A", asked.account),
        ("-P", settings.project),
    ):
        words += [option, value] if value else []
    return [*words, *asked.options]


def parallel_environment(nodes: int, slots: int, parallel: Mapping[str, str | int]) -> str:
    """Return the parallel environment that gives a job this number of slots on each of its nodes:
    one that gives exactly so many, or on one node one that gives all slots there. ``parallel``:
    the allocation rule of each. Raises SubmissionRefused if there is none."""
    for wanted in (str(slots), *(["$pe_slots"] if nodes == 1 else [])):
        for name, rule in parallel.items():
            if str(rule) == wanted:
                return name
    either = ", or $pe_slots" if nodes == 1 else ""
    raise SubmissionRefused(
        f"gridengine.parallel has no parallel environment for {slots} slots on each of {nodes} "
        f"nodes: it needs the allocation_rule {slots}{either}; `qconf -spl` and `qconf -sp NAME` "
        "show those of the site; the administrators can add one"
    )
