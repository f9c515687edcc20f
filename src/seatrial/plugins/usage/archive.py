"""The files that keep imported jobs, from which the tables of the store are made again.

    trials/.usage/MACHINE/SEGMENT.gz            # jobs
    trials/.usage/MACHINE/SEGMENT.rejects       # rows that could not be read, as JSON lines

A segment is one import, or a part of one: its header, then its jobs, as JSON lines below gzip
(``zcat`` shows them). It is written whole under another name and renamed, and is never changed; its
header has the checksum of what follows. Its name sorts by the time when its source was asked. What
takes rows out (`seatrial usage keep`, `forget`) writes another segment that names the one in whose
place it is, and then removes that.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import tempfile
import time
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import islice, repeat
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
from msgspec import Struct, defstruct
from msgspec.structs import astuple, replace

from seatrial import __version__
from seatrial.errors import SeatrialError, StoreError, UsageError
from seatrial.files import (
    make_folder,
    open_descriptor,
    open_regular,
    open_to_write,
    remove_file,
    sync_folder,
)
from seatrial.plugins.usage.jobs import CODED, JOBS, WORD_TABLE, StoredWord, UserJob, in_table
from seatrial.results.store.schema import Store, Writer, marks
from seatrial.results.store.tables import Table, chunks
from seatrial.units import SECOND_NS

FOLDER = ".usage"  # no tag of a trial begins with a dot
ENDING = ".gz"
REJECTS = ".rejects"
PART = ".part"
FORMAT = 1
ROWS_AT_ONCE = 5000
CHUNK = 1 << 20
LONGEST_HEADER = 1 << 20
MOST = 1 << 62  # of a number of a job: databases have 64 bits
PRIVATE_FOLDER = 0o750
PRIVATE_FILE = 0o640
MAX_EXAMPLES = 5
MAX_IN_MEMORY = 4 << 20  # bytes of rejects
_QUOTED = r"'[^']*'|\"[^\"]*\""
_GZIP = 31  # zlib's number of a gzip member


class Segment(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The header of a segment: how its jobs were asked for, and what it holds."""

    machine: str
    source: str
    #: By the batch system's name, where the machine has several.
    cluster: str = ""
    #: The file or the command, for people.
    origin: str = ""
    #: When the source was asked, in ns.
    asked: int
    #: The span that it covers, in s: each job that was in the queue or ran within it is there.
    since: int = 0
    until: int = 0
    #: When and by whom it was imported, in ns.
    imported: int = 0
    by: str = ""
    version: str = __version__
    format: int = FORMAT
    #: Whether keyed hashes stand for the names of users.
    anonymous: bool = False
    cursor: str = ""
    jobs: int = 0
    #: Those of the jobs that had not ended.
    unfinished: int = 0
    #: Rows that could not be read.
    rejects: int = 0
    #: Jobs that were taken out since: their users were forgotten, or their time is over.
    removed: int = 0
    #: The name of the segment in whose place it is.
    replaces: str = ""
    #: Of all that follows the header.
    size: int = 0
    sha256: str = ""


class Damaged(SeatrialError):
    """A segment cannot be read as it was written."""


# ---- rows that cannot be read --------------------------------------------------------------------


class Reject(Struct, frozen=True):
    """A row that cannot be read: where it stands, what is wrong, and the row itself."""

    place: str
    reason: str
    row: str = ""


class Rejects:
    """Rows of a batch that cannot be read: counted, the first ones for people, all in a file. And
    notes on what rows that were read do not say, each with the number of rows."""

    def __init__(self) -> None:
        self.count = 0
        self.notes: Counter[str] = Counter()
        self.examples: list[Reject] = []
        self._file: BinaryIO = self._empty()

    def add(self, place: str, reason: str, row: str) -> None:
        """Add a row with its place, such as ``FILE:LINE``."""
        found = Reject(place, reason, row)
        self.count += 1
        if len(self.examples) < MAX_EXAMPLES:
            self.examples.append(found)
        self._file.write(msgspec.json.encode(found) + b"\n")

    def rows(self) -> Iterator[Reject]:
        """Yield the rows."""
        self._file.seek(0)
        for line in self._file:
            yield msgspec.json.decode(line, type=Reject)
        self._file.seek(0, os.SEEK_END)

    def note(self, text: str) -> None:
        """Count a row that is taken as ``text`` says."""
        self.notes[text] += 1

    def clear(self) -> None:
        """Forget the rows and the notes; the examples stay."""
        self.count = 0
        self.notes.clear()
        self._file.close()
        self._file = self._empty()

    @staticmethod
    def _empty() -> BinaryIO:
        # plain: without a name
        return tempfile.SpooledTemporaryFile(MAX_IN_MEMORY)  # type: ignore[return-value]


LATE_S = 7 * 86400


def _told_by(asked: int, last: int) -> int:
    """Return up to when, in ns, a file tells of jobs that run. One that was written long after the
    last time in it is a copy, or old: nobody knows for how long they ran on."""
    return asked if asked // SECOND_NS - last <= LATE_S else (last + 1) * SECOND_NS


# ---- the archive of a machine --------------------------------------------------------------------


Covered = tuple[int | None, int | None] | None
"""A span in s; None: that of the times of the jobs, as is a bound that is None."""

Ended = Callable[[], tuple[Covered, str]]
"""Tells the span that jobs cover (None: that of their times) and the cursor behind them."""


class Archive:
    """The segments of one machine."""

    def __init__(self, trials: Path, machine: str) -> None:
        self.machine = machine
        self.folder = trials / FOLDER / machine
        self._headers: dict[str, Segment] | None = None

    def names(self) -> list[str]:
        """Return the names of the segments, by the time when their sources were asked. Raises
        OSError."""
        try:
            found = os.listdir(self.folder)  # noqa: PTH208
        except (FileNotFoundError, NotADirectoryError):
            return []
        return sorted(name for name in found if name.endswith(ENDING) and name[0] != ".")

    def headers(self) -> dict[str, Segment]:
        """Return the headers of the segments that count, by name, as they were first read here.
        Damaged ones are left out: `seatrial usage imports` names them."""
        if self._headers is None:
            found = {}
            for name in self.names():
                with contextlib.suppress(Damaged):
                    found[name] = self.header(name)
            replaced = {about.replaces for about in found.values()}
            self._headers = {name: about for name, about in found.items() if name not in replaced}
        return self._headers

    def header(self, name: str) -> Segment:
        """Return the header of a segment. Raises Damaged."""
        return header_of(self.folder / name)

    def last_of(self, source: str, cluster: str) -> Segment | None:
        """Return the segment of a source that covers the latest time; None if there is none."""
        of_source = [
            about
            for about in self.headers().values()
            if (about.source, about.cluster) == (source, cluster)
        ]
        return max(of_source, key=lambda about: (about.until, about.asked), default=None)

    def write(
        self,
        about: Segment,
        jobs: Iterable[UserJob],
        covered: Covered = None,
        rejects: Rejects | None = None,
        ended: Ended | None = None,
        *,
        of_file: bool = False,
    ) -> Segment:
        """Write a segment; return its header. ``covered``: the span that it covers, None: that of
        the times of its jobs; ``ended`` tells that span and the cursor once all jobs were taken.
        ``of_file``: they were asked for when a file was written, which may be a copy.
        Of an anonymous one the rejected rows themselves are not kept. Nothing is written where the
        same is there already, or where there is no job and no span."""
        rejects = rejects or Rejects()
        make_folder(self.folder, PRIVATE_FOLDER)
        with self._temporary() as body:
            written = _write_body(body, jobs)
            covered, cursor = ended() if ended else (covered, about.cursor)
            if not written.jobs and not (covered and covered[1]):
                return about
            if of_file and written.unfinished:
                about = replace(about, asked=_told_by(about.asked, written.last))
            about = replace(about, cursor=cursor, rejects=rejects.count)
            about = _with_body(about, written, covered or (None, None))
            if same := self._same(about):
                if self._is_sound(same):
                    return self.headers()[same]
                about = replace(about, replaces=same)
            name = name_of(about)
            if rejects.count:
                self._publish(f"{name}{REJECTS}", _reject_lines(rejects, about.anonymous))
            self._publish(name, _whole(about, body))
            self.headers()[name] = about
        return about

    def _same(self, about: Segment) -> str:
        """Return the name of the segment that has the same rows of the same source, "" if there is
        none: all of them ended, or were asked at the same time."""
        for name, other in self.headers().items():
            if (
                other.sha256 == about.sha256
                and _identity(other) == _identity(about)
                and (not about.unfinished or other.asked == about.asked)
            ):
                return name
        return ""

    def _is_sound(self, name: str) -> bool:
        """Return whether all of a segment can be read."""
        try:
            for _ in self.lines(name):
                break
        except Damaged:
            return False
        return True

    def rewrite(
        self, name: str, keeps: Callable[[UserJob], bool], keeps_row: Callable[[Reject], bool]
    ) -> int:
        """Replace a segment by one with those of its jobs and rejects that are kept, if any are
        not. Returns how many jobs are gone. Raises Damaged."""
        about = self.header(name)
        rejects = Rejects()
        for row in filter(keeps_row, self.rejects(name)):
            rejects.add(row.place, row.reason, row.row)
        gone = sum(not keeps(job) for jobs in self.jobs(name) for job in jobs)
        if gone or rejects.count < about.rejects:
            kept = (job for jobs in self.jobs(name) for job in jobs if keeps(job))
            removed = about.removed + gone
            changed = replace(about, replaces=name, removed=removed)
            self.write(changed, kept, (about.since, about.until), rejects)
            self.remove(name)
        return gone

    def remove(self, name: str) -> None:
        """Remove a segment that another one replaces."""
        for file in (name, f"{name}{REJECTS}"):
            remove_file(self.folder / file, missing_ok=True, follow=True)
        sync_folder(self.folder)
        if self._headers is not None:
            self._headers.pop(name, None)

    def tidy(self) -> None:
        """Remove what a command that was killed has left: segments that others replace, and parts
        of files."""
        for name in set(self.names()) - self.headers().keys():
            with contextlib.suppress(Damaged):
                self.header(name)
                self.remove(name)
        for file in self.folder.glob(f".*{PART}"):
            remove_file(file, missing_ok=True, follow=True)

    def jobs(self, name: str) -> Iterator[list[UserJob]]:
        """Yield the jobs of a segment, some at a time. Raises Damaged."""
        decoder = msgspec.json.Decoder(UserJob)
        for lines in self.lines(name):
            yield [decoder.decode(line) for line in lines]

    def lines(self, name: str) -> Iterator[list[bytes]]:
        """Yield the jobs of a segment as JSON, some at a time, once all of it was compared with its
        checksum. Raises Damaged."""
        file = self.folder / name
        about = self.header(name)
        with open_regular(file) as opened:
            start = os.fstat(opened.fileno()).st_size - about.size
            _require_sound(file, opened, about, start)
            opened.seek(start)
            lines = _decompressed_lines(opened)
            while some := list(islice(lines, ROWS_AT_ONCE)):
                yield some

    def rejects(self, name: str) -> Iterator[Reject]:
        """Yield the rows of a segment that could not be read."""
        with contextlib.suppress(FileNotFoundError), open_regular(self.rejects_file(name)) as file:
            for line in file:
                yield msgspec.json.decode(line, type=Reject)

    def rejects_file(self, segment: str | Segment) -> Path:
        """Return the file of the rows of a segment that could not be read."""
        name = segment if isinstance(segment, str) else name_of(segment)
        return self.folder / f"{name}{REJECTS}"

    @contextlib.contextmanager
    def _temporary(self) -> Iterator[Path]:
        path = self.folder / f".{os.getpid()}-{time.monotonic_ns()}{PART}"
        try:
            yield path
        finally:
            remove_file(path, missing_ok=True, follow=True)

    def _publish(self, name: str, parts: Iterable[bytes]) -> None:
        """Write a file, which appears whole, in the place of one of that name."""
        with self._temporary() as part:
            with open_to_write(part, mode=PRIVATE_FILE) as file:
                for data in parts:
                    file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.rename(part, self.folder / name)  # noqa: PTH104
        sync_folder(self.folder)


def archives(trials: Path) -> list[Archive]:
    """Return the archives of all machines. Raises OSError."""
    root = trials / FOLDER
    folders = sorted(each for each in root.iterdir() if each.is_dir()) if root.is_dir() else []
    return [Archive(trials, folder.name) for folder in folders]


@contextlib.contextmanager
def changing(trials: Path, *, adding: bool = False) -> Iterator[None]:
    """Keep others from changing the archive. Several may add to it at once (``adding``), and who
    takes out is alone. Raises UsageError."""
    make_folder(trials / FOLDER, PRIVATE_FOLDER)
    file = trials / FOLDER / "lock"
    lock = open_descriptor(file, os.O_RDWR | os.O_CREAT, PRIVATE_FILE)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_NB | (fcntl.LOCK_SH if adding else fcntl.LOCK_EX))
        except BlockingIOError:
            other = "takes jobs out of it" if adding else "changes it"
            text = f"{trials / FOLDER}: another command {other}; wait for its end"
            raise UsageError(text) from None
        yield
    finally:
        os.close(lock)


# ---- the form of a segment -----------------------------------------------------------------------


def name_of(about: Segment) -> str:
    """Return the name of a segment: by the time when its source was asked, then by its header, so
    that no segment ever gets the name of one that was replaced."""
    digest = hashlib.sha256(msgspec.json.encode(about)).hexdigest()
    return f"{about.asked:020}-{digest[:16]}{ENDING}"


def _identity(about: Segment) -> tuple[object, ...]:
    """Return what segments with the same rows must share to be the same import."""
    return about.source, about.cluster, about.since, about.until, about.anonymous, about.replaces


class _Body(Struct, frozen=True):
    """What was written behind a header; the first and the last time of its jobs."""

    jobs: int
    unfinished: int
    first: int
    last: int
    size: int
    sha256: str


def _with_body(about: Segment, written: _Body, covered: tuple[int | None, int | None]) -> Segment:
    """Return a header with what stands behind it, and the span that this covers."""
    since, until = covered
    return replace(
        about,
        since=written.first if since is None else since,
        until=written.last + 1 if until is None else until,
        jobs=written.jobs,
        unfinished=written.unfinished,
        size=written.size,
        sha256=written.sha256,
    )


def _write_body(path: Path, jobs: Iterable[UserJob]) -> _Body:
    """Write jobs as JSON lines below gzip."""
    encoder, compressor, digest = (
        msgspec.json.Encoder(),
        zlib.compressobj(1, wbits=_GZIP),
        hashlib.sha256(),
    )
    number = unfinished = size = last = 0
    first = 1 << 62
    rows = iter(jobs)
    with open_to_write(path, mode=PRIVATE_FILE) as file:
        while some := list(islice(rows, ROWS_AT_ONCE)):
            number += len(some)
            unfinished += sum(job.ended is None for job in some)
            first = min(first, *(job.submitted for job in some))
            last = max(last, *(job.ended or job.started or job.submitted for job in some))
            size += _add(compressor.compress(_encoded(encoder, some)), file, digest)
        size += _add(compressor.flush(), file, digest)
    return _Body(number, unfinished, min(first, last), last, size, digest.hexdigest())


def _encoded(encoder: msgspec.json.Encoder, jobs: Sequence[UserJob]) -> bytes:
    """Return jobs as JSON lines. Raises UsageError for a number that no database can keep."""
    for job in jobs:
        if (number := _largest(job)) > MOST:
            text = f"job {job.job} has the number {number}, which no database can keep"
            raise UsageError(f"{text}; nothing of this part was imported")
    return encoder.encode_lines(jobs)


def _largest(job: UserJob) -> int:
    times = (job.submitted, job.eligible or 0, job.started or 0, job.ended or 0)
    sizes = (job.nodes, job.cores, job.gpus, job.energy_j or 0)
    return max(*times, *sizes, job.limit_s or 0, job.suspended_s, job.cpu_s or 0)


def _add(data: bytes, file: BinaryIO, digest: Any) -> int:
    file.write(data)
    digest.update(data)
    return len(data)


def _whole(about: Segment, body: Path) -> Iterator[bytes]:
    """Yield the parts of a segment."""
    yield zlib.compress(msgspec.json.encode(about) + b"\n", 9, wbits=_GZIP)
    with open_regular(body) as file:
        while data := file.read(CHUNK):
            yield data


def _reject_lines(rejects: Rejects, anonymous: bool) -> Iterator[bytes]:
    for reject in rejects.rows():
        if anonymous:  # a reason may quote a name
            reject = Reject(reject.place, re.sub(_QUOTED, "...", reject.reason))
        yield msgspec.json.encode(reject) + b"\n"


def header_of(file: Path) -> Segment:
    """Return the header of a segment. Raises Damaged."""
    try:
        with open_regular(file) as opened:
            data = opened.read(LONGEST_HEADER)
        about = msgspec.json.decode(
            zlib.decompressobj(wbits=_GZIP).decompress(data, LONGEST_HEADER), type=Segment
        )
    except OSError as error:
        raise Damaged(f"{file}: cannot be read: {error.strerror}") from error
    except (zlib.error, msgspec.MsgspecError) as error:
        raise Damaged(f"{file}: is damaged: {error}") from error
    if about.format > FORMAT:
        raise Damaged(f"{file}: is of format {about.format}, of a newer Seatrial: upgrade it")
    return about


def _require_sound(file: Path, opened: BinaryIO, about: Segment, start: int) -> None:
    """Raise Damaged where what follows the header is not what was written."""
    digest = hashlib.sha256()
    if start > 0:
        opened.seek(start)
        while data := opened.read(CHUNK):
            digest.update(data)
    if digest.hexdigest() != about.sha256:
        raise Damaged(f"{file}: is damaged: its checksum is another one, or it is cut short")


def _decompressed_lines(opened: BinaryIO) -> Iterator[bytes]:
    member, rest = zlib.decompressobj(wbits=_GZIP), b""
    while data := opened.read(CHUNK):
        *lines, rest = (rest + member.decompress(data)).split(b"\n")
        yield from lines


# ---- tables of the store -------------------------------------------------------------------------
#
# The tables of the store are filled from the archive: jobs, their words, and what was imported.
#
# Segments that the store has are known by their names, so that it costs one listing of a folder
# where nothing is new. One that is damaged is kept in the table with its fault, and is told of each
# time when the store is brought up to date; it covers nothing.


LOCK = "usage"


class StoredImport(Struct, frozen=True, kw_only=True):
    """A segment that the store has, or cannot have. Times of what it covers are in s, those of its
    making in ns."""

    #: The folder of the archive: a store may be filled from several.
    archive: str
    machine: str
    name: str
    source: str = ""
    cluster: str = ""
    origin: str = ""
    asked: int = 0
    since: int = 0
    until: int = 0
    imported: int = 0
    person: str = ""
    anonymous: bool = False
    jobs: int = 0
    unfinished: int = 0
    rejects: int = 0
    removed: int = 0
    #: The name of the segment in whose place it is.
    replaces: str = ""
    #: Why its jobs are not in the store; "" where they are.
    fault: str = ""


IMPORTS = Table("usage_imports", StoredImport, primary_key="archive, machine, name")

_FIELDS = UserJob.__struct_fields__
_StoredJob = defstruct("_StoredJob", JOBS.names)  # a row of JOBS: words are ids
_Key = tuple[str, str]  # of a segment: its machine and its name


class _Known(Struct, frozen=True):
    """What the store knows of a segment."""

    replaces: str
    fault: str


# ---- bringing the store up to date ---------------------------------------------------------------


def fill(store: Store, trials: Path) -> None:
    """Fill the tables with what is new below the folder of trials."""
    place = archive_of(trials)
    try:
        there = _segments(trials)
    except OSError as error:
        store.notices.append(_unreadable(error))
        return
    known = _known(store, place)
    if there != known.keys() or any(about.fault for about in known.values()):
        store.notices += _bring_up(store, trials, there, known)


def missing(store: Store, trials: Path) -> list[str]:
    """Return what a store that cannot be written does not have of what was imported, as notices."""
    try:
        there = _segments(trials)
    except OSError as error:
        return [_unreadable(error)]
    try:
        new = there - _known(store, archive_of(trials)).keys()
    except StoreError:  # it is older than the plug-in, and has no such table
        new = there
    if not new:
        return []
    imports = "1 import of jobs is" if len(new) == 1 else f"{len(new)} imports of jobs are"
    remedy = "name another with --store to see all"
    return [f"{store.place}: cannot be written, and {imports} newer than it; {remedy}"]


def _unreadable(error: OSError) -> str:
    return f"{error.filename}: cannot be read: {error.strerror}; jobs left out"


def archive_of(trials: Path) -> str:
    """Return how the store calls the archive below a folder of trials."""
    return str((trials / FOLDER).resolve())


def _segments(trials: Path) -> set[_Key]:
    """Return the segments that are there. Raises OSError."""
    return {(archive.machine, name) for archive in archives(trials) for name in archive.names()}


def _known(store: Store, place: str) -> dict[_Key, _Known]:
    """Return the segments that the store knows."""
    sql = "SELECT machine, name, replaces, fault FROM usage_imports WHERE archive = ?"
    return {(machine, name): _Known(*about) for machine, name, *about in store.rows(sql, (place,))}


def _bring_up(
    store: Store, trials: Path, there: set[_Key], known: dict[_Key, _Known]
) -> Iterator[str]:
    """Bring in new segments, take out replaced ones; yield notices. A segment that the store has
    and that is gone stays."""
    sound = {key for key, about in known.items() if not about.fault}
    headers, faults = _headers(trials, there - sound)
    replaced = _replaced(headers)
    if replaced & sound:
        _empty(store)
        known = {}
        headers, faults = _headers(trials, there)
        replaced = _replaced(headers)
    replaced |= _replaced(known)
    for key in sorted(headers.keys() - replaced, key=lambda key: key[1]):
        try:
            _bring_in(store, trials, key, headers[key])
        except Damaged as error:
            faults[key] = str(error)
    faults = {key: fault for key, fault in faults.items() if key not in replaced}
    _keep_faults(store, trials, faults)
    for fault in faults.values():
        yield f"{fault}; its jobs are left out: import them again, and remove it"
    gone = known.keys() - there - replaced
    _forget_faults(store, trials, list({*gone, *replaced} & known.keys() - sound))
    for machine, name in sorted(gone & sound):
        file = Archive(trials, machine).folder / name
        yield f"{file}: is gone; put it back: a rebuilt store leaves its jobs out"


def _replaced(segments: Mapping[_Key, Segment | _Known]) -> set[_Key]:
    """Return the segments in whose place others are."""
    return {(machine, about.replaces) for (machine, _), about in segments.items() if about.replaces}


def _empty(store: Store) -> None:
    """Empty the tables. Which jobs and words were in a replaced segment alone, nobody knows: all
    are read again."""
    with store.writing() as writer:
        writer.lock(LOCK)
        for table in (JOBS, WORD_TABLE, IMPORTS):
            writer.execute(f"DELETE FROM {table.name}")


def _headers(trials: Path, keys: Collection[_Key]) -> tuple[dict[_Key, Segment], dict[_Key, str]]:
    """Return the headers of segments, and the faults of those that cannot be read."""
    headers: dict[_Key, Segment] = {}
    faults: dict[_Key, str] = {}
    for machine, name in keys:
        try:
            headers[machine, name] = Archive(trials, machine).header(name)
        except Damaged as error:
            faults[machine, name] = str(error)
    return headers, faults


def _keep_faults(store: Store, trials: Path, faults: dict[_Key, str]) -> None:
    """Keep that segments cannot be read."""
    if faults:
        place = archive_of(trials)
        with store.writing() as writer:
            writer.lock(LOCK)
            rows = (
                StoredImport(archive=place, machine=machine, name=name, fault=fault)
                for (machine, name), fault in faults.items()
            )
            writer.upsert(IMPORTS, rows)


def _forget_faults(store: Store, trials: Path, keys: Sequence[_Key]) -> None:
    """Forget segments that could not be read, and are not there any more."""
    if keys:
        sql = "DELETE FROM usage_imports WHERE archive = ? AND machine = ? AND name = ?"
        with store.writing() as writer:
            for machine, name in keys:
                writer.execute(sql, (archive_of(trials), machine, name))


def _bring_in(store: Store, trials: Path, key: _Key, about: Segment) -> None:
    """Bring in one segment, whole or not at all. Raises Damaged."""
    machine, name = key
    place = archive_of(trials)
    with store.writing() as writer:
        writer.lock(LOCK)
        sql = (
            "SELECT 1 FROM usage_imports"
            " WHERE archive = ? AND machine = ? AND name = ? AND fault = ''"
        )
        if writer.rows(sql, (place, machine, name)):
            return  # another process was first
        words = _WordIds(writer)
        for lines in Archive(trials, machine).lines(name):
            writer.upsert(JOBS, _stored(lines, about, words))
        writer.upsert(IMPORTS, [stored_import(place, name, about)])


def stored_import(place: str, name: str, about: Segment) -> StoredImport:
    """Return the row of a segment."""
    same = {
        field: getattr(about, field)
        for field in StoredImport.__struct_fields__
        if field in Segment.__struct_fields__
    }
    return StoredImport(archive=place, name=name, person=about.by, **same)


# ---- rows ----------------------------------------------------------------------------------------


def _stored(lines: Sequence[bytes], about: Segment, words: _WordIds) -> list[Any]:
    """Return jobs of a segment as rows of the table, one for each attempt."""
    decode = msgspec.json.Decoder(UserJob).decode
    jobs = map(astuple, map(decode, lines))
    columns: dict[str, Any] = dict(zip(_FIELDS, zip(*jobs, strict=True), strict=True))
    words.add({word for name in CODED for word in columns[name]})
    for name in CODED:
        columns[in_table(name)] = map(words.ids.__getitem__, columns[name])
    columns["machine"] = repeat(about.machine)
    columns["asked"] = repeat(about.asked)
    columns["tie"] = map(zlib.crc32, lines)
    rows = list(map(_StoredJob, *(columns[name] for name in JOBS.names)))
    keys = list(zip(columns["submitted"], columns["job"], columns["attempt"], strict=True))
    if len(set(keys)) < len(keys):
        best: dict[Any, Any] = {}
        for key, row in zip(keys, rows, strict=True):
            other = best.get(key)
            if other is None or _rank(row) > _rank(other):
                best[key] = row
        rows = list(best.values())
    return rows


def _rank(row: Any) -> tuple[bool, int]:
    """Return by what one of two rows of an attempt counts that were asked at the same time."""
    return row.ended is not None, row.tie


class _WordIds:
    """The ids of words, in one transaction."""

    def __init__(self, writer: Writer) -> None:
        self.ids: dict[str, int] = {}
        self._writer = writer

    def add(self, words: set[str]) -> None:
        """Make the ids of some words known; words that the store has not are stored."""
        by_digest = {_digest(word): word for word in words - self.ids.keys()}
        for some in chunks(list(by_digest)):
            sql = f"SELECT digest, id FROM usage_words WHERE digest IN ({marks(len(some))})"
            for digest, number in self._writer.rows(sql, some):
                self.ids[by_digest.pop(digest)] = number
        numbers = self._writer.new_ids(WORD_TABLE, len(by_digest)) if by_digest else ()
        rows = [
            StoredWord(number, digest, word)
            for number, (digest, word) in zip(numbers, by_digest.items(), strict=True)
        ]
        self._writer.insert(WORD_TABLE, rows)
        self.ids.update((row.word, row.id) for row in rows)


def _digest(word: str) -> str:
    return blake2b(word.encode("utf-8", "replace"), digest_size=16).hexdigest()
