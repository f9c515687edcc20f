"""A backend that runs jobs as processes of this host, each in a session of its own.

Jobs outlive the driver. A new driver finds them among the running processes by the path of their
job script, and waits for them by the kernel's process file descriptors.

To end a job the backend sends SIGTERM to all processes of its session, and SIGKILL after a grace
time. A launcher may have put some of them into process groups of their own.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import signal
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from seatrial.backends.protocol import (
    Ended,
    Job,
    NeverStarted,
    Queued,
    Refused,
    Started,
    Submission,
    Trouble,
    Update,
)
from seatrial.backends.update_queue import UpdateQueue
from seatrial.errors import BackendError
from seatrial.files import is_of_host
from seatrial.journal.codes import CANCELLED, LOST, TIMEOUT
from seatrial.runs.directory import holds_output, job_events, set_aside
from seatrial.units import SECOND_NS

GRACE_SECONDS = 5.0
SHORTEST_PAUSE = 0.02
STARTING_SECONDS = 0.2
LOOK_SECONDS = 0.05
CLOCK_SLACK_NS = 2 * SECOND_NS  # by which the wall clock may be adjusted after a boot
QUICK_SECONDS = 1.0  # within this time process ids do not wrap around


@dataclass(eq=False)
class _Process:
    """A running job: its process, the pidfd (None where the kernel has none), the time of its start
    by the loop's clock, and the verdict code for which it is being ended."""

    job: Job
    pid: int
    handle: int | None
    began: float
    walltime: asyncio.TimerHandle = field(init=False)
    look: asyncio.Handle | None = None
    ending: int | None = None
    end: asyncio.Task[None] | None = None
    exited: asyncio.Event = field(default_factory=asyncio.Event)


class LocalBackend:
    """Runs jobs on this host. ``cores`` are the cores that runs share; ``environment`` is what
    jobs get, by default that of this process."""

    durable = False
    jobs = 0

    def __init__(self, cores: int, environment: Mapping[str, str] | None = None) -> None:
        self.room = cores
        self._running: dict[str, _Process] = {}
        self._unwanted: set[str] = set()  # cancelled before they were running
        self._updates = UpdateQueue()
        self._null = -1
        given = os.environ if environment is None else environment
        # Bytes are not encoded anew for each run.
        self._environment = {os.fsencode(name): os.fsencode(text) for name, text in given.items()}

    async def open(self) -> None:
        self._null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)

    def arrange(self, jobs: Sequence[Job]) -> list[Submission]:
        return [Submission(job.run_id, (job,)) for job in jobs]

    def write(self, submission: Submission) -> None:
        pass  # there are no files but the job scripts

    async def submit(self, submission: Submission) -> None:
        for job in submission.jobs:
            if job.run_id in self._unwanted:
                ended = Ended(job.run_id, CANCELLED.number, "never started", None)
                self._updates.report(ended)
                continue
            try:
                pid = self._spawn(job)
            except OSError as error:
                if is_of_host(error):
                    raise BackendError(
                        f"{job.path}: the run cannot be started: {error.strerror}; "
                        "see to this host, then resume the trial"
                    ) from error
                reason = f"{job.path}: bash cannot be started there: {error.strerror}"
                self._updates.report(Refused(job.run_id, reason))
                continue
            self._watch(job, pid, 0.0)
            self._updates.report(Queued(job.run_id, str(pid)))
            self._updates.report(Started(job.run_id))

    def free_directory(self, path: Path) -> Path | None:
        if not holds_output(path):
            return None
        if pid := dict(_job_processes()).get(os.path.realpath(path / "job.sh")):
            raise BackendError(
                f"{path}: process {pid} runs there, of which the journal knows nothing; "
                "end it, then resume the trial"
            )
        return set_aside(path)

    def _spawn(self, job: Job) -> int:
        flags = os.O_WRONLY | os.O_CREAT
        return os.posix_spawn(
            "/bin/bash",
            ["bash", f"{job.path}/job.sh"],
            self._environment,
            file_actions=[
                (os.POSIX_SPAWN_DUP2, self._null, 0),
                (os.POSIX_SPAWN_OPEN, 1, f"{job.path}/stdout", flags, 0o644),
                (os.POSIX_SPAWN_OPEN, 2, f"{job.path}/stderr", flags, 0o644),
            ],
            setsid=True,
            setsigdef=[signal.SIGINT, signal.SIGPIPE],
        )

    def _watch(self, job: Job, pid: int, age: float) -> None:
        loop = asyncio.get_running_loop()
        process = _Process(job, pid, _handle(pid), loop.time() - age)
        self._running[job.run_id] = process
        process.walltime = loop.call_at(process.began + job.walltime, self._on_walltime, process)
        if process.handle is None:
            process.look = loop.call_soon(self._look, process)
        else:
            loop.add_reader(process.handle, self._on_exit, process)

    def _look(self, process: _Process) -> None:
        """Check at intervals whether a process has ended."""
        if _is_over(process.pid):
            self._on_exit(process)
        else:
            loop = asyncio.get_running_loop()
            process.look = loop.call_later(LOOK_SECONDS, self._look, process)

    def _on_exit(self, process: _Process) -> None:
        """Handle the exit of the shell of a job. Its process id cannot be reused, and can be
        signalled safely, until it is reaped."""
        self._unwatch(process)
        if process.ending is None:
            lived = asyncio.get_running_loop().time() - process.began
            _end_rest(process.pid, lived)
            if _outlived(process.job, lived):
                process.ending = TIMEOUT.number
            self._conclude(process)
        else:
            process.exited.set()

    def _on_walltime(self, process: _Process) -> None:
        """End a job that has reached its walltime. After this process was stopped for a while
        (SIGSTOP, a suspended host) the loop calls timers before it sees the ends of jobs; a job
        that has ended is therefore judged by its own times."""
        if _is_over(process.pid):
            self._on_exit(process)
        else:
            self._end(process, TIMEOUT.number)

    def _unwatch(self, process: _Process) -> None:
        if process.handle is not None:
            asyncio.get_running_loop().remove_reader(process.handle)
            os.close(process.handle)
        elif process.look is not None:
            process.look.cancel()
        process.walltime.cancel()

    def _conclude(self, process: _Process) -> None:
        del self._running[process.job.run_id]
        exit_code = _reap(process.pid)
        if exit_code is None:  # a child of an earlier driver
            exit_code = job_events(process.job.path).exit_code
        self._updates.report(_ended(process.job, process.ending, exit_code))

    def _end(self, process: _Process, code: int) -> None:
        if process.ending is None:
            process.ending = code
            process.end = asyncio.get_running_loop().create_task(self._end_session(process))

    async def _end_session(self, process: _Process) -> None:
        """End the processes of a job with SIGTERM, and after the grace time with SIGKILL. The grace
        time is for all of them, also when the shell exits at once: mpirun may have to clean up."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + GRACE_SECONDS
        _signal(process.pid, signal.SIGTERM)
        pause = SHORTEST_PAUSE
        while _session(process.pid, _pids()) and loop.time() < deadline:
            await asyncio.sleep(max(0.0, min(pause, deadline - loop.time())))
            pause *= 2
        _signal(process.pid, signal.SIGKILL)
        await process.exited.wait()
        self._conclude(process)

    async def find(self, submissions: Sequence[Submission], known: dict[str, str]) -> None:
        alive = dict(_job_processes())
        for submission in submissions:
            for job in submission.jobs:
                events = job_events(job.path)
                pid = alive.get(os.path.realpath(job.path / "job.sh"))
                if pid is not None:
                    self._adopt(job, pid)
                elif events.end is not None and events.end.time < _booted_ns() + CLOCK_SLACK_NS:
                    # What it wrote may be cut, as it was not on the disk when the host crashed.
                    self._updates.report(Ended(job.run_id, LOST.number, "host restarted", None))
                elif events.claimed:
                    self._updates.report(_ended(job, None, events.exit_code))
                else:
                    self._updates.report(NeverStarted(job.run_id))

    def _adopt(self, job: Job, pid: int) -> None:
        try:
            self._watch(job, pid, _age(pid))
        except (ProcessLookupError, FileNotFoundError):  # it has just ended
            exit_code = job_events(job.path).exit_code
            self._updates.report(_ended(job, None, exit_code))
        else:
            self._updates.report(Queued(job.run_id, str(pid)))

    async def cancel(self, run_ids: Collection[str], pending_only: bool = False) -> None:
        for run_id in run_ids:
            if process := self._running.get(run_id):
                if not pending_only:
                    self._end(process, CANCELLED.number)
            else:
                self._unwanted.add(run_id)

    def watch_nodes(self, down: Collection[str]) -> None:
        pass  # this host itself is up

    async def updates(self) -> list[Update]:
        return await self._updates.take()

    def recovered(self) -> list[Trouble]:
        return []

    async def close(self) -> None:
        for process in self._running.values():
            if process.end is not None:
                process.end.cancel()
            if not process.exited.is_set():
                self._unwatch(process)
        self._running.clear()
        if self._null >= 0:
            os.close(self._null)
            self._null = -1


def _ended(job: Job, ending: int | None, exit_code: int | None) -> Ended:
    if ending is not None:
        state = "timeout" if ending == TIMEOUT.number else "cancelled"
        return Ended(job.run_id, ending, state, exit_code)
    if exit_code is None:
        return Ended(job.run_id, LOST.number, "vanished", None)
    return Ended(job.run_id, None, "exited", exit_code)


def _outlived(job: Job, lived: float) -> bool:
    """Return whether a job ended after its walltime. A busy loop may see the end of a job before it
    sees the timeout, and both late; so the job's own time of its end decides."""
    longest = job.walltime + LOOK_SECONDS
    if lived <= longest:
        return False
    end = job_events(job.path).end
    return end is None or lived - (time.time() - end.time / 1e9) > longest


def _booted_ns() -> int:
    """Return when this host booted, by its wall clock."""
    return time.time_ns() - time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def _handle(pid: int) -> int | None:
    """Return a pidfd of a process; None before Linux 5.3 (RHEL 8 has 4.18). Raises
    ProcessLookupError where there is no such process."""
    try:
        return os.pidfd_open(pid)
    except OSError as error:
        if error.errno != errno.ENOSYS:
            raise
        os.kill(pid, 0)
        return None


def _is_over(pid: int) -> bool:
    try:
        return _stat(pid)[0] in "ZX"
    except OSError:
        return True


def _reap(pid: int) -> int | None:
    """Return the exit code as a shell reports it (128 + signal); None where the process is no child
    of ours."""
    try:
        _, status = os.waitpid(pid, 0)
    except ChildProcessError:
        return None
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _end_rest(leader: int, age: float) -> None:
    """Kill the background processes of a job, in its own process group and in others. To check all
    processes of the host would take longer than a quick run. Process ids are given out in turn, so
    those of a quick job are between its own and the latest."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)
    latest = int(Path("/proc/loadavg").read_text().split()[-1])
    quick = age < QUICK_SECONDS and leader <= latest
    _signal(leader, signal.SIGKILL, range(leader, latest + 1) if quick else None)


def _signal(leader: int, number: int, among: Iterable[int] | None = None) -> None:
    """Send a signal to the processes of a session, of these or of all on the host."""
    for pid in _session(leader, _pids() if among is None else among):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _session(leader: int, among: Iterable[int]) -> list[int]:
    """Return the processes of a session that have not ended."""
    pids = []
    for pid in among:
        with contextlib.suppress(OSError):
            if os.getsid(pid) == leader and _stat(pid)[0] not in "ZX":
                pids.append(pid)
    return pids


def _age(pid: int) -> float:
    """Return the age of a process in seconds, independent of changes of the clock."""
    started = int(_stat(pid)[19]) / os.sysconf("SC_CLK_TCK")
    return time.clock_gettime(time.CLOCK_BOOTTIME) - started


def _stat(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat from the third on: state, parent, group, session, ..."""
    text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    return text.rpartition(")")[2].split()


def _pids() -> Iterator[int]:
    return (int(entry.name) for entry in os.scandir("/proc") if entry.name.isdigit())


def _job_processes() -> Iterator[tuple[str, int]]:
    """Yield (real path of the job script, pid) of each shell that runs a job on this host. The path
    is resolved because the trial may have several."""
    for pid in _pids():
        try:
            words = _command(pid).split(b"\0") if os.getsid(pid) == pid else []
        except OSError:
            continue
        if len(words) == 3 and words[1].endswith(b"/job.sh"):
            yield os.path.realpath(os.fsdecode(words[1])), pid


def _command(pid: int) -> bytes:
    """Return the command line of a process. It is empty for a moment while a process starts, so
    wait for that: a job that is not recognised would be started again."""
    deadline = time.monotonic() + STARTING_SECONDS
    while True:
        line = Path(f"/proc/{pid}/cmdline").read_bytes()
        if line or _stat(pid)[0] in "ZX" or time.monotonic() > deadline:
            return line
        time.sleep(0.001)
