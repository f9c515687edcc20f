"""The runs of a part of a journal, read from the store and written back at once.

    runs = RunUpserts(writer, trial)
    block = runs.look_up(block)                 # one query
    run = runs.known.get(run_id) or runs.make(event)
    runs.write()                                # one statement, with the trial's counts

Names of tests and metrics are rows that all trials share.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any

from msgspec import Struct, field
from msgspec.structs import astuple, replace

from seatrial.journal.events import Event, FigureGiven, MetricRecorded, RunEvent, finite
from seatrial.journal.run_life import RunLife, RunState
from seatrial.journal.trial_life import TrialState
from seatrial.store.node_places import keep_nodes
from seatrial.store.schema import Writer, chunks, marks
from seatrial.store.tables import STATES, outcome_of

MAX_INTEGER = 1 << 62
LONGEST_TEXT = 16384
NAMES_AT_ONCE = 16
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
    known: int = 0
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


_run_id_of, _case_of = attrgetter("run_id"), attrgetter("case")
_OWN = RunRecord.__struct_fields__[:-1]
_STORED = slice(1, -6)  # of a life: not its state, its submission, and what people said of it
_OF_LIFE = RunLife.__struct_fields__[_STORED]
_NAMES = {"reason": "why", "will_rerun": "again"}
COLUMNS = (*_OWN, "elapsed", "lifecycle", *(_NAMES.get(name, name) for name in _OF_LIFE))
"""The columns of ``runs``, in the order of ``_row_of_run``."""


def _row_of_run(run: RunRecord) -> tuple[Any, ...]:
    life = run.life
    if len(life.reason) > LONGEST_TEXT:
        life.reason = life.reason[:LONGEST_TEXT]
    return (*astuple(run)[:-1], life.elapsed, int(life.state), *astuple(life)[_STORED])


def _run_of(row: Sequence[Any]) -> RunRecord:
    own = len(_OWN)
    life = RunLife(RunState(row[own + 1]), *row[own + 2 :])
    return RunRecord(*(*row[:own], life))


class RunUpserts:
    """The runs of some events: the ``known`` ones, and those made for new ids. ``figures`` are
    figures of merit by run and metric."""

    def __init__(self, writer: Writer, trial: TrialRecord) -> None:
        self._writer = writer
        self._trial = trial
        self._none_before = trial.runs == 0
        self._metrics: dict[tuple[str, str, str], int] = {}
        self.known: dict[str, RunRecord] = {}
        self.figures: dict[tuple[int, int], float] = {}
        self._given: dict[tuple[int, int], tuple[float | None, ...]] = {}
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
            sql = f"SELECT {', '.join(COLUMNS)} FROM runs WHERE trial = ? AND run_id IN"
            for run in map(_run_of, _rows_of(self._writer, sql, self._trial.id, list(new))):
                self.known[run.run_id] = run
                self._old.add(run.run_id)
                self._nodes_before[run.id] = run.life.nodes
            new -= self._old
        self._ids = iter(self._writer.new_ids("runs", len(new)) if new else ())
        self._block = block
        return block

    def _new_in(self, block: Sequence[Event]) -> set[str]:
        """Return the ids of runs that are not known."""
        return set(map(_run_id_of, block)).difference(self.known, ("",))

    def make(self, event: RunEvent) -> RunRecord:
        """Make the run of an event of the block that was looked up."""
        case, test = self._cases.get(event.case) or self._case(event)
        self._trial.runs += 1
        of = (self._trial.id, event.run_id, case, test)
        run = self.known[event.run_id] = RunRecord(next(self._ids), *of, self._trial.runs)
        run.life.created = event.time
        return run

    def _case(self, event: RunEvent) -> tuple[int, int]:
        """Return the rows of an event's case and its test. All cases of the block are read at
        once."""
        name = bounded(event.case)
        if name not in self._cases:
            wanted = {*map(bounded, set(map(_case_of, self._block)))}.difference(self._cases)
            self._cases |= self._read_cases(sorted(wanted))
        return self._cases.get(name) or self._make_case(event, name)

    def keep_given(self, run: RunRecord, event: FigureGiven) -> None:
        """Keep a figure that somebody else gave."""
        if (figure := finite(event.figure)) is not None:
            metric = self.metric(event)
            self.figures[run.id, metric] = figure
            self._given[run.id, metric] = (event.n, event.sd, event.least, event.greatest)

    def metric(self, event: MetricRecorded | FigureGiven) -> int:
        """Return the id of a metric's name, unit and direction."""
        written = (event.metric, event.unit, event.better)
        if written not in self._metrics:
            key = tuple(name[:LONGEST_NAME] for name in written)
            self._metrics[written] = _named(
                self._writer, "metric_names", ("name", "unit", "better"), key
            )
        return self._metrics[written]

    def write(self) -> None:
        """Write the runs and their figures."""
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
        if self._given:
            columns = ("run", "metric", "n", "sd", "least", "greatest")
            rows = ((*key, *values) for key, values in self._given.items())
            self._writer.upsert("given_figures", columns, "run, metric", rows)
        self._write_nodes()
        rows_of_old = {run.id for run in old}
        known: list[tuple[Any, ...]] = []
        fresh: list[tuple[Any, ...]] = []
        for (row, metric), value in self.figures.items():
            (known if row in rows_of_old else fresh).append((row, metric, value))
        if fresh:
            self._writer.insert("metrics", ("run", "metric", "value"), fresh)
        if known:
            self._writer.upsert("metrics", ("run", "metric", "value"), "run, metric", known)

    def _write_nodes(self) -> None:
        before = self._nodes_before.get
        nodes_of = {}
        for run in self.known.values():
            nodes = run.life.nodes
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
        found = self._writer.rows(query, (self._trial.id, event.test))
        test = found[0][0] if found else test_row(self._writer, event.test, event.app, "")
        self._writer.execute(
            "INSERT INTO cases (trial, case_id, test, name, toolchain, parameters, defaults, node,"
            " build, repeat) VALUES (?, ?, ?, ?, '', '{}', '{}', '', '', 0)",
            (self._trial.id, name, test, event.test or name),
        )
        self._cases |= self._read_cases([name])
        return self._cases[name]


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
