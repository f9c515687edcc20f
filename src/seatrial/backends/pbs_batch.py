"""Submissions to PBS: a job array, and the qsub command."""

import functools
import math
import re
import socket
from pathlib import Path

from seatrial.backends.bundles import allocation_of
from seatrial.backends.job_arrays import write_submission
from seatrial.backends.protocol import Job, Submission
from seatrial.machine.model import Machine
from seatrial.suite.job_options import effective
from seatrial.suite.model import JobOptions


def write(folder: Path, submission: Submission, machine: Machine, direct: bool = False) -> None:
    """Write the files of a submission, and the command that submits it."""
    line = qsub_line(folder, submission, machine, direct)
    write_submission(folder, submission, "${PBS_ARRAY_INDEX:-0}", line)


def qsub_line(
    folder: Path, submission: Submission, machine: Machine, direct: bool = False
) -> list[str]:
    """Return the qsub command of a submission. PBS has no array of one task, and takes no array
    that must not be run again: a job script that is run again finds its run claimed. ``-f`` keeps
    qsub from leaving a process in the background, which would hold the file of its answer.
    ``direct``: the server knows ``-k d``, which spares a copy of the output at each end. With the
    host localhost the path of the output is each node's own: PBS would copy to this host by scp."""
    job = allocation_of(submission, folder)
    tasks = 1 if submission.is_bundle else len(submission.jobs)
    output = f"localhost:{folder}" if _qsub_keeps_localhost() else str(folder)
    line = ["qsub", "-f", "-N", submission.name, "-S", "/bin/bash", "-m", "n", "-j", "oe"]
    line += ["-k", "doe"] if direct else []
    if tasks > 1:
        line += ["-J", f"0-{tasks - 1}", "-o", f"{output}/^array_index^.out"]
    else:
        line += ["-r", "n", "-o", f"{output}/0.out"]
    return [*line, *request_words(job, machine), str(folder / "job.sh")]


@functools.cache
def _qsub_keeps_localhost() -> bool:
    """Return whether the canonical name of localhost is localhost. qsub writes the canonical name,
    such as localhost.localdomain, and the nodes take that for another host."""
    try:
        return socket.getaddrinfo("localhost", None, flags=socket.AI_CANONNAME)[0][3] == "localhost"
    except OSError:
        return False


def request_words(job: Job, machine: Machine) -> list[str]:
    """Return the options of qsub by which a job asks for its nodes, its time and its queue."""
    pbs = machine.pbs
    asked = effective(pbs, job.options)
    words = ["-l", f"select={_select(job, asked, pbs.select)}"]
    words += ["-l", f"place={_place(job, pbs.place)}"]
    words += ["-l", f"walltime={max(1, math.ceil(job.walltime))}"]
    for option, value in (
        ("-q", asked.reservation or asked.partition),
        ("-A", asked.account),
        ("-P", pbs.project),
    ):
        words += [option, value] if value else []
    return [*words, *asked.options]


def _select(job: Job, asked: JobOptions, more: str) -> str:
    """Return the chunks of a job: one for each of its nodes."""
    chunk = [
        f"{job.nodes}:ncpus={job.tasks_per_node * job.threads}",
        f"mpiprocs={job.tasks_per_node}",
        f"ompthreads={job.threads}",
    ]
    gpus = asked.gpus_per_node or asked.gpus_per_task * job.tasks_per_node
    chunk += [f"ngpus={gpus}"] if gpus else []
    chunk += [f"mem={math.ceil(asked.memory / 2**20)}mb"] if asked.memory else []
    chunk += [feature if "=" in feature else f"{feature}=True" for feature in job.features]
    chunk += [f"host={job.node}"] if job.node else []
    return ":".join([*chunk, *filter(None, re.split(":", more))])


def _place(job: Job, place: str) -> str:
    return f"{place}:excl" if job.exclusive and "excl" not in place else place
