"""Files that must be regular ones, and files that must be on the disk itself. In a folder of trials
a name may have become a FIFO, for which whoever opens it waits, a device, a link to elsewhere, or
larger than memory.

    with open_regular(folder / "journal.jsonl") as file: ...
    data = read_regular(folder / "trial.json", 64 << 20)
    write_durably(folder / "trial.json", data); sync_folder(folder)

What is refused is an OSError, as for a file that cannot be read for any other reason.
"""

import contextlib
import errno
import os
import shutil
import stat
from collections.abc import Sequence
from io import BufferedReader
from pathlib import Path
from typing import NamedTuple

from seatrial.lazy import futures

SMALLEST_ROOM = 65536  # bytes: less is taken for a full file system
SYNCED_AT_ONCE = 8
CHUNK = 1 << 20


def open_regular(path: Path, *, follow: bool = True) -> BufferedReader:
    """Open a regular file for reading. ``follow``: the name itself may be a link."""
    flags = os.O_RDONLY if follow else os.O_RDONLY | os.O_NOFOLLOW
    return os.fdopen(open_descriptor(path, flags), "rb")


def open_descriptor(path: Path | str, flags: int, mode: int = 0o644) -> int:
    """Open a regular file and return its descriptor. ``flags`` and ``mode`` are those of
    ``os.open``."""
    descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY, mode)
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            kind = "a folder" if stat.S_ISDIR(mode) else "a FIFO, socket or device"
            raise OSError(errno.EINVAL, f"it is {kind}, no regular file", str(path))
        return descriptor
    except BaseException:
        os.close(descriptor)
        raise


class FileStart(NamedTuple):
    """The first bytes of a file, and the size of all of it."""

    data: bytes
    size: int


def read_start(
    path: Path | str, limit: int, *, follow: bool = True, whole: bool = False
) -> FileStart:
    """Return the first ``limit`` bytes of a regular file, in few calls of the system. ``whole``: of
    a file that has more, nothing is read."""
    flags = os.O_RDONLY if follow else os.O_RDONLY | os.O_NOFOLLOW
    descriptor = open_descriptor(path, flags)
    try:
        size = os.fstat(descriptor).st_size
        if whole and size > limit:
            return FileStart(b"", size)
        data = os.read(descriptor, min(limit + whole, size + 1))
        while len(data) != size and len(data) < limit + whole:  # it grows, or is read in parts
            if not (more := os.read(descriptor, min(limit + whole - len(data), CHUNK))):
                break
            data += more
        return FileStart(data, max(size, len(data)))  # it may have grown meanwhile
    finally:
        os.close(descriptor)


def read_regular(path: Path, limit: int, *, follow: bool = True) -> bytes:
    """Return the bytes of a regular file that has at most ``limit``."""
    data, size = read_start(path, limit, follow=follow, whole=True)
    if size > limit:
        raise OSError(errno.EFBIG, f"it has more than {limit >> 20} MiB", str(path))
    return data


# Errors that say something about the host, and nothing about the file or the program.
_HOST_ERRORS = frozenset(
    (
        errno.ENOSPC,
        errno.EDQUOT,
        errno.EIO,
        errno.EROFS,
        errno.ESTALE,
        errno.EAGAIN,
        errno.ENOMEM,
        errno.EMFILE,
        errno.ENFILE,
    )
)


def is_of_host(error: OSError) -> bool:
    """Return whether an error is of the host: no space, quota, memory, processes or open files
    left, or a file system that fails."""
    if isinstance(error, shutil.Error) and isinstance(error.args[0], list):
        # of a folder: (source, target, reason) of each file
        texts = {os.strerror(number) for number in _HOST_ERRORS}
        return any(text in str(reason) for _, _, reason in error.args[0] for text in texts)
    return error.errno in _HOST_ERRORS


def is_full(path: Path) -> bool:
    """Return whether the file system of a path has no room for another file."""
    try:
        room = os.statvfs(path)
    except OSError:
        return False
    return room.f_bavail * room.f_frsize < SMALLEST_ROOM or (room.f_files > 0 and not room.f_favail)


def is_utf8(name: str) -> bool:
    """Return whether the name of a file, as the system gives it, is UTF-8."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def write_durably(path: Path, data: bytes) -> None:
    """Write a file, and wait until its content is on the disk itself. ``sync_folder`` does the same
    for its name. Raises OSError."""
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def sync_files(paths: Sequence[str]) -> None:
    """Wait until these files are on the disk itself, a few at a time: file systems write them
    together then. A file that is not there, or that cannot be synced, is left out."""
    if paths:
        number = min(SYNCED_AT_ONCE, len(paths))
        with futures.ThreadPoolExecutor(number) as threads:
            list(threads.map(_sync_each, [paths[first::number] for first in range(number)]))


def _sync_each(paths: Sequence[str]) -> None:
    for path in paths:
        with contextlib.suppress(OSError, ValueError):  # ValueError: a NUL in the name
            descriptor = open_descriptor(path, os.O_RDONLY)
            try:
                os.fdatasync(descriptor)
            finally:
                os.close(descriptor)


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
