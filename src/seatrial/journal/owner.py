"""The owner of a journal: the process that its lock file names."""

import os

from seatrial.lazy import regex

_NAME = regex(r"process (\d+) on (\S+)")


def own_name() -> str:
    """Return the name of this process as an owner."""
    return f"seatrial, process {os.getpid()} on {os.uname().nodename}"


def is_gone(name: str) -> bool:
    """Return whether an owner of this name is a process of this host that has ended."""
    found = _NAME.search(name)
    return found is not None and found[2] == os.uname().nodename and not _alive(int(found[1]))


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass  # it lives, under another user
    return True
