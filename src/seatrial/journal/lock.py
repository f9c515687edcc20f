"""The lock of a journal: one process writes it.

lock = take_lock(lock_of(journal), host_is_gone=False)      # or Owned
lock_too(descriptor, journal)
name_owner(lock)
"""

import contextlib
import errno
import fcntl
import os
import time
from pathlib import Path

from seatrial.errors import JournalError, Owned
from seatrial.files import open_descriptor
from seatrial.journal.owner import (
    FRESH_SECONDS,
    LONGEST_NAME,
    is_driving,
    is_gone,
    own_name,
    shown,
)

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
