"""The checksums of test inputs when a trial is made.

digests(tests) # {"/suite/deck.txt": "9f86d08188..."}, kept in trial.json
"""

from __future__ import annotations

import stat
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

from seatrial.suite.build_key import digest_of
from seatrial.suite.model import Input, Test

MAX_BYTES = 1 << 28  # bytes; larger inputs are not read
MAX_FILES = 200


def digests(tests: Iterable[Test]) -> dict[str, str]:
    """Return the hash of each input of these tests, by its path; "" if it has none (see
    ``digest``)."""
    paths = {path_of(item) for test in tests for item in test.inputs}
    return {path: digest(path) for path in sorted(paths)}


def path_of(item: str | Input) -> str:
    return item if isinstance(item, str) else item.source


def name_of(item: str | Input) -> str:
    """Return the name of an input in the run directory."""
    named = "" if isinstance(item, str) else item.name
    return named or Path(path_of(item)).name


def digest(path: str) -> str:
    """Return the SHA-256 of a file, or of a folder's files. Return "" if it cannot be read, is
    larger than ``MAX_BYTES`` or has more than ``MAX_FILES`` files."""
    place = Path(path)
    try:
        files = [place] if place.is_file() else islice(place.rglob("*"), MAX_FILES + 1)
        found = [file.stat() for file in files]
        if len(found) > MAX_FILES or sum(one.st_size for one in found) > MAX_BYTES:
            return ""
        if not all(stat.S_ISREG(one.st_mode) or stat.S_ISDIR(one.st_mode) for one in found):
            return ""
        return digest_of(place)
    except OSError:
        return ""
