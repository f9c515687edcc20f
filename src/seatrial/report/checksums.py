"""Checksums of the files that a report is based on: journals and records of trials, the notes of
their folder, documents of evidence.

    files = [file_of(folder, "journal.jsonl", end), ...]
    block(files)                     # the text in a report, a line for each file
    files_in(document)               # the files that a report names

A journal only grows, and so do notes, so their checksum is that of the bytes that they had, which
never change. The block tells the decision, too, so that whoever signs the report signs it.
"""

import hashlib
import re
from collections.abc import Iterable
from html.parser import HTMLParser
from pathlib import Path
from typing import Final

from msgspec import Struct

from seatrial.decoding import DAMAGED, decoder
from seatrial.errors import TrialError, UsageError
from seatrial.files import open_regular
from seatrial.lazy import regex
from seatrial.trial.folder import TrialFolder
from seatrial.verify.reading import plain_line

PLACE: Final = "checksums"  # id of the block in HTML, language of the block in Markdown
NAMES: Final = ("trial.json", "cases.jsonl", "journal.jsonl")
MAX_FILES: Final = 10_000
_AT_ONCE = 1 << 20
NOTES: Final = "notes.jsonl"
_DOCUMENT: Final = "document "
_LINE = regex(
    r"([0-9a-f]{64}) +(\d{1,15}) +(?:"
    rf"([A-Za-z0-9][A-Za-z0-9._+-]{{0,99}})/({'|'.join(map(re.escape, NAMES))})"
    rf"|({re.escape(NOTES)}|{_DOCUMENT}\S.{{0,1000}}))"
)
_DECISION = "decision: "
_FENCED = regex(rf"^```{PLACE}\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class File(Struct, frozen=True, kw_only=True):
    """The first ``bytes`` bytes of a file of a trial; ``trial`` is "" for the notes of the trials'
    folder, and for a document of evidence, whose name begins with "document ".

    ``events`` and ``damaged``: the events and the invalid lines of a journal.
    """

    trial: str
    name: str
    sha256: str
    bytes: int
    events: int | None = None
    damaged: int = 0

    @property
    def shown(self) -> str:
        return f"{self.trial}/{self.name}" if self.trial else self.name

    @property
    def document(self) -> str:
        """The path of a document of evidence, as its plan has it; "" for any other file."""
        return self.name.removeprefix(_DOCUMENT) if self.name.startswith(_DOCUMENT) else ""


def document_of(path: str, sha256: str, size: int) -> File:
    """Return a document of evidence, with the checksum that its plan has."""
    return File(trial="", name=_DOCUMENT + plain_line(path), sha256=sha256.lower(), bytes=size)


def digest(data: bytes) -> str:
    """Return the SHA-256 of some bytes, in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def sum_of(path: Path, size: int) -> tuple[str, int]:
    """Return the checksum of the first ``size`` bytes of a file, and how many it has of them.

    Raises OSError.
    """
    summed = hashlib.sha256()
    remaining = size
    with open_regular(path) as file:
        while remaining > 0 and (data := file.read(min(remaining, _AT_ONCE))):
            summed.update(data)
            remaining -= len(data)
    return summed.hexdigest(), size - remaining


def file_of(
    folder: TrialFolder,
    name: str,
    size: int | None = None,
    events: int | None = None,
    damaged: int = 0,
) -> File:
    """Return a file of a trial, or its first ``size`` bytes. Raises TrialError."""
    path = folder.path / name
    try:
        sha256, there = sum_of(path, path.stat().st_size if size is None else size)
    except OSError as error:
        raise TrialError(f"{path}: cannot be read: {error.strerror}") from error
    return File(
        trial=folder.tag, name=name, sha256=sha256, bytes=there, events=events, damaged=damaged
    )


# ---- in documents -------------------------------------------------------------------------


def block(files: Iterable[File], decision: str = "") -> str:
    """Return a line for each file: checksum, bytes, name; then the decision, if there is one."""
    lines = [f"{each.sha256}  {each.bytes:>12}  {each.shown}\n" for each in files]
    return "".join([*lines, f"{_DECISION}{decision}\n" if decision else ""])


def files_in(document: bytes) -> list[File]:
    """Return the files that a report names, in any of its formats.

    Raises UsageError for a document that is no report.
    """
    return based_on(document)[0]


def based_on(document: bytes) -> tuple[list[File], str]:
    """Return the files that a report names, and the decision in it, "" if there is none.

    Raises UsageError for a document that is no report.
    """
    text = document.decode("utf-8", errors="replace")
    if text.lstrip().startswith("{"):
        return _in_json(document)
    if text.lstrip()[:9].lower() == "<!doctype":  # a fence in HTML is text that somebody wrote
        reader = _Reader()
        reader.feed(text)
        return _in_lines("".join(reader.kept))
    found = _FENCED.findall(text)
    return _in_lines(found[-1] if found else "")  # the last: text by people stands before it


def _in_lines(text: str) -> tuple[list[File], str]:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    decision = ""
    if lines and lines[-1].startswith(_DECISION):
        decision = lines.pop().removeprefix(_DECISION)
    found = [_LINE.fullmatch(line) for line in lines[: MAX_FILES + 1]]
    if not lines or len(lines) > MAX_FILES or None in found:
        raise UsageError("it names no checksums of journals: it is no report of Seatrial's, or cut")
    files = [
        File(sha256=one[1], bytes=int(one[2]), trial=one[3] or "", name=one[4] or one[5])
        for one in found
        if one
    ]
    return files, decision


class _Files(Struct):
    files: list[File]
    decision: str = ""


def _in_json(document: bytes) -> tuple[list[File], str]:
    try:
        found = decoder(_Files).decode(document)
    except DAMAGED as error:
        raise UsageError(f"it is no report of Seatrial's: {error}") from error
    return _in_lines(block(found.files, plain_line(found.decision)))


class _Reader(HTMLParser):
    """A parser that keeps the text of the element with the id of the block."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.kept: list[str] = []
        self._inside = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._inside = tag == "pre" and ("id", PLACE) in attrs

    def handle_endtag(self, tag: str) -> None:
        self._inside = False

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.kept.append(data)
