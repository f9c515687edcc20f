"""Lock the delivery of a trial's events for one process: ``trials/TAG/sinks/lock``.

with held(folder):       # raises DeliveryLocked if another process has it
    ...
holder(folder)           # "process 123 on login1", or ""
"""

import contextlib
import fcntl
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

from seatrial.errors import SeatrialError, TrialError
from seatrial.files import make_folder, open_descriptor
from seatrial.lazy import regex
from seatrial.sinks.cursor import folder_of
from seatrial.trial.folder import TrialFolder

WAIT_S = 0.5
STOP_S = 10.0

_OWNER = regex(r"process ([1-9]\d{0,9}) on (\S+)")


class DeliveryLocked(SeatrialError):
    """Another process delivers this trial's events."""


@contextlib.contextmanager
def held(folder: TrialFolder, wait_s: float = WAIT_S) -> Iterator[None]:
    """Hold the lock of a trial, after waiting for ``wait_s`` seconds at most: one that only looks
    holds it for an instant. Raises DeliveryLocked, and TrialError if it cannot be locked."""
    path = folder_of(folder) / "lock"
    try:
        make_folder(path.parent)
        descriptor = open_descriptor(path, os.O_RDWR | os.O_CREAT)
    except OSError as error:
        raise TrialError(f"{path}: cannot be opened: {error.strerror}") from error
    try:
        try:
            if not locked_within(descriptor, wait_s):
                owner = _name_in(descriptor) or "another process"
                raise DeliveryLocked(
                    f"{folder.tag}: its events are being delivered by {owner}; "
                    f"`seatrial sink {folder.tag} --stop` ends it"
                )
        except OSError as error:
            raise TrialError(f"{path}: cannot be locked: {error.strerror}") from error
        with contextlib.suppress(OSError):  # on a full disk the lock holds all the same
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"process {os.getpid()} on {os.uname().nodename}".encode(), 0)
        yield
        with contextlib.suppress(OSError):
            os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)


def locked_within(descriptor: int, wait_s: float) -> bool:
    """Lock an open file; return False if another process holds it for so many seconds."""
    deadline = time.monotonic() + wait_s
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.02)


def holder(folder: TrialFolder) -> str:
    """Return who delivers a trial's events now, or "". Takes a shared lock for an instant."""
    try:
        descriptor = open_descriptor(folder_of(folder) / "lock", os.O_RDONLY)
    except OSError:
        return ""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return _name_in(descriptor) or "another process"
    finally:
        os.close(descriptor)
    return ""


def stop(folder: TrialFolder) -> str:
    """End the process that delivers a trial's events, and wait for its end. Events that were not
    delivered stay in the journal. Returns who the process was, or "" if there was none. Raises
    TrialError for one that cannot be ended from here."""
    who = holder(folder)
    if not who:
        return ""
    words = _OWNER.fullmatch(who)
    if words is None or words[2] != os.uname().nodename:
        raise TrialError(f"{folder.tag}: its events are delivered by {who}; end it there")
    number = int(words[1])
    try:
        if b"seatrial" not in Path(f"/proc/{number}/cmdline").read_bytes():
            raise TrialError(f"{folder.tag}: {who} is no process of Seatrial; it was left alone")
        os.kill(number, signal.SIGTERM)
    except OSError as error:
        if holder(folder):
            raise TrialError(f"{folder.tag}: {who} cannot be ended: {error.strerror}") from error
    deadline = time.monotonic() + STOP_S
    while holder(folder):
        if time.monotonic() > deadline:
            raise TrialError(f"{folder.tag}: {who} has not ended in {STOP_S:g} s; kill it")
        time.sleep(0.02)
    return who


def _name_in(descriptor: int) -> str:
    return os.pread(descriptor, 200, 0).decode(errors="replace").strip()
