"""The launch guard of the site, asked about a run before the run is submitted.

    programs = named_programs(test.run.script, {"BUILD": "/trial/builds/1", "KIND": "mpi"})
    refusal(Path("/opt/site/guard/guard"), programs, tasks=64, nodes=2, threads=1)

The guard is the one that the site installed (``seatrial guard write``), so a run is told what a
launch by hand is told. Programs that are found by PATH depend on the modules of the job: the filter
of the site judges them when the job launches them.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from seatrial.execute.background import Tasks
from seatrial.execute.beside_loop import run_in_thread
from seatrial.hooks import value_of
from seatrial.model.file_model import Scalar
from seatrial.model.identifiers import show
from seatrial.model.machine import Machine
from seatrial.model.test import Case, Test

PATIENCE_S = 10.0
MAX_PROGRAMS = 50
_WORD = r"""(?:[^\s;|&()<>`"']|"[^"\n]*"|'[^'\n]*')+"""
_VARIABLE = r"\$(?:\{(\w+)\}|(\w+))"


class GuardFailed(Exception):
    """The guard is not there, or did not answer."""


def guard_of(machine: Machine, tasks: Tasks) -> SiteGuard | None:
    """Return the guard of a machine; None where its file names none."""
    folder = value_of(machine, "guard", str)
    return SiteGuard(Path(folder) / "guard", tasks) if folder else None


class SiteGuard:
    """Tells why runs are refused. Runs of one case are told the same, until the site writes its
    guard again."""

    def __init__(self, program: Path, tasks: Tasks) -> None:
        self._program = program
        self._tasks = tasks
        self._told: dict[tuple[str, int], str] = {}
        self._failed = False

    async def refusal(self, case: Case, test: Test, build: str) -> str:
        """Return why the guard refuses the program of a run, "" if it lets the run start. A guard
        that is not there or fails lets it start; people are told, once. ``build``: the directory of
        its build."""
        try:
            made = self._program.stat().st_mtime_ns
        except OSError as error:
            return self._without(GuardFailed(f"{self._program}: {error.strerror}"))
        if (key := (case.id, made)) not in self._told:
            try:
                self._told[key] = await self._asked(self._program, case, test, build)
            except GuardFailed as error:
                return self._without(error)
        return self._told[key]

    async def _asked(self, program: Path, case: Case, test: Test, build: str) -> str:
        variables = {**test.bound(case.parameters), **({"BUILD": build} if build else {})}

        def ask() -> str:
            programs = named_programs(test.run.script, variables)
            return refusal(program, programs, case.tasks, case.nodes, case.threads)

        return await run_in_thread(ask, "guard")

    def _without(self, error: GuardFailed) -> str:
        if not self._failed:
            self._failed = True
            text = f"the launch guard cannot be asked: {error}; runs start without it"
            self._tasks.alert("guard", "", text)
        return ""


def named_programs(script: str, variables: Mapping[str, Scalar]) -> list[str]:
    """Return the executable files that a script names by an absolute path, each once, or by a path
    such as ``./a.out`` behind ``cd`` to a folder that is known. The values of ``variables`` are put
    in; a word with another variable names none."""
    programs: dict[str, None] = {}
    here = before = ""  # the folder of the last `cd`, "" if it is not known; the word before
    for word in _words(script):
        path = _bound(word, variables)
        if before == "cd" and not path.startswith("-"):
            here = path if path.startswith("/") else f"{here}/{path}" if here and path else ""
        elif here and "/" in path and not path.startswith("/"):
            path = os.path.normpath(f"{here}/{path}")
        if _is_program(path):
            programs[path] = None
        before = "cd" if before == "cd" and path == "--" else word
    return list(programs)[:MAX_PROGRAMS]


def _is_program(path: str) -> bool:
    return path.startswith("/") and Path(path).is_file() and os.access(path, os.X_OK)


def _words(script: str) -> Iterator[str]:
    """Yield the words of a script, but those of comments."""
    for line in script.replace("\\\n", " ").splitlines():
        if not line.lstrip().startswith("#"):
            yield from re.findall(_WORD, line)


def _bound(word: str, variables: Mapping[str, Scalar]) -> str:
    """Return a word without its quotes and with the values of its variables; "" if one of these is
    not known."""
    names = [first or second for first, second in re.findall(_VARIABLE, word)]
    if any(name not in variables for name in names):
        return ""
    text = re.sub(_VARIABLE, lambda match: show(variables[match[1] or match[2]]), word)
    return text.replace('"', "").replace("'", "")


def refusal(guard: Path, programs: Sequence[str], tasks: int, nodes: int, threads: int) -> str:
    """Return the sentences of the guard by which it refuses a launch of so many tasks and nodes in
    all, with threads of each task; "" if it lets it start. What it refuses, and what it warns of,
    goes to the log of the site. Raises GuardFailed."""
    if not programs:
        return ""
    line = [os.fspath(guard), "launch", "-n", str(tasks), "-N", str(nodes)]
    line += ["-c", str(threads), "--"]
    for program in programs:
        line += [program, ":"]
    try:
        done = subprocess.run(line, capture_output=True, timeout=PATIENCE_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise GuardFailed(str(error)) from error
    if done.returncode not in (0, 1):
        raise GuardFailed(f"{guard} ended with exit code {done.returncode}")
    lines = [line.split("\t", 1) for line in done.stdout.decode(errors="replace").splitlines()]
    sentences = [text for word, text in lines if word == "refuse"] if done.returncode else []
    return "; ".join(sentences)
