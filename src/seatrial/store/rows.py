"""The rows that queries return, and the filters that they take. All are immutable."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Struct

from seatrial.journal import codes
from seatrial.journal.trial_life import TrialState
from seatrial.store.columns import Column, columns_of

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
"""The times of a run, in the order in which it comes to them: see ``journal.run_life.RunLife``."""


GIVEN = TrialState.GIVEN.value


class Filters(Struct, frozen=True, kw_only=True):
    """Filters of runs. An empty filter chooses all. Runs were created from ``since`` to before
    ``until`` (ns). ``limit`` 0 means no limit.

    ``test``, ``machine`` and ``toolchain`` may be patterns such as ``io_*``; a ``test`` without a
    wildcard may be any part of the name. ``tests`` are whole names, None is any. ``states`` are of
    ``tables.STATES``: waiting (queued, or being built), running, passed, failed, again,
    known. ``cause`` may be a pattern, or any part of a cause, in any case of letters. ``failed``:
    over, not passed, not run again and not recalled. Runs of rehearsals are left out unless their
    ``trial`` is named or ``rehearsed`` is true.
    """

    trial: str = ""
    test: str = ""
    tests: Collection[str] | None = None
    tag: str = ""
    verdicts: Sequence[str] = ()
    states: Sequence[str] = ()
    failed: bool = False
    since: int = 0
    until: int = 0
    machine: str = ""
    toolchain: str = ""
    cause: str = ""
    limit: int = 0
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
    """One trial and how far it is. ``runs`` is the number of runs asked for; of these so many
    passed, failed, are running, or wait (queued, or not created yet), and so many failures are
    ``known``. ``elapsed`` in seconds, until now while it runs. ``plan``, ``component`` and
    ``phase`` are "" where it has none. Nothing of a ``rehearsed`` one was measured."""

    row: int
    tag: str
    path: str
    machine: str
    created: Time
    started: OptionalTime
    last: OptionalTime
    state: str
    elapsed: Annotated[float | None, Column(kind="seconds")]
    cases: int
    runs: int
    passed: int
    failed: int
    running: int
    waiting: int
    damaged: int
    plan: str = ""
    component: str = ""
    phase: str = ""
    rehearsed: bool = False
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


class Measured(NamedTuple):
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
    """How a run that is over went. ``elapsed`` and ``walltime`` in seconds, ``script_started`` in
    ns; ``parameters`` as JSON; ``node`` is the one that its case is pinned to, ``target`` the
    metadata target that it was placed on."""

    row: RowOfRun
    run_id: str
    trial: TrialTag
    machine: MachineName
    test: TestName
    case_name: CaseLabel
    parameters: Annotated[str, Column(source="cases.parameters")]
    toolchain: Toolchain
    node: Annotated[str, Column(source="cases.node")]
    walltime: Annotated[float | None, Column(source="cases.walltime")]
    code: int
    why: str
    again: bool
    script_started: int | None
    elapsed: float | None
    nodes: str
    stage: str = ""
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
    performance). ``excluded`` counts the figures of other runs; ``spread`` is (largest - least) /
    median."""

    case: str
    case_name: str
    stage: str
    metric: str
    unit: str
    better: str
    n: int
    excluded: int
    least: float | None
    median: float | None
    largest: float | None
    spread: float | None
