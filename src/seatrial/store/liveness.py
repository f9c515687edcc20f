"""Whether a process runs a trial now. A journal cannot say so, as a killed driver writes nothing.

The owner holds a lock on ``journal.jsonl.lock`` and has written its name into it. If that is a
process of this host that is gone, the trial has no owner. Else the lock itself is tried, shared and
for an instant.
"""

import fcntl
import os
from pathlib import Path

from seatrial.files import open_descriptor
from seatrial.journal.owner import LONGEST_NAME, is_gone


def owned(trial: str) -> bool:
    """Return whether the trial in that folder has a living owner."""
    lock = Path(trial) / "journal.jsonl.lock"
    try:
        descriptor = open_descriptor(lock, os.O_RDONLY)
    except OSError:
        return False
    try:
        if is_gone(os.read(descriptor, LONGEST_NAME).decode(errors="replace")):
            return False
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        return False
    except OSError:  # held, or this file system cannot say: then the owner's name stands
        return True
    finally:
        os.close(descriptor)
