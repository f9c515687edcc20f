"""Reads the lines of logs, which may be compressed, and which may still grow.

reading = Reading(file, Position("20260131", offset=812, lines=9))
for line in reading.lines(): ...
reading.position            # behind the last whole line: where the next import goes on
"""

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

from msgspec import Struct

from seatrial.errors import UsageError
from seatrial.files import open_regular

COMPRESSED = (".gz", ".bz2", ".xz")
_OPENERS: dict[str, Callable[[BinaryIO], Any]] = dict(
    zip(COMPRESSED, (gzip.open, bz2.open, lzma.open), strict=True)
)
_DAMAGED = (OSError, EOFError, lzma.LZMAError, zlib.error)
LONGEST_LINE = 1 << 20
_FIRST = 80  # characters


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


class Position(Struct, frozen=True, array_like=True):
    """A place in a log, whatever it is compressed by: behind so many bytes, and lines."""

    log: str = ""
    """Its name, without the ending of what compresses it."""
    offset: int = 0
    lines: int = 0
    first: str = ""
    """Its first line with a record, which tells it from another one that has its name now."""


class Reading:
    """Reads the whole lines of a log from a position on; from the begin, where the log is another
    one by now: no line ends there, or its first record is another."""

    def __init__(self, file: BinaryIO, position: Position) -> None:
        self._file = file
        self.position = position if self._is_there(position) else Position(position.log)

    def _is_there(self, position: Position) -> bool:
        if not position.offset:
            return True
        self._file.seek(position.offset - 1)
        ends = self._file.read(1) == b"\n"
        self._file.seek(0)
        first = next(filter(is_record, (_text(line) for line in self._file)), "")
        return ends and first[:_FIRST] == position.first

    def lines(self) -> Iterator[str]:
        """Yield the lines without their ends. One that is still written, and has no end yet, is
        left for the next import."""
        log, offset, number = self.position.log, self.position.offset, self.position.lines
        first = self.position.first
        self._file.seek(offset)
        for line in iter(lambda: self._file.readline(LONGEST_LINE), b""):
            if not line.endswith(b"\n") and len(line) < LONGEST_LINE:
                return
            offset += len(line)
            number += 1
            text = _text(line)
            if not first and is_record(text):
                first = text[:_FIRST]
            self.position = Position(log, offset, number, first)
            yield text


def name_of(path: Path) -> str:
    """Return the name of a log without the ending of what compresses it."""
    return path.stem if path.suffix in COMPRESSED else path.name


def is_record(line: str) -> bool:
    """Return whether a line is neither empty nor a comment."""
    return bool(line) and not line.startswith("#")


def _text(line: bytes) -> str:
    return line.decode(errors="replace").rstrip("\r\n")


def first_record(path: Path) -> str:
    """Return the beginning of the first record of a log. Raises UsageError."""
    with opened_log(path) as file:
        return next(filter(is_record, map(_text, file)), "")[:_FIRST]
