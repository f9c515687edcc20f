"""Where a journal is damaged, and how people are told.

damage_of(path)                     # None, or Damage(lines=3, first=812)
damage_text("stability", path, damage)     # one line, with the remedy
"""

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from seatrial.files import open_regular
from seatrial.journal.checksum import ENDING, seed_of
from seatrial.journal.encoding import decode_lines
from seatrial.journal.events import TrialEnded, TrialOpened, TrialResumed
from seatrial.journal.journal import LONGEST_LINE, Block, is_kept, read_mark, seed_before

READ_AT_ONCE = 1 << 20


class Damage(NamedTuple):
    """So many damaged lines; ``first`` is the number of the first of them, from 1. ``settled``: the
    trial was resumed since, and came to its end, so no run lacks its verdict."""

    lines: int
    first: int
    settled: bool = False


def damage_text(tag: str, journal: Path, damage: Damage) -> str:
    """Return what people are told of a damaged journal."""
    if damage.first == 1 and _is_empty(journal):
        return (
            f"{tag}: {journal}: it is empty, all events are missing; put a good copy of the file "
            f"back, or `seatrial resume {tag}` runs everything anew"
        )
    lines = "1 damaged line" if damage.lines == 1 else f"{damage.lines} damaged lines"
    where = f"{tag}: {journal}:{damage.first}: {lines}, events are missing"
    if damage.settled:
        return f"{where}; no run lacks a verdict; a good copy of the file has the other events"
    return (
        f"{where}; put a good copy of the file back, or `seatrial resume {tag}` judges again what "
        "lost its verdict"
    )


def _is_empty(journal: Path) -> bool:
    try:
        return journal.stat().st_size == 0
    except OSError:
        return False


def damage_of(journal: Path) -> Damage | None:
    """Read a journal line by line, and return its damage; None if it is whole. Raises OSError."""
    mark = read_mark(journal)
    lines = first = number = 0
    resumed = settled = False
    try:
        with open_regular(journal) as file:
            for number, line in enumerate(lines_of(file, 0), 1):
                for event in line.events:
                    resumed |= isinstance(event, TrialResumed)
                    if isinstance(event, TrialOpened | TrialEnded):
                        settled = resumed and isinstance(event, TrialEnded)
                if line.damaged:
                    lines += 1
                    first = first or number
                    resumed = settled = False
            is_cut = not is_kept(journal, mark, file.fileno())
    except FileNotFoundError:
        is_cut = mark is not None
    if not lines and is_cut:
        return Damage(1, number + 1)
    return Damage(lines, first, settled and not is_cut) if lines else None


def lines_of(file: BinaryIO, start: int, end: int | None = None) -> Iterator[Block]:
    """Yield the whole lines of an open journal from one byte to another, however long they are."""
    seed = seed_before(file, start)
    last = file.seek(start)
    while (end is None or last < end) and (line := file.readline(LONGEST_LINE)):
        first = last
        last += len(line)
        while not line.endswith(b"\n") and (rest := file.readline(READ_AT_ONCE)):
            last += len(rest)
            line = b"\0" + rest[-ENDING:]  # longer than any event
        if not line.endswith(b"\n"):
            return
        events, damaged = decode_lines([line[:-1]], seed)
        seed = seed_of(line[-ENDING:])
        yield Block(events, first, last, damaged)
