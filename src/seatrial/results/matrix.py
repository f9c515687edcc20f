"""A matrix of tests by toolchains, or by another attribute: passed, failed, not built, a figure.

    matrix = result_matrix([gather(store, parse_side("ft"))], MatrixQuery(by="toolchain"))
    matrix.rows[0].cells[0].state            # "build failed"

A cell holds the runs of a test with one value of what the columns are by. Its figure is the median
of its runs with a right answer, if their cases do not differ in anything else.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Literal

from msgspec import UNSET, Struct

from seatrial.errors import TrialError, UsageError
from seatrial.execute.trial_paths import TrialPaths
from seatrial.grouping import grouped
from seatrial.judge.promises import Beside, told
from seatrial.model import codes
from seatrial.model.codes import failure_words
from seatrial.model.identifiers import case_name, is_like
from seatrial.results.case_figures import (
    CORES,
    ELAPSED,
    NUMBERS,
    Apart,
    CaseRuns,
    Kind,
    bound,
    distinguishing,
    excluded_of,
    figures_of,
    parameters_of,
    require_metric,
    shown,
)
from seatrial.results.references import promised_of
from seatrial.results.selection import Side, cases_of
from seatrial.results.store import queries
from seatrial.results.store.schema import Store
from seatrial.results.store.tables import Filters, TrialRow

State = Literal["", "passed", "known", "failed", "build failed", "not run", "left out"]
STATES: tuple[str, ...] = ("passed", "known", "failed", "build failed", "not run", "left out")
ATTRIBUTES = ("toolchain", "machine", "trial", "stage", "node", *NUMBERS, CORES)
MAX_RUNS = 2000  # of a trial that failed, whose reasons are read
MAX_LENGTH = 200  # of a reason

Reasons = dict[tuple[str, str], str]
"""Reasons by (test, toolchain)."""


class MatrixReasons(Struct, frozen=True):
    """Why tests were ``left_out``, and why their latest run ``failed``."""

    left_out: Reasons = {}
    failed: Reasons = {}


class _LeftOutCases(Struct):
    """The member of a trial's record."""

    left_out: list[tuple[str, str]] = []


NO_REASONS = MatrixReasons()


class MatrixQuery(Struct, frozen=True, kw_only=True):
    """What is asked: the columns are the values of ``by``, a parameter or an attribute; ``metric``:
    the figure, "" for the first that a test has; ``each_case``: a row for each case."""

    by: str = "toolchain"
    metric: str = ""
    each_case: bool = False


class MatrixCell(Struct, frozen=True, kw_only=True, rename={"reason": "why"}):
    """The runs of a row in a column. ``state`` is the worst of them, "" where there is no case.
    ``passed`` of ``runs``; ``verdicts`` are those of the others; ``cases`` without a run are
    ``not_run``. ``figure``: the median of ``n`` values."""

    state: State = ""
    runs: int = 0
    passed: int = 0
    verdicts: dict[str, int] = {}
    cases: int = 0
    not_run: int = 0
    figure: float | None = None
    n: int = 0
    reason: str = ""
    #: what was promised of the figure
    promised: Beside = UNSET

    @property
    def shown(self) -> bool:
        """Whether its figure is shown."""
        return self.state == "passed" and self.figure is not None


class MatrixRow(Struct, frozen=True, kw_only=True):
    """A test, or one of its cases, with a cell for each column; what its figures are."""

    test: str
    name: str
    cells: list[MatrixCell]
    metric: str = ""
    unit: str = ""
    better: str = ""


class ResultMatrix(Struct, frozen=True, kw_only=True):
    """``counts``: the cells of each column in each state. ``without``: tests that do not have what
    the columns are by; ``left_out`` are the cases that do not, of other tests, too."""

    by: str
    columns: list[str]
    rows: list[MatrixRow]
    counts: list[dict[str, int]]
    without: list[str] = []
    left_out: int = 0

    @property
    def promised(self) -> list[str]:
        """What was promised of the figures that are shown, in words."""
        return told(cell.promised for row in self.rows for cell in row.cells if cell.shown)

    @property
    def total(self) -> dict[str, int]:
        """The cells in each state."""
        found: Counter[str] = Counter()
        for each in self.counts:
            found.update(each)
        return {state: found[state] for state in STATES if found[state]}


def result_matrix(
    sides: Sequence[Side], query: MatrixQuery, reasons: MatrixReasons = NO_REASONS
) -> ResultMatrix:
    """Return the matrix. Raises UsageError where no case has what the columns are by, or no run
    has the metric."""
    members = cases_of(sides)
    having = _having(members, query)
    columns = list(dict.fromkeys(one.attribute(query.by) for one in having))
    if query.by != "toolchain":
        reasons = NO_REASONS
    columns += sorted({chain for _, chain in reasons.left_out} - {*columns})
    grouped = _grouped(having, query, reasons)
    rows = [_row(key, cases, columns, query, reasons) for key, cases in grouped.items()]
    without = {one.test for one in members} - {one.test for one in having}
    return ResultMatrix(
        by=query.by,
        columns=columns,
        rows=rows,
        counts=[_counts(row.cells[i] for row in rows) for i in range(len(columns))],
        without=sorted(without),
        left_out=len(members) - len(having),
    )


def _having(members: Sequence[CaseRuns], query: MatrixQuery) -> list[CaseRuns]:
    """Return the cases that have what the columns are by. Raises UsageError as result_matrix."""
    having = [one for one in members if one.attribute(query.by)]
    if not having:
        known = ", ".join([*parameters_of(members), *ATTRIBUTES])
        raise UsageError(f"--by {query.by}: no case has it; there are {known}")
    require_metric(query.metric, having)
    return having


def _grouped(
    members: Sequence[CaseRuns], query: MatrixQuery, reasons: MatrixReasons
) -> dict[tuple[str, str], list[CaseRuns]]:
    """Return the cases of each row, by its test and name; none of a test that was left out."""
    apart = distinguishing(members)
    rows = grouped(members, lambda one: (one.test, _row_name(one, apart, query)))
    names = {test for test, _ in rows}
    return rows | {(test, test): [] for test, _ in reasons.left_out if test not in names}


def _counts(cells: Iterable[MatrixCell]) -> dict[str, int]:
    """Return how many cells are in each state."""
    found = Counter[str](cell.state for cell in cells)
    return {state: found[state] for state in STATES if found[state]}


def _row_name(one: CaseRuns, apart: Apart, query: MatrixQuery) -> str:
    if not query.each_case:
        return one.test
    others = {name: value for name, value in shown(one, apart).items() if name != query.by}
    chain = "" if query.by == "toolchain" else one.toolchain
    return case_name(one.test, others, chain, "" if query.by == "node" else one.node)


def _row(
    key: tuple[str, str],
    cases: Sequence[CaseRuns],
    columns: Sequence[str],
    query: MatrixQuery,
    reasons: MatrixReasons,
) -> MatrixRow:
    test, name = key
    by_column: dict[str, list[CaseRuns]] = {column: [] for column in columns}
    for one in cases:
        by_column[one.attribute(query.by)].append(one)
    kind = _kind_of(cases, query.metric)
    cells = [
        _cell(found, kind, query.by, (test, column), reasons) for column, found in by_column.items()
    ]
    metric, unit, better = kind if any(cell.n for cell in cells) else ("", "", "")
    return MatrixRow(test=test, name=name, cells=cells, metric=metric, unit=unit, better=better)


def _kind_of(cases: Iterable[CaseRuns], metric: str) -> Kind:
    """Return the metric of a row: the one that is asked for, else the one with most values; times
    only where they are asked for."""
    counted: Counter[Kind] = Counter()
    for one in cases:
        for kind, values in one.values.items():
            if kind[0] == metric or (not metric and kind != ELAPSED):
                counted[kind] += len(values)
    return counted.most_common(1)[0][0] if counted else ("", "", "")


def _cell(
    cases: Sequence[CaseRuns],
    kind: Kind,
    by: str,
    key: tuple[str, str],
    reasons: MatrixReasons,
) -> MatrixCell:
    if not cases:
        reason = reasons.left_out.get(key, "")
        return MatrixCell(state="left out", reason=reason) if reason else MatrixCell()
    verdicts = excluded_of(cases)
    passed = sum(len(one.runs) for one in cases)
    runs = passed + sum(verdicts.values())
    not_run = sum(not (one.runs or one.excluded) for one in cases)
    values = _values(cases, kind, by)
    figure = median(values) if values else None
    return MatrixCell(
        state=_state(verdicts, passed, not_run),
        runs=runs,
        passed=passed,
        verdicts=verdicts,
        cases=len(cases),
        not_run=not_run,
        figure=figure,
        n=len(values),
        reason=reasons.failed.get(key, "") if verdicts else "",
        promised=promised_of(cases, kind, figure),
    )


def _state(verdicts: Mapping[str, int], passed: int, not_run: int) -> State:
    """Return the state of a cell. Known failures are no failures; a cell that has no other runs, or
    some beside those that passed, is known."""
    failed = set(verdicts) - {codes.KNOWN.name}
    if failed - {codes.BUILD_FAILED.name}:
        return "failed"
    if failed:
        return "build failed"
    if not_run or not (passed or verdicts):
        return "not run"
    return "known" if verdicts else "passed"


def _values(cases: Sequence[CaseRuns], kind: Kind, by: str) -> list[float]:
    """Return the figures of the cases of a cell, none if these differ in anything but what the
    columns are by: they would be no sample. Runs at full machine are left out beside runs alone."""
    alone = [one for one in cases if one.stage == "alone"]
    chosen = [one for one in (alone or cases) if kind in one.values]
    shapes = {
        (
            tuple(sorted(parameters.items())),
            *(one.stage, one.nodes, one.tasks, one.threads),
            "" if by == "toolchain" else one.toolchain,
        )
        for one, parameters in zip(chosen, bound(chosen), strict=True)
    }
    return figures_of(chosen, [kind]) if len(shapes) == 1 else []


# ---- why cells did not pass ---------------------------------------------------------------


def reasons_of(
    store: Store, trials: Iterable[TrialRow], tests: Sequence[str] = ()
) -> MatrixReasons:
    """Return the reasons of trials; of ``tests`` (parts of names, or patterns) alone where some are
    given."""
    left_out: Reasons = {}
    failed: Reasons = {}
    for trial in trials:
        for name, reason in _left_out(trial):
            test, at, toolchain = name.partition("@")
            if at and "{" not in test and (not tests or any(is_like(test, one) for one in tests)):
                left_out[test, toolchain] = reason
        failed |= _failures(store, trial)
    return MatrixReasons(left_out, failed)


def _failures(store: Store, trial: TrialRow) -> Reasons:
    """Return why the latest runs failed; a failure that is not known comes before a known one."""
    reasons: Reasons = {}
    for state in ("known", "failed"):
        filters = Filters(trial=trial.path, states=[state], limit=MAX_RUNS)
        for run in reversed(queries.runs(store, filters)):
            lines = run.why.strip().splitlines() or [run.verdict]
            is_built = run.code != codes.BUILD_FAILED.number
            words = lines[0] if is_built else lines[-1]
            words = failure_words(run.cause, run.cause_line, words) if is_built else words
            reasons[run.test, run.toolchain] = words[:MAX_LENGTH]
    return reasons


def _left_out(trial: TrialRow) -> list[tuple[str, str]]:
    """Return what a trial left out, with the reasons; nothing where its folder is gone."""
    try:
        return TrialPaths(Path(trial.path)).record_as(_LeftOutCases).left_out
    except TrialError:
        return []
