"""The files that keep imported jobs, from which the table of the store is made again.

    trials/.usage/MACHINE/SEGMENT.gz

A segment is one import, or a part of one: its header, then its jobs, as JSON lines below gzip
(``zcat`` shows them). It is written whole under another name and renamed, and is never changed; its
header has the checksum of what follows. Its name sorts by the time when its source was asked.
"""

from __future__ import annotations

import hashlib
import os
import time
import zlib
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from seatrial import __version__
from seatrial.errors import SeatrialError
from seatrial.files import make_folder, open_regular, open_to_write, remove_file, sync_folder
from seatrial.plugins.usage.jobs import JOBS, UserJob
from seatrial.results.store.schema import Store

FOLDER = ".usage"
ENDING = ".gz"
FORMAT = 1
ROWS_AT_ONCE = 5000
CHUNK = 1 << 20
LONGEST_HEADER = 1 << 20
_GZIP = 31  # zlib's number of a gzip member


class Segment(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The header of a segment: how its jobs were asked for, and what it holds."""

    machine: str
    source: str
    cluster: str = ""
    #: The file or the command, for people.
    origin: str = ""
    #: When the source was asked, in ns.
    asked: int
    #: The span that it covers: each job that was in the queue or ran within it, in s.
    since: int = 0
    until: int = 0
    #: When and by whom it was imported, in ns.
    imported: int = 0
    by: str = ""
    version: str = __version__
    format: int = FORMAT
    anonymous: bool = False
    cursor: str = ""
    jobs: int = 0
    #: Rows that could not be read.
    rejects: int = 0
    #: Of all that follows the header.
    size: int = 0
    sha256: str = ""


class Damaged(SeatrialError):
    """A segment cannot be read as it was written."""


class Reject(NamedTuple):
    """A row that could not be read."""

    place: str
    reason: str
    row: str


class Rejects:
    """Rows of a batch that could not be read."""

    def __init__(self) -> None:
        self.rows: list[Reject] = []

    def add(self, place: str, reason: str, row: str) -> None:
        """Add a row with its place, such as ``FILE:LINE``."""
        self.rows.append(Reject(place, reason, row))

    def taken(self) -> list[Reject]:
        """Return the rows, and forget them."""
        rows, self.rows = self.rows, []
        return rows


class Archive:
    """The segments of one machine."""

    def __init__(self, trials: Path, machine: str) -> None:
        self.machine = machine
        self.folder = trials / FOLDER / machine

    def segments(self) -> Iterator[tuple[Path, Segment]]:
        """Yield the segments and their headers, by the time when their sources were asked. Raises
        Damaged."""
        for file in sorted(self.folder.glob(f"*{ENDING}")):
            yield file, header_of(file)

    def last_of(self, source: str, cluster: str) -> Segment | None:
        """Return the segment of a source that covers the latest time; None if there is none."""
        of_source = [
            about
            for _, about in self.segments()
            if (about.source, about.cluster) == (source, cluster)
        ]
        return max(of_source, key=lambda about: (about.until, about.asked), default=None)

    def write(
        self,
        about: Segment,
        jobs: Iterable[UserJob],
        covered: tuple[int, int] | None,
        rejects: Rejects,
    ) -> Segment:
        """Write a segment; return its header. ``covered``: the span that it covers, None: that of
        the times of its jobs."""
        make_folder(self.folder)
        body = self.folder / f".{os.getpid()}-{time.monotonic_ns()}.body"
        try:
            written = _write_body(body, jobs)
            since, until = covered or (written.first, written.last)
            about = replace(
                about,
                since=since,
                until=until,
                jobs=written.jobs,
                size=written.size,
                sha256=written.sha256,
                rejects=len(rejects.taken()),
            )
            self._publish(about, body)
        finally:
            remove_file(body, missing_ok=True)
        return about

    def _publish(self, about: Segment, body: Path) -> None:
        """Write the header and the body as one file, which appears whole."""
        name = f"{about.asked:020}-{about.sha256[:12]}{ENDING}"
        part = self.folder / f".{name}.{os.getpid()}.part"
        try:
            with open_to_write(part) as file, open_regular(body) as source:
                file.write(_compressed(msgspec.json.encode(about) + b"\n"))
                while data := source.read(CHUNK):
                    file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.rename(part, self.folder / name)  # noqa: PTH104
        finally:
            remove_file(part, missing_ok=True)
        sync_folder(self.folder)


class _Body(NamedTuple):
    """What was written behind a header; the first and the last time of its jobs."""

    jobs: int
    first: int
    last: int
    size: int
    sha256: str


def _write_body(path: Path, jobs: Iterable[UserJob]) -> _Body:
    """Write jobs as JSON lines below gzip."""
    encoder, compressor, digest = msgspec.json.Encoder(), zlib.compressobj(1, wbits=_GZIP), hashlib
    sha256 = digest.sha256()
    number = size = last = 0
    first = None
    rows = iter(jobs)
    with open_to_write(path) as file:
        while some := list(islice(rows, ROWS_AT_ONCE)):
            number += len(some)
            submitted = min(job.submitted for job in some)
            first = submitted if first is None else min(first, submitted)
            last = max(
                last, *(max(job.submitted, job.started or 0, job.ended or 0) for job in some)
            )
            data = compressor.compress(encoder.encode_lines(some))
            size += len(data)
            sha256.update(data)
            file.write(data)
        data = compressor.flush()
        size += len(data)
        sha256.update(data)
        file.write(data)
    return _Body(number, first or 0, last, size, sha256.hexdigest())


def _compressed(data: bytes) -> bytes:
    return zlib.compress(data, 9, wbits=_GZIP)


def header_of(file: Path) -> Segment:
    """Return the header of a segment. Raises Damaged."""
    with open_regular(file) as opened:
        data = opened.read(LONGEST_HEADER)
    try:
        member = zlib.decompressobj(wbits=_GZIP)
        return msgspec.json.decode(member.decompress(data, LONGEST_HEADER), type=Segment)
    except (zlib.error, msgspec.MsgspecError) as error:
        raise Damaged(f"{file}: is damaged: {error}") from error


def jobs_of(file: Path) -> Iterator[list[UserJob]]:
    """Yield the jobs of a segment, some at a time. Raises Damaged."""
    decoder = msgspec.json.Decoder(UserJob)
    lines = _lines(file)
    next(lines)  # the header
    while some := list(islice(lines, ROWS_AT_ONCE)):
        yield [decoder.decode(line) for line in some]


def _lines(file: Path) -> Iterator[bytes]:
    member = zlib.decompressobj(wbits=_GZIP)
    rest = b""
    with open_regular(file) as opened:
        while data := opened.read(CHUNK):
            while data:
                rest += member.decompress(data)
                data = member.unused_data
                if member.eof:
                    member = zlib.decompressobj(wbits=_GZIP)
            *lines, rest = rest.split(b"\n")
            yield from lines


def fill(store: Store, trials: Path) -> None:
    """Fill the table with the jobs that are kept below the folder of trials."""
    with store.writing() as writer:
        for folder in sorted((trials / FOLDER).glob("*/")):
            for file, _ in Archive(trials, folder.name).segments():
                for jobs in jobs_of(file):
                    writer.upsert(JOBS, jobs)
