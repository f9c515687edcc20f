"""Run a Python file in a separate process, so that it cannot harm the trial."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys

from seatrial.files import is_of_host
from seatrial.verify.reading import HostFailed


class Apart(Exception):
    """The process gave no answer; the text says why: ``took longer than 60 s``."""


def run_apart(file: str, options: list[str], question: bytes, seconds: float) -> bytes:
    """Return what ``file`` writes on stdout when it gets ``question`` on stdin. ``options``: of the
    interpreter. Raises HostFailed if this host cannot start it, Apart if it fails or takes longer
    than ``seconds``; it and its children are then killed."""
    try:
        process = subprocess.Popen(
            [sys.executable, *options, file],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        )
    except OSError as error:
        if is_of_host(error):
            raise HostFailed(f"a process cannot be started: {error.strerror}") from error
        raise Apart(f"could not be started: {error.strerror}") from error
    with process:
        try:
            answer, _ = process.communicate(question, timeout=seconds)
        except BaseException as error:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)  # not reaped yet, so the number is its own
            if isinstance(error, subprocess.TimeoutExpired):
                raise Apart(f"took longer than {seconds:g} s") from None
            raise
    if process.returncode < 0:
        raise Apart(f"was ended by signal {-process.returncode}")
    if process.returncode or not answer:
        raise Apart(f"ended with exit code {process.returncode} and without an answer")
    return answer
