"""How far a sink has got in a trial's journal: ``trials/TAG/sinks/NAME.json``.

    cursor = load(folder, "site")        # where nothing was sent yet: at the journal's beginning
    cursor.offset = block.end
    save(folder, cursor)                 # whole or not at all

It is written when the server has answered, so what it says was sent was sent. It is also what
people are shown: how far behind the sink is, and why.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Annotated, BinaryIO

import msgspec
from msgspec import Meta, Struct

from seatrial.decoding import DAMAGED, decoder
from seatrial.files import open_regular
from seatrial.journal.journal import fingerprint
from seatrial.trial.folder import TrialFolder

MAX_CURSOR_BYTES = 1 << 20

Count = Annotated[int, Meta(ge=0)]


class Behind(Struct, frozen=True):
    """What is not sent yet: bytes of the journal, events (estimated where there are many), and
    since how many seconds the first of them waits."""

    bytes: int = 0
    events: int = 0
    seconds: float = 0.0


class Cursor(Struct, kw_only=True):
    """``offset`` and ``fingerprint`` are of the journal; ``read`` counts its events so far,
    ``refused`` what of them the server does not take, ``damaged`` lines that are no events.
    ``error`` is why nothing goes on, ``since`` when that began and ``tries`` how often it was tried
    in vain since; ``told`` is the latest remark that stops nothing. Times are in ns."""

    sink: str
    kind: str = ""
    to: str = ""
    offset: Count = 0
    fingerprint: int = 0
    read: Count = 0
    refused: Count = 0
    damaged: Count = 0
    error: str = ""
    since: int = 0
    tries: int = 0
    told: str = ""
    answered: int = 0
    saved: int = 0
    behind: Behind = Behind()


def folder_of(folder: TrialFolder) -> Path:
    """Where the cursors of a trial are, and the log and the lock of the process that moves them."""
    return folder.path / "sinks"


def load(folder: TrialFolder, sink: str) -> Cursor:
    """The cursor of that sink; a new one where there is none, or none that can be read: to send
    again what was sent does no harm."""
    cursor = read_cursor(folder_of(folder) / f"{sink}.json") or Cursor(sink=sink)
    cursor.sink = sink  # whatever the file says
    return cursor


def read_cursor(path: Path) -> Cursor | None:
    """The cursor in a file, if it is one."""
    try:
        with open_regular(path) as file:
            return decoder(Cursor).decode(file.read(MAX_CURSOR_BYTES))
    except (OSError, *DAMAGED):
        return None


def save(folder: TrialFolder, cursor: Cursor) -> None:
    """Write it, whole or not at all. Raises OSError."""
    place = folder_of(folder)
    place.mkdir(exist_ok=True)
    cursor.saved = time.time_ns()
    part = place / f".{cursor.sink}.part"
    try:
        with part.open("wb") as file:
            file.write(msgspec.json.format(msgspec.json.encode(cursor)) + b"\n")
            file.flush()
            os.fdatasync(file.fileno())
        part.replace(place / f"{cursor.sink}.json")
    except OSError:
        part.unlink(missing_ok=True)
        raise


def forget(folder: TrialFolder, sink: str) -> None:
    """Have a sink begin at the journal's beginning again. Raises OSError."""
    (folder_of(folder) / f"{sink}.json").unlink(missing_ok=True)


def goes_on(journal: BinaryIO, cursor: Cursor) -> bool:
    """Whether the journal is the one that was sent, as far as it was sent."""
    size = os.fstat(journal.fileno()).st_size
    return size >= cursor.offset and fingerprint(journal, cursor.offset) == cursor.fingerprint
