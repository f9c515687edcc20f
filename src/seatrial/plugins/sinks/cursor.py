"""Store how far a sink has got in a trial's journal: ``trials/TAG/sinks/NAME.json``.

    cursor = load(folder, "site")        # a new one begins at the journal's beginning
    cursor.offset = block.end
    save(folder, cursor)                 # atomic

A cursor is saved after the server has answered, so everything before it was delivered. It also
holds what people are shown: how far behind the sink is, and why.
"""

import os
from pathlib import Path
from typing import Annotated, BinaryIO

import msgspec
from msgspec import Meta, Struct

from seatrial.execute.trial_folder import TrialFolder
from seatrial.files import make_folder, open_regular, remove_file, write_durably
from seatrial.journal.journal import fingerprint
from seatrial.model.file_model import DAMAGED, decoder

MAX_CURSOR_BYTES = 1 << 20

Count = Annotated[int, Meta(ge=0)]


class Behind(Struct, frozen=True):
    """What was not sent yet: bytes of the journal, events, and how long the first has waited. The
    number of events is estimated if there are many."""

    bytes: int = 0
    events: int = 0
    seconds: float = 0.0


class Cursor(Struct, kw_only=True):
    """The position of one sink in one journal."""

    sink: str
    kind: str = ""
    #: Where it sends, as people may see it.
    to: str = ""
    #: The end of what was sent, and a checksum of what lies before it.
    offset: Count = 0
    fingerprint: int = 0
    #: Events so far; of these, those that the server refused; lines that are no events.
    read: Count = 0
    refused: Count = 0
    damaged: Count = 0
    #: Why the delivery is stuck, "" if it is not; since when (ns); the attempts that failed.
    error: str = ""
    since: int = 0
    tries: int = 0
    #: The latest message about something that does not stop the delivery.
    told: str = ""
    #: When the server answered last (ns).
    answered: int = 0
    behind: Behind = Behind()


def folder_of(folder: TrialFolder) -> Path:
    """Return the folder of a trial's cursors, and of the lock of the process that moves them."""
    return folder.path / "sinks"


def load(folder: TrialFolder, sink: str) -> Cursor:
    """Return the cursor of a sink, or a new one if there is none that can be read. Sending events a
    second time is harmless."""
    cursor = read_cursor(folder_of(folder) / f"{sink}.json") or Cursor(sink=sink)
    cursor.sink = sink  # the file may name another
    return cursor


def read_cursor(path: Path) -> Cursor | None:
    """Return the cursor in a file, or None if there is none that can be read."""
    try:
        with open_regular(path) as file:
            return decoder(Cursor).decode(file.read(MAX_CURSOR_BYTES))
    except (OSError, *DAMAGED):
        return None


def save(folder: TrialFolder, cursor: Cursor) -> None:
    """Write a cursor atomically. Raises OSError."""
    place = folder_of(folder)
    make_folder(place)
    part = place / f".{cursor.sink}.part"
    try:
        write_durably(part, msgspec.json.format(msgspec.json.encode(cursor)) + b"\n")
        part.replace(place / f"{cursor.sink}.json")
    except OSError:
        remove_file(part, missing_ok=True)
        raise


def forget(folder: TrialFolder, sink: str) -> None:
    """Delete a cursor: its sink begins at the journal's beginning again. Raises OSError."""
    remove_file(folder_of(folder) / f"{sink}.json", missing_ok=True)


def goes_on(journal: BinaryIO, cursor: Cursor) -> bool:
    """Return whether the journal begins with what was sent according to the cursor."""
    size = os.fstat(journal.fileno()).st_size
    return size >= cursor.offset and fingerprint(journal, cursor.offset) == cursor.fingerprint
