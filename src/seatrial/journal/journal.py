"""The append-only file of a trial's events: the only truth.

    with Journal.take(folder / "journal.jsonl") as journal:     # one writer, or a JournalError
        journal.append(event)                                  # buffered
        journal.flush()                                        # on disk before the act it announces
    for event in read(path): ...                               # from any byte offset on

A torn last line, left by a crash or a full disk, is cut off when the journal is next owned. A line
damaged in the middle, which its checksum tells, is skipped and counted, never fatal. A journal that
lost its last whole lines, which its mark tells, counts as one with a damaged line.
"""

import contextlib
import os
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, BinaryIO, NamedTuple, Self

import msgspec
from msgspec import Meta, Struct

from seatrial.errors import JournalError, Owned
from seatrial.files import open_descriptor, open_regular, read_regular, sync_files
from seatrial.journal.clock import TrialClock, uptime_ns
from seatrial.journal.encoding import (
    ENDING,
    decode_block,
    decode_lines,
    encode,
    encode_lines,
    seal,
    seed_of,
)
from seatrial.journal.events import Event, JobsOwnEvent, TrialEnded, TrialOpened, TrialResumed
from seatrial.journal.lock import (
    LONGEST_NAME,
    cannot,
    lock_of,
    lock_too,
    name_in,
    name_owner,
    shown,
    take_lock,
)
from seatrial.model.file_model import DAMAGED, decoder
from seatrial.units import SECOND_NS

READ_AT_ONCE = 8 << 20
LONGEST_LINE = 4 << 20
SAMPLE = 4096
LOOK_NS = SECOND_NS  # between two looks at who owns it, at least


class Journal:
    """The one writer of a trial's journal."""

    def __init__(self, path: Path, descriptor: int, lock: int, end: int, last_time: int) -> None:
        self.path = path
        self.clock = TrialClock(last_time)
        self._descriptor = descriptor
        self._lock = lock
        self._named = os.pread(lock, LONGEST_NAME, 0).decode(errors="replace")
        self._looked = uptime_ns()
        self._taken_by = ""
        self._torn = False  # whether a part of a line may lie behind the end
        self._end = end
        self._unsealed: list[bytes] = []  # together whole lines, without their checksums
        self._pending = b""  # whole lines
        self._first: list[str] = []  # files that are synced before the journal is
        self._cut = False  # it has lost its end, and no line of it says so yet
        self._seed = seed_of(os.pread(descriptor, ENDING, max(0, end - ENDING)))

    @classmethod
    def take(cls, path: Path, host_is_gone: bool = False) -> Self:
        """Open for writing, made if missing, its torn last line cut off. Raises JournalError,
        which names the owner, when another process has it. ``host_is_gone``: a sign of life of an
        owner on another host does not count."""
        lock = take_lock(lock_of(path), host_is_gone)
        try:
            descriptor = open_descriptor(path, os.O_RDWR | os.O_CREAT)
        except OSError as error:
            os.close(lock)
            raise JournalError(cannot("opened", path, error)) from error
        try:
            lock_too(descriptor, path)
            name_owner(lock)
            mark = read_mark(path)
            end = _whole_lines(descriptor)
            if end < os.fstat(descriptor).st_size:
                os.ftruncate(descriptor, end)
            journal = cls(path, descriptor, lock, end, _last_time(descriptor, end))
            if mark is not None and not is_kept(path, mark, descriptor):
                lost = max(0, mark.bytes - end)
                journal._unsealed.append(b'{"lost":%d}\n' % lost)  # damaged
                journal._cut = True
            return journal
        except (OSError, Owned) as error:
            os.close(descriptor)
            os.close(lock)
            if isinstance(error, Owned):
                raise
            raise JournalError(cannot("opened", path, error)) from error

    def now(self) -> int:
        """The time for the next event. It is never before that of an event that is there, so that
        a clock that steps back cannot reorder a journal."""
        return self.clock.now()

    def append(self, event: Event) -> None:
        self._unsealed += encode(event), b"\n"

    def extend(self, events: Sequence[Event]) -> None:
        """Append events of known kinds."""
        self._unsealed.append(encode_lines(events))

    def rest_on(self, files: Iterable[str]) -> None:
        """Have these files on the disk itself before the events that are appended next: a crash of
        the host does not leave a verdict on an output that it cut."""
        self._first += files

    def flush(self, durable: bool = False) -> None:
        """Write what was appended; with ``durable`` wait until it is on the disk itself. On failure
        JournalError is raised; no line half written stays, and what was not written is kept for
        the next flush. Lines once written are never taken back: a reader may have seen them."""
        self._look_at_owner()
        if self._unsealed:
            sealed, self._seed = seal(b"".join(self._unsealed), self._seed)
            self._pending += sealed
            self._unsealed.clear()
        try:
            if self._pending:
                self._write()
                self._cut = False
        except OSError as error:
            raise JournalError(cannot("written", self.path, error)) from error
        if durable:
            self.sync()

    def sync(self) -> None:
        """Wait until what was written is on the disk itself. May be called in another thread.
        Raises JournalError."""
        self._look_at_owner()
        end = self._end
        while self._first:
            files, self._first = self._first, []
            sync_files(files)
        try:
            os.fdatasync(self._descriptor)
            ending = os.pread(self._descriptor, ENDING, max(0, end - ENDING))
        except OSError as error:
            raise JournalError(cannot("written", self.path, error)) from error
        if seed_of(ending) and not self._cut:  # else the old mark alone tells of the loss
            write_mark(self.path, end, ending)

    def require_there(self) -> None:
        """Raises JournalError where the file has gone from its path: what is written still lands in
        it, where nobody will find it."""
        try:
            if os.path.samestat(self.path.stat(), os.fstat(self._descriptor)):
                return
        except (FileNotFoundError, NotADirectoryError):
            self.require_own()
        except OSError as error:
            raise JournalError(cannot("found", self.path, error)) from error
        raise JournalError(
            f"{self.path}: it was removed, or moved away, while its trial ran; nothing more is "
            "started, and jobs that run go on; put it back and resume the trial, or cancel its "
            "jobs at the scheduler and start a new one"
        )

    def require_own(self) -> None:
        """Raise Owned where another process owns the journal now, which did not see the lock. What
        was not written is dropped: the events would lie on those of the other."""
        self._looked = uptime_ns()
        name = name_in(lock_of(self.path))
        if not self._taken_by and shown(name) and name != self._named:
            self._taken_by = shown(name)
        if self._taken_by:
            self._unsealed.clear()
            self._pending = b""
            raise Owned(
                f"{self.path.parent}: this trial is being run by {self._taken_by} as well; this "
                "process leaves it, and jobs go on; the file system keeps locks from other hosts: "
                "drive its trials on one host alone, or mount it so that flock holds on all"
            )

    def _look_at_owner(self) -> None:
        """Require the journal, unless that was done just before."""
        if self._taken_by or uptime_ns() - self._looked > LOOK_NS:
            self.require_own()

    def _require_end(self) -> None:
        """Raise Owned where somebody else has written behind the end."""
        if not self._torn and os.fstat(self._descriptor).st_size > self._end:
            self._taken_by = self._taken_by or "another process"
            self.require_own()

    def _write(self) -> None:
        self._require_end()
        written = 0
        try:
            with memoryview(self._pending) as data:
                while written < len(data):
                    written += os.pwrite(self._descriptor, data[written:], self._end + written)
        except OSError:
            written = self._pending.rfind(b"\n", 0, written) + 1
            self._torn = True  # what stays is overwritten by the next flush
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, self._end + written)
                self._torn = False
            raise
        finally:
            self._end += written
            self._pending = self._pending[written:]

    def close(self) -> None:
        with contextlib.suppress(JournalError):
            self.sync()
        if not self._taken_by:  # the next owner need not wait for a sign of life
            with contextlib.suppress(OSError):
                os.ftruncate(self._lock, 0)
        os.close(self._descriptor)
        os.close(self._lock)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        try:
            if kind is None:
                self.flush()
        finally:
            self.close()


class Block(NamedTuple):
    """The events of some whole lines, from one offset to another, and how many were no events."""

    events: list[Event]
    start: int
    end: int
    damaged: int


def read_blocks(
    file: BinaryIO, offset: int = 0, at_once: int = 0, until: int | None = None
) -> Iterator[Block]:
    """What an open journal holds from ``offset`` to its last whole line (below ``until``), a
    bounded block at a time (``at_once`` bytes), so that a journal of any size can be read."""
    at_once = at_once or READ_AT_ONCE
    seed = seed_before(file, offset)
    position = file.seek(offset)
    rest = b""
    while data := file.read(at_once if until is None else min(at_once, until - position)):
        position += len(data)
        rest += data
        if whole := rest.rfind(b"\n") + 1:
            lines, rest = rest[:whole], rest[whole:]
            events, damaged = decode_block(lines, seed)
            seed = seed_of(lines[-ENDING:])
            end = position - len(rest)
            yield Block(events, end - len(lines), end, damaged)
        if len(rest) > LONGEST_LINE:
            rest = b"\0"  # no event is that long; its end is still to be found


def seed_before(journal: BinaryIO, offset: int) -> int:
    """Return the seed of the checksum of the line that begins at ``offset``."""
    start = journal.seek(max(0, offset - ENDING))
    return seed_of(journal.read(offset - start))


def fingerprint(journal: BinaryIO, end: int) -> int:
    """A hash of the first and the last bytes of an open journal below ``end``: who goes on from
    there knows by it that the journal is still the one that was read."""
    sample = min(SAMPLE, end)
    first = os.pread(journal.fileno(), sample, 0)
    return zlib.crc32(os.pread(journal.fileno(), sample, end - sample), zlib.crc32(first))


class Reading:
    """The events of a journal, read as they are asked for. Of what was read so far, ``end`` is the
    offset behind the last whole line, ``number`` counts the events and ``damaged`` other lines: one
    where all are whole and later ones were lost."""

    def __init__(self, path: Path, offset: int) -> None:
        self._path = path
        self.end = offset
        self.number = self.damaged = 0

    def __iter__(self) -> Iterator[Event]:
        mark = read_mark(self._path)
        try:
            with open_regular(self._path) as file:
                for block in read_blocks(file, self.end):
                    self.end = block.end
                    self.number += len(block.events)
                    self.damaged += block.damaged
                    yield from block.events
                if not self.damaged and not is_kept(self._path, mark, file.fileno()):
                    self.damaged = 1
        except FileNotFoundError:
            self.damaged = int(mark is not None)
        except OSError as error:
            raise JournalError(cannot("read", self._path, error)) from error


def read(path: Path, offset: int = 0) -> Reading:
    """The events from ``offset`` to the last whole line. A missing file holds none."""
    return Reading(path, offset)


def _whole_lines(descriptor: int) -> int:
    """The size of the file up to its last line end."""
    end = os.fstat(descriptor).st_size
    while end > 0:
        start = max(0, end - 65536)
        block = os.pread(descriptor, end - start, start)
        cut = block.rfind(b"\n")
        if cut >= 0:
            return start + cut + 1
        end = start
    return 0


def _last_time(descriptor: int, end: int) -> int:
    """The latest time near the end of the journal, but for times by the clocks of compute nodes."""
    if not end:
        return 0
    size = 65536
    while True:
        start = max(0, end - size)
        lines = os.pread(descriptor, end - start, start).split(b"\n")
        events, _ = decode_lines(lines)
        times = [each.time for each in events if not isinstance(each, JobsOwnEvent)]
        if times or start == 0:
            return max(times, default=0)
        size *= 4


# ---- mark ----------------------------------------------------------------------------------------
#
# The mark beside a journal: how long it was when it was last known to be on the disk itself.
#
#     mark = read_mark(path)              # before the journal is opened, as both grow
#     is_kept(path, mark, descriptor)     # False: its end was cut off, or it is another journal
#
# A checksum for each line cannot tell that the last lines are missing. The mark can: it has the
# end of a line, and the checksum of that line, which covers the lines before it.


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


# ---- damage --------------------------------------------------------------------------------------
#
# Where a journal is damaged, and how people are told.
#
#     damage_of(path)                     # None, or Damage(lines=3, first=812)
#     damage_text("stability", path, damage)     # one line, with the remedy


LINE_PIECE = 1 << 20  # bytes, of the rest of a line that is longer than any event


class Damage(Struct, frozen=True):
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
        while not line.endswith(b"\n") and (rest := file.readline(LINE_PIECE)):
            last += len(rest)
            line = b"\0" + rest[-ENDING:]  # longer than any event
        if not line.endswith(b"\n"):
            return
        events, damaged = decode_lines([line[:-1]], seed)
        seed = seed_of(line[-ENDING:])
        yield Block(events, first, last, damaged)
