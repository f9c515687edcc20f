"""Run a Python file in a separate process, so that it cannot harm the trial."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys


class Apart(Exception):
    """The process gave no answer; the text says why: ``took longer than 60 s``."""


def run_apart(file: str, options: list[str], question: bytes, seconds: float, cwd: str) -> bytes:
    """Return what ``file`` writes on stdout when it gets ``question`` on stdin. ``options``: of the
    interpreter. Raises Apart if it fails or takes longer than ``seconds``; it and its children are
    then killed."""
    try:
        process = subprocess.Popen(
            [sys.executable, *options, file],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=cwd,
            start_new_session=True,
        )
    except OSError as error:
        raise Apart(f"could not be started: {error.strerror}") from error
    try:
        answer, _ = process.communicate(question, timeout=seconds)
    except BaseException as error:
        _end(process)
        if isinstance(error, subprocess.TimeoutExpired):
            raise Apart(f"took longer than {seconds:g} s") from None
        raise
    if process.returncode < 0:
        raise Apart(f"was ended by signal {-process.returncode}")
    if process.returncode or not answer:
        raise Apart(f"ended with exit code {process.returncode} and without an answer")
    return answer


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill the process and its children. It is not reaped yet, so its number is still its own."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):  # discard what was not read
                pipe.close()
