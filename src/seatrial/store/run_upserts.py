"""The runs of a block of a journal, read from the store and written back at once.

    runs = RunUpserts(writer, trial, cases)           # one query
    run = runs.known.get(run_id) or runs.make(event)
    runs.write(figures)                         # one statement, with the trial's counts

Names of tests and metrics are rows that all trials share.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Any

from msgspec import Struct, field

from seatrial.journal.events import MetricRecorded, RunEvent
from seatrial.journal.lifecycle import RunLife, RunState, TrialState
from seatrial.store.node_places import keep_nodes
from seatrial.store.schema import Writer, chunks, marks
from seatrial.store.tables import STATES, outcome_of

MAX_INTEGER = 1 << 62
LONGEST_TEXT = 16384
LONGEST_NAME = 200  # of what is looked up by an index, which has a largest entry


class TrialRecord(Struct):
    """The part of a trial's row that depends on its journal."""

    id: int
    state: str = TrialState.NEW.value
    state_time: int = 0
    started: int | None = None
    last: int | None = None
    damaged: int = 0
    ingested: int = 0
    events: int = 0
    runs: int = 0
    waiting: int = 0
    running: int = 0
    passed: int = 0
    failed: int = 0
    again: int = 0
    inode: int = 0
    size: int = -1
    modified: int = 0
    fingerprint: int = 0


class RunRecord(Struct):
    """A run and its row of ``runs``. ``state`` is one of ``tables.STATES``, ``last`` the time (ns)
    of its latest event."""

    id: int
    trial: int
    run_id: str
    case_row: int
    test: int
    seq: int
    state: int = 0
    last: int = 0
    life: RunLife = field(default_factory=RunLife)


_OWN = ("id", "trial", "run_id", "case_row", "test", "seq", "state", "last")
_NOT_KEPT = ("state", "submission", "judged_again")
_OF_LIFE = tuple(name for name in RunLife.__struct_fields__ if name not in _NOT_KEPT)
_NAMES = {"reason": "why", "will_rerun": "again"}
COLUMNS = (*_OWN, "elapsed", "lifecycle", *(_NAMES.get(name, name) for name in _OF_LIFE))
"""The columns of ``runs``, in the order of ``_row_of_run``."""

_own_values, _values_of_life = attrgetter(*_OWN), attrgetter(*_OF_LIFE)


def _row_of_run(run: RunRecord) -> tuple[Any, ...]:
    life = run.life
    life.reason = life.reason[:LONGEST_TEXT]
    return (*_own_values(run), life.elapsed, int(life.state), *_values_of_life(life))


def _run_of(row: Sequence[Any]) -> RunRecord:
    own = len(_OWN)
    life = RunLife(RunState(row[own + 1]), **dict(zip(_OF_LIFE, row[own + 2 :], strict=True)))
    run = RunRecord(*row[:own])
    run.life = life
    return run


class RunUpserts:
    """The runs of some events: the ``known`` ones, and those made for new ids. ``cases`` maps each
    run's id to its case."""

    def __init__(self, writer: Writer, trial: TrialRecord, cases: dict[str, str]) -> None:
        self._writer = writer
        self._trial = trial
        self._metrics: dict[tuple[str, str, str], int] = {}
        sql = f"SELECT {', '.join(COLUMNS)} FROM runs WHERE trial = ? AND run_id IN"
        rows = _rows_of(writer, sql, trial.id, list(cases)) if trial.runs else ()
        self.known = {row[2]: _run_of(row) for row in rows}
        self._old = set(self.known)
        self._nodes_before = {run.id: run.life.nodes for run in self.known.values()}
        new = [case for run_id, case in cases.items() if run_id not in self._old]
        self._ids = iter(writer.new_ids("runs", len(new)) if new else ())
        self._cases = self._read_cases(list(dict.fromkeys(new)))

    def make(self, event: RunEvent) -> RunRecord:
        """Make the run of an event."""
        case, test = self._cases.get(event.case) or self._make_case(event)
        self._trial.runs += 1
        of = (self._trial.id, event.run_id, case, test)
        run = self.known[event.run_id] = RunRecord(next(self._ids), *of, self._trial.runs)
        return run

    def metric(self, event: MetricRecorded) -> int:
        """Return the id of a metric's name, unit and direction."""
        key = (event.metric[:LONGEST_NAME], event.unit[:LONGEST_NAME], event.better[:LONGEST_NAME])
        if key not in self._metrics:
            columns = ("name", "unit", "better")
            self._metrics[key] = _named(self._writer, "metric_names", columns, key)
        return self._metrics[key]

    def write(self, figures: dict[tuple[int, int], float]) -> None:
        """Write the runs, and the figures by run and metric."""
        changes: Counter[int] = Counter()
        old, new = [], []
        for run_id, run in self.known.items():
            if run_id in self._old:
                changes[run.state] -= 1
                old.append(run)
            else:
                new.append(run)
            run.state = outcome_of(run.life.code, run.life.will_rerun)
            changes[run.state] += 1
        for name, state in STATES.items():
            setattr(self._trial, name, getattr(self._trial, name) + changes[state])
        if new:
            self._writer.insert("runs", COLUMNS, map(_row_of_run, new))
        if old:
            self._writer.upsert("runs", COLUMNS, "id", map(_row_of_run, old))
        self._write_nodes()
        rows_of_old = {run.id for run in old}
        known = [(*key, value) for key, value in figures.items() if key[0] in rows_of_old]
        fresh = [(*key, value) for key, value in figures.items() if key[0] not in rows_of_old]
        if fresh:
            self._writer.insert("metrics", ("run", "metric", "value"), fresh)
        if known:
            self._writer.upsert("metrics", ("run", "metric", "value"), "run, metric", known)

    def _write_nodes(self) -> None:
        before = self._nodes_before.get
        nodes_of = {
            run.id: run.life.nodes
            for run in self.known.values()
            if run.life.nodes != before(run.id, "")
        }
        if nodes_of:
            changed = [run for run in nodes_of if before(run)]
            keep_nodes(self._writer, self._trial.id, nodes_of, changed)

    def _read_cases(self, ids: Sequence[str]) -> dict[str, tuple[int, int]]:
        query = "SELECT case_id, id, test FROM cases WHERE trial = ? AND case_id IN"
        rows = _rows_of(self._writer, query, self._trial.id, ids)
        return {case: (row, test) for case, row, test in rows}

    def _make_case(self, event: RunEvent) -> tuple[int, int]:
        """Make a row for a case that the trial's files do not have."""
        query = (
            "SELECT tests.id FROM cases JOIN tests ON tests.id = cases.test"
            " WHERE cases.trial = ? AND tests.name = ? LIMIT 1"
        )
        found = self._writer.rows(query, (self._trial.id, event.test))
        test = found[0][0] if found else test_row(self._writer, event.test, event.app, "")
        self._writer.execute(
            "INSERT INTO cases (trial, case_id, test, name, toolchain, parameters, node, build,"
            " repeat) VALUES (?, ?, ?, ?, '', '{}', '', '', 0)",
            (self._trial.id, event.case, test, event.test or event.case),
        )
        self._cases |= self._read_cases([event.case])
        return self._cases[event.case]


def test_row(writer: Writer, name: str, app: str, tags: str) -> int:
    """Return the id of a test with that name, application and tags; make it if it is new."""
    key = (name[:LONGEST_NAME], app[:LONGEST_NAME], tags)
    return _named(writer, "tests", ("name", "app", "tags"), key)


def _named(writer: Writer, table: str, columns: tuple[str, ...], key: tuple[str, ...]) -> int:
    """Return the id of a row that all trials share; make it if it is new. One writer at a time
    makes such rows, so that no two wait for each other."""
    query = f"SELECT id FROM {table} WHERE {' AND '.join(f'{name} = ?' for name in columns)}"
    found = writer.rows(query, key)
    if not found:
        writer.lock("names")
        found = writer.rows(query, key)
    if not found:
        writer.insert(table, columns, [key])
        found = writer.rows(query, key)
    return int(found[0][0])


def _rows_of(writer: Writer, query: str, trial: int, names: Sequence[str]) -> Iterable[Any]:
    """Yield the rows of a query that ends in IN, for any number of names."""
    for some in chunks(names):
        yield from writer.rows(f"{query} ({marks(len(some))})", (trial, *some))
