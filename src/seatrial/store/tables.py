"""The tables, once for both databases, and the states in which people count runs.

    for statement in statements(): database.execute(statement)
    writer.insert(METRICS, [Metric(run=1, metric=2, value=3.5)])

A table is declared by the type of its rows. Lists show other rows, those of ``rows``; of a run
these declare the columns, too. SQLite takes the statements as they are. PostgreSQL has no ``WITHOUT
ROWID`` and no ``BLOB``, gives ids from a sequence, and must be told to compare text as bytes: see
``postgres_server``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from msgspec import Struct
from msgspec.structs import replace

from seatrial.journal import codes
from seatrial.journal.run_life import RunLife, RunState
from seatrial.journal.trial_life import TrialState
from seatrial.store.columns import Column, Table, columns_of
from seatrial.store.rows import GapRow, RunRow

VERSION = 18

UNFINISHED = (codes.PENDING.number, codes.IN_PROGRESS.number)
ENDED = TrialState.ENDED.value

# The states in which people count runs. A run whose case runs again, and one whose failure is
# known, have neither passed nor failed.
STATES = {"waiting": 0, "running": 1, "passed": 2, "failed": 3, "again": 4, "known": 5}
WAITING, RUNNING, PASSED, FAILED, AGAIN, KNOWN = STATES.values()


_OUTCOMES = {
    codes.PENDING.number: WAITING,
    codes.IN_PROGRESS.number: RUNNING,
    codes.RECALLED.number: AGAIN,
    codes.GIVEN.number: AGAIN,
    codes.KNOWN.number: KNOWN,
    codes.PASS.number: PASSED,
}
_UNFINISHED = frozenset(UNFINISHED)


def outcome_of(code: int, again: bool) -> int:
    """Return the state of a run with that verdict. A recalled run and a given figure count as run
    again: they neither passed nor failed."""
    if again and code not in _UNFINISHED:
        return AGAIN
    return _OUTCOMES.get(code, FAILED)


Id = Annotated[int, Column(sql="INTEGER PRIMARY KEY")]


# ---- trials and what they ask for ------------------------------------------------------------


class StoredTrial(Struct):
    """A trial: what its record says, and how far its journal is read. A state is by the journal's
    word; times are in ns."""

    id: Id
    path: str
    machine: str
    tag: str
    created: int
    version: str
    owner: str
    host: str
    cases: int
    #: runs that were asked for
    planned: int
    plan: str
    component: str
    phase: str
    #: whether nothing of it was measured
    rehearsed: bool
    state: str = TrialState.NEW.value
    state_time: int = 0
    started: int | None = None
    #: the time of the last event
    last: int | None = None
    #: lines of the journal that are no events
    damaged: int = 0
    #: bytes of the journal that are read, and what they hold
    ingested: int = 0
    events: int = 0
    runs: int = 0
    #: of the runs, in each of the states of ``STATES``
    waiting: int = 0
    running: int = 0
    passed: int = 0
    failed: int = 0
    again: int = 0
    known: int = 0
    #: of the journal's file
    inode: int = 0
    size: int = -1
    modified: int = 0
    #: of the bytes that are read
    fingerprint: int = 0


TRIALS = Table("trials", columns_of(StoredTrial), unique="path, machine")


class StoredTest(Struct):
    """A test, shared by all trials. Each of its tags stands between line ends."""

    id: Id
    name: str
    app: str
    tags: str


TESTS = Table("tests", columns_of(StoredTest), unique="name, app, tags")


class StoredCase(Struct):
    """A case of a trial. ``parameters`` and ``defaults`` (its other parameters) are JSON."""

    id: Id
    trial: int
    case_id: str
    test: int
    name: str
    toolchain: str = ""
    parameters: str = "{}"
    defaults: str = "{}"
    nodes: int | None = None
    tasks: int | None = None
    tasks_per_node: int | None = None
    threads: int | None = None
    walltime: float | None = None
    node: str = ""
    build: str = ""
    repeat: int = 0


CASES = Table(
    "cases",
    columns_of(StoredCase),
    unique="trial, case_id",
    indexes=["CREATE INDEX cases_by_toolchain ON cases (toolchain, id)"],
)


class StoredBuild(Struct):
    """A build of a trial. ``value`` is the code with which it ended, ``text`` its log."""

    trial: int
    key: str
    path: str = ""
    started: int | None = None
    ended: int | None = None
    value: int | None = None
    text: str = ""


BUILDS = Table("builds", columns_of(StoredBuild), primary_key="trial, key")


class StoredGap(GapRow, frozen=True):
    """A place of a trial's journal that could not be read."""

    trial: int


# SQLite checks a table that is its own index only if its key comes first.
_GAP_COLUMNS = sorted(columns_of(StoredGap), key=lambda column: column.name != "trial")
GAPS = Table("gaps", _GAP_COLUMNS, primary_key="trial, first")


# ---- runs -----------------------------------------------------------------------------------


class StoredRun(RunLife, kw_only=True):
    """A run: its life, its own row, and those of its trial, its case and its test."""

    id: int
    trial: int
    case_row: int
    test: int
    run_id: str
    #: its place among the runs of its trial, in the order of their appearance
    seq: int
    #: one of ``STATES``
    outcome: int = WAITING
    #: the time of its latest event (ns)
    last: int = 0

    @property
    def lifecycle(self) -> int:
        """Its state, as a number."""
        return int(self.state)


def stored_run(values: dict[str, Any]) -> StoredRun:
    """Return the run of a row, given by the names of the attributes."""
    state = RunState(values.pop("lifecycle"))
    del values["elapsed"]  # follows from its times
    return StoredRun(state=state, **values)


RUNS = Table(
    "runs",
    [
        Column(name="id", python=int, sql="INTEGER PRIMARY KEY"),
        Column(name="trial", python=int),
        Column(name="case_row", python=int),
        Column(name="test", python=int),
        Column(name="state", python=int, sql="SMALLINT", attribute="outcome"),
        Column(name="last", python=int),
        Column(name="lifecycle", python=int, sql="SMALLINT"),
        Column(name="recalled", python=bool),
        *(column for column in columns_of(RunRow) if not column.source),
    ],
    unique="run_id, trial",
    indexes=[
        "CREATE INDEX runs_by_creation ON runs (created, id, trial, test, case_row, state, code)",
        "CREATE INDEX runs_by_trial ON runs (trial, created, id, test, case_row, state, code)",
        "CREATE INDEX runs_by_state ON runs (state, code, created, trial, test, case_row)",
        "CREATE INDEX runs_by_test ON runs (test, trial, script_started, elapsed, code, case_row,"
        " created, run_id, stage)",
        "CREATE INDEX runs_by_case ON runs (case_row, created, id)",
        "CREATE INDEX runs_failed ON runs (state, judged, id, trial, test, cause)"
        f" WHERE state = {FAILED}",
        "CREATE INDEX runs_by_cause ON runs (cause) WHERE cause <> ''",
    ],
)


class StoredNode(Struct):
    """A node of a machine, with its place in the order of the description; see ``node_places``."""

    machine: str
    place: int
    name: str
    chain: int


NODES = Table("nodes", columns_of(StoredNode), primary_key="machine, place", unique="machine, name")


class NodeSpan(Struct):
    """Places of nodes that a run was on, both ends included."""

    trial: int
    run: int
    first: int
    last: int


RUN_NODES = Table("run_nodes", columns_of(NodeSpan), primary_key="trial, run, first")


# ---- events and figures -----------------------------------------------------------------------


class StoredEvent(Struct):
    """An event. ``value`` of a script's start are its GPUs, of a submission the nodes that were
    chosen; ``detail`` is its job, nodes, metric name, or alias."""

    #: the row of its run; of its trial, if it is of no run
    of: int
    time: int
    #: its place in the journal
    seq: int
    #: that of its kind
    number: Annotated[int, Column(sql="SMALLINT")]
    value: Annotated[int | float | str | None, Column(sql="BLOB")]
    detail: str
    text: str


def _event_columns(of: str) -> list[Column]:
    """Return the columns of events, of which this one has what they are of."""
    first, *others = columns_of(StoredEvent)
    return [replace(first, name=of, attribute=first.name), *others]


EVENTS = Table("events", _event_columns("run"), primary_key="run, time, seq")
TRIAL_EVENTS = Table("trial_events", _event_columns("trial"), primary_key="trial, time, seq")


class MetricName(Struct):
    """The name of a metric with its unit and direction, shared by all trials."""

    id: Id
    name: str
    unit: str
    better: str


METRIC_NAMES = Table("metric_names", columns_of(MetricName), unique="name, unit, better")


class Metric(Struct):
    """A figure of merit of a run. ``metric`` is the row of its name."""

    run: int
    metric: int
    value: float


METRICS = Table("metrics", columns_of(Metric), primary_key="run, metric")


class StoredGivenFigure(Struct):
    """What somebody else said of a figure: nothing was measured here. See ``GivenFigure``."""

    run: int
    metric: int
    n: int
    sd: float | None
    least: float | None
    greatest: float | None


GIVEN_FIGURES = Table("given_figures", columns_of(StoredGivenFigure), primary_key="run, metric")

TABLES = (
    *(TRIALS, TESTS, CASES, RUNS, NODES, RUN_NODES, EVENTS, TRIAL_EVENTS),
    *(METRIC_NAMES, METRICS, GIVEN_FIGURES, BUILDS, GAPS),
)


def statements() -> Iterator[str]:
    """Yield the statements that make the tables."""
    for table in TABLES:
        yield from table.statements()
