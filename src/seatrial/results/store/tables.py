"""Columns and tables: each column of the store is declared once, as a field of a row type.

    class Gap(Struct):
        trial: int
        first: int
        after: int | None = None

    GAPS = Table("gaps", Gap, primary_key="trial, first")
    GAPS.statements()                     # CREATE TABLE gaps (trial BIGINT NOT NULL, ...)
    read(store, Gap, "gaps", "FROM gaps WHERE trial = ?", (1,))       # a list of Gap

The SQL type of a column follows from the type of its field. Whatever else there is to say of it
stands in the annotation of the field:

    test: Annotated[str, Column(source="tests.name", title="Test")]
"""

import functools
import types
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    Protocol,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec
from msgspec import Struct
from msgspec.structs import astuple, replace

from seatrial.errors import StoreError
from seatrial.hooks import load, provided
from seatrial.journal.trial import RunLife, RunState, TrialState
from seatrial.model import codes

R = TypeVar("R", bound=Struct)
T = TypeVar("T")

Kind = Literal["text", "number", "time", "seconds"]

SQL_TYPES: dict[type, str] = {
    int: "BIGINT",
    float: "DOUBLE PRECISION",
    str: "TEXT",
    bool: "BOOLEAN",
}
# The types that a database returns for a column of a type.
_RETURNED: dict[type, frozenset[type]] = {
    int: frozenset({int}),
    float: frozenset({float, int}),
    str: frozenset({str}),
    bool: frozenset({bool, int}),
}


class Column(Struct, frozen=True, kw_only=True):
    """A column of a row type, and of a table if the row type is stored."""

    #: Its name: that of the field.
    name: str = ""
    #: The type of its values in Python; ``object`` if there are several.
    python: type = str
    #: Whether it may be NULL (None).
    optional: bool = False
    #: The SQL expression of which queries read it; "": the column of that name.
    source: str = ""
    #: How its value is made from what the database returns; None: it is that.
    read: Callable[[Any], Any] | None = None
    #: Its type in SQL; "": the usual one of its type.
    sql: str = ""
    #: The attribute of a stored object that is its value; "": the one of its name.
    attribute: str = ""
    #: Its heading in lists; "": no list shows it.
    title: str = ""
    #: How lists show its values.
    kind: Kind = "text"
    #: Whether a terminal may break its text into several lines.
    fold: bool = False

    @property
    def definition(self) -> str:
        """Its line in CREATE TABLE."""
        null = "" if self.optional or self.sql.endswith("KEY") else " NOT NULL"
        return f"{self.name} {self.sql or SQL_TYPES[self.python]}{null}"

    def allows(self, kind: type) -> bool:
        """Return whether a database may return a value of this type for the column."""
        if self.read is not None:
            return True
        if kind is type(None):
            return self.optional
        return self.python not in _RETURNED or kind in _RETURNED[self.python]


@functools.cache
def columns_of(row: type[Struct]) -> tuple[Column, ...]:
    """Return the columns of a row type, in the order of its fields."""
    hints = get_type_hints(row, include_extras=True)
    return tuple(_column(name, hints[name]) for name in row.__struct_fields__)


def _column(name: str, hint: Any) -> Column:
    declared = Column()
    if hasattr(hint, "__metadata__"):
        declared = next((m for m in hint.__metadata__ if isinstance(m, Column)), declared)
        hint = hint.__origin__
    kinds = set(get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,))
    optional = type(None) in kinds
    kinds -= {type(None)}
    kind = kinds.pop() if len(kinds) == 1 else object
    return msgspec.structs.replace(
        declared, name=name, python=get_origin(kind) or kind, optional=optional
    )


# ---- tables -------------------------------------------------------------------------------


class Table:
    """A table of the store. A writer takes objects whose attributes are named as its columns."""

    def __init__(
        self,
        name: str,
        columns: type[Struct] | Sequence[Column],
        *,
        primary_key: str = "",
        unique: str = "",
        indexes: Sequence[str] = (),
        renamed: Mapping[str, str] = {},
        replaced_if: str = "",
    ) -> None:
        """``columns`` may be the type of the rows that are inserted: a column for each field, of
        the field's name unless it is ``renamed``. ``primary_key`` is that of a table without a
        column ``id``; ``unique`` are the columns that no two rows share; ``indexes`` are
        statements. ``replaced_if``: the SQL condition under which a row takes the place of the one
        with the same key (``excluded.time > runs.time``); "": always."""
        #: Returns the values of a row.
        self.values: Callable[[Any], tuple[Any, ...]]
        if isinstance(columns, type):
            columns = [
                replace(column, name=renamed.get(column.name, column.name), attribute=column.name)
                for column in columns_of(columns)
            ]
            self.values = astuple
        else:
            self.values = attrgetter(*(column.attribute or column.name for column in columns))
        self.name = name
        self.columns = tuple(columns)
        self.names = tuple(column.name for column in columns)
        self.key = primary_key or "id"
        self._constraints = [f"PRIMARY KEY ({primary_key})"] if primary_key else []
        self._constraints += [f"UNIQUE ({unique})"] if unique else []
        self._options = " WITHOUT ROWID" if primary_key else ""
        self._indexes = indexes
        self._replaced_if = f" WHERE {replaced_if}" if replaced_if else ""
        self.attributes = tuple(column.attribute or column.name for column in columns)

    def statements(self) -> Iterator[str]:
        """Yield the statements that make the table and its indexes."""
        parts = [*(column.definition for column in self.columns), *self._constraints]
        yield f"CREATE TABLE {self.name} ({', '.join(parts)}){self._options}"
        yield from self._indexes

    def insert_sql(self, mark: str, rows: int = 1) -> str:
        """Return the statement that inserts so many rows. ``mark`` is the database's parameter."""
        values = f"({', '.join([mark] * len(self.names))})"
        into = f"{self.name} ({', '.join(self.names)})"
        return f"INSERT INTO {into} VALUES {', '.join([values] * rows)}"

    def upsert_sql(self, mark: str) -> str:
        """Return the statement that inserts a row, or replaces the one with the same key."""
        return self.insert_sql(mark) + self.on_conflict

    @property
    def on_conflict(self) -> str:
        """The end of a statement that inserts rows, by which they replace those with the same
        key."""
        keys = self.key.split(", ")
        changes = ", ".join(f"{name} = excluded.{name}" for name in self.names if name not in keys)
        return f" ON CONFLICT ({self.key}) DO UPDATE SET {changes}{self._replaced_if}"


# ---- queries ------------------------------------------------------------------------------


ROWS_AT_ONCE = 500


def chunks(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """Yield parts of at most ROWS_AT_ONCE items: a query has a limited number of parameters."""
    for start in range(0, len(items), ROWS_AT_ONCE):
        yield items[start : start + ROWS_AT_ONCE]


class Answers(Protocol):
    """What answers queries: a store, or a transaction that writes."""

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
        """Return the rows of a query, as tuples."""


def read(
    answers: Answers, row: type[R], table: str, sql: str, parameters: Sequence[Any] = ()
) -> list[R]:
    """Return the rows of a query as objects of a row type. ``table`` has its columns that are
    declared without a source; ``sql`` is the query from FROM on. Raises StoreError for a value that
    no Seatrial writes: the store is damaged."""
    return typed(row, answers.rows(f"SELECT {selected(row, table)} {sql}", parameters))


@functools.cache
def selected(row: type[Struct], table: str) -> str:
    """Return the columns of a row type as a query selects them."""
    return ", ".join(column.source or f"{table}.{column.name}" for column in columns_of(row))


def typed(row: type[R], rows: Sequence[Sequence[Any]]) -> list[R]:
    """Return what ``selected`` selects as objects of a row type; what else a row has at its end is
    left to the caller. Values are checked and converted column by column, which is twice as fast
    as one by one."""
    columns = columns_of(row)
    objects: list[R] = []
    for some in chunks(rows):
        values = map(_checked, columns, zip(*some, strict=True))
        objects += map(row, *values)
    return objects


def _checked(column: Column, values: Sequence[Any]) -> Iterable[Any]:
    for kind in set(map(type, values)):
        if not column.allows(kind):
            raise StoreError(
                f"{column.name} of a row of the store is {kind.__name__}: it is damaged; run "
                "`seatrial store rebuild`"
            )
    return values if column.read is None else map(column.read, values)


# ---- rows ----------------------------------------------------------------------------------------
#
# The rows that queries return, and the filters that they take. All are immutable.


RUN_TIMES = (
    "created",
    "submitted",
    "queued",
    "job_started",
    "script_started",
    "script_ended",
    "job_ended",
    "judged",
)
"""The times of a run, in the order in which it comes to them: see ``journal.trial.RunLife``."""


GIVEN = TrialState.GIVEN.value


class Filters(Struct, frozen=True, kw_only=True):
    """Filters of runs. An empty filter chooses all but those of rehearsals and figures that were
    given, which are there if their ``trial`` is named."""

    trial: str = ""
    #: a pattern such as ``io_*``, or any part of the name
    test: str = ""
    #: whole names; None: any
    tests: Collection[str] | None = None
    tag: str = ""
    verdicts: Sequence[str] = ()
    #: of ``STATES``
    states: Sequence[str] = ()
    #: over, not passed, not run again and not recalled
    failed: bool = False
    #: created from then on (ns)
    since: int = 0
    #: created before then (ns)
    until: int = 0
    #: may be a pattern, as ``toolchain``
    machine: str = ""
    toolchain: str = ""
    #: a pattern, or any part of a cause, in any case of letters
    cause: str = ""
    #: 0: none
    limit: int = 0
    #: whether runs of rehearsals are there, too
    rehearsed: bool = False


# Columns that rows of several kinds have.
RowOfRun = Annotated[int, Column(source="runs.id")]
TrialTag = Annotated[str, Column(source="trials.tag", title="Trial", fold=True)]
MachineName = Annotated[str, Column(source="trials.machine", title="Machine")]
IsRehearsed = Annotated[bool, Column(source="trials.rehearsed")]
CaseId = Annotated[str, Column(source="cases.case_id")]
CaseLabel = Annotated[str, Column(source="cases.name", title="Case", fold=True)]
TestName = Annotated[str, Column(source="tests.name")]
AppName = Annotated[str, Column(source="tests.app", title="App")]
Toolchain = Annotated[str, Column(source="cases.toolchain")]
Time = Annotated[int, Column(kind="time")]
OptionalTime = Annotated[int | None, Column(kind="time")]
Json = Annotated[dict[str, Any], Column(read=msgspec.json.Decoder(dict[str, Any]).decode)]


@functools.cache
def verdict_of(code: int | None) -> str:
    """Return the name of a verdict's code; "" of none."""
    return "" if code is None else codes.code_of(code).name


class RunRow(Struct, frozen=True):
    """One run. Times are in ns since the epoch, None where there is none yet: see ``RUN_TIMES``.

    A column without a ``source`` is kept in the table ``runs``, with the value of the attribute of
    ``RunLife`` that has its name or is given here. So a new field makes the column in the store, in
    what queries return, in JSON, CSV and tables of Arrow; with a ``title``, and its name in
    ``RUNS_ON_PAGE`` or ``RUNS_ON_TERMINAL``, in lists, too.
    """

    row: RowOfRun
    #: the name of its code
    verdict: Annotated[str, Column(source="runs.code", read=verdict_of, title="Verdict")]
    #: that of its first code if it was judged again, else ""
    first_verdict: Annotated[str, Column(source="runs.first_code", read=verdict_of)]
    trial: TrialTag
    machine: MachineName
    run_id: Annotated[str, Column(title="Run")]
    case: CaseId
    case_name: CaseLabel
    test: TestName
    app: AppName
    toolchain: Toolchain
    seq: int
    code: int
    why: Annotated[str, Column(attribute="reason")]
    created: Annotated[int, Column(title="Created", kind="time")]
    submitted: OptionalTime
    queued: OptionalTime
    job_started: OptionalTime
    script_started: OptionalTime
    script_ended: OptionalTime
    job_ended: OptionalTime
    judged: OptionalTime
    #: of its script
    elapsed: Annotated[float | None, Column(title="Elapsed", kind="seconds")]
    exit_code: int | None
    job_id: str
    nodes: Annotated[str, Column(title="Nodes", fold=True)]
    path: str
    #: the metadata target that it was placed on
    target: str = ""
    #: ``alone`` or ``full``
    stage: str = ""
    rehearsed: IsRehearsed = False
    #: the hash of its script's environment
    environment: str = ""
    #: whether it does not count, as its case runs again
    again: Annotated[bool, Column(attribute="will_rerun")] = False
    #: the digest of the facts of its nodes
    node_facts: str = ""
    #: the code of its first verdict if it was judged again
    first_code: int | None = None
    #: what it failed of, by its output
    cause: Annotated[str, Column(title="Cause", fold=True)] = ""
    #: the code of a failure mode of its test, else 0
    cause_code: int = 0
    #: the line of its output that told the cause
    cause_line: str = ""
    advice: str = ""


# The columns that lists of runs show, in their order.
RUNS_ON_PAGE = (
    *("created", "verdict", "case_name", "app", "trial", "machine", "elapsed", "nodes", "run_id"),
)
RUNS_ON_TERMINAL = (
    *("run_id", "case_name", "verdict", "cause", "created", "elapsed", "nodes", "trial"),
)


def listed_columns(names: Sequence[str]) -> list[Column]:
    """Return the columns of runs with these names, in their order."""
    by_name = {column.name: column for column in columns_of(RunRow)}
    return [by_name[name] for name in names]


class RunCounts(NamedTuple):
    """The number of runs in each state; ``again`` are those whose case runs again, and recalled
    ones, ``known`` those whose failure is known."""

    waiting: int
    running: int
    passed: int
    failed: int
    again: int
    known: int = 0


class CaseRow(Struct, frozen=True):
    """One case as it was asked for. Numbers are None where the trial's files do not have the
    case."""

    id: CaseId
    name: CaseLabel
    test: TestName
    app: AppName
    toolchain: Toolchain
    parameters: Json
    nodes: int | None
    tasks: int | None
    tasks_per_node: int | None
    threads: int | None
    walltime: float | None
    node: str
    build: str
    repeat: int


class TrialRow(Struct, frozen=True):
    """One trial and how far it is."""

    row: int
    tag: str
    path: str
    machine: str
    created: Time
    started: OptionalTime
    last: OptionalTime
    state: str
    #: until now while it runs
    elapsed: Annotated[float | None, Column(kind="seconds")]
    cases: int
    #: the number of runs that were asked for
    runs: int
    passed: int
    failed: int
    running: int
    #: queued, or not created yet
    waiting: int
    #: lines of its journal that are no events
    damaged: int
    #: "" where it has none, as ``component`` and ``phase``
    plan: str = ""
    component: str = ""
    phase: str = ""
    #: nothing of it was measured
    rehearsed: bool = False
    #: failures that are known
    known: int = 0

    @property
    def given(self) -> bool:
        """Whether its figures were given by somebody else, and none was measured."""
        return self.state == GIVEN


class GapRow(Struct, frozen=True):
    """A place in a journal that could not be read: ``lines`` lines from ``line`` on, bytes from
    ``first`` to before ``last``. ``before`` and ``after`` are the times (ns) of the events around
    it, None where there is none."""

    line: int
    lines: int
    first: int
    last: int
    before: int | None
    after: int | None


class EventRow(Struct, frozen=True):
    """One event of a run. ``value`` of a script's start are its GPUs, of a submission the nodes
    that were chosen; ``detail`` is its job, nodes, metric name, or alias."""

    time: Time
    event: str
    value: int | float | str | None
    detail: str
    text: str


class MetricRow(Struct, frozen=True):
    """One figure of merit of a run."""

    name: str
    value: Annotated[float, Column(source="metrics.value")]
    unit: str
    better: str


class CaseName(Struct, frozen=True):
    """The names of a case in a series. ``case`` is its id, ``node`` the one that it is pinned
    to."""

    trial: TrialTag
    machine: MachineName
    rehearsed: IsRehearsed
    case: CaseId
    name: CaseLabel
    test: TestName
    toolchain: Toolchain
    node: str


class Measured(Struct, frozen=True):
    """A figure of a run whose answer was right. ``trial`` and ``case`` are the rows of both;
    ``time`` is when the run's script started, in ns; ``stage`` is that of the run."""

    trial: int
    case: int
    run_id: str
    time: int
    stage: str
    value: float
    unit: str
    better: str


class RunOutcome(Struct, frozen=True):
    """How a run that is over went. Times are in seconds, ``script_started`` in ns."""

    row: RowOfRun
    run_id: str
    trial: TrialTag
    machine: MachineName
    test: TestName
    case_name: CaseLabel
    #: as JSON
    parameters: Annotated[str, Column(source="cases.parameters")]
    toolchain: Toolchain
    #: the one that its case is pinned to
    node: Annotated[str, Column(source="cases.node")]
    walltime: Annotated[float | None, Column(source="cases.walltime")]
    code: int
    why: str
    again: bool
    script_started: int | None
    elapsed: float | None
    nodes: str
    stage: str = ""
    #: the metadata target that it was placed on
    target: str = ""

    @property
    def verdict(self) -> str:
        return codes.code_of(self.code).name

    @property
    def kind(self) -> str:
        """The name of its case without the node, with its stage. Runs of one kind should behave
        alike."""
        name = self.case_name.removesuffix(f"%{self.node}") if self.node else self.case_name
        return f"{name} [{self.stage}]" if self.stage else name

    @property
    def case_key(self) -> tuple[str, str, str]:
        """What runs share whose times can be compared: the kind, the parameters, the toolchain."""
        return self.kind, self.parameters, self.toolchain


class SummaryRow(Struct, frozen=True):
    """A metric over the runs of a case in one stage whose answer was right (verdict pass or
    performance)."""

    case: str
    case_name: str
    stage: str
    metric: str
    unit: str
    better: str
    n: int
    #: figures of other runs
    excluded: int
    least: float | None
    median: float | None
    largest: float | None
    #: (largest - least) / median
    spread: float | None


# ---- tables --------------------------------------------------------------------------------------
#
# The tables, once for both databases, and the states in which people count runs.
#
#     for statement in statements(): database.execute(statement)
#     writer.insert(METRICS, [Metric(run=1, metric=2, value=3.5)])
#
# A table is declared by the type of its rows. Lists show other rows, those of ``rows``; of a run
# these declare the columns, too. SQLite takes the statements as they are. PostgreSQL has no
# ``WITHOUT ROWID`` and no ``BLOB``, gives ids from a sequence, and must be told to compare text as
# bytes: see ``plugins.postgresql``.


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


TRIALS = Table("trials", StoredTrial, unique="path, machine")


class StoredTest(Struct):
    """A test, shared by all trials. Each of its tags stands between line ends."""

    id: Id
    name: str
    app: str
    tags: str


TESTS = Table("tests", StoredTest, unique="name, app, tags")


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
    StoredCase,
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


BUILDS = Table("builds", StoredBuild, primary_key="trial, key")


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
    """A node of a machine, with its place in the order of the description."""

    machine: str
    place: int
    name: str
    chain: int


NODES = Table("nodes", StoredNode, primary_key="machine, place", unique="machine, name")


class NodeSpan(Struct):
    """Places of nodes that a run was on, both ends included."""

    trial: int
    run: int
    first: int
    last: int


RUN_NODES = Table("run_nodes", NodeSpan, primary_key="trial, run, first")


# ---- events and figures -----------------------------------------------------------------------


class StoredEvent(Struct, gc=False):
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


EVENTS = Table("events", StoredEvent, primary_key="run, time, seq", renamed={"of": "run"})
TRIAL_EVENTS = Table(
    "trial_events", StoredEvent, primary_key="trial, time, seq", renamed={"of": "trial"}
)


class MetricName(Struct):
    """The name of a metric with its unit and direction, shared by all trials."""

    id: Id
    name: str
    unit: str
    better: str


METRIC_NAMES = Table("metric_names", MetricName, unique="name, unit, better")


class Metric(Struct, gc=False):
    """A figure of merit of a run. ``metric`` is the row of its name."""

    run: int
    metric: int
    value: float


METRICS = Table("metrics", Metric, primary_key="run, metric")


class StoredGivenFigure(Struct):
    """What somebody else said of a figure: nothing was measured here. See ``GivenFigure``."""

    run: int
    metric: int
    n: int
    sd: float | None
    least: float | None
    greatest: float | None


GIVEN_FIGURES = Table("given_figures", StoredGivenFigure, primary_key="run, metric")

TABLES = (
    *(TRIALS, TESTS, CASES, RUNS, NODES, RUN_NODES, EVENTS, TRIAL_EVENTS),
    *(METRIC_NAMES, METRICS, GIVEN_FIGURES, BUILDS, GAPS),
)


def plugin_tables() -> list[Table]:
    """Return the tables of plug-ins."""
    return [load(about.table) for about in provided("seatrial_tables")]


def statements() -> Iterator[str]:
    """Yield the statements that make the tables."""
    for table in (*TABLES, *plugin_tables()):
        yield from table.statements()
