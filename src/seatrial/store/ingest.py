"""Read journals into the store, each from where it was left.

    with synced(Path("trials/store.sqlite"), Path("trials")) as store:
        ...                                            # what the journals say by now

A journal whose file was not touched costs one ``stat``; ``trial_ingest`` reads the others.
"""

import functools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from seatrial.errors import TrialError
from seatrial.files import is_utf8
from seatrial.journal.mark import path_of
from seatrial.store.location import Location
from seatrial.store.opening import open_memory, open_store
from seatrial.store.schema import CannotGrow, Store

RECORD_WITHIN_NS = 500_000_000  # a record is written so soon after it was made
MAX_SOUND_RECORDS = 10_000  # how many are remembered as readable
MAX_DATABASE_INTEGER = (1 << 63) - 1  # of a database's integers

Progress = Callable[[str, int, int], None]
_Seen = tuple[int, ...]  # of a file by ``stat``: inode, size, time of the last change
_NO_FILE: _Seen = (0, 0, 0)


class Synced(NamedTuple):
    """How many trials had something new, and how many new events."""

    trials: int
    events: int


def synced(location: Location, trials: Path) -> Store:
    """Open the store and bring it up to date with the trials of a folder. Where its disk is full, a
    store in memory replaces it."""
    nothing_yet = isinstance(location, Path) and not trials.is_dir() and not location.exists()
    try:
        return _brought_up(open_memory() if nothing_yet else open_store(location), trials)
    except CannotGrow as error:
        notice = f"{error}; the journals are read anew each time until then"
        return _brought_up(open_memory([notice]), trials)


def _brought_up(store: Store, trials: Path) -> Store:
    try:
        sync(store, trials)
    except BaseException:
        store.close()
        raise
    return store


def sync(store: Store, trials: Path, progress: Progress | None = None) -> Synced:
    """Read what is new in the journals below ``trials``. A trial that cannot be read becomes a
    notice of the store. Trials whose folder is gone stay. ``progress`` is called now and then with
    a tag, the bytes read and the bytes to read."""
    notices_before = len(store.notices)
    known = _known_trials(store)
    counts: list[int] = []
    stale = 0
    for path, seen in _journals(trials):
        if not is_utf8(path):
            store.notices.append(f"{path!r}: its name is not UTF-8; rename it; trial left out")
            continue
        store.notices += _lost_files(path, seen, known.get(path))
        if path in known and seen in (*known[path].seen, _NO_FILE):
            continue
        if not store.writable:
            stale += 1
        elif (count := _ingest(store, path, progress)) is not None:
            counts.append(count)
    if stale:
        trials_are = "1 trial is" if stale == 1 else f"{stale} trials are"
        store.notices.append(
            f"{store.place}: cannot be written, and {trials_are} newer than it; "
            "name another with --store to see all"
        )
    store.left_out += store.notices[notices_before:]
    return Synced(len(counts), sum(counts))


class _Known(NamedTuple):
    """What the store knows of the trials at a path: when one was created, and the states of the
    journals that were read."""

    created: int
    seen: set[_Seen]


def _known_trials(store: Store) -> dict[str, _Known]:
    known: dict[str, _Known] = {}
    sql = "SELECT path, created, inode, size, modified FROM trials"
    for path, created, inode, size, modified in store.rows(sql):
        before = known.get(path, _Known(created, set())).seen
        known[path] = _Known(created, {*before, (inode, size, modified)})
    return known


def _lost_files(path: str, seen: _Seen, known: _Known | None) -> list[str]:
    """Return what is wrong with the files of a trial, though what was read of it stays."""
    notices = []
    if known is not None and (fault := _changed_record(path, known.created)):
        notices.append(fault)
    if seen == _NO_FILE and path_of(Path(path, "journal.jsonl")).exists():
        notices.append(f"{path}/journal.jsonl: is missing; put it back")
    return notices


def _ingest(store: Store, path: str, progress: Progress | None) -> int | None:
    """Read what is new of a trial. Returns the number of events; None where it cannot be read,
    which must not hide the others."""
    from seatrial.store.trial_ingest import ingest_trial  # where nothing is new, not needed

    try:
        return ingest_trial(store, path, progress)
    except TrialError as error:
        store.notices.append(f"{error}; trial left out")
    except OSError as error:
        store.notices.append(f"{error.filename or path}: cannot be read: {error.strerror}")
    return None


def _journals(trials: Path) -> Iterator[tuple[str, _Seen]]:
    """Yield the folders of trials, in order, and the state of their journals on disk."""
    try:
        root = os.path.realpath(trials)
        names = sorted(os.listdir(root))  # noqa: PTH208
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise TrialError(f"{trials}: cannot be read: {error.strerror}") from error
    for name in names:
        path = f"{root}/{name}"  # plain strings: there may be thousands
        if name.startswith("."):
            continue
        try:
            yield path, file_state(os.stat(path + "/journal.jsonl"))  # noqa: PTH116
        except OSError:
            if os.path.exists(path + "/trial.json"):  # noqa: PTH110
                yield path, _NO_FILE


def file_state(found: os.stat_result) -> _Seen:
    return found.st_ino & MAX_DATABASE_INTEGER, found.st_size, found.st_mtime_ns


def _changed_record(path: str, created: int) -> str:
    """Return what is wrong with the record of a trial that is in the store, "" if nothing. A record
    is written once, so one is only read if it was written again."""
    try:
        found = os.stat(path + "/trial.json")  # noqa: PTH116 - for each trial
    except OSError as error:
        return f"{path}/trial.json: cannot be read: {error.strerror}; put it back"
    if found.st_mtime_ns - created < RECORD_WITHIN_NS:
        return ""
    try:
        _require_sound(path, found.st_ino, found.st_size, found.st_ctime_ns)
    except TrialError as error:
        return f"{error}; put it back: a rebuilt store leaves it out"
    return ""


@functools.lru_cache(maxsize=MAX_SOUND_RECORDS)
def _require_sound(path: str, *_seen: int) -> None:
    """Raise TrialError where a record cannot be read. One that was read is not read again until it
    has changed, as a server asks several times a second."""
    from seatrial.store.trial_ingest import record_of  # which a record as it was does not need

    record_of(Path(path))
