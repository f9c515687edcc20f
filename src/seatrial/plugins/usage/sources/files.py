"""Files of others: opened, whether they are compressed or not, and read by lines or rows."""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from seatrial.errors import UsageError
from seatrial.files import open_regular

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
