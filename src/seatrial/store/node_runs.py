"""Which runs were on which nodes: rows for those who keep them in memory and ask for the news.

runs_after(store, trial.row, last, unfinished)     # the new ones, and those not over then
figures_of(store, metrics, trial.row)              # (run, metric, value)

A node set is text in the store, so no query can count by node: see ``web.nodes.run_index``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from seatrial.journal import codes
from seatrial.store.queries import MEASURED, run_rows
from seatrial.store.rows import RunRow
from seatrial.store.schema import Store, chunks, marks
from seatrial.suite.model import node_suffix


class NodeRuns(NamedTuple):
    """Runs as columns, as nodes see them. Times in ns, -1 where there is none; ``elapsed`` in
    seconds."""

    row: list[int]
    case: list[int]
    code: list[int]
    created: list[int]
    script_started: list[int]
    judged: list[int]
    elapsed: list[float | None]
    nodes: list[str]


class NodeCase(NamedTuple):
    """A case by its row: runs of one ``kind`` (the name without its node) should go alike."""

    row: int
    test: str
    kind: str
    node: str


_COLUMNS = (
    "id, case_row, code, created, coalesce(script_started, -1), coalesce(judged, -1),"
    " elapsed, nodes"
)


def runs_after(store: Store, trial: int, last: int, rows: Sequence[int]) -> NodeRuns:
    """The runs of a trial whose row is beyond ``last``, and those of these rows."""
    sql = f"SELECT {_COLUMNS} FROM runs WHERE trial = ? AND id > ?"
    found = store.columns(sql, (trial, last))
    for some in chunks(rows):
        more = store.columns(f"SELECT {_COLUMNS} FROM runs WHERE id IN ({marks(len(some))})", some)
        for column, values in zip(found, more, strict=True):
            column.extend(values)
    return NodeRuns(*found)


def run_ids_of(store: Store, rows: Sequence[int]) -> dict[int, str]:
    """The ids of the runs in a few rows, by which they are known again."""
    if not rows:
        return {}
    sql = f"SELECT id, run_id FROM runs WHERE id IN ({marks(len(rows))})"
    return dict(store.rows(sql, rows))


def codes_of(store: Store, trial: int) -> dict[int, int]:
    """How many runs of a trial have each verdict. Passes, which are most, are what the others
    leave: to sort a hundred thousand runs by their code takes longer than all else."""
    passed = codes.PASS.number
    sql = f"SELECT code, count(*) FROM runs WHERE trial = ? AND code <> {passed} GROUP BY code"
    with store.reading():
        found: dict[int, int] = dict(store.rows(sql, (trial,)))
        ((every,),) = store.rows("SELECT count(*) FROM runs WHERE trial = ?", (trial,))
    if rest := every - sum(found.values()):
        found[passed] = rest
    return found


def cases_of(store: Store, trial: int) -> list[NodeCase]:
    """The cases of a trial."""
    sql = (
        "SELECT cases.id, tests.name, cases.name, node FROM cases"
        " JOIN tests ON tests.id = cases.test WHERE cases.trial = ?"
    )
    return [
        NodeCase(row, test, name.removesuffix(node_suffix(node)), node)
        for row, test, name, node in store.rows(sql, (trial,))
    ]


class MetricKind(NamedTuple):
    """A metric's name with its unit and direction."""

    row: int
    unit: str
    better: str


def metric_kinds(store: Store, name: str) -> list[MetricKind]:
    """The units and directions that a metric of that name has."""
    sql = "SELECT id, unit, better FROM metric_names WHERE name = ? ORDER BY id"
    return [MetricKind(*row) for row in store.rows(sql, (name,))]


def figures_of(store: Store, metrics: Sequence[int], trial: int) -> list[tuple[int, int, float]]:
    """(run, metric, value) of the runs of a trial whose answer was right."""
    if not metrics:
        return []
    sql = (
        "SELECT metrics.run, metrics.metric, metrics.value FROM runs"
        " JOIN metrics ON metrics.run = runs.id"
        f" AND metrics.metric IN ({marks(len(metrics))})"
        f" WHERE runs.trial = ? AND runs.code IN ({', '.join(map(str, MEASURED))})"
    )
    return [(run, metric, value) for run, metric, value in store.rows(sql, (*metrics, trial))]


def runs_of(store: Store, rows: Sequence[int]) -> list[RunRow]:
    """The runs of these rows, the newest first."""
    if not rows:
        return []
    where = f"WHERE runs.id IN ({', '.join(map(str, rows))})"
    return run_rows(store, where, (), "ORDER BY runs.created DESC, runs.id DESC")


def widest_runs(store: Store, limit: int) -> list[RunRow]:
    """The latest run with a right answer of each measured case with two tasks or more that is
    pinned to no node: of so many cases, those that ran last."""
    sql = (
        "SELECT (SELECT runs.id FROM runs WHERE runs.case_row = cases.id"
        f" AND runs.code IN ({', '.join(map(str, MEASURED))}) ORDER BY runs.id DESC LIMIT 1) AS run"
        " FROM cases JOIN trials ON trials.id = cases.trial"
        " WHERE cases.tasks >= 2 AND cases.node = '' AND NOT trials.rehearsed"
    )
    found = sorted((run for (run,) in store.rows(sql) if run is not None), reverse=True)
    return runs_of(store, found[:limit])
