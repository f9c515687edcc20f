"""The grid of ways in which evidence can be bad, by the places that judge.

    @good("lint")
    def _(folder: Path) -> Told: ...              # what is whole is green there

    @bad("lint", "node", "did not answer")        # the words that must be said
    def _(folder: Path) -> Told: ...

    no("lint", version="...")                     # why a pair does not apply

Each pair is a small case, by the real entry point of its place. ``tests/test_bad_evidence.py`` asks
all of them.
"""

from __future__ import annotations

import atexit
import contextlib
import io
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from seatrial import cli

WAYS: Final = {
    "missing": "a file or a figure is not there",
    "empty": "it is there, and nothing is in it",
    "cut": "it is half-written: its end is missing",
    "unreadable": "it cannot be read: a folder is in its place",
    "nan": "a figure is NaN, infinite, or no number that can be",
    "unit": "a figure is in another unit or direction",
    "node": "a node is left out of its group",
    "parser": "the function that reads it crashes, or what it reads is garbage",
    "stale": "it is of an older run",
    "clock": "a clock was set, or a time cannot be",
    "word": "a word that no list knows",
    "line": "a line in the middle is dropped",
    "version": "it is of another version or another program",
}
PLACES: Final = (
    "verify",
    "references",
    "parse",
    "judge again",
    "criteria",
    "compare",
    "history --check",
    "accept check",
    "facts",
    "lint",
    "check nodes",
    "nodecheck",
    "import",
    "guard",
    "quota",
    "report verify",
)


class Told(NamedTuple):
    """What a place answered: whether that is pass, met, healthy or exit code 0, and its words."""

    green: bool
    said: str


Ask = Callable[[Path], Told]


class BadPair(NamedTuple):
    """A bad way at a place, how it is asked, and the words that name the reason."""

    place: str
    way: str
    ask: Ask
    words: tuple[str, ...]


BAD: Final[list[BadPair]] = []
GOOD: Final[dict[str, Ask]] = {}
REASONS: Final[dict[tuple[str, str], str]] = {}  # why a pair does not apply


def bad(place: str, way: str, *words: str) -> Callable[[Ask], Ask]:
    """Note a function that asks a place about evidence that is bad in this way."""
    assert place in PLACES and way in WAYS and words

    def noted(ask: Ask) -> Ask:
        BAD.append(BadPair(place, way, ask, words))
        return ask

    return noted


def good(place: str) -> Callable[[Ask], Ask]:
    """Note the function that asks a place about whole evidence."""
    assert place in PLACES and place not in GOOD

    def noted(ask: Ask) -> Ask:
        GOOD[place] = ask
        return ask

    return noted


def no(place: str, **reasons: str) -> None:
    """Note why ways do not apply to a place."""
    for way, reason in reasons.items():
        assert place in PLACES and way in WAYS and (place, way) not in REASONS
        REASONS[place, way] = reason


def command(folder: Path, *words: str) -> Told:
    """Run `seatrial` with these words in a folder, in this process, at its own door."""
    out = io.StringIO()
    before, code = sys.argv, 0
    sys.argv = ["seatrial", *words]
    try:
        streams = contextlib.redirect_stdout(out), contextlib.redirect_stderr(out)
        with contextlib.chdir(folder), streams[0], streams[1]:
            cli.main()
    except SystemExit as ended:
        code = int(str(ended.code))
    finally:
        sys.argv = before
    return Told(code == 0, f"{out.getvalue()}\nexit code {code}")


def kept_folder() -> Path:
    """Return a folder for what cases share; it is removed when the process ends."""
    folder = tempfile.mkdtemp(prefix="bad-evidence-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def files(folder: Path, **texts: str | bytes) -> Path:
    """Write files by their names, ``_`` for a dot; return the folder."""
    for name, text in texts.items():
        path = folder / name.replace("_", ".")
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder


def dropped(text: str, line: str) -> str:
    """Return a text without the first line that has these words."""
    lines = text.splitlines(keepends=True)
    lines.remove(next(each for each in lines if line in each))
    return "".join(lines)
