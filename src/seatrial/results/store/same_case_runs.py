"""The other runs of a case, in the same trial and in others on the same machine.

siblings(store, run)                 # the newest first, the run itself among them
earlier(store, found, run)           # the figures of each metric up to it, by time
"""

from collections.abc import Sequence

from msgspec import Struct

from seatrial.results.store.filters import listed
from seatrial.results.store.queries import MEASURED, NEWEST, run_rows
from seatrial.results.store.schema import Store
from seatrial.results.store.tables import RunRow

MAX_SIBLINGS = 200
MAX_TRIALS = 500  # the latest of those that have the case


class Siblings(Struct, frozen=True, kw_only=True):
    """The ``runs`` of a case that are nearest in time to a run, the newest first, of ``found`` in
    all. ``newer`` and ``older`` are its neighbours."""

    runs: list[RunRow]
    found: int
    newer: RunRow | None
    older: RunRow | None


def siblings(store: Store, run: RunRow) -> Siblings:
    """Return the runs of a run's case on its machine. The siblings of a rehearsed run are of its
    own trial."""
    with store.reading():
        cases = _cases(store, run)
        found = f"SELECT count(*) FROM runs WHERE case_row IN ({listed(cases)})"
        ((number,),) = store.rows(found)
        newer = _side(store, run, cases, ">", "ASC")[::-1]
        older = _side(store, run, cases, "<", "DESC")
        newer = newer[-max(MAX_SIBLINGS // 2, MAX_SIBLINGS - len(older)) :]
        older = older[: MAX_SIBLINGS - len(newer)]
        runs = _siblings(store, [*newer, run.row, *older])
    return Siblings(
        runs=runs,
        found=number,
        newer=runs[len(newer) - 1] if newer else None,
        older=runs[len(newer) + 1] if older else None,
    )


def _cases(store: Store, run: RunRow) -> list[int]:
    """Return the rows of the case in all trials that count with this one."""
    if run.rehearsed:
        found = store.rows("SELECT case_row FROM runs WHERE id = ?", (run.row,))
    else:
        found = store.rows(
            "SELECT cases.id FROM cases JOIN trials ON trials.id = cases.trial"
            " WHERE cases.case_id = ? AND trials.machine = ? AND NOT trials.rehearsed"
            " ORDER BY cases.id DESC",
            (run.case, run.machine),
        )
    return [row for (row,) in found[:MAX_TRIALS]]


def _side(store: Store, run: RunRow, cases: Sequence[int], sign: str, direction: str) -> list[int]:
    """Return the rows of the runs before or after a run, the nearest first. The nearest of each
    trial are found first, then the nearest of all."""
    nearest: list[tuple[int, int]] = []
    for case in cases:
        nearest += store.rows(
            f"SELECT runs.created, runs.id FROM runs WHERE runs.case_row = {case:d}"
            f" AND runs.created {sign}= {run.created:d}"
            f" AND (runs.created {sign} {run.created:d} OR runs.id {sign} {run.row:d})"
            f" ORDER BY runs.created {direction}, runs.id {direction} LIMIT {MAX_SIBLINGS}"
        )
    nearest.sort(reverse=direction == "DESC")
    return [row for _, row in nearest[:MAX_SIBLINGS]]


def _siblings(store: Store, rows: Sequence[int]) -> list[RunRow]:
    where = f"WHERE runs.id IN ({listed(rows)})"
    by_row = {one.row: one for one in run_rows(store, where, (), NEWEST)}
    return [by_row[row] for row in rows]


Kind = tuple[str, str]  # a metric's name and unit


def earlier(
    store: Store, found: Sequence[RunRow], run: RunRow
) -> dict[Kind, list[tuple[RunRow, float]]]:
    """Return the figures of runs whose answer was right, up to the run itself, the oldest first, by
    metric. Those of the run itself are there whatever its verdict."""
    before = {
        one.row: one
        for one in found
        if one.row == run.row or (one.created <= run.created and one.code in MEASURED)
    }
    if not before:
        return {}
    sql = (
        "SELECT run, name, unit, value FROM metrics JOIN metric_names ON id = metric"
        f" WHERE run IN ({listed(before)})"
    )
    result: dict[Kind, list[tuple[RunRow, float]]] = {}
    for row, name, unit, value in store.rows(sql):
        result.setdefault((name, unit), []).append((before[row], value))
    for figures in result.values():
        figures.sort(key=lambda one: (one[0].created, one[0].row))
    return result
