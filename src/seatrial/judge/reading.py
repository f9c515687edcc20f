"""Read what a job wrote, within bounds. Nothing in its directory is trusted: a name may be a FIFO,
a directory, a device or a loop of links; a file may have any size and hold any bytes.

text = read_text(run_directory, "stdout", DEFAULT_LIMIT)
piece = tail(run_directory / "stderr", 4096)
print(plain(piece.text) if piece else "not there")
"""

import contextlib
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from seatrial.errors import SeatrialError
from seatrial.escaping import plain as plain
from seatrial.escaping import plain_line as plain_line
from seatrial.escaping import plain_page as plain_page
from seatrial.files import is_of_host, open_regular, read_start
from seatrial.model.codes import CHECK_ERROR, TOO_LARGE, Code
from seatrial.model.figures import Finding
from seatrial.units import show_bytes

DEFAULT_LIMIT = 16 << 20

CHUNK = 1 << 20


class Unreadable(SeatrialError):
    """A file cannot be read: permission is missing, or it is no regular file."""


class HostFailed(Unreadable):
    """This host cannot read or start anything: its disk, memory or file server fails. That says
    nothing about a run."""


class Missing(Unreadable):
    """A file does not exist."""


class TooLarge(Unreadable):
    """A file is larger than the limit."""


def unreadable(error: Unreadable, missing: Code) -> Finding:
    """Return the finding for a file that cannot be read. ``missing``: the verdict if it does not
    exist. Raises HostFailed."""
    if isinstance(error, HostFailed):
        raise error
    if isinstance(error, Missing):
        return Finding(missing, str(error))
    return Finding(TOO_LARGE if isinstance(error, TooLarge) else CHECK_ERROR, str(error))


RAISE_LIMIT = "write less, or raise `size_limit:` in the test"


def read_text(
    folder: Path, name: str, limit: int = DEFAULT_LIMIT, remedy: str = RAISE_LIMIT
) -> str:
    """Return the text of a file; lines end in a newline alone, and bytes that are not UTF-8 become
    the replacement character. ``name`` is relative to ``folder``, or absolute; ``limit`` in bytes.
    Raises TooLarge, Missing or Unreadable, which name the file as ``name``."""
    try:
        data, size = read_start(os.path.join(folder, name), limit, whole=True)  # noqa: PTH118
    except (OSError, ValueError) as error:
        raise _unreadable(error, name) from None
    if size > limit:
        raise TooLarge(f"{name} has {show_bytes(size)}; the limit is {show_bytes(limit)}; {remedy}")
    return decoded(data)


def decoded(data: bytes) -> str:
    """Return bytes as text: lines end in a newline alone, bytes that are not UTF-8 are replaced."""
    return data.decode("utf-8", errors="replace").replace("\r\n", "\n")


def size_of(folder: Path, name: str) -> int:
    """Return the size of a regular file in bytes. Raises Missing or Unreadable."""
    with _opened(folder / name, name) as (_, size):
        return size


def sha256(folder: Path, name: str) -> str:
    """Return the checksum of a file of any size, in hex, in constant memory. Bytes appended
    meanwhile do not count. Raises Missing or Unreadable."""
    digest = hashlib.sha256()
    with _opened(folder / name, name) as (file, left):
        while left and (chunk := file.read(min(left, CHUNK))):
            digest.update(chunk)
            left -= len(chunk)
    return digest.hexdigest()


class FileExcerpt(NamedTuple):
    """The beginning or the end of a file; ``size`` is the size of the whole file."""

    text: str
    size: int

    def cut(self, limit: int) -> bool:
        return self.size > limit

    def whole_lines(self, limit: int) -> str:
        """Return the text of an end, without the rest of a line at its beginning."""
        start = self.text.find("\n") + 1 if self.cut(limit) else 0
        return self.text[start:] or self.text


def head(path: Path, limit: int) -> FileExcerpt | None:
    """Return the first bytes of a regular file as text; None if it cannot be read."""
    return _piece(path, limit, from_end=False)


def tail(path: Path, limit: int) -> FileExcerpt | None:
    """Return the last bytes of a regular file as text; None if it cannot be read."""
    return _piece(path, limit, from_end=True)


def _piece(path: Path, limit: int, from_end: bool) -> FileExcerpt | None:
    try:
        with _opened(path, str(path)) as (file, size):
            start = max(0, size - limit) if from_end else 0
            data = os.pread(file.fileno(), limit, start)
    except Unreadable:
        return None
    if start:  # do not begin in the middle of a character
        data = data.lstrip(bytes(range(0x80, 0xC0)))
    return FileExcerpt(data.decode("utf-8", errors="backslashreplace"), size)


@contextlib.contextmanager
def _opened(path: Path, name: str) -> Iterator[tuple[BinaryIO, int]]:
    """Open a regular file; yield it and its size. Errors name it as ``name``."""
    try:
        with open_regular(path) as file:
            yield file, os.fstat(file.fileno()).st_size
    except (OSError, ValueError) as error:  # later, too: the file server may be gone
        raise _unreadable(error, name) from error


def _unreadable(error: OSError | ValueError, name: str) -> Unreadable:
    if isinstance(error, FileNotFoundError):
        return Missing(f"{name} is missing")
    if isinstance(error, OSError):
        kind = HostFailed if is_of_host(error) else Unreadable
        return kind(f"{name} cannot be read: {error.strerror}")
    return Unreadable(f"{name!r} cannot be read: it is not a file name")  # a NUL, a lone surrogate


# ---- why a script ended, in its own words --------------------------------------------------

OWN_WORDS = "seatrial: "  # a line of its stderr begins with it
STDERR_TAIL = 4096


def own_words(run: Path) -> str:
    """Return what the last such line near the end of a run's stderr says; "" where there is
    none."""
    end = tail(run / "stderr", STDERR_TAIL)
    lines = end.text.splitlines() if end and end.text else []
    words = [line.removeprefix(OWN_WORDS) for line in lines if line.startswith(OWN_WORDS)]
    return plain(words[-1]) if words else ""
