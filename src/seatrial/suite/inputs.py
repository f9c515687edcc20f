"""The checksums of test inputs when a trial is made.

digests(tests) # {"/suite/deck.txt": "9f86d08188..."}, kept in trial.json
"""

from collections.abc import Iterable
from pathlib import Path

from seatrial.suite.build_key import digest_of, is_large
from seatrial.suite.model import Input, Test


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
    """Return the SHA-256 of a file, or of a folder's files. Return "" if it cannot be read, or is
    large."""
    try:
        return "" if is_large(Path(path)) else digest_of(Path(path))
    except OSError:
        return ""
