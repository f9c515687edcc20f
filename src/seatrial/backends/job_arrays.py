"""Submissions to a batch system: jobs of one shape as a job array, and its files.

arrange(jobs, largest)                      # jobs of one shape are an array
write_submission(folder, submission, index, line)   # its list of runs and its batch script
tasks_of(submission, array, folder)         # the task of each of its runs
"""

import shlex
from collections.abc import Sequence
from pathlib import Path

from seatrial.backends.batch_task import FORGOTTEN, NO_PLACE, BatchTask
from seatrial.backends.bundles import arranged, bundle_files
from seatrial.backends.protocol import Job, Submission
from seatrial.backends.task_states import PREFIX
from seatrial.escaping import shell_word
from seatrial.files import make_folder, read_regular, sync_folder, write_durably
from seatrial.runs.environment import write_script

MAX_LIST_BYTES = 1 << 28

# The shell of the scheduler runs job.sh itself, because another bash would take a millisecond. It
# calls itself (`$0`) as one that was started for job.sh would; one before bash 5.0 cannot do that.
_SCRIPT = """\
#!/bin/bash
# One task of the array is one run: its directory is the line of its index in the list `runs`
mapfile -t -s "{index}" -n 1 _place < {runs}
cd "${{_place[0]:?is not in the list}}" || exit
BASH_ARGV0=./job.sh
[ "$0" = ./job.sh ] || exec bash ./job.sh >> stdout 2>> stderr < /dev/null
. ./job.sh >> stdout 2>> stderr < /dev/null
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


def write_submission(
    folder: Path, submission: Submission, index: str, line: Sequence[str], job_id: str = ""
) -> None:
    """Write the list of runs and the batch script, so that they are on the disk itself before the
    jobs are submitted, and, for people, the command ``line`` that submits it. ``index`` is the
    variable of bash with the number of a task in its array, ``job_id`` the text of bash with the id
    of a job that the scheduler may run again."""
    make_folder(folder)
    if submission.is_bundle:
        files = bundle_files(folder, submission, job_id)
    else:
        runs = "".join(f"{job.path}\n" for job in submission.jobs)
        script = _SCRIPT.format(runs=shell_word(str(folder / "runs")), index=index)
        files = {"runs": runs, "job.sh": script}
    for name, text in files.items():
        write_durably(folder / name, text.encode("utf-8", errors="surrogateescape"))
    sync_folder(folder)
    sync_folder(folder.parent)
    write_script(folder / "submit.sh", f"{shlex.join(line)}\n")


def places(folder: Path) -> dict[str, int]:
    """Return the runs of an array by their ids, each with the number of its task; none where the
    list is not there. The id is the last part of the path of a run's directory: what is before it
    differs where the trial is seen by another path. The first run gave the submission its name.
    Raises OSError."""
    try:
        data = read_regular(folder / "runs", MAX_LIST_BYTES)
        text = data.decode(errors="surrogateescape")
    except (FileNotFoundError, NotADirectoryError):
        return {}
    ids = [line.rpartition("/")[2] for line in text.split("\n")[:-1]]
    if folder.name.startswith(PREFIX):
        ids[:1] = [folder.name.removeprefix(PREFIX)][: len(ids)]
    return {run_id: index for index, run_id in enumerate(ids)}


def tasks_of(submission: Submission, array: int, folder: Path) -> list[BatchTask]:
    """Return the task of each run of an array. The driver may have left some runs out, as they have
    a verdict; the batch script's list of runs tells the places of the others. A run that has no
    place there has no task that is known: its own events decide. Raises OSError."""
    indices = places(folder)
    alone = len(indices) == 1
    return [
        BatchTask(job, submission.name, array, index, alone)
        if (index := indices.get(job.run_id)) is not None
        else BatchTask(job, submission.name, FORGOTTEN, NO_PLACE, False)
        for job in submission.jobs
    ]
