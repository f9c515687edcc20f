"""The launch guard asked about a run, before the run is submitted.

    programs = named_programs(test.run.script, {"BUILD": "/trial/builds/1", "KIND": "mpi"})
    refusal(Path("/opt/site/guard/guard"), programs, Launch(tasks=64, nodes=2, threads=1))

The guard is the one that the site installed (``seatrial guard write``), so a run is told what a
launch by hand is told. Programs that are found by PATH depend on the modules of the job: the filter
of the site judges them when the job launches them.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from seatrial.file_model import Scalar
from seatrial.suite.model import show

PATIENCE_S = 10.0
MAX_PROGRAMS = 50
_WORD = re.compile(r"""(?:[^\s;|&()<>`"']|"[^"\n]*"|'[^'\n]*')+""")
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")


class LaunchSize(NamedTuple):
    """The size of a launch: tasks and nodes in all, and the threads of a task."""

    tasks: int
    nodes: int
    threads: int


class GuardFailed(Exception):
    """The guard is not there, or did not answer."""


def named_programs(script: str, variables: Mapping[str, Scalar]) -> list[str]:
    """Return the executable files that a script names by an absolute path, each once. The values of
    ``variables`` are put in; a word with another variable names none."""
    found: dict[str, None] = {}
    for line in script.replace("\\\n", " ").splitlines():
        if line.lstrip().startswith("#"):
            continue
        for word in _WORD.findall(line):
            path = _bound(word, variables)
            if path.startswith("/") and Path(path).is_file() and os.access(path, os.X_OK):
                found[path] = None
    return list(found)[:MAX_PROGRAMS]


def _bound(word: str, variables: Mapping[str, Scalar]) -> str:
    """Return a word without its quotes and with the values of its variables; "" if one of these is
    not known."""
    names = [first or second for first, second in _VARIABLE.findall(word)]
    if any(name not in variables for name in names):
        return ""
    text = _VARIABLE.sub(lambda found: show(variables[found[1] or found[2]]), word)
    return text.replace('"', "").replace("'", "")


def refusal(guard: Path, programs: Sequence[str], size: LaunchSize) -> str:
    """Return the sentences of the guard by which it refuses a launch; "" if it lets it start. What
    it refuses, and what it warns of, goes to the log of the site. Raises GuardFailed."""
    if not programs:
        return ""
    line = [os.fspath(guard), "launch", "-n", str(size.tasks), "-N", str(size.nodes)]
    line += ["-c", str(size.threads), "--"]
    for program in programs:
        line += [program, ":"]
    try:
        done = subprocess.run(line, capture_output=True, timeout=PATIENCE_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise GuardFailed(str(error)) from error
    if done.returncode not in (0, 1):
        raise GuardFailed(f"{guard} ended with exit code {done.returncode}")
    told = [line.split("\t", 1) for line in done.stdout.decode(errors="replace").splitlines()]
    sentences = [text for word, text in told if word == "refuse"] if done.returncode else []
    return "; ".join(sentences)
