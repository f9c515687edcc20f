"""Parses the output of the commands of OpenPBS and PBS Pro. Pure: no command is run here.

States and substates are those of ``qstat(1B)`` and of the PBS reference guide, "Job States";
negative exit states those of ``pbs_job.h``, JOB_EXEC_*. The states of tasks are said in the words
of task_states.py.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from seatrial.execute.batch.scheduler_client import TaskState, UnexpectedOutput
from seatrial.model.node_set import fold

# States of a job that has not ended; of an array itself, B, nothing follows for its tasks.
_ACTIVE = {
    **dict.fromkeys("QHWTM", "PENDING"),  # queued, held, waits for its time, in transit, moved
    "R": "RUNNING",
    "E": "COMPLETING",
    "S": "SUSPENDED",
    "U": "SUSPENDED",  # as somebody uses the workstation
}
_ENDED = "FX"  # X: a task of an array that has other tasks left
_DELETED = 91  # substate

# Exit states by which PBS itself says why a job ended.
_EXIT_STATES = {
    **dict.fromkeys((-1, -2, -3, -7, -8, -16, -17), "LAUNCH_FAILED"),
    **dict.fromkeys((-4, -5, -6), "NODE_FAIL"),  # the MOM was started again
    **dict.fromkeys((-11, -12, -14, -15, -18), "REQUEUED"),  # -18: by a hook of the site
    -19: "CANCELLED",  # by a hook of the site
    -20: "NODE_FAIL",
    **dict.fromkeys((-24, -25), "CANCELLED"),  # used more CPUs than it asked for
    **dict.fromkeys((-26, -27), "OUT_OF_MEMORY"),
    **dict.fromkeys((-28, -29), "TIMEOUT"),
}
_DIRECT = 19  # the first release that surely knows qsub -k d
_CLAIMED = 93  # the exit code of a job script whose run another job has claimed

# States of a node in which it takes jobs, or will by itself: pbsnodes(8B), -v. In any other state
# it takes none, also in one that a later PBS may bring.
NODE_UP = frozenset(
    {
        *("free", "job-busy", "job-exclusive", "job-sharing", "resv-exclusive", "busy"),
        "sleep",  # saves power until a job needs it
    }
)

# Errors of qsub that may pass: the server was down, or a limit on the number of jobs was reached.
TEMPORARY = re.compile(
    r"cannot connect|connection (refused|reset)|communication failure|timed out|time-?out"
    r"|would exceed|maximum number of jobs|system error|try again|end of file|premature end"
    r"|server is (shutting|busy)|no route|temporar|15010|15012|15021|15031|broken pipe|unreachable"
    r"|invalid credential|bad (uid|cred)|munge",
    re.IGNORECASE,
)
# Errors about jobs that the server does not have, or that are over.
UNKNOWN = re.compile(r"Unknown Job Id|has finished|Job has been deleted|invalid for state of job")
_MEMBER = re.compile(r'[ \t]*"[^"\n]*":')
_BRACKETS = re.compile(r"[ \t]*[]}{[]*,?[ \t]*")
_JOB_ID = re.compile(r"([0-9]{1,18})(\[([0-9]{0,18})\])?(?:\.[A-Za-z0-9._-]+)?")
_VNODE = re.compile(r"\(([A-Za-z0-9._-]+)(?:\[[0-9]+\])?[:)]")


class ServerSettings(NamedTuple):
    """What a server says of itself: the maximum number of tasks in an array, whether it knows jobs
    that have ended, and whether its ``qsub -k d`` lets jobs write their output where it shall be,
    so that no file is copied at their end. The defaults count until it answers."""

    largest_array: int = 10_000
    history: bool = True
    writes_directly: bool = False


def parse_server(text: str) -> ServerSettings:
    """Return the settings from ``qstat -B -f -F json``. Raises UnexpectedOutput."""
    for about in _members(text, "Server", "qstat"):
        size = about.get("max_array_size", ServerSettings().largest_array)
        history = str(about.get("job_history_enable", "False")) == "True"
        release = re.match(r"[0-9]+", str(about.get("pbs_version", "")))
        direct = release is not None and int(release[0]) >= _DIRECT
        return ServerSettings(max(1, _number(size) or 1), history, direct)
    raise UnexpectedOutput(f"qstat answered {text[:80]!r}, no server")


def parse_qstat(text: str) -> list[TaskState]:
    """Return the tasks from ``qstat -f -t -F json``: a job that is no array is its task 0. Raises
    UnexpectedOutput."""
    tasks = []
    for job_id, about in _items(text, "Jobs", "qstat"):
        parts = _JOB_ID.fullmatch(job_id)
        letter = about.get("job_state")
        if parts is None or not isinstance(letter, str) or letter not in (*_ACTIVE, *_ENDED, "B"):
            raise UnexpectedOutput(f"qstat answered {job_id[:40]!r} in the state {letter!r}")
        if not parts[2] or parts[3]:
            code = _number(about.get("Exit_status"))
            state = _ACTIVE.get(letter) or _ended(about, code)
            by = _deleted_by(about) if state == "CANCELLED" else ""
            name, nodes = str(about.get("Job_Name", "")), nodes_of(str(about.get("exec_vnode", "")))
            index = int(parts[3] or 0)
            exit_code = _exit_code(code) if letter in _ENDED else 0
            tasks.append(TaskState(int(parts[1]), index, name, state, exit_code, nodes, by))
    return tasks


class ArrayCounts(NamedTuple):
    """How many tasks of an array are in each state, in the words of PBS ("" of a job that is no
    array), how many are left, and whether the array is over."""

    words: str = ""
    left: int = 0
    over: bool = False


def parse_counts(text: str) -> ArrayCounts:
    """Return the counts of an array, from ``qstat -f -F json`` of it alone, or with its tasks: its
    ``array_state_count`` is ``Queued:5 Running:2 Exiting:0 Expired:3``. Raises UnexpectedOutput."""
    for job_id, about in _items(text, "Jobs", "qstat"):
        parts = _JOB_ID.fullmatch(job_id)
        if parts is not None and parts[2] and not parts[3]:
            state, counts = about.get("job_state"), str(about.get("array_state_count", "")).strip()
            left = sum(map(int, re.findall(r"(?:Queued|Running|Exiting):([0-9]{1,9})\b", counts)))
            return ArrayCounts(f"{state} {counts}", left, state != "B" and left == 0)
    return ArrayCounts()


def _ended(about: dict[str, Any], code: int | None) -> str:
    """Return the state of a job that is over."""
    if about.get("substate") == _DELETED and "terminated" in str(
        about.get("comment", "terminated")
    ):
        return "CANCELLED"
    if code is None:
        return "COMPLETED"
    if code < 0:
        return _EXIT_STATES.get(code, "LAUNCH_FAILED")
    if code == _CLAIMED and (_number(about.get("run_count")) or 0) > 1:
        return "REQUEUED"
    return "FAILED" if code else "COMPLETED"


def _exit_code(status: int | None) -> int:
    """Return the exit code from an exit state: 256 and more, or 128 and more, name a signal; below
    0 no job ended by itself."""
    code = max(status or 0, 0)
    return 128 + code % 128 if code >= 256 else code


def _deleted_by(about: dict[str, Any]) -> str:
    """Return the account that deleted a job, by its comment: ``... and terminated by root@pbs``."""
    match = re.search(r"terminated by (\S{1,80})$", str(about.get("comment", "")))
    return match[1] if match else ""


def nodes_of(vnodes: str) -> str:
    """Return the node set of a job's ``exec_vnode``: ``(n1:ncpus=2)+(n2[0]:ncpus=2)`` is n[1-2]."""
    names = list(dict.fromkeys(_VNODE.findall(vnodes)))
    return fold(names) if names else ""


def parse_pbsnodes(text: str) -> dict[str, str]:
    """Return, from ``pbsnodes -a -F json``, for each node the reason why it takes no jobs, "" where
    it does. Raises UnexpectedOutput."""
    nodes: dict[str, str] = {}
    for name, about in _items(text, "nodes", "pbsnodes"):
        said = about.get("state")
        if not isinstance(said, str) or not said:
            raise UnexpectedOutput(f"pbsnodes answered {name[:40]!r} in the state {said!r}")
        states = said.split(",")
        comment = " ".join(str(about.get("comment", "")).split())
        words = f"{said}: {comment}" if comment else said
        node = name.partition("[")[0]  # a host has vnodes of its name
        nodes[node] = nodes.get(node) or ("" if NODE_UP.issuperset(states) else words)
    return nodes


def parse_job_id(text: str) -> int | None:
    """Return the number of the job from the last line of ``qsub``; None where the output has no
    job id."""
    written = [line.strip() for line in text.split("\n") if line.strip()]
    job_id = _JOB_ID.fullmatch(written[-1]) if written else None
    return int(job_id[1]) if job_id else None


def parse_qselect(text: str) -> list[int]:
    """Return the numbers of the jobs that ``qselect`` lists. Raises UnexpectedOutput."""
    parts = [_JOB_ID.fullmatch(line.strip()) for line in text.splitlines() if line.strip()]
    if not all(parts):
        raise UnexpectedOutput(f"qselect answered {text[:80]!r}")
    return [int(each[1]) for each in parts if each]


def first_words(text: str) -> str:
    """Return the error message of a command on one line."""
    words = " ".join(re.sub(r"(?m)^q\w+:\s*|^pbsnodes:\s*", "", text).split("usage:")[0].split())
    return words[:300] or "no message"


def _members(text: str, key: str, command: str) -> Iterator[dict[str, Any]]:
    return (about for _, about in _items(text, key, command))


def _items(text: str, key: str, command: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the members of an answer in JSON. Older releases leave control characters in texts."""
    try:
        answer = _decoded(text)
    except (ValueError, RecursionError):
        raise UnexpectedOutput(f"{command} answered {text[:80]!r}, no JSON") from None
    if not isinstance(answer, dict) or "pbs_version" not in answer:
        raise UnexpectedOutput(f"{command} answered {text[:80]!r}, which PBS does not")
    members = answer.get(key, {})
    if not isinstance(members, dict):
        raise UnexpectedOutput(f"{command} answered {key} {str(members)[:80]!r}")
    for name, about in members.items():
        if not isinstance(about, dict):
            raise UnexpectedOutput(f"{command} answered {name[:40]!r}: {str(about)[:80]!r}")
        yield name, about


def _decoded(text: str) -> Any:
    """Return the value of a text in JSON. Raises ValueError. PBS writes each member on a line of
    its own, and some releases write values as they are: with quotes and backslashes of a user's
    variables, or names such as 007 as numbers. Such a value is read as a text."""
    try:
        return json.loads(text, strict=False)
    except ValueError:
        return json.loads("\n".join(map(_quoted, _member_lines(text))), strict=False)


def _member_lines(text: str) -> list[str]:
    """Return the lines of a text in JSON, a value that has line feeds with its member."""
    lines: list[str] = []
    for line in text.split("\n"):
        if not lines or _MEMBER.match(line) or _BRACKETS.fullmatch(line):
            lines.append(line)
        else:
            lines[-1] += f"\n{line}"
    return lines


def _quoted(line: str) -> str:
    """Return the line of a member, with its value as a text if it is no value of JSON."""
    member = _MEMBER.match(line)
    value = line[member.end() :].rstrip() if member else "{"
    bare = value.removesuffix(",")
    if member is None or bare.endswith(("{", "[")):
        return line
    try:
        json.loads(bare, strict=False)
    except ValueError:
        bare = bare.removeprefix('"')
        comma = "," if value.endswith(",") else ""
        return f"{member[0]}{json.dumps(bare.removesuffix(chr(34)))}{comma}"
    return line


def _number(value: object) -> int | None:
    """Return a whole number, which some releases write as a text."""
    text = str(value)
    return int(text) if re.fullmatch(r"-?[0-9]{1,18}", text) else None
