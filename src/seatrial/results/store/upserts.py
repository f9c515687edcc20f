"""The runs of a part of a journal, read from the store and written back at once.

    runs = _RunUpserts(writer, trial)
    block = runs.look_up(block)                 # one query
    run = runs.known.get(event.run_id) or runs.make(event)
    runs.write()                                # one statement, with the trial's counts

Names of tests and metrics are rows that all trials share.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from operator import attrgetter
from pathlib import Path
from typing import Any, BinaryIO

from msgspec import Struct
from msgspec.structs import asdict, replace

from seatrial.hooks import StoreTable, load, provided
from seatrial.journal import events
from seatrial.journal.encoding import members
from seatrial.journal.events import Event, FigureGiven, MetricRecorded, RunEvent, finite
from seatrial.journal.journal import LINE_PIECE, Block, JournalMark, is_kept, lines_of
from seatrial.journal.trial import RUN_KINDS, TrialLife, TrialState
from seatrial.results.store.nodes import keep_nodes
from seatrial.results.store.schema import Store, Writer, marks
from seatrial.results.store.tables import (
    BUILDS,
    CASES,
    EVENTS,
    GAPS,
    GIVEN_FIGURES,
    METRIC_NAMES,
    METRICS,
    RUNS,
    STATES,
    TESTS,
    TRIAL_EVENTS,
    GapRow,
    Metric,
    MetricName,
    StoredBuild,
    StoredCase,
    StoredEvent,
    StoredGap,
    StoredGivenFigure,
    StoredRun,
    StoredTest,
    StoredTrial,
    Table,
    TrialRow,
    chunks,
    outcome_of,
    read,
    stored_run,
)

MAX_INTEGER = 1 << 62
LONGEST_TEXT = 16384
NAMES_AT_ONCE = 16
LONGEST_NAME = 200  # of what is looked up by an index, which has a largest entry


_run_id_of, _case_of = attrgetter("run_id"), attrgetter("case")


class _RunUpserts:
    """The runs of some events: the ``known`` ones, and those made for new ids. ``figures`` are
    figures of merit by run and metric."""

    def __init__(self, writer: Writer, trial: StoredTrial) -> None:
        self._writer = writer
        self._trial = trial
        self._none_before = trial.runs == 0
        self._metrics: dict[tuple[str, str, str], int] = {}
        self.known: dict[str, StoredRun] = {}
        self.figures: dict[tuple[int, int], float] = {}
        self._given: dict[tuple[int, int], StoredGivenFigure] = {}
        self._of_plugins: dict[str, list[Any]] = {}  # rows, by the table
        self._old: set[str] = set()
        self._nodes_before: dict[int, str] = {}
        self._ids: Iterator[int] = iter(())
        self._block: Sequence[Event] = ()
        self._cases: dict[str, tuple[int, int]] = {}

    def look_up(self, block: Sequence[Event]) -> Sequence[Event]:
        """Read what the store has of the runs of the next events. Returns these, with ids that the
        indexes of either database can hold."""
        new = self._new_in(block)
        if max(map(len, new), default=0) > LONGEST_NAME or "\0" in "".join(new):
            block = [
                replace(event, run_id=bounded(event.run_id))
                if isinstance(event, RunEvent)
                else event
                for event in block
            ]
            new = self._new_in(block)
        if new and not self._none_before:
            sql = f"SELECT {', '.join(RUNS.names)} FROM runs WHERE trial = ? AND run_id IN"
            for row in _rows_of(self._writer, sql, self._trial.id, list(new)):
                run = stored_run(dict(zip(RUNS.attributes, row, strict=True)))
                self.known[run.run_id] = run
                self._old.add(run.run_id)
                self._nodes_before[run.id] = run.nodes
            new -= self._old
        self._ids = iter(self._writer.new_ids(RUNS, len(new)) if new else ())
        self._block = block
        return block

    def _new_in(self, block: Sequence[Event]) -> set[str]:
        """Return the ids of runs that are not known."""
        return set(map(_run_id_of, block)).difference(self.known, ("",))

    def make(self, event: Event) -> StoredRun:
        """Make the run of an event of the block that was looked up, as it is new."""
        assert isinstance(event, RunEvent)  # as it names a run
        case, test = self._cases.get(event.case) or self._case(event)
        self._trial.runs += 1
        run = StoredRun(
            id=next(self._ids),
            trial=self._trial.id,
            case_row=case,
            test=test,
            run_id=event.run_id,
            seq=self._trial.runs,
            created=event.time,
        )
        self.known[event.run_id] = run
        return run

    def _case(self, event: RunEvent) -> tuple[int, int]:
        """Return the rows of an event's case and its test. All cases of the block are read at
        once."""
        name = bounded(event.case)
        if name not in self._cases:
            wanted = {*map(bounded, set(map(_case_of, self._block)))}.difference(self._cases)
            self._cases |= self._read_cases(sorted(wanted))
        return self._cases.get(name) or self._make_case(event, name)

    def keep_given(self, run: StoredRun, event: FigureGiven) -> None:
        """Keep a figure that somebody else gave."""
        if (figure := finite(event.figure)) is not None:
            metric = self.metric(event)
            self.figures[run.id, metric] = figure
            self._given[run.id, metric] = StoredGivenFigure(
                run.id, metric, event.n, event.sd, event.least, event.greatest
            )

    def keep_rows(self, run: StoredRun, event: Event) -> None:
        """Keep the rows that plug-ins make of an event."""
        for about in _tables_of()[event.name]:
            self._of_plugins.setdefault(about.table, []).extend(load(about.rows)(run, event))

    def metric(self, event: MetricRecorded | FigureGiven) -> int:
        """Return the id of a metric's name, unit and direction."""
        written = (event.metric, event.unit, event.better)
        if written not in self._metrics:
            name, unit, better = (part[:LONGEST_NAME] for part in written)
            self._metrics[written] = _shared(
                self._writer, METRIC_NAMES, MetricName(0, name, unit, better)
            )
        return self._metrics[written]

    def write(self) -> None:
        """Write the runs and their figures."""
        changes: Counter[int] = Counter()
        old, new = [], []
        for run_id, run in self.known.items():
            if run_id in self._old:
                changes[run.outcome] -= 1
                old.append(run)
            else:
                new.append(run)
            run.reason = run.reason[:LONGEST_TEXT]
            run.outcome = outcome_of(run.code, run.will_rerun)
            changes[run.outcome] += 1
        for name, state in STATES.items():
            setattr(self._trial, name, getattr(self._trial, name) + changes[state])
        if new:
            self._writer.insert(RUNS, new)
        if old:
            self._writer.upsert(RUNS, old)
        if self._given:
            self._writer.upsert(GIVEN_FIGURES, self._given.values())
        for table, rows in self._of_plugins.items():
            self._writer.upsert(load(table), rows)
        self._write_nodes()
        self._write_figures({run.id for run in old})

    def _write_figures(self, old: Set[int]) -> None:
        """Write the figures. A run that was there before may have them already."""
        known: list[Metric] = []
        fresh: list[Metric] = []
        for (run, metric), value in self.figures.items():
            (known if run in old else fresh).append(Metric(run, metric, value))
        if fresh:
            self._writer.insert(METRICS, fresh)
        if known:
            self._writer.upsert(METRICS, known)

    def _write_nodes(self) -> None:
        before = self._nodes_before.get
        nodes_of = {}
        for run in self.known.values():
            nodes = run.nodes
            if nodes and nodes != before(run.id):
                nodes_of[run.id] = nodes
        if nodes_of:
            changed = [run for run in nodes_of if before(run)]
            keep_nodes(self._writer, self._trial.id, nodes_of, changed)

    def _read_cases(self, ids: Sequence[str]) -> dict[str, tuple[int, int]]:
        query = "SELECT case_id, id, test FROM cases WHERE trial = ? AND case_id IN"
        rows = _rows_of(self._writer, query, self._trial.id, ids)
        return {case: (row, test) for case, row, test in rows}

    def _make_case(self, event: RunEvent, name: str) -> tuple[int, int]:
        """Make a row for a case that the trial's files do not have."""
        query = (
            "SELECT tests.id FROM cases JOIN tests ON tests.id = cases.test"
            " WHERE cases.trial = ? AND tests.name = ? LIMIT 1"
        )
        rows = self._writer.rows(query, (self._trial.id, event.test))
        test = rows[0][0] if rows else test_row(self._writer, event.test, event.app, "")
        (row,) = self._writer.new_ids(CASES, 1)
        case = StoredCase(row, self._trial.id, name, test, event.test or name)
        self._writer.insert(CASES, [case])
        self._cases[name] = (row, test)
        return self._cases[name]


@functools.cache
def _tables_of() -> dict[str, list[StoreTable]]:
    """Return the tables of plug-ins that have rows of events, by the names of these."""
    tables: dict[str, list[StoreTable]] = {}
    for about in provided("seatrial_tables"):
        if about.event:
            tables.setdefault(about.event, []).append(about)
    return tables


def test_row(writer: Writer, name: str, app: str, tags: str) -> int:
    """Return the id of a test with that name, application and tags; make it if it is new."""
    return _shared(writer, TESTS, StoredTest(0, name[:LONGEST_NAME], app[:LONGEST_NAME], tags))


def _shared(writer: Writer, table: Table, row: StoredTest | MetricName) -> int:
    """Return the id of a row that all trials share; make it if it is new. One writer at a time
    makes such rows, so that no two wait for each other."""
    key = {name: getattr(row, name) for name in table.names if name != "id"}
    conditions = " AND ".join(f"{name} = ?" for name in key)
    query = f"SELECT id FROM {table.name} WHERE {conditions}"
    ids = writer.rows(query, list(key.values()))
    if not ids:
        writer.lock("names")
        ids = writer.rows(query, list(key.values()))
    if ids:
        return int(ids[0][0])
    (row.id,) = writer.new_ids(table, 1)
    writer.insert(table, [row])
    return row.id


def _rows_of(writer: Writer, query: str, trial: int, names: Sequence[str]) -> Iterable[Any]:
    """Yield the rows of a query that ends in IN, for any number of names. The last one is repeated,
    so that a statement of few lengths is prepared once for many parts."""
    for some in chunks(names):
        repeated = [some[-1]] * (-len(some) % NAMES_AT_ONCE)
        yield from writer.rows(
            f"{query} ({marks(len(some) + len(repeated))})", (trial, *some, *repeated)
        )


def bounded(name: str) -> str:
    """Return a name of bounded length without NUL, which PostgreSQL cannot hold. So a lookup finds
    what was kept."""
    return name[:LONGEST_NAME].replace("\0", "\ufffd")


# ---- folding -------------------------------------------------------------------------------------
#
# Fold events into rows: the state of a run, a build or a trial by its events so far.
#
# The fold goes on from the rows that are there, so a journal may come in pieces of any size.
# Events may arrive late or twice, as a job's own events are merged after it has ended. So they
# count by their time, not by their place.


ROWS_AT_ONCE = 4096  # of a table

_OF_BUILDS = (events.BuildStarted, events.BuildEnded)


def _keep_metric(runs: _RunUpserts, run: StoredRun, event: events.MetricRecorded) -> None:
    figure = events.finite(event.value)
    if figure is not None:
        runs.figures[run.id, runs.metric(event)] = figure


_Further = Callable[[_RunUpserts, StoredRun, Any], None]
_FURTHER: dict[type[events.Event], _Further] = {
    events.MetricRecorded: _keep_metric,
    events.FigureGiven: _RunUpserts.keep_given,
}


class _Storing(Struct, frozen=True):
    """How the events of a class are stored."""

    #: reads the members that their rows have as value, detail and text, None for none
    members: Callable[[events.Event], tuple[Any, ...]]
    #: whether they may change the life of a run
    is_of_life: bool
    #: what else there is to do, if anything
    further: _Further | None


def _has_rows(kind: type[events.Event]) -> bool:
    """Return whether tables of plug-ins have rows of a kind of event."""
    return str(kind.__struct_config__.tag) in _tables_of()


@functools.cache
def _storing(kind: type[events.Event]) -> _Storing:
    return _Storing(
        members=members(kind, kind.stored_value, kind.stored_detail, kind.stored_text),
        is_of_life=kind in RUN_KINDS,
        further=_FURTHER.get(kind) or (_RunUpserts.keep_rows if _has_rows(kind) else None),
    )


def fold(writer: Writer, trial: StoredTrial, blocks: Iterable[Sequence[events.Event]]) -> None:
    """Update the rows of a trial by the next events of its journal; ``trial`` itself is changed. A
    block is folded before the next one is asked for: small ones stay in the processor's cache."""
    runs = _RunUpserts(writer, trial)
    of_runs: list[StoredEvent] = []
    of_trial: list[StoredEvent] = []
    for block in blocks:
        others = _fold_runs(trial, runs, block, of_runs)
        _fold_trial(writer, trial, others, of_trial)
        trial.events += len(block)
        if len(of_runs) >= ROWS_AT_ONCE:
            writer.insert(EVENTS, of_runs)
            of_runs.clear()
    if of_runs:
        writer.insert(EVENTS, of_runs)
    if of_trial:
        writer.insert(TRIAL_EVENTS, of_trial)
    runs.write()


def _fold_runs(
    trial: StoredTrial, runs: _RunUpserts, block: Sequence[events.Event], rows: list[StoredEvent]
) -> list[tuple[int, events.Event]]:
    """Fold the events of runs, and add their rows. Returns the events of no run, each with its
    place in the journal."""
    others: list[tuple[int, events.Event]] = []
    for seq, event in enumerate(runs.look_up(block), trial.events + 1):
        if not event.run_id:
            others.append((seq, event))
            continue
        run = runs.known.get(event.run_id) or runs.make(event)
        if event.time > run.last and not event.is_late:
            run.last = event.time
            if event.time > (trial.last or 0):
                trial.last = event.time
        storing = _storing(type(event))
        if storing.is_of_life:
            run.apply(event)
        if storing.further is not None:
            storing.further(runs, run, event)
        rows.append(_stored(run.id, seq, event, storing))
    return others


def _stored(of: int, seq: int, event: events.Event, storing: _Storing) -> StoredEvent:
    """Return the row of an event: of a run or a trial, at its place in the journal."""
    value, detail, text = storing.members(event)
    if value is not None:
        value = _bounded_value(value)
    detail, text = (detail or "")[:LONGEST_TEXT], (text or "")[:LONGEST_TEXT]
    return StoredEvent(of, event.time, seq, event.number, value, detail, text)


def _bounded_value(value: Any) -> Any:
    """Return a value of an event as a database can hold it; None for an empty text."""
    if isinstance(value, str):
        return value[:LONGEST_TEXT] or None
    if isinstance(value, int) and not -MAX_INTEGER < value < MAX_INTEGER:
        return str(value)
    return value


def _fold_trial(
    writer: Writer,
    trial: StoredTrial,
    block: Sequence[tuple[int, events.Event]],
    rows: list[StoredEvent],
) -> None:
    """Fold the events that are of no run, and add their rows."""
    builds: dict[str, StoredBuild] = {}
    life = TrialLife(math.inf, TrialState(trial.state))  # it may be extended
    latest = -1 if trial.last is None else trial.last
    for seq, event in block:
        if event.time > latest and not event.is_late:
            trial.last = latest = event.time
        if isinstance(event, _OF_BUILDS):
            _change_build(_build_of(writer, trial.id, builds, event.key), event)
        else:
            _change_trial(trial, life, event)
        rows.append(_stored(trial.id, seq, event, _storing(type(event))))
    if builds:
        writer.upsert(BUILDS, builds.values())


def _change_trial(trial: StoredTrial, life: TrialLife, event: events.Event) -> None:
    if event.time >= trial.state_time and life.apply(event):
        trial.state = life.state.value
        trial.state_time = event.time
        if isinstance(event, events.TrialStarted) and trial.started is None:
            trial.started = event.time


def _build_of(writer: Writer, trial: int, builds: dict[str, StoredBuild], key: str) -> StoredBuild:
    key = bounded(key)
    if key not in builds:
        query = "FROM builds WHERE trial = ? AND key = ?"
        there = read(writer, StoredBuild, "builds", query, (trial, key))
        builds[key] = there[0] if there else StoredBuild(trial, key)
    return builds[key]


def _change_build(build: StoredBuild, event: events.BuildEvent) -> None:
    build.path = event.path or build.path
    if isinstance(event, events.BuildStarted):
        build.started = max(build.started or 0, event.time)
    elif isinstance(event, events.BuildEnded) and (
        build.ended is None or event.time >= build.ended
    ):
        build.ended = event.time
        build.value = event.code
        build.text = event.log[:LONGEST_TEXT]


# ---- gaps ----------------------------------------------------------------------------------------
#
# Where a journal could not be read: which lines, and between which events.
#
#     gaps(store, trial)          # [GapRow(line=812, lines=3, first=190211, last=190704, ...)]
#
# Damaged lines are skipped when a journal is read. Here they are located, so that a page can say
# what is missing. Adjacent damaged lines are one gap.


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
        while self._end < end and (data := file.read(min(LINE_PIECE, end - self._end))):
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
    for line_events, first, last, damaged in lines_of(file, trial.ingested, end):
        number += 1
        if damaged and gap is None:
            gap = GapRow(number, 1, first, last, before, None)
        elif damaged and gap is not None:
            gap = replace(gap, lines=gap.lines + 1, last=last)
        elif line_events:
            if gap is not None:
                found.append(replace(gap, after=line_events[0].time))
                gap = None
            before = max(before or 0, line_events[0].time)
    return [*found, gap] if gap is not None else found
