"""Read journals into the store, each from where it was left.

    with synced(Path("trials/store.sqlite"), Path("trials")) as store:
        ...                                            # what the journals say by now

One transaction changes both what was read of a journal and how far it was read. So a crash, or two
commands at once, neither lose nor double an event. A journal whose file was not touched costs one
``stat``. One that was replaced or cut is read from its beginning. A trial is identified by its path
and its machine, as several machines may share a store and have folders of the same name.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

import msgspec
from msgspec import Struct

from seatrial.decoding import DAMAGED, decoder
from seatrial.errors import SeatrialError, TrialError
from seatrial.files import open_regular, read_regular
from seatrial.gc_pause import uncollected
from seatrial.journal.events import Event
from seatrial.journal.journal import Block, fingerprint, read_blocks
from seatrial.machine.facts import unfold
from seatrial.store.folding import fold
from seatrial.store.gaps import keep_gaps
from seatrial.store.location import Location
from seatrial.store.node_places import NodePlaces
from seatrial.store.opening import open_memory, open_store
from seatrial.store.run_upserts import LONGEST_NAME, TrialRecord, test_row
from seatrial.store.schema import Store, Writer

if TYPE_CHECKING:  # where nothing is new, a trial's files are not looked at
    from seatrial.trial.folder import TrialFolder  # not needed where nothing changed

READ_AT_ONCE = 8 << 20  # of a journal, in one transaction
LONGEST_TAGS = 5 * LONGEST_NAME  # bytes of all tags of a test together
RECORD_WITHIN_NS = 500_000_000  # a record is written so soon after it was made
MAX_SOUND_RECORDS = 10_000  # how many are remembered as readable
LEFT_OUT = "; trial left out"
MAX_DATABASE_INTEGER = (1 << 63) - 1  # of a database's integers

Progress = Callable[[str, int, int], None]


class Synced(NamedTuple):
    """How many trials had something new, and how many new events."""

    trials: int
    events: int


class _Seen(NamedTuple):
    """The state of a journal's file by ``stat``; all zero where there is none yet."""

    inode: int
    size: int
    modified: int


class _NodeNames(Struct):
    names: str = ""


class _Machine(Struct):
    machine: str
    nodes: list[_NodeNames] = []


class _TestWords(Struct):
    app: str = ""
    tags: list[str] = []


class _ComponentName(Struct):
    component: str


class _Record(Struct):
    """The part of ``trial.json`` that the store needs, so that it reads every version's."""

    created: int
    machine: _Machine
    version: str = ""
    user: str = ""
    host: str = ""
    tests: dict[str, _TestWords] = {}
    plan: str = ""
    component: _ComponentName | None = None
    phase: str = ""
    rehearsed: bool = False


def synced(location: Location, trials: Path) -> Store:
    """Open the store and bring it up to date with the trials of a folder."""
    nothing_yet = isinstance(location, Path) and not trials.is_dir() and not location.exists()
    store = open_memory() if nothing_yet else open_store(location)
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
    known: dict[str, set[_Seen]] = {}
    made: dict[str, int] = {}
    for path, created, *seen in store.rows(
        "SELECT path, created, inode, size, modified FROM trials"
    ):
        known.setdefault(path, set()).add(_Seen(*seen))
        made[path] = created
    stale = changed = count = 0
    for path, seen in _journals(trials):
        if path in made and (why := _changed_record(path, made[path])):
            store.notices.append(why)
        if path in known and (seen in known[path] or not seen.inode):
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
    """Keep a trial that cannot be read from hiding the others."""
    if isinstance(error, TrialError):
        store.notices.append(str(error))
    elif isinstance(error, OSError):
        store.notices.append(f"{error.filename or path}: cannot be read: {error.strerror}")
    else:
        raise error


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
            found = os.stat(path + "/journal.jsonl")  # noqa: PTH116
            yield path, _seen(found)
        except OSError:
            if os.path.exists(path + "/trial.json"):  # noqa: PTH110
                yield path, _Seen(0, 0, 0)


def _seen(found: os.stat_result) -> _Seen:
    return _Seen(found.st_ino & MAX_DATABASE_INTEGER, found.st_size, found.st_mtime_ns)


# ---- one trial ----------------------------------------------------------------------------


def _ingest(store: Store, path: str, progress: Progress | None) -> int:
    """Read a trial's journal to its end, one block in one transaction at a time. Returns the number
    of events."""
    from seatrial.trial.folder import TrialFolder

    folder = TrialFolder(Path(path))
    count = 0
    ahead = None
    while True:
        with uncollected(), store.writing() as writer:
            writer.lock(folder.tag)  # the path may be another elsewhere
            if not folder.journal.exists():
                _open_row(writer, folder, None)
                return count
            with open_regular(folder.journal) as file:
                state = _open_row(writer, folder, file)
                events, done = _next_block(writer, file, state, ahead)
            fold(writer, state, events)
            _keep(writer, state)
        count += len(events)
        if progress is not None:
            progress(folder.tag, state.ingested, folder.journal.stat().st_size)
        if done:
            return count
        ahead = _read_ahead(folder.journal, state.ingested)  # while others may write


_STATE = ", ".join(TrialRecord.__struct_fields__)


def _open_row(writer: Writer, folder: TrialFolder, file: BinaryIO | None) -> TrialRecord:
    """Return the trial's row. It is empty if the trial is new or its journal is another than
    before."""
    rows = writer.rows(f"SELECT {_STATE} FROM trials WHERE path = ?", (str(folder.path),))
    for state in (TrialRecord(*row) for row in rows):
        if file is not None and _goes_on(file, state):
            return state
    record = _record(folder.path)
    machine = record.machine.machine
    same = f"SELECT {_STATE} FROM trials WHERE path = ? AND machine = ?"
    if not rows and _take_moved(writer, folder, record):
        rows = writer.rows(same, (str(folder.path), machine))
        state = TrialRecord(*rows[0])
        if file is None or _goes_on(file, state):
            return state
    for row in writer.rows(same, (str(folder.path), machine)):
        if file is None:
            return TrialRecord(*row)
        _forget(writer, row[0])
    return _make_row(writer, folder, record)


def _goes_on(file: BinaryIO, state: TrialRecord) -> bool:
    """Return whether a journal is the one that was read, up to where it was read."""
    found = os.fstat(file.fileno())
    return (
        state.ingested > 0
        and _seen(found).inode == state.inode
        and found.st_size >= state.ingested
        and fingerprint(file, state.ingested) == state.fingerprint
    )


class _Piece(NamedTuple):
    """A block of a journal's file, where it begins, and how far the file was read for it."""

    inode: int
    start: int
    block: Block
    reached: int


def _read(file: BinaryIO, start: int) -> _Piece:
    block = next(read_blocks(file, start, at_once=READ_AT_ONCE), Block([], start, 0))
    return _Piece(_seen(os.fstat(file.fileno())).inode, start, block, file.tell())


def _read_ahead(journal: Path, start: int) -> _Piece | None:
    """Return the next piece; None where it cannot be read, which the next read will report."""
    with uncollected(), contextlib.suppress(OSError), open_regular(journal) as file:
        return _read(file, start)
    return None


def _next_block(
    writer: Writer, file: BinaryIO, state: TrialRecord, ahead: _Piece | None
) -> tuple[list[Event], bool]:
    """Return the events of the next whole lines, and whether these were the last; move ``state``
    on. ``ahead`` was read before: another process may have gone on since, or the file may be
    new."""
    found = os.fstat(file.fileno())
    seen = _seen(found)
    if ahead is None or (ahead.inode, ahead.start) != (seen.inode, state.ingested):
        ahead = _read(file, state.ingested)
    block, done = ahead.block, ahead.reached >= found.st_size
    keep_gaps(writer, file, state, block)
    state.damaged += block.damaged
    state.ingested = block.end
    state.inode, _, state.modified = seen
    state.size = found.st_size if done else -1
    state.fingerprint = fingerprint(file, state.ingested)
    return block.events, done


def _keep(writer: Writer, state: TrialRecord) -> None:
    fields = state.__struct_fields__[1:]
    changes = ", ".join(f"{name} = ?" for name in fields)
    values = [getattr(state, name) for name in fields]
    writer.execute(f"UPDATE trials SET {changes} WHERE id = ?", [*values, state.id])


# ---- a trial's own files ------------------------------------------------------------------


def _record(trial: Path) -> _Record:
    from seatrial.trial.folder import MAX_RECORD_BYTES

    path = trial / "trial.json"
    try:
        return decoder(_Record).decode(read_regular(path, MAX_RECORD_BYTES))
    except OSError as error:
        raise TrialError(f"{path}: cannot be read: {error.strerror}{LEFT_OUT}") from error
    except DAMAGED as error:
        raise TrialError(f"{path}: is not a trial's record: {error}{LEFT_OUT}") from error


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
        return str(error).removesuffix(LEFT_OUT) + "; put it back: a rebuilt store leaves it out"
    return ""


@functools.lru_cache(maxsize=MAX_SOUND_RECORDS)
def _require_sound(path: str, *_seen: int) -> None:
    """Raise TrialError where a record cannot be read. One that was read is not read again until it
    has changed, as a server asks several times a second."""
    _record(Path(path))


def _take_moved(writer: Writer, folder: TrialFolder, record: _Record) -> bool:
    """Give the row of a trial that was moved its new path. Returns whether there was one."""
    query = "SELECT id, path FROM trials WHERE tag = ? AND created = ? AND machine = ?"
    key = (folder.tag, record.created, record.machine.machine)
    for row, path in writer.rows(query, key):
        if not Path(path).exists():
            values = (str(folder.path), row)
            writer.execute("UPDATE trials SET path = ? WHERE id = ?", values)
            return True
    return False


_NEW_TRIAL = (
    *("path", "machine", "tag", "created", "version", "owner", "host", "cases", "planned"),
    *("plan", "component", "phase", "rehearsed", *TrialRecord.__struct_fields__[1:]),
)
_NEW_CASE = (
    *("trial", "case_id", "test", "name", "toolchain", "parameters", "nodes", "tasks"),
    *("tasks_per_node", "threads", "walltime", "node", "build", "repeat"),
)


def _make_row(writer: Writer, folder: TrialFolder, record: _Record) -> TrialRecord:
    cases = {case.id: case for case in folder.cases()}.values()
    path, machine = str(folder.path), record.machine.machine
    row = (
        *(path, machine, folder.tag, record.created, record.version, record.user, record.host),
        *(len(cases), sum(case.repeat for case in cases), record.plan),
        *(record.component.component if record.component else "", record.phase),
        *(record.rehearsed, *msgspec.structs.astuple(TrialRecord(0))[1:]),
    )
    writer.insert("trials", _NEW_TRIAL, [row])
    query = "SELECT id FROM trials WHERE path = ? AND machine = ?"
    ((number,),) = writer.rows(query, (path, machine))
    _add_nodes(writer, record.machine)
    words = {case.test: record.tests.get(case.test, _TestWords()) for case in cases}
    tests = {
        name: test_row(writer, name, test.app, _lines(test.tags)) for name, test in words.items()
    }
    encode = msgspec.json.Encoder().encode
    writer.insert(
        "cases",
        _NEW_CASE,
        (
            [
                *(number, case.id, tests[case.test], case.name, case.toolchain),
                *(encode(case.parameters).decode(), case.nodes, case.tasks, case.tasks_per_node),
                *(case.threads, case.walltime, case.node, case.build, case.repeat),
            ]
            for case in cases
        ),
    )
    return TrialRecord(number)


def _add_nodes(writer: Writer, machine: _Machine) -> None:
    """Give the nodes of a description their places, so that neighbours are next to each other."""
    names: list[str] = []
    for kind in machine.nodes:
        with contextlib.suppress(ValueError):
            names += unfold(kind.names) if kind.names else ()
    NodePlaces(writer, machine.machine).add(names)


def _lines(words: list[str]) -> str:
    """Return words between line ends, so that each can be searched for as a whole; as many as an
    index can hold."""
    text = ""
    for word in words:
        if len(f"{text}\n{word}".encode()) > LONGEST_TAGS:
            break
        text += f"\n{word}"
    return text + "\n" if text else ""


def _forget(writer: Writer, trial: int) -> None:
    of_runs = "WHERE run IN (SELECT id FROM runs WHERE trial = ?)"
    writer.execute(f"DELETE FROM metrics {of_runs}", (trial,))
    writer.execute(f"DELETE FROM events {of_runs}", (trial,))
    for table in ("trial_events", "run_nodes", "runs", "cases", "builds", "gaps"):
        writer.execute(f"DELETE FROM {table} WHERE trial = ?", (trial,))
    writer.execute("DELETE FROM trials WHERE id = ?", (trial,))
