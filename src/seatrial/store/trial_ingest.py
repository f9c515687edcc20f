"""Read one trial's journal into the store, from where it was left.

    count = ingest_trial(store, path, progress)

One transaction changes both what was read of a journal and how far it was read. So a crash, or two
commands at once, neither lose nor double an event. A journal that was replaced or cut is read from
its beginning. A trial is identified by its path and its machine, as several machines may share a
store and have folders of the same name.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, TypeVar

import msgspec
from msgspec import Struct

from seatrial.file_model import Scalar
from seatrial.files import open_regular
from seatrial.gc_pause import uncollected
from seatrial.journal.events import Event
from seatrial.journal.journal import Block, fingerprint, read_blocks
from seatrial.journal.mark import read_mark
from seatrial.machine.node_sets import unfold
from seatrial.store.columns import read
from seatrial.store.folding import fold
from seatrial.store.gaps import LinesBefore, keep_gaps, keep_lost_end
from seatrial.store.ingest import Progress, file_state
from seatrial.store.node_places import NodePlaces
from seatrial.store.run_upserts import LONGEST_NAME, test_row
from seatrial.store.schema import Store, Writer
from seatrial.store.tables import CASES, TRIALS, StoredCase, StoredTrial
from seatrial.suite.model import Case
from seatrial.trial.folder import TrialFolder
from seatrial.trial.paths import TrialPaths

N = TypeVar("N", int, float)

READ_AT_ONCE = 8 << 20  # bytes of a journal, in one transaction
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
    phase: str = ""
    rehearsed: bool = False
    imported: _Tool | None = None


def ingest_trial(store: Store, path: str, progress: Progress | None) -> int:
    """Read a trial's journal to its end, one block in one transaction at a time. Returns the number
    of events."""
    folder = TrialFolder(Path(path))
    count = 0
    mark = read_mark(folder.journal)
    lines = LinesBefore()
    while True:
        with uncollected(), store.writing() as writer:
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


def _open_row(writer: Writer, folder: TrialFolder, file: BinaryIO | None) -> StoredTrial:
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
    state.size, until = -1, state.ingested + READ_AT_ONCE
    while state.size < 0 and state.ingested < until:
        start, at_once = state.ingested, min(FOLD_AT_ONCE, READ_AT_ONCE)
        block = next(read_blocks(file, start, at_once), Block([], start, 0))
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


def _take_moved(writer: Writer, folder: TrialFolder, record: _Record) -> None:
    """Give the row of a trial that was moved its new path."""
    query = "SELECT id, path FROM trials WHERE tag = ? AND created = ? AND machine = ?"
    key = (folder.tag, record.created, record.machine.machine)
    for row, path in writer.rows(query, key):
        if not Path(path).exists():
            values = (str(folder.path), row)
            writer.execute("UPDATE trials SET path = ? WHERE id = ?", values)
            return


def _make_row(writer: Writer, folder: TrialFolder, record: _Record) -> StoredTrial:
    cases = list({case.id: case for case in folder.cases()}.values())
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
        planned=sum(case.repeat for case in cases),
        plan=record.plan,
        component=record.component.component if record.component else "",
        phase=record.phase,
        rehearsed=record.rehearsed,
    )
    writer.insert(TRIALS, [trial])
    _add_nodes(writer, record.machine)
    _add_cases(writer, trial, cases, record)
    return trial


def _add_cases(writer: Writer, trial: StoredTrial, cases: Sequence[Case], record: _Record) -> None:
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


def _at_default(case: Case, record: _Record) -> dict[str, Scalar]:
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
    for table in ("trial_events", "run_nodes", "runs", "cases", "builds", "gaps"):
        writer.execute(f"DELETE FROM {table} WHERE trial = ?", (trial,))
    writer.execute("DELETE FROM trials WHERE id = ?", (trial,))
