"""A backend that runs jobs as processes of this host, each in a session of its own.

Jobs outlive the driver. A new driver finds them among the running processes by the file of their
job script, and waits for them by the kernel's process file descriptors.

To end a job the backend sends SIGTERM to all its processes, and SIGKILL after a grace time. A
launcher may have put some of them into process groups or sessions of their own.
"""

import asyncio
import contextlib
import errno
import os
import re
import shlex
import signal
import stat
import time
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from msgspec import Struct

from seatrial.errors import BackendError
from seatrial.execute.backends import (
    PROGRESS,
    Bundles,
    BundleWatch,
    Disturbed,
    Job,
    JobEnd,
    NeverStarted,
    Queued,
    Refused,
    Started,
    Submission,
    Trouble,
    allocation_of,
    arranged,
    bundle_files,
)
from seatrial.execute.beside_loop import Shell
from seatrial.execute.detect import VISIBLE, shown_gpus
from seatrial.execute.directory import holds_output, job_events, set_aside
from seatrial.execute.environment import write_script
from seatrial.execute.runs import COLLECT_SECONDS, MAX_WAITS_BYTES
from seatrial.files import is_of_host, make_folder, remove_file
from seatrial.model.codes import CANCELLED, LOST, TIMEOUT
from seatrial.units import count

GRACE_SECONDS = 5.0
SHORTEST_PAUSE = 0.02
LOOK_SECONDS = 0.05
LONGEST_PAUSE = 0.5  # between two looks at a bundle

_OF_TRIAL = r"/runs/[^/]+/[^/]+$"  # a run's directory in the folder of its trial

_STATES: dict[int | None, str] = {TIMEOUT.number: "timeout", CANCELLED.number: "cancelled"}


@dataclass(eq=False)
class _Process:
    """A running job: its process, the pidfd (None where the kernel has none), the time of its start
    by the loop's clock, the verdict code for which it is being ended, and its GPUs; for a bundle
    what it follows its runs by, and when it looks next."""

    job: Job
    pid: int
    handle: int | None
    began: float
    walltime: asyncio.TimerHandle = field(init=False)
    look: asyncio.Handle | None = None
    ending: int | None = None
    end: asyncio.Task[None] | None = None
    exited: asyncio.Event = field(default_factory=asyncio.Event)
    gpus: list[str] = field(default_factory=list)
    bundle: BundleWatch | None = None
    progress: asyncio.TimerHandle | None = None


class LocalBackend:
    """Runs jobs on this host. ``cores`` are the cores that runs share; ``environment`` is what
    jobs get, by default that of this process; ``gpus`` is the number of GPUs, of which each job is
    shown those that it asks for; ``submissions`` is the folder for the scripts of bundles."""

    jobs = 0

    def __init__(
        self,
        cores: int,
        environment: Mapping[str, str] | None = None,
        gpus: int = 0,
        submissions: Path = Path("submissions"),
    ) -> None:
        self.room = cores
        self._submissions = submissions
        self.gpus = gpus
        self._running: dict[str, _Process] = {}
        self._unwanted: set[str] = set()  # cancelled before they were running
        self.inbox: asyncio.Queue[Any] = asyncio.Queue()
        self._report = self.inbox.put_nowait
        self._bundles = Bundles[_Process](self._report)
        self._null = -1
        given = os.environ if environment is None else environment
        # Bytes are not encoded anew for each run.
        self._environment = {os.fsencode(name): os.fsencode(text) for name, text in given.items()}
        self._gpus = LocalGpus(gpus, given)

    async def open(self) -> None:
        self._null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)

    def arrange(self, jobs: Sequence[Job]) -> list[Submission]:
        return arranged(jobs, lambda alone: [Submission(job.run_id, (job,)) for job in alone])

    def write(self, submission: Submission) -> None:
        """Write the script of a bundle; for other jobs there are no files but theirs."""
        if submission.is_bundle:
            folder = self._submissions / submission.name
            make_folder(folder)
            for name, text in bundle_files(folder, submission).items():
                write_script(folder / name, text)

    async def submit(self, submission: Submission) -> None:
        unwanted = [job for job in submission.jobs if job.run_id in self._unwanted]
        for job in unwanted:
            self._report(JobEnd(job.run_id, CANCELLED.number, "never started", None))
        jobs = tuple(job for job in submission.jobs if job not in unwanted)
        if jobs and submission.is_bundle:
            self._submit_bundle(submission._replace(jobs=jobs))
        else:
            for job in jobs:
                if (started := self._start(job, [job])) is not None:
                    self._watch(job, *started)
                    self._report(Started(job.run_id))

    def _submit_bundle(self, submission: Submission) -> None:
        folder = self._submissions / submission.name
        try:
            self.write(submission)
            # It has no process now: what is there, is of one that never began a run.
            for left in (folder / PROGRESS, *folder.glob("cancel.*"), *folder.glob("skip.*")):
                remove_file(left, missing_ok=True)
        except OSError as error:
            raise BackendError(
                f"{folder}: the bundle cannot be written: {error.strerror}; correct that, then "
                "resume the trial"
            ) from error
        job = allocation_of(submission, folder)
        if (started := self._start(job, submission.jobs)) is not None:
            self._watch(job, *started, BundleWatch(folder, submission.jobs))

    def _start(self, job: Job, runs: Sequence[Job]) -> tuple[int, float, list[str]] | None:
        """Start the process of a job that does these runs. Return its id, its age, and its GPUs;
        None where it is refused."""
        self._look_for_others(job)
        try:
            gpus = self._gpus.take(job)
            environment = {**self._environment, **showing(gpus)} if gpus else self._environment
            pid = start(job.path, environment, self._null)
        except TooFewGpus as error:
            self._refuse(runs, str(error))
            return None
        except OSError as error:
            if is_of_host(error):
                raise BackendError(
                    f"{job.path}: the run cannot be started: {error.strerror}; "
                    "see to this host, then resume the trial"
                ) from error
            self._refuse(runs, f"{job.path}: bash cannot be started there: {error.strerror}")
            return None
        for run in runs:
            self._report(Queued(run.run_id, str(pid)))
        return pid, 0.0, gpus

    def _refuse(self, runs: Sequence[Job], reason: str) -> None:
        for run in runs:
            self._report(Refused(run.run_id, reason))

    def free_directory(self, path: Path) -> Path | None:
        if not holds_output(path):
            return None
        if pid := jobs_by_identity().get(script_identity(path)):
            raise BackendError(
                f"{path}: process {pid} runs there, of which the journal knows nothing; "
                "end it, then resume the trial"
            )
        return set_aside(path)

    def _look_for_others(self, job: Job) -> None:
        """Report the other trials whose jobs run beside a run that is to be alone."""
        if not job.exclusive:
            return
        ours = {one.pid for one in self._running.values()}
        beside = (each for each in job_processes() if each.pid not in ours)
        directories = {os.path.realpath(each.script).rpartition("/")[0] for each in beside}
        for other in sorted({re.sub(_OF_TRIAL, "", each) for each in directories}):
            self._report(Disturbed(job.run_id, other))

    def _watch(
        self, job: Job, pid: int, age: float, gpus: list[str], bundle: BundleWatch | None = None
    ) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time() - age
        process = _Process(job, pid, handle_of(pid), began, gpus=gpus, bundle=bundle)
        self._running[job.run_id] = process
        if bundle is not None:
            self._bundles |= dict.fromkeys(bundle.left, process)
            self._follow(process, bundle, SHORTEST_PAUSE)
        process.walltime = loop.call_at(process.began + job.walltime, self._on_walltime, process)
        if process.handle is None:
            process.look = loop.call_soon(self._look, process)
        else:
            loop.add_reader(process.handle, self._on_exit, process)

    def _follow(self, process: _Process, bundle: BundleWatch, pause: float) -> None:
        """Report what the runs of a bundle do, at intervals that grow while nothing happens."""
        updates = bundle.look()
        self._bundles.report(updates)
        pause = SHORTEST_PAUSE if updates else min(2 * pause, LONGEST_PAUSE)
        loop = asyncio.get_running_loop()
        process.progress = loop.call_later(pause, self._follow, process, bundle, pause)

    def _look(self, process: _Process) -> None:
        """Check at intervals whether a process has ended."""
        if is_over(process.pid):
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
            others = {other.pid for other in self._running.values() if other is not process}
            end_rest(process.pid, process.job.run_id, lived, others)
            if _outlived(process.job, lived):
                process.ending = TIMEOUT.number
            self._conclude(process)
        else:
            process.exited.set()

    def _on_walltime(self, process: _Process) -> None:
        """End a job that has reached its walltime. After this process was stopped for a while
        (SIGSTOP, a suspended host) the loop calls timers before it sees the ends of jobs; a job
        that has ended is therefore judged by its own times."""
        if is_over(process.pid):
            self._on_exit(process)
        else:
            self._end(process, TIMEOUT.number)

    def _unwatch(self, process: _Process) -> None:
        if process.handle is not None:
            asyncio.get_running_loop().remove_reader(process.handle)
            os.close(process.handle)
        elif process.look is not None:
            process.look.cancel()
        if process.progress is not None:
            process.progress.cancel()
        process.walltime.cancel()

    def _conclude(self, process: _Process) -> None:
        self._look_for_others(process.job)
        del self._running[process.job.run_id]
        self._gpus.give_back(process.gpus)
        exit_code = reap(process.pid)
        if process.bundle is not None:
            code, state = process.ending, _STATES.get(process.ending, "exited")
            self._bundles.report(process.bundle.settle(code, state, exit_code))
            return
        if exit_code is None:  # a child of an earlier driver
            exit_code = job_events(process.job.path).exit_code
        self._report(_ended(process.job, process.ending, exit_code))

    def _end(self, process: _Process, code: int) -> None:
        if process.ending is None:
            process.ending = code
            process.end = asyncio.get_running_loop().create_task(self._end_session(process))

    async def _end_session(self, process: _Process) -> None:
        """End the processes of a job with SIGTERM, and after the grace time with SIGKILL. The grace
        time is for all of them, also when the shell exits at once: mpirun may have to clean up."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + GRACE_SECONDS
        signal_run(process.pid, process.job.run_id, signal.SIGTERM)
        pause = SHORTEST_PAUSE
        while of_run(process.pid, process.job.run_id, pids()) and loop.time() < deadline:
            await asyncio.sleep(max(0.0, min(pause, deadline - loop.time())))
            pause *= 2
        signal_run(process.pid, process.job.run_id, signal.SIGKILL)
        await process.exited.wait()
        self._conclude(process)

    async def find(self, submissions: Sequence[Submission], known: dict[str, str]) -> None:
        alive = jobs_by_identity()
        for submission in submissions:
            if submission.is_bundle:
                folder = self._submissions / submission.name
                watch = BundleWatch(folder, submission.jobs)
                if not self._adopt(allocation_of(submission, folder), alive, watch):
                    self._bundles.report(watch.settle(None, "vanished", restarts=True))
                continue
            for job in submission.jobs:
                if self._adopt(job, alive):
                    continue
                events = job_events(job.path)
                if events.claimed:
                    self._report(_ended(job, None, events.exit_code))
                else:
                    self._report(NeverStarted(job.run_id))

    def _adopt(
        self, job: Job, alive: Mapping[tuple[int, int], int], bundle: BundleWatch | None = None
    ) -> bool:
        """Watch a job that an earlier driver started. Returns whether it runs; ``alive`` are the
        jobs of this host."""
        pid = alive.get(script_identity(job.path))
        if pid is None:
            return False
        for run_id in bundle.left if bundle is not None else (job.run_id,):
            self._report(Queued(run_id, str(pid)))
        with contextlib.suppress(ProcessLookupError, FileNotFoundError):  # it has just ended
            self._watch(job, pid, age_of(pid), self._gpus.take_over(job, pid), bundle)
            return True
        return False

    async def cancel(self, run_ids: Collection[str], pending_only: bool = False) -> None:
        for one in self._bundles.holders(run_ids):
            if one.bundle and one.bundle.cancel(run_ids, pending_only) and not pending_only:
                self._end(one, CANCELLED.number)
        for run_id in run_ids:
            if run_id in self._bundles:
                continue
            if process := self._running.get(run_id):
                if not pending_only:
                    self._end(process, CANCELLED.number)
            else:
                self._unwanted.add(run_id)

    async def inspect(self, job: Job, script: str) -> str:
        line = shlex.join(["exec", "bash", script, job.run_id, str(job.path)])
        shell = Shell(line, COLLECT_SECONDS / 2, MAX_WAITS_BYTES)
        return (await shell.run()).output

    def watch_nodes(self, down: Collection[str]) -> None:
        pass  # this host itself is up

    def followed(self) -> set[str]:
        return self._running.keys() | self._bundles.keys()

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


def _ended(job: Job, ending: int | None, exit_code: int | None) -> JobEnd:
    if ending is not None:
        return JobEnd(job.run_id, ending, _STATES[ending], exit_code)
    if exit_code is None:
        return JobEnd(job.run_id, LOST.number, "vanished", None)
    return JobEnd(job.run_id, None, "exited", exit_code)


def _outlived(job: Job, lived: float) -> bool:
    """Return whether a job ended after its walltime. A busy loop may see the end of a job before it
    sees the timeout, and both late; so the job's own time of its end decides."""
    longest = job.walltime + LOOK_SECONDS
    if lived <= longest:
        return False
    end = job_events(job.path).end
    return end is None or lived - (time.time() - end.time / 1e9) > longest


# ---- job processes -------------------------------------------------------------------------------
#
# The processes of jobs on this host, found in ``/proc``.
#
#     leader, run_id                          # a job is a shell, the leader of its session
#     of_run(leader, run_id, pids())          # the processes of the job that have not ended
#
# A process that has left the session of its job (``setsid``) is found by ``SEATRIAL_RUN`` in its
# environment, unless it cleared that, too.


STARTING_SECONDS = 0.2
QUICK_SECONDS = 1.0  # within this time process ids do not wrap around


def start(folder: Path, environment: Mapping[bytes, bytes], null: int) -> int:
    """Start the job script of a folder in a session of its own, and return its process id. Its
    output goes to files there, its input is ``null``, the descriptor of the null device."""
    flags = os.O_WRONLY | os.O_CREAT
    return os.posix_spawn(
        "/bin/bash",
        ["bash", f"{folder}/job.sh"],
        environment,
        file_actions=[
            (os.POSIX_SPAWN_DUP2, null, 0),
            (os.POSIX_SPAWN_OPEN, 1, f"{folder}/stdout", flags, 0o644),
            (os.POSIX_SPAWN_OPEN, 2, f"{folder}/stderr", flags, 0o644),
        ],
        setsid=True,
        setsigdef=[signal.SIGINT, signal.SIGPIPE],
    )


def handle_of(pid: int) -> int | None:
    """Return a pidfd of a process; None before Linux 5.3 (RHEL 8 has 4.18). Raises
    ProcessLookupError where there is no such process."""
    try:
        return os.pidfd_open(pid)
    except OSError as error:
        if error.errno != errno.ENOSYS:
            raise
        os.kill(pid, 0)
        return None


def is_over(pid: int) -> bool:
    try:
        return _stat(pid)[0] in "ZX"
    except OSError:
        return True


def reap(pid: int) -> int | None:
    """Return the exit code as a shell reports it (128 + signal); None where the process is no child
    of ours."""
    try:
        _, status = os.waitpid(pid, 0)
    except ChildProcessError:
        return None
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def end_rest(leader: int, run_id: str, age: float, others: Container[int]) -> None:
    """Kill the background processes of a job, in its own process group and in others; ``others``
    are the leaders of other jobs. To check all processes of the host would take longer than a quick
    run. Process ids are given out in turn, so those of a quick job are between its own and the
    latest."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)
    latest = int(_read("/proc/loadavg").split()[-1])
    quick = age < QUICK_SECONDS and leader <= latest
    among = range(leader, latest + 1) if quick else pids()
    for pid in of_run(leader, run_id, among, others):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def signal_run(leader: int, run_id: str, number: int) -> None:
    """Send a signal to the processes of a job."""
    for pid in of_run(leader, run_id, pids()):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def of_run(
    leader: int, run_id: str, among: Iterable[int], others: Container[int] = ()
) -> list[int]:
    """Return the processes of a job that have not ended: those of its session, and those that left
    it and have the run in their environment. Sessions of ``others``, the leaders of other jobs, are
    not looked at."""
    mark = b"\0SEATRIAL_RUN=%s\0" % os.fsencode(run_id)
    processes = []
    for pid in among:
        try:
            session = os.getsid(pid)
            ours = session == leader or (session not in others and mark in _environment(pid))
            if ours and _stat(pid)[0] not in "ZX":
                processes.append(pid)
        except OSError:  # it has ended
            continue
    return processes


def _environment(pid: int) -> bytes:
    """Return the environment with which a process began, empty where another user's is not ours to
    read."""
    try:
        return b"\0" + _read(f"/proc/{pid}/environ")
    except OSError:
        return b""


def _read(path: str) -> bytes:
    """Return what a file of ``/proc`` holds. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)  # plain: a file of the kernel
    try:
        parts = []
        while part := os.read(descriptor, 65536):
            parts.append(part)
        return b"".join(parts)
    finally:
        os.close(descriptor)


def age_of(pid: int) -> float:
    """Return the age of a process in seconds, independent of changes of the clock."""
    started = int(_stat(pid)[19]) / os.sysconf("SC_CLK_TCK")
    return time.clock_gettime(time.CLOCK_BOOTTIME) - started


def _stat(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat from the third on: state, parent, group, session, ..."""
    text = _read(f"/proc/{pid}/stat").decode(errors="replace")
    return text.rpartition(")")[2].split()


def pids() -> Iterator[int]:
    return (int(entry.name) for entry in os.scandir("/proc") if entry.name.isdigit())


class JobProcess(Struct, frozen=True):
    """A shell that runs a job on this host: the path of the script as it was started, the process
    id, and device and inode of the script. The path may be another one by now, or for others."""

    script: str
    pid: int
    identity: tuple[int, int]


def job_processes() -> Iterator[JobProcess]:
    """Yield the shells that run jobs on this host."""
    for pid in pids():
        try:
            words = _command(pid).split(b"\0") if os.getsid(pid) == pid else []
            if len(words) == 3 and words[1].endswith(b"/job.sh"):
                script = os.fsdecode(words[1])
                yield JobProcess(script, pid, _identity_of_script(pid, script))
        except OSError:
            continue


def jobs_by_identity() -> dict[tuple[int, int], int]:
    """Return the processes of the jobs of this host, by device and inode of their scripts."""
    return {job.identity: job.pid for job in job_processes()}


def script_identity(folder: Path) -> tuple[int, int]:
    """Return device and inode of the job script of a folder; (0, 0) where it has none."""
    try:
        about = os.stat(f"{folder}/job.sh")  # noqa: PTH116
    except OSError:
        return (0, 0)
    return about.st_dev, about.st_ino


def _identity_of_script(pid: int, script: str) -> tuple[int, int]:
    """Return device and inode of the script that a shell reads: of its descriptor 255, on which
    bash keeps a script open, else of the path. Raises OSError where neither is there."""
    for path in (f"/proc/{pid}/fd/255", script):
        with contextlib.suppress(OSError):
            about = os.stat(path)  # noqa: PTH116
            if stat.S_ISREG(about.st_mode):
                return about.st_dev, about.st_ino
    raise FileNotFoundError(script)


def _command(pid: int) -> bytes:
    """Return the command line of a process. It is empty for a moment while a process starts, so
    wait for that: a job that is not recognised would be started again."""
    deadline = time.monotonic() + STARTING_SECONDS
    while True:
        line = _read(f"/proc/{pid}/cmdline")
        if line or _stat(pid)[0] in "ZX" or time.monotonic() > deadline:
            return line
        time.sleep(0.001)


# ---- gpus ----------------------------------------------------------------------------------------
#
# The GPUs of this host, which jobs that run at the same time share.


class TooFewGpus(Exception):
    """A job asks for more GPUs than this process may use."""


class LocalGpus:
    """The GPUs that no job has. ``number`` is how many the machine's file names. Of those that
    ``environment`` shows, as its owner may use them alone, the first are taken."""

    def __init__(self, number: int, environment: Mapping[str, str]) -> None:
        shown = shown_gpus(environment) or [str(index) for index in range(number)]
        self._order = {gpu: index for index, gpu in enumerate(shown[:number])}
        self.free = list(self._order)

    def take(self, job: Job) -> list[str]:
        """Return as many free GPUs as a job asks for. The conductor asks for no more than the
        machine has. Raises TooFewGpus."""
        number = job.options.gpus_of_node(job.tasks_per_node)
        if number > len(self.free):
            raise TooFewGpus(
                f"needs {count(number, 'GPU')}, {len(self.free)} are free: "
                f"{' or '.join(VISIBLE)} shows fewer here than the machine's file names"
            )
        taken, self.free = self.free[:number], self.free[number:]
        return taken

    def take_over(self, job: Job, pid: int) -> list[str]:
        """Return the GPUs that a job of an earlier driver was given; they are no longer free.
        Raises OSError where the process is gone."""
        if not job.options.gpus_of_node(job.tasks_per_node):
            return []
        words = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        given = shown_gpus(dict(os.fsdecode(word).partition("=")[::2] for word in words))
        self.free = [gpu for gpu in self.free if gpu not in given]
        return given

    def give_back(self, gpus: Collection[str]) -> None:
        self.free = [gpu for gpu in self._order if gpu in gpus or gpu in self.free]


def showing(gpus: Collection[str]) -> dict[bytes, bytes]:
    """Return the variables that show a job these GPUs; none where it asked for none."""
    return {os.fsencode(name): os.fsencode(",".join(gpus)) for name in VISIBLE} if gpus else {}
