"""Series over many trials: the figures of a metric, and the outcomes of runs.

measured(store, "triad", Filters(machine="frost"))      # figures by time, of all cases
outcomes(store, Filters(trial="stability"))             # the runs that are over
"""

from __future__ import annotations

from itertools import repeat
from operator import attrgetter
from typing import Any

from seatrial.journal import codes
from seatrial.store.queries import MEASURED, NO_OUTCOME, OF_RUNS
from seatrial.store.rows import CaseName, Filters, Measured, RunOutcome
from seatrial.store.schema import Store
from seatrial.store.sql_filters import conditions, listed


def metric_names(store: Store) -> list[str]:
    """Return the names of all metrics that some run has."""
    return [name for (name,) in store.rows("SELECT DISTINCT name FROM metric_names ORDER BY name")]


def case_names(store: Store) -> dict[int, CaseName]:
    """Return all cases of all trials, by their rows."""
    sql = (
        "SELECT cases.id, trials.tag, machine, rehearsed, case_id, cases.name, tests.name,"
        " toolchain, node FROM cases JOIN trials ON trials.id = cases.trial"
        " JOIN tests ON tests.id = cases.test"
    )
    return {
        row: CaseName(tag, machine, bool(rehearsed), *rest)
        for row, tag, machine, rehearsed, *rest in store.rows(sql)
    }


def measured(store: Store, metric: str, filters: Filters) -> list[Measured]:
    """Return the figures of a metric of all matching runs whose answer was right, by time. The
    metric ``elapsed`` of a run that has no such figure of its own is its script's time in
    seconds."""
    found: list[Measured] = []

    def add(value: str, unit: str, better: str, tables: str, *more: str) -> None:
        right = f"runs.code IN ({listed(MEASURED)})"
        where, values = conditions(store, filters, *more, right, tests="runs.test")
        asked = (
            "runs.trial, runs.case_row, runs.run_id, coalesce(runs.script_started, runs.created)"
        )
        columns = store.columns(f"SELECT {asked}, {value} FROM {tables} {where}", values)
        found.extend(map(Measured._make, zip(*columns, repeat(unit), repeat(better))))

    with store.reading():
        kinds = "SELECT id, unit, better FROM metric_names WHERE name = ?"
        named = store.rows(kinds, (metric,))
        for row, unit, better in named:
            of = ("metrics.run = runs.id", f"metrics.metric = {row:d}")
            add("metrics.value", unit, better, "runs CROSS JOIN metrics", *of)
        if metric == "elapsed":
            ids = listed(row for row, *_ in named) or "0"
            own = f"SELECT 1 FROM metrics WHERE run = runs.id AND metric IN ({ids})"
            less = ("runs.elapsed IS NOT NULL", f"NOT EXISTS ({own})")
            add("runs.elapsed", "s", "lower", "runs", *less)
    found.sort(key=attrgetter("time", "run_id"))
    return found


def not_measured(store: Store, filters: Filters) -> dict[int, dict[str, int]]:
    """Return how many runs of each case (its row) are over without a right answer, by verdict.
    Recalled runs are left out."""
    neither = f"runs.code NOT IN ({listed((*MEASURED, *NO_OUTCOME))})"
    where, values = conditions(store, filters, neither)
    columns = "runs.case_row, runs.code, count(*)"
    sql = f"SELECT {columns} FROM runs {where} GROUP BY 1, 2"
    counts: dict[int, dict[str, int]] = {}
    for case, code, number in store.rows(sql, values):
        counts.setdefault(case, {})[codes.code_of(code).name] = number
    return counts


def outcomes(store: Store, filters: Filters, *more: str) -> list[RunOutcome]:
    """Return the matching runs that are over and for which ``more`` conditions hold, the oldest
    first. Recalled runs are left out."""
    where, values = conditions(store, filters, *more, f"runs.code NOT IN ({listed(NO_OUTCOME)})")
    columns = (
        "runs.run_id, trials.tag, trials.machine, tests.name, cases.name, cases.parameters,"
        " cases.toolchain, cases.node, cases.walltime, runs.code, runs.why, runs.again,"
        " runs.script_started, runs.elapsed, runs.nodes"
    )
    sql = f"SELECT {columns} FROM runs{OF_RUNS} {where} ORDER BY runs.created, runs.id"
    found: list[list[Any]] = [list(row) for row in store.rows(sql, values)]
    for row in found:
        row[11] = bool(row[11])
    return [RunOutcome(*row) for row in found]
