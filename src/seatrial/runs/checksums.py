"""Checksums of what a run wrote, by which `seatrial report verify` finds later changes."""

import hashlib
import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from seatrial.files import open_descriptor

MAX_BYTES: Final = 16 << 30  # of a file whose checksum is made
CHUNK: Final = 1 << 20
OF_NOTHING: Final = hashlib.sha256().hexdigest()


def sizes_of(folder: Path, names: Iterable[str]) -> dict[str, int]:
    """Return the bytes of those files of a run that are there and are regular ones."""
    sizes = {}
    start = f"{folder}/"
    for name in names:
        try:
            status = os.stat(start + name)  # noqa: PTH116
        except (OSError, ValueError):  # ValueError: a NUL in the name
            continue
        if stat.S_ISREG(status.st_mode):
            sizes[name] = status.st_size
    return sizes


def checksums(
    folder: Path, sizes: Mapping[str, int], limits: Mapping[str, int] | None = None
) -> dict[str, str]:
    """Return the SHA-256 of files of a run, in hexadecimal by their names: "" for one that is too
    large, also by its own of the ``limits``, none for one that cannot be read. Empty files are not
    opened."""
    found = {}
    for name, size in sizes.items():
        if limits and size > limits.get(name, MAX_BYTES):
            found[name] = ""
            continue
        try:
            found[name] = checksum(f"{folder}/{name}") if size else OF_NOTHING
        except OSError:
            continue
    return found


def changed_file(folder: Path, sums: Mapping[str, str], names: Iterable[str]) -> str:
    """Return which of these files of a run is there and is not as its checksum says; "" where none
    is."""
    for name in names:
        if sums.get(name):
            now = checksums(folder, sizes_of(folder, [name]))
            if now.get(name, sums[name]) != sums[name]:
                return name
    return ""


def checksum(path: str) -> str:
    """Return the SHA-256 of a regular file, in hexadecimal; "" for one that is too large. Bytes
    that are appended meanwhile do not count. Raises OSError, and ValueError for an impossible
    name."""
    descriptor = open_descriptor(path, os.O_RDONLY)
    try:
        left = os.fstat(descriptor).st_size
        if not left:
            return OF_NOTHING
        if left > MAX_BYTES:
            return ""
        summed = hashlib.sha256()
        while left and (data := os.read(descriptor, min(left, CHUNK))):
            summed.update(data)
            left -= len(data)
        return summed.hexdigest()
    finally:
        os.close(descriptor)
