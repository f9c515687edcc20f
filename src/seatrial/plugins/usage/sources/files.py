"""Files and logs of others, which may be compressed: opened, and read by lines or rows."""

from __future__ import annotations

import bz2
import contextlib
import csv
import gzip
import hashlib
import io
import lzma
import os
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeVar

import msgspec
from msgspec import Struct

from seatrial.errors import UsageError
from seatrial.files import open_regular
from seatrial.plugins.usage.archive import Rejects
from seatrial.plugins.usage.jobs import UserJob

LONGEST_LINE = 1 << 20
_GZIP = b"\x1f\x8b"


class OpenedFile(NamedTuple):
    """A file that is read: its text, and when it was last written, in ns."""

    text: io.TextIOWrapper
    written: int


@contextlib.contextmanager
def opened_text(path: Path) -> Iterator[OpenedFile]:
    """Open a file as text. Letters that are no UTF-8 are kept as U+FFFD. Raises UsageError. What
    reads it does so within `reading`."""
    with reading(path), open_regular(path) as file:
        written = os.fstat(file.fileno()).st_mtime_ns
        start = file.peek(512)[:512]
        compressed = start.startswith(_GZIP)
        if b"\0" in start and not compressed:
            raise UsageError(f"{path}: is no text; name a text file, or one made by gzip")
        data = gzip.GzipFile(fileobj=file) if compressed else file
        yield OpenedFile(io.TextIOWrapper(data, "utf-8", "replace", newline=""), written)


@contextlib.contextmanager
def reading(path: Path) -> Iterator[None]:
    """Raise UsageError where a file cannot be read or is cut short: nothing of it is imported
    then."""
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise UsageError(
            f"{path}: is damaged or cut short: {error}; nothing of it was imported"
        ) from error
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from error


def lines_of(path: Path, text: io.TextIOWrapper) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file with their numbers. Raises UsageError for one that no log has."""
    number = 0
    with reading(path):
        while line := text.readline(LONGEST_LINE):
            number += 1
            if len(line) == LONGEST_LINE:
                raise UsageError(f"{path}:{number}: has {LONGEST_LINE} characters or more: no log")
            yield number, line


def csv_rows(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the rows of a CSV file with their lines, by the titles in its first line. Raises
    UsageError."""
    try:
        with open_regular(path) as file:
            text = file.read().decode()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot be read: {error}") from None
    reader = csv.DictReader(text.splitlines())
    try:
        for row in reader:
            yield reader.line_num, row
    except csv.Error as error:
        raise UsageError(f"{path}:{reader.line_num}: is no CSV: {error}") from None


# ---- log lines -----------------------------------------------------------------------------------
#
# Reads the lines of logs, which may be compressed, and which may still grow.
#
# reading = Reading(path, Position("20260131", offset=812, lines=9))
# for line in reading.lines(): ...
# reading.position            # behind the last whole line: where the next import goes on


T = TypeVar("T")
COMPRESSED = (".gz", ".bz2", ".xz")
_OPENERS: dict[str, Callable[[BinaryIO], Any]] = dict(
    zip(COMPRESSED, (gzip.open, bz2.open, lzma.open), strict=True)
)
_DAMAGED = (OSError, EOFError, lzma.LZMAError, zlib.error)
_DIGITS = 16
_LONGEST_NUMBER = 18
_PLACE = ("offset", "lines", "first")


@contextlib.contextmanager
def opened_log(path: Path) -> Iterator[BinaryIO]:
    """Open a log; one that ends with .gz, .bz2 or .xz is decompressed. Raises UsageError if it
    cannot be read, or if that happens within the block."""
    try:
        with open_regular(path) as raw:
            opener = _OPENERS.get(path.suffix)
            yield raw if opener is None else opener(raw)
    except _DAMAGED as error:
        raise UsageError(f"{path}: cannot be read: {error}") from error


LATEST = 1 << 33  # s since 1970, in the year 2242
MOST = 1 << 40  # of any other number: what a database keeps is larger, and so are sums of these


def whole(text: str, name: str, most: int = MOST) -> int:
    """Return a whole number that is not negative. Raises ValueError."""
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"{name} is {text[:40]!r}, no number")
    if len(text) > _LONGEST_NUMBER or (value := int(text)) > most:
        raise ValueError(f"{name} is {text[:40]}, too large")
    return value


class Position(Struct, frozen=True, array_like=True):
    """A place in a log, whatever it is compressed by: behind so many bytes, and lines."""

    log: str = ""
    """Its name, without the ending of what compresses it."""
    offset: int = 0
    lines: int = 0
    first: str = ""
    """A digest of its first record, which tells it from another log that has its name now."""


class Reading:
    """Reads the whole lines of a log from a position on; from the begin, where the log is another
    one by now: no line ends there, or its first record is another."""

    def __init__(self, path: Path, position: Position) -> None:
        self.path = path
        self.position = position

    def lines(self) -> Iterator[str]:
        """Yield the lines without their ends. One that is still written, and has no end yet, is
        left for the next import. Raises UsageError."""
        with opened_log(self.path) as file:
            log = self.position.log
            if not _is_there(file, self.position):
                self.position = Position(log)
            offset, number, first = (getattr(self.position, name) for name in _PLACE)
            file.seek(offset)
            for line in iter(lambda: file.readline(LONGEST_LINE), b""):
                if not line.endswith(b"\n") and len(line) < LONGEST_LINE:
                    return
                offset += len(line)
                number += 1
                text = _text(line)
                if not first and is_record(text):
                    first = _digest(text)
                self.position = Position(log, offset, number, first)
                yield text


def jobs_of(
    reading: Reading, job: Callable[[str], UserJob | None], rejects: Rejects
) -> Iterator[UserJob]:
    """Yield the jobs that ``job`` makes of lines. A line for which it raises ValueError is
    rejected."""
    for line in reading.lines():
        try:
            found = job(line) if line else None
        except ValueError as error:
            rejects.add(f"{reading.path}:{reading.position.lines}", str(error), line)
            continue
        if found is not None:
            yield found


def cursor_of(text: str, kind: type[T]) -> T:
    """Return what the last import left for the next one. One of another version is as none, so that
    all is read again."""
    try:
        return msgspec.json.decode(text, type=kind) if text else kind()
    except msgspec.MsgspecError:
        return kind()


def _is_there(file: BinaryIO, position: Position) -> bool:
    if not position.offset:
        return True
    file.seek(position.offset - 1)
    ends = file.read(1) == b"\n"
    file.seek(0)
    first = next(filter(is_record, map(_text, file)), "")
    return ends and _digest(first) == position.first


def name_of(path: Path) -> str:
    """Return the name of a log without the ending of what compresses it."""
    return path.stem if path.suffix in COMPRESSED else path.name


def is_record(line: str) -> bool:
    """Return whether a line is neither empty nor a comment."""
    return bool(line) and not line.startswith("#")


def _text(line: bytes) -> str:
    return line.decode(errors="replace").rstrip("\r\n")


def first_record(path: Path) -> str:
    """Return the digest of the first record of a log. Raises UsageError."""
    with opened_log(path) as file:
        return _digest(next(filter(is_record, map(_text, file)), ""))


def _digest(record: str) -> str:
    return hashlib.sha256(record.encode()).hexdigest()[:_DIGITS]
