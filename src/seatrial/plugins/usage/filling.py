"""The tables of the store are filled from the archive: jobs, their words, and what was imported.

Segments that the store has are known by their names, so that it costs one listing of a folder where
nothing is new. One that is damaged is kept in the table with its fault, and is told of each time
when the store is brought up to date; it covers nothing.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import repeat
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, defstruct
from msgspec.structs import astuple

from seatrial.errors import StoreError
from seatrial.plugins.usage.archive import FOLDER, Archive, Damaged, Segment, archives
from seatrial.plugins.usage.jobs import CODED, JOBS, WORD_TABLE, StoredWord, UserJob, in_table
from seatrial.results.store.schema import Store, Writer, marks
from seatrial.results.store.tables import Table, chunks

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
