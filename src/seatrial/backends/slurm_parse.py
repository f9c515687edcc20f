"""Parses the output of Slurm's commands. Pure: no command is run here.

States are those of ``squeue(1)`` and ``sacct(1)``, "JOB STATE CODES".
"""

import re

from seatrial.account import name_of
from seatrial.backends.task_states import ACTIVE, ENDED, PREFIX, TaskState, UnexpectedOutput
from seatrial.lazy import regex

SQUEUE_FORMAT = "ArrayJobID:|,ArrayTaskID:|,Name:|,State:|,exit_code:|,NodeList:|"
SACCT_FORMAT = "JobID,JobName,State,ExitCode,NodeList"
SINFO_FORMAT = "%N|%T|%E"
FEATURES_FORMAT = "%N|%f"

# States of a node in which it takes no jobs, without suffixes such as * and ~.
NODE_DOWN = frozenset({"down", "drained", "draining", "drain", "fail", "failing", "error"})

# Errors of sbatch that may pass: the controller was down, or a limit on the number of jobs was
# reached. An error about an option, a partition or an account is permanent.
TEMPORARY = regex(
    r"contact|timed out|time out|refused by|connect|temporarily|try again|zero bytes|unreachable"
    r"|MaxSubmit|SubmitJobsLimit|MaxJobCount|slot limit|not responding|munge|credential|protocol"
    r"|configuration source|configuration file|backup controller|reset by peer|broken pipe"
    r"|I/O error|host name|Transport endpoint|retrying",
    re.IGNORECASE,
)
# Errors of scontrol: the controller does not have the job.
NO_JOB = regex(r"Invalid job id|Job \S+ not found")
OVER = regex(r"already (finished|completing)|Invalid job id|not found|No such")
_NUMBER = regex(r"[0-9]{1,18}")
_JOB_ID = regex(r"([0-9]{1,18})(?:;\S+)?")
_STATE = regex(r"[a-z_]+")
_TASK = regex(r"([0-9]{1,18})(?:_([0-9]{1,18}))?")


def parse_squeue(text: str) -> list[TaskState]:
    """Return the tasks of Seatrial from ``squeue --array --Format=SQUEUE_FORMAT``. Other jobs of
    the user are skipped, whatever their state, also if their names contain a ``|``. Raises
    UnexpectedOutput."""
    tasks = []
    for line in text.splitlines():
        if not line.strip():
            continue
        fields = [field.strip() for field in line.split("|")]
        whole = len(fields) >= 7 and _NUMBER.fullmatch(fields[0])
        if line.startswith("CLUSTER:") or (whole and not fields[2].startswith(PREFIX)):
            continue
        if not whole or not _known(fields[-4]):
            raise UnexpectedOutput(f"squeue answered {line[:80]!r}")
        array, number, *name, state, status, nodes, _ = fields
        task = int(number) if _NUMBER.fullmatch(number) else None
        if task is not None or state in ENDED:
            code = _wait_status(status)
            held = _nodes_of_job(state, nodes)
            tasks.append(TaskState(int(array), task, "|".join(name), state, code, held))
    return tasks


def parse_sacct(text: str) -> list[TaskState]:
    """Return the tasks from ``sacct -X -n -P -o SACCT_FORMAT``. Jobs that are not arrays are
    skipped, unless they have a name of Seatrial. Raises UnexpectedOutput."""
    tasks = []
    for line in text.splitlines():
        fields = line.split("|")
        said = fields[-3] if len(fields) >= 5 else ""  # CANCELLED by 1000
        state, _, by = said.partition(" ")
        if not _known(state):
            raise UnexpectedOutput(f"sacct answered {line[:80]!r}")
        job_id = _TASK.fullmatch(fields[0])
        if job_id and (job_id[2] or (fields[1].startswith(PREFIX) and state in ENDED)):
            array, task = int(job_id[1]), int(job_id[2]) if job_id[2] else None
            code = _exit_code(fields[-2])
            name = "|".join(fields[1:-3])
            nodes = "" if fields[-1].startswith("None") else fields[-1]  # None assigned
            tasks.append(
                TaskState(array, task, name, state, code, nodes, _account(by.removeprefix("by ")))
            )
    return tasks


def parse_sinfo(text: str) -> dict[str, str]:
    """Return, from ``sinfo --Node --noheader --format=SINFO_FORMAT``, for each node the reason why
    it takes no jobs, "" where it does. A node has one line for each of its partitions. Raises
    UnexpectedOutput."""
    nodes: dict[str, str] = {}
    for line in text.splitlines():
        fields = line.strip().split("|", 2)
        state = fields[1].rstrip("*~#!%$@^-+") if len(fields) == 3 else ""
        if not _STATE.fullmatch(state) or not fields[0]:
            raise UnexpectedOutput(f"sinfo answered {line[:80]!r}")
        reason = fields[2].strip().removeprefix("none")
        words = f"{state}: {reason}" if reason else state
        nodes[fields[0].strip()] = words if state in NODE_DOWN else ""
    return nodes


def parse_features(text: str) -> dict[str, frozenset[str]]:
    """Return, from ``sinfo --Node --noheader --format=FEATURES_FORMAT``, the features of each
    node. Raises UnexpectedOutput."""
    features: dict[str, frozenset[str]] = {}
    for line in text.splitlines():
        node, separator, said = line.strip().partition("|")
        if not separator or not node:
            raise UnexpectedOutput(f"sinfo answered {line[:80]!r}")
        words = said.strip().replace("(null)", "").split(",")
        features[node.strip()] = frozenset(filter(None, words))
    return features


def parse_job(text: str) -> TaskState:
    """Return the task from ``scontrol --oneliner show job ARRAY_TASK``. Raises UnexpectedOutput."""
    fields = dict(word.split("=", 1) for word in text.split() if "=" in word)
    array, task, state = (fields.get(k, "") for k in ("ArrayJobId", "ArrayTaskId", "JobState"))
    if not (_NUMBER.fullmatch(array) and _NUMBER.fullmatch(task) and _known(state)):
        raise UnexpectedOutput(f"scontrol answered {text[:80]!r}")
    name, code = fields.get("JobName", ""), _exit_code(fields.get("ExitCode", ""))
    nodes = _nodes_of_job(state, fields.get("NodeList", "").replace("(null)", ""))
    return TaskState(int(array), int(task), name, state, code, nodes)


def parse_job_id(text: str) -> int | None:
    """Return the job id from the last line of ``sbatch --parsable``; None where the output is
    binary or has no job id."""
    lines = text.split("\n")
    if not all(line.isprintable() and "\N{REPLACEMENT CHARACTER}" not in line for line in lines):
        return None
    written = [line.strip() for line in lines if line.strip()]
    job_id = _JOB_ID.fullmatch(written[-1]) if written else None
    return int(job_id[1]) if job_id else None


def first_words(text: str) -> str:
    """Return the error message of a command on one line."""
    words = " ".join(
        text.replace("sbatch: error:", "").replace("slurm_load_jobs error:", "").split()
    )
    return words[:300] or "no message"


def _account(uid: str) -> str:
    """Return the name of an account; its number where this host has no name for it."""
    try:
        return name_of(int(uid))
    except (ValueError, OverflowError):
        return uid[:32]


def _nodes_of_job(state: str, nodes: str) -> str:
    """Return the nodes of a job; "" while it completes, as the controller then names only those of
    them that have not finished."""
    return "" if state == "COMPLETING" else nodes


def _known(state: str) -> bool:
    return state in ENDED or state in ACTIVE


def _wait_status(text: str) -> int:
    """Return the exit code from a status of wait(2), as squeue prints it: a signal in the low seven
    bits, else the exit code above."""
    status = _number(text)
    signal = status & 0x7F
    return 128 + signal if signal else status >> 8


def _exit_code(text: str) -> int:
    """Return the exit code from ``exit:signal``, as sacct prints it."""
    code, _, signal = text.partition(":")
    return 128 + _number(signal) if _number(signal) else _number(code)


def _number(text: str) -> int:
    return int(text) if _NUMBER.fullmatch(text) else 0
