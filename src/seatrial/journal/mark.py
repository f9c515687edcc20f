"""The mark beside a journal: how long it was when it was last known to be on the disk itself.

    mark = read_mark(path)              # before the journal is opened, as both grow
    is_kept(path, mark, descriptor)     # False: its end was cut off, or it is another journal

A checksum for each line cannot tell that the last lines are missing. The mark can: it has the end
of a line, and the checksum of that line, which covers the lines before it.
"""

import contextlib
import os
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from seatrial.decoding import DAMAGED, decoder
from seatrial.files import open_descriptor, open_regular, read_regular
from seatrial.journal.checksum import ENDING

_MAX_BYTES = 4096


class JournalMark(Struct, frozen=True):
    """``bytes``: the journal's size, whole lines. ``crc``: the checksum of the last of them."""

    bytes: Annotated[int, Meta(ge=ENDING)]
    crc: str

    def fits(self, descriptor: int) -> bool:
        """Return whether an open journal has this line at this place."""
        ending = os.pread(descriptor, ENDING, self.bytes - ENDING)
        return ending == b',"crc":"%b"}\n' % self.crc.encode()


def path_of(journal: Path) -> Path:
    return journal.with_name(journal.name + ".mark")


def read_mark(journal: Path) -> JournalMark | None:
    """Return the mark of a journal; None where there is none, or none that can be read."""
    try:
        return decoder(JournalMark).decode(read_regular(path_of(journal), _MAX_BYTES))
    except (OSError, *DAMAGED):
        return None


def is_kept(journal: Path, mark: JournalMark | None, descriptor: int) -> bool:
    """Return whether an open journal still has what it had. A mark that was read while it was
    written may be half of an older one: damage is told of one that was read twice alone."""
    while mark is not None and not mark.fits(descriptor):
        again = read_mark(journal)
        if again == mark:
            return False
        mark = again
    return True


def has_lost_end(journal: Path) -> bool:
    """Return whether a journal has lost what it had. Raises OSError where it cannot be read."""
    mark = read_mark(journal)
    if mark is None:
        return False
    try:
        with open_regular(journal) as file:
            return not is_kept(journal, mark, file.fileno())
    except FileNotFoundError:
        return True


def write_mark(journal: Path, end: int, ending: bytes) -> None:
    """Write the mark of a journal whose line before ``end`` has this ending. It is written in
    place, and not synced: an old mark, or none, is no harm. So a failure is not told."""
    line = msgspec.json.encode({"bytes": end, "crc": ending[8:16].decode()})
    with contextlib.suppress(OSError, UnicodeDecodeError):
        descriptor = open_descriptor(path_of(journal), os.O_WRONLY | os.O_CREAT)
        try:
            os.pwrite(descriptor, line.ljust(63) + b"\n", 0)
        finally:
            os.close(descriptor)
