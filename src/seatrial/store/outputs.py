"""What a run wrote, read with care: its files may be huge, binary, or no files at all."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import NamedTuple


class Piece(NamedTuple):
    """The beginning or the end of a file; ``size`` is that of the whole file."""

    text: str
    size: int

    def cut(self, limit: int) -> bool:
        return self.size > limit


def head(path: Path, limit: int) -> Piece | None:
    """The first bytes of a regular file as text; None if it cannot be read."""
    return _piece(path, limit, from_end=False)


def tail(path: Path, limit: int) -> Piece | None:
    """The last bytes of a regular file as text; None if it cannot be read."""
    return _piece(path, limit, from_end=True)


def _piece(path: Path, limit: int, from_end: bool) -> Piece | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return None
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            return None
        start = max(0, found.st_size - limit) if from_end else 0
        data = os.pread(descriptor, limit, start)
    except OSError:
        return None
    finally:
        os.close(descriptor)
    if start:  # do not begin in the middle of a character
        data = data.lstrip(bytes(range(0x80, 0xC0)))
    return Piece(data.decode("utf-8", errors="backslashreplace"), found.st_size)
