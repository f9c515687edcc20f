"""Run a script of a test within bounds of time, memory and output."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path

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
    output.unlink(missing_ok=True)  # perhaps a link or a FIFO that the job left
    descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
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
