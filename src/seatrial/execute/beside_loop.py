"""What may hang is done beside the loop: commands of the site in a time limit, calls in threads.

    shell = Shell("cat /proc/loadavg", timeout=10)
    result = await shell.run({"TRIAL": "t"})      # never raises for what the command does
    result.output, result.failure                 # failure is "" where it succeeded

No short bash command waits longer than its time limit: the command and its child processes are
killed then. A command that cannot be killed, as it hangs in a file system, is not started a second
time.
"""

import asyncio
import contextlib
import os
import signal
import threading
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future
from typing import Any, TypeVar

from msgspec import Struct

from seatrial.units import show_seconds

MAX_OUTPUT_BYTES = 4096
LAST_WORDS = 200
GRACE_SECONDS = 1.0


_Process = asyncio.subprocess.Process


class CommandResult(Struct, frozen=True):
    """The beginning of the output of a command, and its failure ("" where it succeeded)."""

    output: str
    failure: str


class Shell:
    """One command; one process of it runs at a time. ``longest`` bytes of its output are kept."""

    def __init__(self, command: str, timeout: float, longest: int = MAX_OUTPUT_BYTES) -> None:
        self.command = command
        self.timeout = timeout
        self.longest = longest
        self._stuck: _Process | None = None

    async def run(self, variables: Mapping[str, str] | None = None) -> CommandResult:
        """Run the command with these variables added to the environment."""
        if self._stuck is not None and self._stuck.returncode is None:
            return CommandResult("", "it still hangs since its last run, and cannot be killed")
        out, errors = _Pipe(self.longest), _Pipe(MAX_OUTPUT_BYTES)
        try:
            process = await _start(self.command, variables or {}, out, errors)
            ended = await self._watched(process, out, errors)
        except (OSError, ValueError) as error:  # ValueError: a zero byte
            return CommandResult("", f"it cannot be started: {error}")
        finally:
            out.close()
            errors.close()
        if not ended:
            return CommandResult(out.text, f"it did not end in {show_seconds(self.timeout)}")
        return CommandResult(out.text, _failure(process.returncode or 0, errors.text or out.text))

    async def _watched(self, process: _Process, out: "_Pipe", errors: "_Pipe") -> bool:
        """Return whether the process ended in time. Afterwards nothing of it runs, except what
        cannot be killed."""
        ended = False
        try:
            await out.listen()
            await errors.listen()
            ended = await ends_within(process, self.timeout)
        finally:
            kill_group(process.pid)  # with its background processes
            if not ended and not await ends_within(process, GRACE_SECONDS):
                self._stuck = process
        await out.end()
        await errors.end()
        return ended


def _failure(code: int, said: str) -> str:
    if code == 0:
        return ""
    last = " ".join(said.split())[-LAST_WORDS:]
    what = f"exit code {code}" if code > 0 else f"signal {-code}"
    return f"it ended with {what}" + (f": {last}" if last else "")


async def _start(
    command: str, variables: Mapping[str, str], out: "_Pipe", errors: "_Pipe"
) -> _Process:
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


async def ends_within(process: _Process, seconds: float) -> bool:
    """Return whether a process ends within some seconds."""
    return await _is_done_within(process.wait(), seconds)


async def read_to_end(process: _Process) -> None:
    """Read what an ended process left in its pipes, which closes them: pipes that outlive their
    event loop are told as errors. A process that left its group may hold them open for longer."""
    await _is_done_within(process.communicate(), GRACE_SECONDS)


async def _is_done_within(work: Coroutine[Any, Any, object], seconds: float) -> bool:
    """Return whether a coroutine is done within some seconds; cancel it if not. Unlike
    asyncio.timeout of Python 3.11, this works in a task that is being cancelled."""
    task = asyncio.ensure_future(work)
    try:
        done, _ = await asyncio.wait({task}, timeout=seconds)
    finally:
        task.cancel()
    return bool(done)


def kill_group(group: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


class _Pipe(asyncio.Protocol):
    """Reads all that is written into ``writing``, and keeps the beginning."""

    def __init__(self, longest: int) -> None:
        self._longest = longest
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
        self._kept += data[: self._longest - len(self._kept)]

    def connection_lost(self, error: Exception | None) -> None:
        self._over.set()

    async def end(self) -> None:
        """Read the rest. A process that left the session of the command may still hold the pipe."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(GRACE_SECONDS):
                await self._over.wait()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()
        else:  # a cancelled listen() may have closed it already
            self._file.close()


# ---- threads -------------------------------------------------------------------------------------
#
# Run work that may hang, such as access to a file system, in daemon threads. Unlike the threads of
# an executor, these do not delay the exit of the interpreter.


T = TypeVar("T")


async def run_in_thread(work: Callable[[], T], name: str) -> T:
    """Return what ``work`` returns, run in a thread of its own. Raises what ``work`` raises."""
    done: Future[T] = Future()
    done.set_running_or_notify_cancel()  # so that it can no longer be cancelled

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:
            done.set_exception(error)

    threading.Thread(target=run, name=name, daemon=True).start()
    return await asyncio.wrap_future(done)
