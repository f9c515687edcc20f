"""Read what a job wrote, within bounds. Nothing in its directory is trusted: a name may be a FIFO,
a directory, a device or a loop of links; a file may have any size and hold any bytes.

text = read_text(run_directory, "stdout", DEFAULT_LIMIT)
piece = tail(run_directory / "stderr", 4096)
print(plain(piece.text) if piece else "not there")
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import NamedTuple

from seatrial.errors import SeatrialError
from seatrial.units import show_bytes

DEFAULT_LIMIT = 16 << 20
CHUNK = 1 << 20


class Unreadable(SeatrialError):
    """A file cannot be read: permission is missing, or it is no regular file."""


class Missing(Unreadable):
    """A file does not exist."""


class TooLarge(Unreadable):
    """A file is larger than the limit."""


RAISE_LIMIT = "write less, or raise `size_limit:` in the test"


def read_text(
    folder: Path, name: str, limit: int = DEFAULT_LIMIT, remedy: str = RAISE_LIMIT
) -> str:
    """Return the text of a file; lines end in a newline alone, and bytes that are not UTF-8 become
    the replacement character. ``name`` is relative to ``folder``, or absolute; ``limit`` in bytes.
    Raises TooLarge, Missing or Unreadable, which name the file as ``name``."""
    descriptor = _open(folder / name, name)
    try:
        size = os.fstat(descriptor).st_size
        data = b"" if size > limit else _read_at_most(descriptor, name, limit + 1)
    finally:
        os.close(descriptor)
    size = max(size, len(data))  # the file may have grown meanwhile
    if size > limit:
        raise TooLarge(f"{name} has {show_bytes(size)}; the limit is {show_bytes(limit)}; {remedy}")
    return decoded(data)


def decoded(data: bytes) -> str:
    """Return bytes as text: lines end in a newline alone, bytes that are not UTF-8 are replaced."""
    return data.decode("utf-8", errors="replace").replace("\r\n", "\n")


def size_of(folder: Path, name: str) -> int:
    """Return the size of a regular file in bytes. Raises Missing or Unreadable."""
    descriptor = _open(folder / name, name)
    try:
        return os.fstat(descriptor).st_size
    finally:
        os.close(descriptor)


def sha256(folder: Path, name: str) -> str:
    """Return the checksum of a file of any size, in hex, in constant memory. Bytes appended
    meanwhile do not count. Raises Missing or Unreadable."""
    import hashlib  # loads OpenSSL; few checks ask for a checksum

    digest = hashlib.sha256()
    descriptor = _open(folder / name, name)
    try:
        left = os.fstat(descriptor).st_size
        while left and (chunk := _read(descriptor, name, min(left, CHUNK))):
            digest.update(chunk)
            left -= len(chunk)
    finally:
        os.close(descriptor)
    return digest.hexdigest()


class FileExcerpt(NamedTuple):
    """The beginning or the end of a file; ``size`` is the size of the whole file."""

    text: str
    size: int

    def cut(self, limit: int) -> bool:
        return self.size > limit


def head(path: Path, limit: int) -> FileExcerpt | None:
    """Return the first bytes of a regular file as text; None if it cannot be read."""
    return _piece(path, limit, from_end=False)


def tail(path: Path, limit: int) -> FileExcerpt | None:
    """Return the last bytes of a regular file as text; None if it cannot be read."""
    return _piece(path, limit, from_end=True)


def _piece(path: Path, limit: int, from_end: bool) -> FileExcerpt | None:
    try:
        descriptor = _open(path, str(path))
    except Unreadable:
        return None
    try:
        size = os.fstat(descriptor).st_size
        start = max(0, size - limit) if from_end else 0
        data = os.pread(descriptor, limit, start)
    except OSError:
        return None
    finally:
        os.close(descriptor)
    if start:  # do not begin in the middle of a character
        data = data.lstrip(bytes(range(0x80, 0xC0)))
    return FileExcerpt(data.decode("utf-8", errors="backslashreplace"), size)


def plain(text: str) -> str:
    """Return text that is safe on a terminal: everything unprintable is escaped except newline and
    tab."""
    return _escaped(text, "\n\t")


def plain_line(text: str) -> str:
    """Return text that is safe on a terminal, on one line: newline and tab are escaped too."""
    return _escaped(text, "")


def _escaped(text: str, kept: str) -> str:
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in kept else repr(c)[1:-1] for c in text)


def _open(path: Path, name: str) -> int:
    """Open a regular file. O_NONBLOCK: opening a FIFO would wait for its writer for ever."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except FileNotFoundError:
        raise Missing(f"{name} is missing") from None
    except OSError as error:
        raise Unreadable(f"{name} cannot be read: {error.strerror}") from error
    except ValueError as error:  # a NUL or a lone surrogate in the name
        raise Unreadable(f"{name!r} cannot be read: it is not a file name") from error
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        what = "a directory" if stat.S_ISDIR(mode) else "a FIFO, socket or device"
        raise Unreadable(f"{name} is {what}; only a regular file is read")
    return descriptor


def _read_at_most(descriptor: int, name: str, most: int) -> bytes:
    parts = []
    while most > 0 and (chunk := _read(descriptor, name, min(most, CHUNK))):
        parts.append(chunk)
        most -= len(chunk)
    return b"".join(parts)


def _read(descriptor: int, name: str, most: int) -> bytes:
    try:
        return os.read(descriptor, most)
    except OSError as error:  # the file server is gone, or the handle is stale
        raise Unreadable(f"{name} cannot be read: {error.strerror}") from error
