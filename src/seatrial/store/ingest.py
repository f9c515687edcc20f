"""Journals into the store, from where each was last left.

    with synced(Path("trials/store.sqlite"), Path("trials")) as store:
        ...                                            # what the journals say by now

What was read of a journal and how far it was read change in one transaction: a crash, or two
commands at once, neither lose nor double an event. A journal whose file was not touched costs one
``stat``; one that was replaced or cut is read from its beginning.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

import msgspec
from msgspec import Struct

from seatrial.errors import SeatrialError, TrialError
from seatrial.journal.events import Event
from seatrial.journal.journal import Block, read_blocks
from seatrial.store.folding import TrialState, fold
from seatrial.store.schema import Store, open_memory, open_store
from seatrial.trial.folder import TrialFolder

if TYPE_CHECKING:
    import sqlite3

SAMPLE = 4096

Progress = Callable[[str, int, int], None]


class Synced(NamedTuple):
    """How many trials had something new, and how many events that was."""

    trials: int
    events: int


class _Seen(NamedTuple):
    """A journal's file as ``stat`` sees it; all zero where there is none yet."""

    inode: int
    size: int
    modified: int


class _MachineName(Struct):
    machine: str


class _TestWords(Struct):
    app: str = ""
    tags: list[str] = []


class _ComponentName(Struct):
    component: str


class _Record(Struct):
    """As much of ``trial.json`` as the store needs, so that it reads every version's."""

    created: int
    machine: _MachineName
    version: str = ""
    user: str = ""
    host: str = ""
    tests: dict[str, _TestWords] = {}
    plan: str = ""
    component: _ComponentName | None = None
    phase: str = ""
    rehearsed: bool = False


def synced(path: Path, trials: Path) -> Store:
    """Open the store and bring it up to date with the trials of a folder."""
    nothing_yet = not trials.is_dir() and not path.exists()
    store = open_memory() if nothing_yet else open_store(path)
    try:
        sync(store, trials)
    except BaseException:
        store.close()
        raise
    return store


def sync(store: Store, trials: Path, progress: Progress | None = None) -> Synced:
    """Read what is new in the journals below ``trials``. A trial that cannot be read becomes a
    notice of the store; trials whose folder is gone stay. ``progress`` is told a tag, the bytes
    read and the bytes to read, now and then."""
    known = {
        path: _Seen(*seen)
        for path, *seen in store.rows("SELECT path, inode, size, modified FROM trials")
    }
    stale = changed = count = 0
    for path, seen in _journals(trials):
        if path in known and (known[path] == seen or not seen.inode):
            continue
        if not store.writable:
            stale += 1
            continue
        try:
            count += _ingest(store, path, progress)
            changed += 1
        except (SeatrialError, OSError) as error:
            _notice_or_raise(store, path, error)
    if stale:
        trials_are = "1 trial is" if stale == 1 else f"{stale} trials are"
        store.notices.append(
            f"{store.place}: cannot be written, and {trials_are} newer than it; "
            "name another with --store to see all"
        )
    return Synced(changed, count)


def _notice_or_raise(store: Store, path: str, error: SeatrialError | OSError) -> None:
    """One trial that cannot be read must not hide the others."""
    if isinstance(error, TrialError):
        store.notices.append(str(error))
    elif isinstance(error, OSError):
        store.notices.append(f"{error.filename or path}: cannot be read: {error.strerror}")
    else:
        raise error


def _journals(trials: Path) -> Iterator[tuple[str, _Seen]]:
    """The folders of trials, in order, and their journals' state on disk."""
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
            found = os.stat(path + "/journal.jsonl")  # noqa: PTH116
            yield path, _Seen(found.st_ino, found.st_size, found.st_mtime_ns)
        except OSError:
            if os.path.exists(path + "/trial.json"):  # noqa: PTH110
                yield path, _Seen(0, 0, 0)


# ---- one trial ----------------------------------------------------------------------------


def _ingest(store: Store, path: str, progress: Progress | None) -> int:
    """Read a trial's journal to its end, a block and a transaction at a time."""
    folder = TrialFolder(Path(path))
    count = 0
    while True:
        with store.writing() as database:
            if not folder.journal.exists():
                _open_row(database, folder, None)
                return count
            with folder.journal.open("rb") as file:
                state = _open_row(database, folder, file)
                events, done = _next_block(file, state)
            fold(database, state, events)
            _keep(database, state)
        count += len(events)
        if progress is not None:
            progress(folder.tag, state.offset, folder.journal.stat().st_size)
        if done:
            return count


def _open_row(
    database: sqlite3.Connection, folder: TrialFolder, file: BinaryIO | None
) -> TrialState:
    """The trial's row, with nothing in it if it is new or its journal is another than before."""
    query = (
        "SELECT id, state, state_time, started, last, damaged, offset, inode, size, modified,"
        " fingerprint FROM trials WHERE path = ?"
    )
    row = database.execute(query, (str(folder.path),)).fetchone()
    record = None
    if row is None:
        record = _record(folder)
        if _take_moved(database, folder, record):
            row = database.execute(query, (str(folder.path),)).fetchone()
    if row is not None:
        state = TrialState(*row)
        if file is None or _goes_on(file, state):
            return state
        record = _record(folder)
        _forget(database, state.id)
    return _make_row(database, folder, record or _record(folder))


def _goes_on(file: BinaryIO, state: TrialState) -> bool:
    """Whether a journal is the one that was read, up to where it was read."""
    found = os.fstat(file.fileno())
    return (
        state.offset > 0
        and found.st_ino == state.inode
        and found.st_size >= state.offset
        and _fingerprint(file, state.offset) == state.fingerprint
    )


def _fingerprint(file: BinaryIO, end: int) -> int:
    """A hash of the first and the last bytes below ``end``."""
    sample = min(SAMPLE, end)
    first = os.pread(file.fileno(), sample, 0)
    return zlib.crc32(os.pread(file.fileno(), sample, end - sample), zlib.crc32(first))


def _next_block(file: BinaryIO, state: TrialState) -> tuple[list[Event], bool]:
    """The events of the next whole lines, and whether these were the last. ``state`` moves on."""
    found = os.fstat(file.fileno())
    nothing = Block([], state.offset, 0)
    events, state.offset, damaged = next(read_blocks(file, state.offset), nothing)
    state.damaged += damaged
    done = file.tell() >= found.st_size
    state.inode, state.modified = found.st_ino, found.st_mtime_ns
    state.size = found.st_size if done else -1
    state.fingerprint = _fingerprint(file, state.offset)
    return events, done


def _keep(database: sqlite3.Connection, state: TrialState) -> None:
    fields = state.__struct_fields__[1:]
    changes = ", ".join(f"{name} = ?" for name in fields)
    values = [getattr(state, name) for name in fields]
    database.execute(f"UPDATE trials SET {changes} WHERE id = ?", [*values, state.id])


# ---- a trial's own files ------------------------------------------------------------------


def _record(folder: TrialFolder) -> _Record:
    path = folder.path / "trial.json"
    try:
        return msgspec.json.decode(path.read_bytes(), type=_Record)
    except OSError as error:
        raise TrialError(f"{path}: cannot be read: {error.strerror}; trial left out") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise TrialError(f"{path}: is not a trial's record: {error}; trial left out") from error


def _take_moved(database: sqlite3.Connection, folder: TrialFolder, record: _Record) -> bool:
    """Give the row of a trial that lay elsewhere its new path."""
    query = "SELECT id, path FROM trials WHERE tag = ? AND created = ?"
    for row, path in database.execute(query, (folder.tag, record.created)).fetchall():
        if not Path(path).exists():
            values = (str(folder.path), row)
            database.execute("UPDATE trials SET path = ? WHERE id = ?", values)
            return True
    return False


def _make_row(database: sqlite3.Connection, folder: TrialFolder, record: _Record) -> TrialState:
    cases = folder.cases()
    (number,) = database.execute("SELECT coalesce(max(id), 0) + 1 FROM trials").fetchone()
    database.execute(
        "INSERT INTO trials VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'new', 0, NULL, NULL, 0, 0, 0,"
        " 0, 0, 0, ?, ?, ?, ?)",
        [
            *(number, str(folder.path), folder.tag, record.created, record.machine.machine),
            *(record.version, record.user, record.host),
            *(len(cases), sum(case.repeat for case in cases)),
            *(record.plan, record.component.component if record.component else ""),
            *(record.phase, record.rehearsed),
        ],
    )
    words = {case.test: record.tests.get(case.test, _TestWords()) for case in cases}
    database.executemany(
        "INSERT INTO tests (trial, name, app, tags) VALUES (?, ?, ?, ?)",
        [(number, name, test.app, _lines(test.tags)) for name, test in words.items()],
    )
    query = "SELECT name, id FROM tests WHERE trial = ?"
    tests = dict(database.execute(query, (number,)).fetchall())
    encode = msgspec.json.Encoder().encode
    database.executemany(
        "INSERT OR IGNORE INTO cases (trial, case_id, test, name, toolchain, parameters, nodes,"
        " tasks, tasks_per_node, threads, walltime, node, build, repeat)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            [
                *(number, case.id, tests[case.test], case.name, case.toolchain),
                *(encode(case.parameters).decode(), case.nodes, case.tasks, case.tasks_per_node),
                *(case.threads, case.walltime, case.node, case.build, case.repeat),
            ]
            for case in cases
        ),
    )
    return TrialState(number)


def _lines(words: list[str]) -> str:
    """Words so that each can be looked for with its limits."""
    return "".join(f"\n{word}" for word in words) + "\n" if words else ""


def _forget(database: sqlite3.Connection, trial: int) -> None:
    of_runs = "WHERE run IN (SELECT id FROM runs WHERE trial = ?)"
    database.execute(f"DELETE FROM metrics {of_runs}", (trial,))
    database.execute(f"DELETE FROM events {of_runs}", (trial,))
    for table in ("events", "runs", "cases", "tests", "builds"):
        database.execute(f"DELETE FROM {table} WHERE trial = ?", (trial,))
    database.execute("DELETE FROM trials WHERE id = ?", (trial,))
