"""Run a Python file, or a script of a test, in a separate process within bounds, so that it cannot
harm the trial."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

from seatrial.files import is_of_host, open_descriptor, remove_file
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


MOST_OUTPUT = 64 << 20  # bytes of a file that it writes

# dash and bash take one limit a command; KiB and blocks of 512 bytes.
_LIMITED = 'ulimit -v "$1"; ulimit -f "$2"; shift 2; exec "$@"'


def run_script(
    script: Path,
    folder: Path,
    output: Path,
    environment: Mapping[str, str],
    limit: float,
    memory: int,
) -> int:
    """Run a script in ``folder``, with its output to a new file, and return its exit code, or minus
    the signal that ended it. It and its children are killed after ``limit`` seconds. ``memory``:
    bytes that each of its processes may have. Raises TimeoutError and OSError."""
    script = script.absolute()
    command = [str(script)] if os.access(script, os.X_OK) else ["bash", str(script)]
    limits = [str(memory >> 10), str(MOST_OUTPUT >> 9)]
    remove_file(output, missing_ok=True)  # perhaps a link or a FIFO that the job left
    descriptor = open_descriptor(output, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        process = subprocess.Popen(
            ["/bin/sh", "-c", _LIMITED, "sh", *limits, *command],
            stdin=subprocess.DEVNULL,
            stdout=descriptor,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env=environment,
            start_new_session=True,
        )
    finally:
        os.close(descriptor)
    late = threading.Event()

    def kill() -> None:  # before it is reaped, so that the number is its own
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)

    def end() -> None:
        late.set()
        kill()

    timer = threading.Timer(limit, end)  # wait() with a limit of time looks only now and then
    timer.start()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    timer.cancel()
    timer.join()
    kill()  # what it left behind, too
    exit_code = process.wait()
    if late.is_set():
        raise TimeoutError
    return exit_code
