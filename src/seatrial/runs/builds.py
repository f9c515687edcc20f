"""Builds: made once per key, on this host, outside any allocation, with their log kept.

A build's directory holds its sources, what the script made, ``build.sh``, ``build.log`` and, when
it has ended, ``build.result`` with the exit code and what the binaries are linked with. The result
is written by the build's own shell, so a build that outlives a killed driver is found finished; the
lock on ``build.lock`` is held by the build's processes, so nobody builds beside one that still
runs.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import shlex
import shutil
import signal
from pathlib import Path
from typing import NamedTuple

from seatrial.machine.model import Machine
from seatrial.runs.environment import exports, preamble, toolchain_variables
from seatrial.suite.build_key import build_parameters
from seatrial.suite.model import Case, Test
from seatrial.units import seconds, show_seconds

LOG_TAIL = 2000

_SCRIPT = """\
#!/bin/bash
cd {directory} || exit 91
{environment}
(
. {directory}/build.script
)
code=$?
{{ echo "$code"; for file in *; do
  if [ -f "$file" ] && [ -x "$file" ]; then echo "$file:"; ldd "$file" 2> /dev/null; fi
done; }} > build.result.new
mv build.result.new build.result
exit "$code"
"""


class BuildResult(NamedTuple):
    """``code`` 0 is good, 23 a timeout, else a failure; ``text`` is the tail of the log."""

    code: int
    text: str


async def build(directory: Path, test: Test, case: Case, machine: Machine) -> BuildResult:
    """Build, or take over what an earlier driver left. Never raises for what the build does."""
    assert test.build is not None
    try:
        directory.mkdir(parents=True, exist_ok=True)
        lock = await _lock(directory / "build.lock")
    except OSError as error:
        return BuildResult(1, f"{directory}: {error.strerror}")
    try:
        done = _result(directory)
        if done is None:
            _stage(directory, test, case, machine)
            done = await _run(directory, lock, seconds(test.build.timeout))
        return done
    except OSError as error:
        return BuildResult(1, f"{error.filename or directory}: {error.strerror}")
    finally:
        os.close(lock)


def _stage(directory: Path, test: Test, case: Case, machine: Machine) -> None:
    """Write the scripts and copy the sources, as ``cp -r`` would, into an empty directory: what an
    interrupted build left is not built upon."""
    assert test.build is not None
    for left in directory.iterdir():
        if left.is_dir() and not left.is_symlink():
            shutil.rmtree(left)
        elif left.name != "build.lock":
            left.unlink()
    parameters = build_parameters(test.build, case.parameters)
    environment = exports({**parameters, "BUILD": str(directory)})
    environment += exports(toolchain_variables(machine, case.toolchain))
    environment += preamble(machine, test, case.toolchain)
    for source in map(Path, test.build.sources):
        target = directory / source.name
        if source.is_dir():
            shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
        else:
            shutil.copy2(source, target)
    quoted = shlex.quote(str(directory))
    (directory / "build.script").write_text(test.build.script + "\n")
    (directory / "build.sh").write_text(
        _SCRIPT.format(directory=quoted, environment=environment.rstrip())
    )


async def _run(directory: Path, lock: int, timeout: float) -> BuildResult:
    with (directory / "build.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            "bash",
            str(directory / "build.sh"),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            pass_fds=(lock,),
        )
    try:
        await asyncio.wait_for(process.wait(), timeout)
    except TimeoutError:
        _kill(process.pid)
        await process.wait()
        return BuildResult(23, f"not done after {show_seconds(timeout)}\n{log_tail(directory)}")
    except asyncio.CancelledError:
        _kill(process.pid)
        raise
    return _result(directory) or BuildResult(1, f"it was killed\n{log_tail(directory)}")


def _kill(process_group: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process_group, signal.SIGKILL)


def _result(directory: Path) -> BuildResult | None:
    try:
        first = (directory / "build.result").read_text(errors="replace").partition("\n")[0]
        code = int(first)
    except (OSError, ValueError):
        return None
    return (
        BuildResult(0, "") if code == 0 else BuildResult(1, log_tail(directory) or f"exit {code}")
    )


def log_tail(directory: Path) -> str:
    """The last lines of a build's log."""
    try:
        with (directory / "build.log").open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - LOG_TAIL))
            return log.read().decode(errors="replace").strip()
    except OSError:
        return ""


async def _lock(path: Path) -> int:
    """Wait for the lock of a build, which an orphaned build may still hold."""
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return lock
        except BlockingIOError:
            await asyncio.sleep(0.1)
        except BaseException:
            os.close(lock)
            raise
