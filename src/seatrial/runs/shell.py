"""Commands of the site's: short bash that is run beside a trial, with a time limit.

    shell = Shell("cat /proc/loadavg", timeout=10)
    said = await shell.run({"TRIAL": "t"})        # never raises for what the command does
    said.why, said.out                            # why is "" where it ended well

Whatever the command does, nothing waits for it longer than its time: what it started is killed,
what cannot be killed (it hangs in a file system) is left alone, and not started again beside it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping
from typing import NamedTuple

from seatrial.units import show_seconds

MAX_OUTPUT_BYTES = 4096
LAST_WORDS = 200
GRACE_SECONDS = 1.0


_Process = asyncio.subprocess.Process


class Said(NamedTuple):
    """The beginning of what a command printed, and why it counts as failed ("": it does not)."""

    out: str
    why: str


class Shell:
    """One command, which runs once at a time."""

    def __init__(self, command: str, timeout: float) -> None:
        self.command = command
        self.timeout = timeout
        self._stuck: _Process | None = None

    async def run(self, variables: Mapping[str, str] | None = None) -> Said:
        """Run it, with these variables beside the environment."""
        if self._stuck is not None and self._stuck.returncode is None:
            return Said("", "it still hangs since it was last run, and cannot be killed")
        out, errors = _Pipe(), _Pipe()
        try:
            process = await _start(self.command, variables or {}, out, errors)
            ended = await self._watched(process, out, errors)
        except (OSError, ValueError) as error:  # ValueError: a zero byte
            return Said("", f"it cannot be started: {error}")
        finally:
            out.close()
            errors.close()
        if not ended:
            return Said(out.text, f"it did not end in {show_seconds(self.timeout)}")
        return Said(out.text, _why(process.returncode or 0, errors.text or out.text))

    async def _watched(self, process: _Process, out: _Pipe, errors: _Pipe) -> bool:
        """Whether it ended in its time; all of it is over then, but what cannot be killed."""
        ended = False
        try:
            await out.listen()
            await errors.listen()
            ended = await _within(process, self.timeout)
        finally:
            _kill(process.pid)  # and what it left in the background
            if not ended and not await _within(process, GRACE_SECONDS):
                self._stuck = process
        await out.end()
        await errors.end()
        return ended


def _why(code: int, said: str) -> str:
    if code == 0:
        return ""
    last = " ".join(said.split())[-LAST_WORDS:]
    what = f"exit code {code}" if code > 0 else f"signal {-code}"
    return f"it ended with {what}" + (f": {last}" if last else "")


async def _start(command: str, variables: Mapping[str, str], out: _Pipe, errors: _Pipe) -> _Process:
    try:
        return await asyncio.create_subprocess_exec(
            *("bash", "-c", command),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=out.writing,
            stderr=errors.writing,
            env={**os.environ, **variables},
            start_new_session=True,
        )
    finally:
        os.close(out.writing)
        os.close(errors.writing)


async def _within(process: _Process, seconds: float) -> bool:
    """Whether it ends in that time."""
    try:
        async with asyncio.timeout(seconds):
            await process.wait()
    except TimeoutError:
        return False
    return True


def _kill(group: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


class _Pipe(asyncio.Protocol):
    """What is written into ``writing``: its beginning is kept, all of it is read."""

    def __init__(self) -> None:
        reading, self.writing = os.pipe()
        self._file = os.fdopen(reading, "rb", buffering=0)
        self._transport: asyncio.BaseTransport | None = None
        self._kept = bytearray()
        self._over = asyncio.Event()

    @property
    def text(self) -> str:
        return self._kept.decode(errors="replace")

    async def listen(self) -> None:
        loop = asyncio.get_running_loop()
        self._transport, _ = await loop.connect_read_pipe(lambda: self, self._file)

    def data_received(self, data: bytes) -> None:
        self._kept += data[: MAX_OUTPUT_BYTES - len(self._kept)]

    def connection_lost(self, error: Exception | None) -> None:
        self._over.set()

    async def end(self) -> None:
        """Read what is still there; who left the session of the command may hold it open."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(GRACE_SECONDS):
                await self._over.wait()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()
        else:  # a cancelled listen() may have closed it: the file knows
            self._file.close()
