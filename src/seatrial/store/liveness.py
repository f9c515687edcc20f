"""Whether a process runs a trial now. A journal cannot say so, as a killed driver writes nothing.

The owner holds a lock on ``journal.jsonl.lock`` and has written its name into it. If that is a
process of this host that is gone, the trial has no owner. Else the lock itself is tried, shared and
for an instant.
"""

from __future__ import annotations

import fcntl
import os
import re
import socket
from pathlib import Path

from seatrial.files import open_descriptor

_OWNER = re.compile(r"process (\d+) on (\S+)")


def owned(trial: str) -> bool:
    """Return whether the trial in that folder has a living owner."""
    lock = Path(trial) / "journal.jsonl.lock"
    try:
        descriptor = open_descriptor(lock, os.O_RDONLY)
    except OSError:
        return False
    try:
        found = _OWNER.search(os.read(descriptor, 200).decode(errors="replace"))
        if found and found[2] == socket.gethostname() and not _alive(int(found[1])):
            return False
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        return False
    except OSError:  # held, or this file system cannot say: then the owner's name stands
        return True
    finally:
        os.close(descriptor)


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass  # it lives, under another user
    return True
