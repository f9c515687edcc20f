"""Files that must be regular ones, and files that must be on the disk itself. In a folder of trials
a name may have become a FIFO, for which whoever opens it waits, a device, a link to elsewhere, or
larger than memory.

    with open_regular(folder / "journal.jsonl") as file: ...
    data = read_regular(folder / "trial.json", 64 << 20)
    write_durably(folder / "trial.json", data); sync_folder(folder)

What is refused is an OSError, as for a file that cannot be read for any other reason.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO


def open_regular(path: Path, *, follow: bool = True) -> BinaryIO:
    """A regular file for reading. ``follow``: the name itself may be a link."""
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
    descriptor = os.open(path, flags if follow else flags | os.O_NOFOLLOW)
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            kind = "a folder" if stat.S_ISDIR(mode) else "a FIFO, socket or device"
            raise OSError(errno.EINVAL, f"it is {kind}, no regular file", str(path))
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def read_regular(path: Path, limit: int, *, follow: bool = True) -> bytes:
    """The bytes of a regular file that has at most ``limit``."""
    with open_regular(path, follow=follow) as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise OSError(errno.EFBIG, f"it has more than {limit >> 20} MiB", str(path))
    return data


def write_durably(path: Path, data: bytes) -> None:
    """Write a file, and wait until its content is on the disk itself. ``sync_folder`` does the same
    for its name. Raises OSError."""
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(path: Path) -> None:
    """Wait until the names in a folder are on the disk itself. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:  # a file system that has no such thing
            raise
    finally:
        os.close(descriptor)
