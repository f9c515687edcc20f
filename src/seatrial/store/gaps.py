"""Where a journal could not be read: which lines, and between which events.

    gaps(store, trial)          # [GapRow(line=812, lines=3, first=190211, last=190704, ...)]

Damaged lines are skipped when a journal is read. Here they are located, so that a page can say what
is missing. Adjacent damaged lines are one gap.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from msgspec.structs import asdict, replace

from seatrial.journal.damage import READ_AT_ONCE, lines_of
from seatrial.journal.journal import Block
from seatrial.journal.mark import JournalMark, is_kept
from seatrial.store.columns import read
from seatrial.store.rows import GapRow, TrialRow
from seatrial.store.schema import Store, Writer
from seatrial.store.tables import GAPS, StoredGap, StoredTrial

MAX_GAPS = 1000  # gaps of a trial; of more, the count of damaged lines alone is kept


def gaps(store: Store, trial: TrialRow) -> list[GapRow]:
    """Return the places in the trial's journal that could not be read, in their order; at most
    ``MAX_GAPS``."""
    return read(store, GapRow, "gaps", "FROM gaps WHERE trial = ? ORDER BY first", (trial.row,))


class LinesBefore:
    """Counts the lines before places of a journal, in their order; nothing is read twice."""

    def __init__(self) -> None:
        self._end = self._lines = 0

    def count(self, file: BinaryIO, end: int) -> int:
        """Return the number of lines before a byte, which is not before that of the last call."""
        file.seek(self._end)
        while self._end < end and (data := file.read(min(READ_AT_ONCE, end - self._end))):
            self._end += len(data)
            self._lines += data.count(b"\n")
        return self._lines


def keep_gaps(
    writer: Writer, file: BinaryIO, trial: StoredTrial, block: Block, before: LinesBefore
) -> None:
    """Store where the next block is damaged; it begins where the trial was read to. A gap at the
    end of the part read before goes on, or the next event ends it."""
    if not block.damaged:
        if trial.damaged and block.events:
            closing = "UPDATE gaps SET after = ? WHERE trial = ? AND after IS NULL"
            writer.execute(closing, (block.events[0].time, trial.id))
        return
    query = "FROM gaps WHERE trial = ? AND after IS NULL"
    open_one = read(writer, GapRow, "gaps", query, (trial.id,))
    ((count,),) = writer.rows("SELECT count(*) FROM gaps WHERE trial = ?", (trial.id,))
    number = before.count(file, trial.ingested)
    found = _gaps(file, trial, block.end, number, open_one[0] if open_one else None)
    kept = found[: max(MAX_GAPS - count, len(open_one))]
    _keep(writer, trial, kept)


def keep_lost_end(
    writer: Writer, file: BinaryIO, trial: StoredTrial, journal: Path, mark: JournalMark
) -> None:
    """Store whether the journal, which was read to its end, has lost later lines: as one damaged
    line. When more is written to it, it is read from its beginning."""
    if is_kept(journal, mark, file.fileno()):
        return
    number = LinesBefore().count(file, trial.ingested) + 1
    last = max(mark.bytes, trial.ingested + 1)
    _keep(writer, trial, [GapRow(number, 1, trial.ingested, last, trial.last, None)])
    trial.damaged += 1
    trial.fingerprint = -1


def _keep(writer: Writer, trial: StoredTrial, gaps: Iterable[GapRow]) -> None:
    writer.upsert(GAPS, [StoredGap(**asdict(gap), trial=trial.id) for gap in gaps])


def _gaps(
    file: BinaryIO, trial: StoredTrial, end: int, number: int, gap: GapRow | None
) -> list[GapRow]:
    """Return the gaps from where the trial was read to, with so many lines before it; ``gap`` is
    the one in which that part ended."""
    found: list[GapRow] = []
    before = trial.last
    for first, last, events, damaged in lines_of(file, trial.ingested, end):
        number += 1
        if damaged and gap is None:
            gap = GapRow(number, 1, first, last, before, None)
        elif damaged and gap is not None:
            gap = replace(gap, lines=gap.lines + 1, last=last)
        elif events:
            if gap is not None:
                found.append(replace(gap, after=events[0].time))
                gap = None
            before = max(before or 0, events[0].time)
    return [*found, gap] if gap is not None else found
