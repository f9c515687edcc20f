"""The lock of a journal: one process writes it.

lock = take_lock(lock_of(journal), host_is_gone=False)      # or Owned
lock_too(descriptor, journal)
name_owner(lock)
"""

import contextlib
import errno
import fcntl
import os
import re
import time
from collections.abc import Sequence
from pathlib import Path

from seatrial.errors import JournalError, Owned
from seatrial.files import file_clock, open_descriptor, read_start
from seatrial.journal.clock import boot_id

LEFT_LOCK_SECONDS = 5.0  # that what an owner was starting when it was killed may hold its lock


def lock_of(journal: Path) -> Path:
    """Return the lock file of a journal."""
    return journal.with_name(journal.name + ".lock")


def take_lock(path: Path, host_is_gone: bool) -> int:
    """Lock the lock file of a journal, and return its descriptor. Raises Owned, which names the
    owner, and JournalError."""
    try:
        lock = open_descriptor(path, os.O_RDWR | os.O_CREAT)
    except OSError as error:
        raise JournalError(cannot("opened", path, error)) from error
    try:
        _lock_soon(lock)
    except BlockingIOError:
        owner = shown(_owner(lock))
        os.close(lock)
        raise Owned(
            f"{path.parent}: this trial is being run by {owner or 'another process'}; "
            "wait for it to end, or end it first"
        ) from None
    except OSError as error:
        os.close(lock)
        raise JournalError(
            f"{path}: cannot be locked: {error.strerror}; "
            "put the trials on a file system that has locks"
        ) from error
    owner = _owner(lock)
    if not host_is_gone and is_driving(path, owner):
        os.close(lock)
        raise Owned(
            f"{path.parent}: this trial is being run by {shown(owner)}, whose lock is not seen "
            f"here, and which gave a sign of life within {FRESH_SECONDS:.0f} s; end it first; if "
            f"it was killed, wait {FRESH_SECONDS:.0f} s, or resume with --host-is-gone"
        )
    return lock


def name_owner(lock: int) -> None:
    """Write the name of this process into a lock file that it has locked, for the next one."""
    with contextlib.suppress(OSError):  # on a full disk the lock holds all the same
        os.ftruncate(lock, 0)
        os.pwrite(lock, own_name().encode(), 0)


def _lock_soon(lock: int) -> None:
    """Lock a lock file. What a killed owner was just starting holds its lock for a moment, until it
    is another program. Raises BlockingIOError where the owner lives."""
    until = time.monotonic() + LEFT_LOCK_SECONDS
    while True:
        try:
            return fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if not is_gone(_owner(lock)) or time.monotonic() > until:
                raise
        time.sleep(0.01)


def _owner(lock: int) -> str:
    return os.pread(lock, LONGEST_NAME, 0).decode(errors="replace")


def lock_too(descriptor: int, path: Path) -> None:
    """Lock the journal itself, as somebody may have removed the lock file of a driver that runs.
    Raises Owned."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise Owned(
            f"{path.parent}: this trial is being run by another process, whose lock file was "
            "removed; wait for it to end, or end it first"
        ) from None


def cannot(done: str, path: Path, error: OSError) -> str:
    """Return the message for a file that cannot be opened, read or written, with what helps."""
    remedy = {
        errno.ENOSPC: "the disk is full; free some space, then resume the trial",
        errno.EDQUOT: "the quota is used up; free some space, then resume the trial",
        errno.EFBIG: "raise the limit on the size of files (ulimit -f), then resume the trial",
        errno.EROFS: "write where the trial is, or copy it to a place that can be written",
        errno.EACCES: "ask its owner, or copy the trial to a place of your own",
    }.get(error.errno or 0, "see to the file system, then resume the trial")
    return f"{path}: cannot be {done}: {error.strerror}; {remedy}"


# ---- owner ---------------------------------------------------------------------------------------
#
# The owner of a journal: the process that its lock file names.
#
# A lock says who owns a journal where all hosts see it. Some file systems keep locks to one host
# (Lustre with ``localflock``), or ignore them. So the name in the lock file counts as well, if the
# owner gave a sign of life lately: it has just taken the lock, or touched its heartbeat.


HEARTBEAT = "heartbeat"  # a driver touches it every 15 s
FRESH_SECONDS = 60.0
LONGEST_NAME = 400
MACHINE_ID = Path("/etc/machine-id")  # machine-id(5)

_NAME = r"process (\d+) on (\S+)"


def own_name() -> str:
    """Return the name of this process as an owner: a line for people, and where it runs."""
    return f"seatrial, process {os.getpid()} on {os.uname().nodename}\n{_place()}\n"


def shown(name: str) -> str:
    """Return the name of an owner for people; "" for none."""
    return name.strip().partition("\n")[0].strip()


def _place() -> str:
    """Return what the processes have in common that this one can see: this boot of the kernel, and
    the namespace of process ids; and the id of the installation. The names of two hosts may be
    equal."""
    try:
        namespace = os.stat("/proc/self/ns/pid").st_ino  # noqa: PTH116
    except OSError:
        namespace = 0
    return f"boot {boot_id() or '-'} {namespace} {_machine_id()}"


def _machine_id() -> str:
    try:
        return read_start(MACHINE_ID, LONGEST_NAME).data.decode(errors="replace").strip() or "-"
    except OSError:
        return "-"


def is_gone(name: str) -> bool:
    """Return whether an owner of this name is a process that has ended: it would be seen here, or
    this host was booted since. Hosts may share an image, and so the id of the installation: their
    names differ then."""
    match = re.search(_NAME, name)
    if match is None:
        return False
    written, here = name.strip().partition("\n")[2].strip(), _place()
    same_name = match[2] == os.uname().nodename
    if written and written != here:
        return same_name and _is_earlier_boot(written.split(" "), here.split(" "))
    return (bool(written) or same_name) and not _alive(int(match[1]))


def _is_earlier_boot(written: Sequence[str], here: Sequence[str]) -> bool:
    """Return whether a place is of this installation, and of another boot, as far as both are
    known."""
    if len(written) != len(here):
        return False
    (_, boot, _, machine), (_, boot_here, _, machine_here) = written, here
    return machine == machine_here != "-" and "-" not in (boot, boot_here) and boot != boot_here


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
        state = Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()[:1]
    except (ProcessLookupError, FileNotFoundError, OverflowError):
        return False
    except OSError:
        return True  # it lives, under another user
    return state != [b"Z"]


def name_in(lock: Path) -> str:
    """Return the name in a lock file; "" where there is none."""
    try:
        return read_start(lock, LONGEST_NAME, follow=False).data.decode(errors="replace")
    except OSError:
        return ""


def last_sign(lock: Path) -> float | None:
    """Return how many seconds ago the owner gave a sign of life: it wrote its name into the lock
    file, or touched the heartbeat beside it. Both are compared with a file that is made now, as the
    file server may have a clock of its own. None where no file can be made."""
    if (now := file_clock(lock.parent)) is None:
        return None
    signs = []
    for path in (lock, lock.with_name(HEARTBEAT)):
        with contextlib.suppress(OSError):
            signs.append(path.lstat().st_mtime)
    return now - max(signs) if signs else None


def is_driving(lock: Path, name: str) -> bool:
    """Return whether the owner that a lock file names may be at work, though its lock is not seen:
    it is no process of here that has ended, and gave a sign of life lately."""
    if not shown(name) or name == own_name() or is_gone(name):
        return False
    age = last_sign(lock)
    return age is not None and age < FRESH_SECONDS
