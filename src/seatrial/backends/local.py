"""Jobs as processes of this host, each in a session of its own.

They outlive the driver: after a restart they are found again by their job script's path among the
running processes, and waited for through the kernel's process file descriptors.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from seatrial.backends.protocol import (
    Ended,
    Fact,
    Job,
    NeverStarted,
    Queued,
    Refused,
    Submission,
)
from seatrial.journal.codes import CANCELLED, LOST, TIMEOUT
from seatrial.runs.directory import job_events

GRACE_SECONDS = 5.0


class _Process:
    """A running job: its process, the kernel's handle on it, and how it is being ended."""

    def __init__(self, job: Job, pid: int, handle: int) -> None:
        self.job = job
        self.pid = pid
        self.handle = handle
        self.timers: list[asyncio.TimerHandle] = []
        self.ending: int | None = None


class LocalBackend:
    """``cores`` is what runs share."""

    durable = False
    jobs = 0

    def __init__(self, cores: int) -> None:
        self.room = cores
        self._running: dict[str, _Process] = {}
        self._facts: deque[Fact] = deque()
        self._news = asyncio.Event()
        self._null = -1

    async def open(self) -> None:
        self._null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)

    def arrange(self, jobs: Sequence[Job]) -> list[Submission]:
        return [Submission(job.run_id, (job,)) for job in jobs]

    def write(self, submission: Submission) -> None:
        pass  # the job scripts are all that there is

    async def submit(self, submission: Submission) -> None:
        for job in submission.jobs:
            try:
                pid = self._spawn(job)
            except OSError as error:
                self._report(Refused(job.run_id, f"cannot start bash: {error.strerror}"))
                continue
            self._watch(job, pid, job.walltime)
            self._report(Queued(job.run_id, str(pid)))

    def _spawn(self, job: Job) -> int:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        return os.posix_spawn(
            "/bin/bash",
            ["bash", str(job.path / "job.sh")],
            os.environ,
            file_actions=[
                (os.POSIX_SPAWN_DUP2, self._null, 0),
                (os.POSIX_SPAWN_OPEN, 1, str(job.path / "stdout"), flags, 0o644),
                (os.POSIX_SPAWN_OPEN, 2, str(job.path / "stderr"), flags, 0o644),
            ],
            setsid=True,
            setsigdef=[signal.SIGINT, signal.SIGPIPE],
        )

    def _watch(self, job: Job, pid: int, seconds_left: float) -> None:
        process = _Process(job, pid, os.pidfd_open(pid))
        self._running[job.run_id] = process
        loop = asyncio.get_running_loop()
        loop.add_reader(process.handle, self._on_exit, process)
        timer = loop.call_later(max(0.0, seconds_left), self._end, process, TIMEOUT.number)
        process.timers.append(timer)

    def _on_exit(self, process: _Process) -> None:
        asyncio.get_running_loop().remove_reader(process.handle)
        os.close(process.handle)
        for timer in process.timers:
            timer.cancel()
        del self._running[process.job.run_id]
        with contextlib.suppress(ProcessLookupError):  # what the job left in the background
            os.killpg(process.pid, signal.SIGKILL)
        exit_code = _reap(process.pid)
        if exit_code is None:  # not our child: an earlier driver started it
            exit_code = job_events(process.job.path).exit_code
        self._report(_ended(process.job, process.ending, exit_code))

    def _end(self, process: _Process, code: int) -> None:
        """Ask the job's processes to end, and make them after the grace time."""
        if process.ending is None:
            process.ending = code
            self._signal(process, signal.SIGTERM)
            loop = asyncio.get_running_loop()
            timer = loop.call_later(GRACE_SECONDS, self._signal, process, signal.SIGKILL)
            process.timers.append(timer)

    def _signal(self, process: _Process, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)

    async def find(self, submissions: Sequence[Submission], known: dict[str, str]) -> None:
        alive = dict(_job_processes())
        for submission in submissions:
            for job in submission.jobs:
                events = job_events(job.path)
                pid = alive.get(str(job.path / "job.sh"))
                if pid is not None:
                    began = events.start.time if events.start else None
                    self._adopt(job, pid, began)
                elif events.end is not None:
                    self._report(Ended(job.run_id, None, "exited", events.exit_code))
                elif events.claimed:
                    self._report(Ended(job.run_id, LOST.number, "vanished", None))
                else:
                    self._report(NeverStarted(job.run_id))

    def _adopt(self, job: Job, pid: int, began: int | None) -> None:
        import time

        passed = (time.time_ns() - began) / 1e9 if began else 0.0
        try:
            self._watch(job, pid, job.walltime - passed)
        except ProcessLookupError:  # it ended just now
            exit_code = job_events(job.path).exit_code
            self._report(_ended(job, None, exit_code))
        else:
            self._report(Queued(job.run_id, str(pid)))

    async def cancel(self, run_ids: Collection[str]) -> None:
        for run_id in run_ids:
            if process := self._running.get(run_id):
                self._end(process, CANCELLED.number)

    async def facts(self) -> list[Fact]:
        await self._news.wait()
        self._news.clear()
        facts = list(self._facts)
        self._facts.clear()
        return facts

    async def close(self) -> None:
        loop = asyncio.get_running_loop()
        for process in self._running.values():
            loop.remove_reader(process.handle)
            os.close(process.handle)
            for timer in process.timers:
                timer.cancel()
        self._running.clear()
        os.close(self._null)

    def _report(self, fact: Fact) -> None:
        self._facts.append(fact)
        self._news.set()


def _ended(job: Job, ending: int | None, exit_code: int | None) -> Ended:
    if ending is not None:
        state = "timeout" if ending == TIMEOUT.number else "cancelled"
        return Ended(job.run_id, ending, state, exit_code)
    if exit_code is None:
        return Ended(job.run_id, LOST.number, "vanished", None)
    return Ended(job.run_id, None, "exited", exit_code)


def _reap(pid: int) -> int | None:
    """The exit code as a shell tells it (128 + signal); None if it is not our child."""
    try:
        _, status = os.waitpid(pid, 0)
    except ChildProcessError:
        return None
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _job_processes() -> Iterator[tuple[str, int]]:
    """(path of the job script, pid) of every job's shell that runs on this host."""
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit():
            continue
        try:
            words = Path(entry.path, "cmdline").read_bytes().split(b"\0")
            leads = os.getsid(int(entry.name)) == int(entry.name)
        except OSError:
            continue
        if leads and len(words) == 3 and words[1].endswith(b"/job.sh"):
            yield os.fsdecode(words[1]), int(entry.name)
