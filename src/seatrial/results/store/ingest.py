"""Read journals into the store, each from where it was left.

    with synced(Path("trials/store.sqlite"), Path("trials")) as store:
        ...                                            # what the journals say by now

A journal whose file was not touched costs one ``stat``; ``trial_ingest`` reads the others.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, TypeVar

import msgspec
from msgspec import Struct

from seatrial.errors import TrialError
from seatrial.execute.trial_paths import TrialPaths
from seatrial.files import is_utf8, open_regular
from seatrial.hooks import load, provided
from seatrial.journal.events import Event
from seatrial.journal.journal import Block, fingerprint, path_of, read_blocks, read_mark
from seatrial.model.file_model import Scalar
from seatrial.model.identifiers import CaseOutline
from seatrial.model.node_set import unfold
from seatrial.results.store.location import Location
from seatrial.results.store.nodes import NodePlaces
from seatrial.results.store.opening import open_memory, open_store
from seatrial.results.store.schema import CannotGrow, Store, Writer
from seatrial.results.store.tables import CASES, TRIALS, StoredCase, StoredTrial, read
from seatrial.results.store.upserts import (
    LONGEST_NAME,
    LinesBefore,
    fold,
    keep_gaps,
    keep_lost_end,
    test_row,
)

RECORD_WITHIN_NS = 500_000_000  # a record is written so soon after it was made
MAX_SOUND_RECORDS = 10_000  # how many are remembered as readable
MAX_DATABASE_INTEGER = (1 << 63) - 1  # of a database's integers

Progress = Callable[[str, int, int], None]
_Seen = tuple[int, ...]  # of a file by ``stat``: inode, size, time of the last change
_NO_FILE: _Seen = (0, 0, 0)


class Synced(Struct, frozen=True):
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
    _sync_plugins(store, trials)
    store.left_out += store.notices[notices_before:]
    return Synced(len(counts), sum(counts))


def _sync_plugins(store: Store, trials: Path) -> None:
    """Fill the tables of plug-ins; of a store that cannot be written, tell what they lack."""
    for about in provided("seatrial_tables"):
        if store.writable and about.fill:
            load(about.fill)(store, trials)
        elif not store.writable and about.missing:
            store.notices += load(about.missing)(store, trials)


class _Known(Struct, frozen=True):
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
    record_of(Path(path))


# ---- trial ingest --------------------------------------------------------------------------------
#
# Read one trial's journal into the store, from where it was left.
#
#     count = ingest_trial(store, path, progress)
#
# One transaction changes both what was read of a journal and how far it was read. So a crash, or
# two commands at once, neither lose nor double an event. A journal that was replaced or cut is
# read from its beginning. A trial is identified by its path and its machine, as several machines
# may share a store and have folders of the same name.


N = TypeVar("N", int, float)

READ_OF_TRIAL = 8 << 20  # bytes of a journal, in one transaction
FOLD_AT_ONCE = 1 << 16  # bytes of a journal whose events fit into a processor's cache
LONGEST_TAGS = 5 * LONGEST_NAME  # bytes of all tags of a test together


class _NodeNames(Struct):
    names: str = ""


class _Machine(Struct):
    machine: str
    nodes: list[_NodeNames] = []


class _TestWords(Struct):
    app: str = ""
    tags: list[str] = []
    defaults: dict[str, Scalar] = {}


class _ComponentName(Struct):
    component: str


class _TuneName(Struct):
    tune: str = ""


class _Tool(Struct):
    tool: str = ""


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
    tuning: _TuneName | None = None
    phase: str = ""
    rehearsed: bool = False
    imported: _Tool | None = None


def ingest_trial(store: Store, path: str, progress: Progress | None) -> int:
    """Read a trial's journal to its end, one block in one transaction at a time. Returns the number
    of events."""
    folder = TrialPaths(Path(path))
    count = 0
    mark = read_mark(folder.journal)
    lines = LinesBefore()
    while True:
        with store.writing() as writer:
            writer.lock(folder.tag)  # the path may be another elsewhere
            if not folder.journal.exists():
                _open_row(writer, folder, None)
                return count
            with open_regular(folder.journal) as file:
                state = _open_row(writer, folder, file)
                before = state.events
                lines = lines if state.ingested else LinesBefore()  # it may be another journal
                fold(writer, state, _next_blocks(writer, file, state, lines))
                state.fingerprint = fingerprint(file, state.ingested)
                if mark is not None and state.size >= 0 and not state.damaged:
                    keep_lost_end(writer, file, state, folder.journal, mark)
            writer.upsert(TRIALS, [state])
        count += state.events - before
        if progress is not None:
            progress(folder.tag, state.ingested, folder.journal.stat().st_size)
        if state.size >= 0:
            return count


def _open_row(writer: Writer, folder: TrialPaths, file: BinaryIO | None) -> StoredTrial:
    """Return the trial's row. It is empty if the trial is new or its journal is another than
    before."""
    path = str(folder.path)
    there = read(writer, StoredTrial, "trials", "FROM trials WHERE path = ?", (path,))
    for state in there:
        if file is not None and _goes_on(file, state):
            return state
    record = record_of(folder.path)
    if not there:
        _take_moved(writer, folder, record)
    same = "FROM trials WHERE path = ? AND machine = ?"
    for state in read(writer, StoredTrial, "trials", same, (path, record.machine.machine)):
        if file is None or _goes_on(file, state):
            return state
        _forget(writer, state.id)
    return _make_row(writer, folder, record)


def _goes_on(file: BinaryIO, state: StoredTrial) -> bool:
    """Return whether a journal is the one that was read, up to where it was read."""
    return (
        state.ingested > 0
        and _inode(file) == state.inode
        and os.fstat(file.fileno()).st_size >= state.ingested
        and fingerprint(file, state.ingested) == state.fingerprint
    )


def _next_blocks(
    writer: Writer, file: BinaryIO, state: StoredTrial, lines: LinesBefore
) -> Iterator[Sequence[Event]]:
    """Yield the events of the next blocks of a journal, for one transaction, and record in
    ``state`` how far it was read; its size is -1 if more follows."""
    state.inode, size, state.modified = file_state(os.fstat(file.fileno()))
    state.size, until = -1, state.ingested + READ_OF_TRIAL
    while state.size < 0 and state.ingested < until:
        start, at_once = state.ingested, min(FOLD_AT_ONCE, READ_OF_TRIAL)
        block = next(read_blocks(file, start, at_once), Block([], start, start, 0))
        if file.tell() >= size:
            state.size = size
        keep_gaps(writer, file, state, block, lines)
        state.damaged += block.damaged
        state.ingested = block.end
        yield block.events


def _inode(file: BinaryIO) -> int:
    return file_state(os.fstat(file.fileno()))[0]


# ---- a trial's own files ------------------------------------------------------------------


def record_of(trial: Path) -> _Record:
    return TrialPaths(trial).record_as(_Record)


def _take_moved(writer: Writer, folder: TrialPaths, record: _Record) -> None:
    """Give the row of a trial that was moved its new path."""
    query = "SELECT id, path FROM trials WHERE tag = ? AND created = ? AND machine = ?"
    key = (folder.tag, record.created, record.machine.machine)
    for row, path in writer.rows(query, key):
        if not Path(path).exists():
            values = (str(folder.path), row)
            writer.execute("UPDATE trials SET path = ? WHERE id = ?", values)
            return


def _make_row(writer: Writer, folder: TrialPaths, record: _Record) -> StoredTrial:
    cases = list({case.id: case for case in folder.cases_as(CaseOutline)}.values())
    (number,) = writer.new_ids(TRIALS, 1)
    trial = StoredTrial(
        id=number,
        path=str(folder.path),
        machine=record.machine.machine,
        tag=folder.tag,
        created=record.created,
        version=record.version,
        owner=record.user,
        host=record.host,
        cases=len(cases),
        planned=0 if record.tuning else sum(case.repeat for case in cases),  # it runs some
        plan=record.plan,
        component=record.component.component if record.component else "",
        phase=record.phase,
        rehearsed=record.rehearsed,
    )
    writer.insert(TRIALS, [trial])
    _add_nodes(writer, record.machine)
    _add_cases(writer, trial, cases, record)
    return trial


def _add_cases(
    writer: Writer, trial: StoredTrial, cases: Sequence[CaseOutline], record: _Record
) -> None:
    tests = {}
    for name in dict.fromkeys(case.test for case in cases):
        test = record.tests.get(name, _TestWords())
        tests[name] = test_row(writer, name, test.app, _lines(test.tags))

    def number(given: N) -> N | None:
        """Return a number of a case. One that an imported trial does not tell is 0 there."""
        return None if record.imported is not None and given == 0 else given

    encode = msgspec.json.Encoder().encode
    rows = zip(writer.new_ids(CASES, len(cases)), cases, strict=True) if cases else ()
    writer.insert(
        CASES,
        (
            StoredCase(
                id=row,
                trial=trial.id,
                case_id=case.id,
                test=tests[case.test],
                name=case.name,
                toolchain=case.toolchain,
                parameters=encode(case.parameters).decode(),
                defaults=encode(_at_default(case, record)).decode(),
                nodes=number(case.nodes),
                tasks=number(case.tasks),
                tasks_per_node=number(case.tasks_per_node),
                threads=number(case.threads),
                walltime=number(case.walltime),
                node=case.node,
                build=case.build,
                repeat=case.repeat,
            )
            for row, case in rows
        ),
    )


def _at_default(case: CaseOutline, record: _Record) -> dict[str, Scalar]:
    """Return the parameters that a case is not told by, as they have their default, by the test as
    the trial recorded it."""
    usual = record.tests[case.test].defaults if case.test in record.tests else {}
    return {name: value for name, value in usual.items() if name not in case.parameters}


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
    writer.execute(f"DELETE FROM given_figures {of_runs}", (trial,))
    writer.execute(f"DELETE FROM events {of_runs}", (trial,))
    of_events = [about.name for about in provided("seatrial_tables") if about.event]
    for table in ("trial_events", "run_nodes", "runs", "cases", "builds", "gaps", *of_events):
        writer.execute(f"DELETE FROM {table} WHERE trial = ?", (trial,))
    writer.execute("DELETE FROM trials WHERE id = ?", (trial,))
