"""The processes of jobs on this host, found in ``/proc``.

    leader, run_id                          # a job is a shell, the leader of its session
    of_run(leader, run_id, pids())          # the processes of the job that have not ended

A process that has left the session of its job (``setsid``) is found by ``SEATRIAL_RUN`` in its
environment, unless it cleared that, too.
"""

import contextlib
import errno
import os
import signal
import stat
import time
from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from seatrial.execute.detect import VISIBLE, shown_gpus
from seatrial.execute.protocol import Job
from seatrial.units import count

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


class JobProcess(NamedTuple):
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
