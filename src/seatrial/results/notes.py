"""A machine's diary: what people note of upgrades, resets and outages, beside the trials.

    write(Path("trials/notes.jsonl"), "fabric reset", at=time_ns, machine="frost")
    read(Path("trials/notes.jsonl")).notes

    write(path, "kGNI bug", at=start, machine="hopper", until=end, nodes="n[1-8]", cause="software")

Nothing in a journal tells these facts, so the file is their only truth: JSON lines that are only
ever appended; a correction and a removal are lines, too. Many may write at once: each line is one
write under a lock. A line that a crash tore is skipped and counted, as in a journal.

A note with a cause is an incident: it has an end, and nodes.
"""

import fcntl
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from seatrial.account import user_name
from seatrial.errors import TrialError, UsageError
from seatrial.files import make_folder, open_descriptor, open_regular
from seatrial.grouping import grouped
from seatrial.model.file_model import DAMAGED, decoder
from seatrial.units import FAR_FUTURE_NS, SECOND_NS, show_seconds

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
    #: The end of what happened, in ns; 0: it was at one moment, or is not over.
    until: int = 0
    #: Its nodes, folded; "": all, or not said.
    nodes: str = ""
    #: Of an incident: the kind of its cause, by which losses are summed.
    cause: str = ""
    #: Why it was corrected.
    reason: str = ""

    def concerns(self, machine: str) -> bool:
        return self.machine in ("", machine)


class NoteLine(Note, frozen=True, omit_defaults=True):
    """A line of the file: a note, the same with other values, or the id of one that is removed."""

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
    notes: dict[str, Note] = {}
    damaged = 0
    for line in _lines(path):
        if line is None:
            damaged += 1
        elif line.removes:
            notes.pop(line.removes, None)
        else:
            notes[line.id] = msgspec.convert(line, Note, from_attributes=True)
    return Diary(sorted(notes.values(), key=lambda note: (note.time, note.written)), damaged)


def versions(path: Path) -> dict[str, list[NoteLine]]:
    """Return all that was ever written of each note, by its id, the oldest line first."""
    return grouped(filter(None, _lines(path)), lambda line: line.removes or line.id)


def _lines(path: Path) -> Iterator[NoteLine | None]:
    """Yield the lines of a file, None for one that is damaged."""
    try:
        with open_regular(path) as file:
            data = file.read(_MAX_BYTES)
    except FileNotFoundError:
        return
    except OSError as error:
        raise TrialError(f"{path}: cannot be read: {error.strerror}") from error
    decode = decoder(NoteLine).decode
    for line in filter(bytes.strip, data.splitlines()):
        try:
            found = decode(line)
        except DAMAGED:
            yield None
        else:
            timely = all(0 <= time < FAR_FUTURE_NS for time in (found.time, found.until))
            yield found if timely and (found.removes or (found.id and found.text)) else None


def write(path: Path, text: str, at: int, machine: str = "", name: str = "", **more: Any) -> Note:
    """Note what happened at a time (ns). ``name``: its id, in place of a random one; ``more``:
    further fields of the note. Raises UsageError for a text or time that is none and a name that is
    taken, TrialError where the file cannot be written."""
    known = versions(path)
    if name in known:
        raise UsageError(f"{name}: there is, or was, a note of that id; give another one")
    new = name or next(id for id in iter(lambda: os.urandom(4).hex(), "") if id not in known)
    return _written(path, Note(new, at, text, machine, **more))


def correct(path: Path, wanted: str, reason: str, **values: Any) -> Note:
    """Give the note whose id begins so other values of its fields. Raises as `write` and
    `remove`."""
    return _written(path, replace(find(path, wanted), **values, reason=reason))


def _written(path: Path, note: Note) -> Note:
    text = " ".join(note.text.split())
    if not text:
        raise UsageError("a note needs a text, such as: seatrial note 'fabric reset'")
    if len(text) > LONGEST:
        raise UsageError(f"a note has at most {LONGEST} characters, this one has {len(text)}")
    now = time.time_ns()
    if not 0 <= note.time <= now + AHEAD:
        raise UsageError("--at: a note's time is after 1969, and no more than a year ahead")
    host = os.uname().nodename
    note = replace(note, text=text, written=now, user=user_name(), host=host)
    _append(path, msgspec.json.encode(note))
    return note


def find(path: Path, wanted: str) -> Note:
    """Return the note whose id begins so. Raises UsageError where there is none, or several."""
    notes = read(path).notes
    found = [note for note in notes if wanted and note.id.startswith(wanted)]
    found = [note for note in found if note.id == wanted] or found
    if len(found) != 1:
        said = "could be several notes" if found else "is no note"
        raise UsageError(f"{wanted[:40]!r} {said}; see `seatrial note --list`")
    return found[0]


def remove(path: Path, wanted: str, reason: str = "") -> Note:
    """Remove the note whose id begins so. Raises UsageError where there is none, or several."""
    note = find(path, wanted)
    host = os.uname().nodename
    line = NoteLine(
        removes=note.id, written=time.time_ns(), user=user_name(), host=host, reason=reason
    )
    _append(path, msgspec.json.encode(line))
    return note


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
