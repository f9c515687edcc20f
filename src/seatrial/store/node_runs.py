"""The runs of trials and the nodes that they were on, as arrays; what pages of nodes ask.

runs_of_trial(store, trial.row)                    # the runs, and the spans of nodes of each
figures_of(store, metrics, trial.row)              # the figures of those with a right answer
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from seatrial.arrays import Floats, Ints
from seatrial.lazy import np
from seatrial.store.queries import MEASURED, NEWEST, run_rows
from seatrial.store.rows import RunRow
from seatrial.store.schema import Store
from seatrial.store.sql_filters import listed
from seatrial.suite.case_names import node_suffix
from seatrial.units import SECOND_NS

NO_TIME = -1
STAGES = ("", "alone", "full")


class TrialRuns(NamedTuple):
    """The runs of trials as columns. ``case`` is the row of the case, ``stage`` a place in STAGES;
    ``time`` is that of the start (or of the creation), ``elapsed`` may be NO_TIME; all times in ns.
    Spans of nodes: the row of the ``run``, the ``first`` and the ``last`` place."""

    row: Ints
    case: Ints
    stage: Ints
    code: Ints
    created: Ints
    time: Ints
    elapsed: Ints
    run: Ints
    first: Ints
    last: Ints


def runs_of_trial(store: Store, trial: int) -> TrialRuns:
    """Return the runs of a trial. The index by tests holds all that is asked for."""
    start = "coalesce(script_started, created)"
    took = f"coalesce(CAST(round(elapsed * {SECOND_NS}) AS BIGINT), {NO_TIME})"
    stage = "CASE stage WHEN 'alone' THEN 1 WHEN 'full' THEN 2 ELSE 0 END"
    with store.reading():
        of_runs = store.numbers(
            f"SELECT id, case_row, {stage}, code, created, {start}, {took} FROM runs"
            " WHERE test IN (SELECT test FROM cases WHERE cases.trial = ?) AND trial = ?",
            (trial, trial),
        )
        spans = "SELECT run, first, last FROM run_nodes WHERE trial = ?"
        of_nodes = store.numbers(spans, (trial,))
    return TrialRuns(*of_runs, *of_nodes)


def versions_of(store: Store, machine: str) -> dict[int, tuple[int, ...]]:
    """Return for each trial on a machine (its row) numbers that change when there is news, and when
    a rebuilt store has its runs in other rows."""
    run = "coalesce((SELECT runs.id FROM runs WHERE trial = trials.id ORDER BY {} LIMIT 1), 0)"
    first = run.format("runs.created, runs.id")
    last = run.format("runs.created DESC, runs.id DESC")
    columns = f"id, created, ingested, fingerprint, {first}, {last}"
    rows = store.rows(f"SELECT {columns} FROM trials WHERE machine = ?", (machine,))
    return {trial: (trial, *numbers) for trial, *numbers in rows}


def names_of(store: Store, machine: str) -> list[str]:
    """Return the names of a machine's nodes in the order of their places."""
    sql = "SELECT name FROM nodes WHERE machine = ? ORDER BY place"
    return [name for (name,) in store.rows(sql, (machine,))]


class NodeCase(NamedTuple):
    """A case. Runs of one ``kind`` (its name without its node) should go alike."""

    row: int
    test: str
    kind: str


def cases_of(store: Store, trial: int) -> list[NodeCase]:
    """Return the cases of a trial."""
    sql = (
        "SELECT cases.id, tests.name, cases.name, node FROM cases"
        " JOIN tests ON tests.id = cases.test WHERE cases.trial = ?"
    )
    return [
        NodeCase(row, test, name.removesuffix(node_suffix(node)))
        for row, test, name, node in store.rows(sql, (trial,))
    ]


def metrics_by_test(store: Store, trials: Sequence[int]) -> dict[str, list[str]]:
    """Return the metrics of each test: those of a run with a right answer, in the latest of the
    trials that has one."""
    if not trials:
        return {}
    sql = (
        "SELECT tests.name, metric_names.name FROM tests CROSS JOIN metrics CROSS JOIN metric_names"
        " WHERE metrics.run = (SELECT runs.id FROM runs WHERE runs.test = tests.id"
        f" AND runs.trial IN ({listed(trials)}) AND runs.code IN ({listed(MEASURED)})"
        " ORDER BY runs.trial DESC LIMIT 1) AND metric_names.id = metrics.metric"
        " ORDER BY tests.name, metric_names.name"
    )
    found: dict[str, list[str]] = {}
    for test, metric in store.rows(sql):
        found.setdefault(test, []).append(metric)
    return found


def metric_kinds(store: Store, name: str) -> dict[int, tuple[str, str]]:
    """Return the units and directions that a metric of that name has, by their rows."""
    sql = "SELECT id, unit, better FROM metric_names WHERE name = ?"
    return {row: (unit, better) for row, unit, better in store.rows(sql, (name,))}


def figures_of(store: Store, kinds: Iterable[int], trial: int) -> tuple[Ints, Ints, Floats]:
    """Return the figures of these kinds of a trial's runs with a right answer: the rows of the
    runs, those of the kinds, the values."""
    runs, rows, values = store.columns(
        "SELECT metrics.run, metrics.metric, metrics.value FROM runs"
        " JOIN metrics ON metrics.run = runs.id"
        f" AND metrics.metric IN ({listed(kinds)})"
        f" WHERE runs.trial = ? AND runs.code IN ({listed(MEASURED)})",
        (trial,),
    )
    return np.array(runs, dtype=np.int64), np.array(rows, dtype=np.int64), np.array(values, float)


def runs_of(store: Store, rows: Sequence[int]) -> list[RunRow]:
    """Return the runs of these rows, the newest first."""
    return run_rows(store, f"WHERE runs.id IN ({listed(rows)})", (), NEWEST) if rows else []


def widest_runs(store: Store, limit: int) -> list[RunRow]:
    """Return the latest run with a right answer of each measured case with two tasks or more that
    is pinned to no node: of so many cases, those that ran last."""
    sql = (
        "SELECT (SELECT runs.id FROM runs WHERE runs.case_row = cases.id"
        f" AND runs.code IN ({listed(MEASURED)}) ORDER BY runs.id DESC LIMIT 1) AS run"
        " FROM cases JOIN trials ON trials.id = cases.trial"
        " WHERE cases.tasks >= 2 AND cases.node = '' AND NOT trials.rehearsed"
    )
    found = sorted((run for (run,) in store.rows(sql) if run is not None), reverse=True)
    return runs_of(store, found[:limit])
