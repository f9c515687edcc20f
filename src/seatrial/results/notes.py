"""A machine's diary: what people note of upgrades, resets and outages, beside the trials.

    write(Path("trials/notes.jsonl"), "fabric reset", at=time_ns, machine="frost")
    read(Path("trials/notes.jsonl")).notes

Nothing in a journal tells these facts, so the file is their only truth: JSON lines that are only
ever appended, a removal is a line, too. Many may write at once: each line is one write under a
lock. A line that a crash tore is skipped and counted, as in a journal.
"""

import fcntl
import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import Struct

from seatrial.account import user_name
from seatrial.errors import TrialError, UsageError
from seatrial.files import make_folder, open_descriptor, open_regular
from seatrial.model.decoding import DAMAGED, decoder
from seatrial.units import SECOND_NS, show_seconds

FILE = "notes.jsonl"
LONGEST = 1000
AHEAD = 366 * 86400 * SECOND_NS  # ns by which an outage is planned at most
_MAX_BYTES = 64 << 20


class Note(Struct, frozen=True, omit_defaults=True):
    """One note. ``time`` is that of what happened, in ns; ``machine`` "" means every machine;
    ``written``, ``user`` and ``host`` say who noted it, and when."""

    id: str
    time: int
    text: str
    machine: str = ""
    written: int = 0
    user: str = ""
    host: str = ""

    def concerns(self, machine: str) -> bool:
        return self.machine in ("", machine)


class _Line(Note, frozen=True, omit_defaults=True):
    """A line of the file: a note, or the id of one that is removed."""

    id: str = ""
    time: int = 0
    text: str = ""
    removes: str = ""


class Diary(NamedTuple):
    """The notes in order of their times, and how many lines were none."""

    notes: list[Note]
    damaged: int = 0

    def of(self, machine: str) -> list[Note]:
        """The notes that concern a machine."""
        return [note for note in self.notes if note.concerns(machine)]


def read(path: Path) -> Diary:
    """The notes of a file; a missing one has none. Raises TrialError where it cannot be read."""
    try:
        with open_regular(path) as file:
            data = file.read(_MAX_BYTES)
    except FileNotFoundError:
        return Diary([])
    except OSError as error:
        raise TrialError(f"{path}: cannot be read: {error.strerror}") from error
    decode = decoder(_Line).decode
    notes: dict[str, Note] = {}
    damaged = 0
    for line in data.splitlines():
        if not line.strip():
            continue
        try:
            found = decode(line)
        except DAMAGED:
            damaged += 1
            continue
        if found.removes:
            notes.pop(found.removes, None)
        elif found.id and found.text:
            notes[found.id] = msgspec.convert(found, Note, from_attributes=True)
        else:
            damaged += 1
    return Diary(sorted(notes.values(), key=lambda note: (note.time, note.written)), damaged)


def write(path: Path, text: str, at: int, machine: str = "") -> Note:
    """Note what happened at a time (ns). Raises UsageError for a text or time that is none,
    TrialError where the file cannot be written."""
    text = " ".join(text.split())
    if not text:
        raise UsageError("a note needs a text, such as: seatrial note 'fabric reset'")
    if len(text) > LONGEST:
        raise UsageError(f"a note has at most {LONGEST} characters, this one has {len(text)}")
    if not 0 <= at <= time.time_ns() + AHEAD:
        raise UsageError("--at: a note's time is after 1969, and no more than a year ahead")
    known = {note.id for note in read(path).notes}
    new = next(number for number in iter(lambda: os.urandom(4).hex(), "") if number not in known)
    note = Note(new, at, text, machine, time.time_ns(), user_name(), os.uname().nodename)
    _append(path, msgspec.json.encode(note))
    return note


def remove(path: Path, wanted: str) -> Note:
    """Remove the note whose id begins so. Raises UsageError where there is none, or several."""
    found = [note for note in read(path).notes if wanted and note.id.startswith(wanted)]
    if len(found) != 1:
        said = "could be several notes" if found else "is no note"
        raise UsageError(f"{wanted[:40]!r} {said}; see `seatrial note --list`")
    _append(path, msgspec.json.encode(_Line(removes=found[0].id, written=time.time_ns())))
    return found[0]


def _append(path: Path, line: bytes) -> None:
    try:
        make_folder(path.parent)
        descriptor = open_descriptor(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o664)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            size = os.fstat(descriptor).st_size
            torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
            data = (b"\n" if torn else b"") + line + b"\n"
            if os.write(descriptor, data) < len(data):
                raise OSError(28, "the disk is full")
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise TrialError(
            f"{path}: cannot be written: {error.strerror}; see to its rights and its disk"
        ) from error


# ---- beside a change ----------------------------------------------------------------------


class Near(NamedTuple):
    """A note and how far it is from a change: seconds before (< 0) or after it; 0: it lies between
    the last figure of the old level and the first of the new one."""

    note: Note
    seconds: float

    @property
    def distance(self) -> str:
        """How far it is, in words."""
        if not self.seconds:
            return "in between"
        return f"{show_seconds(abs(self.seconds))} {'before' if self.seconds < 0 else 'after'}"


def nearest(notes: Iterable[Note], last: int, first: int) -> Near | None:
    """The note nearest to a change: after the figure at ``last``, before that at ``first`` (ns).
    Of several between them it is the latest one."""
    found = [
        Near(note, (min(0, note.time - last) + max(0, note.time - first)) / 1e9) for note in notes
    ]
    return min(reversed(found), key=lambda near: abs(near.seconds), default=None)
