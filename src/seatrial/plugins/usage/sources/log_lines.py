"""Reads the lines of logs, which may be compressed."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from seatrial.errors import UsageError
from seatrial.files import open_regular

_OPENERS: dict[str, Callable[[BinaryIO], Any]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
}
_DAMAGED = (OSError, EOFError, lzma.LZMAError, zlib.error)


@contextmanager
def opened_log(path: Path) -> Iterator[BinaryIO]:
    """Open a log; one that ends with .gz, .bz2 or .xz is decompressed. Raises UsageError if it
    cannot be read, or if that happens within the block."""
    try:
        with open_regular(path) as raw:
            opener = _OPENERS.get(path.suffix)
            yield raw if opener is None else opener(raw)
    except _DAMAGED as error:
        raise UsageError(f"{path}: cannot be read: {error}") from error


def text_lines(file: BinaryIO) -> Iterator[str]:
    """Yield the lines of a file with their ends. Bytes that are no UTF-8 become U+FFFD."""
    return iter(io.TextIOWrapper(file, "utf-8-sig", "replace", newline="\n"))
