"""The runs of a part of a journal, read from the store and written back at once.

    runs = RunUpserts(writer, trial)
    block = runs.look_up(block)                 # one query
    run = runs.of(event)
    runs.write()                                # one statement, with the trial's counts

Names of tests and metrics are rows that all trials share.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from operator import attrgetter
from typing import Any

from msgspec.structs import replace

from seatrial.journal.events import Event, FigureGiven, MetricRecorded, RunEvent, finite
from seatrial.store.columns import Table
from seatrial.store.node_places import keep_nodes
from seatrial.store.schema import Writer, chunks, marks
from seatrial.store.tables import (
    CASES,
    GIVEN_FIGURES,
    METRIC_NAMES,
    METRICS,
    RUNS,
    STATES,
    TESTS,
    Metric,
    MetricName,
    StoredCase,
    StoredGivenFigure,
    StoredRun,
    StoredTest,
    StoredTrial,
    outcome_of,
    stored_run,
)

MAX_INTEGER = 1 << 62
LONGEST_TEXT = 16384
NAMES_AT_ONCE = 16
LONGEST_NAME = 200  # of what is looked up by an index, which has a largest entry


_run_id_of, _case_of = attrgetter("run_id"), attrgetter("case")


class RunUpserts:
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

    def of(self, event: RunEvent) -> StoredRun:
        """Return the run of an event of the block that was looked up; make it if it is new."""
        return self.known.get(event.run_id) or self._make(event)

    def _make(self, event: RunEvent) -> StoredRun:
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
