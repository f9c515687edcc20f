"""Series over many trials: the figures of a metric, and how runs went.

measured(store, "triad", Filters(machine="frost"))      # figures by time, of all cases
outcomes(store, Filters(trial="stability"))             # every run that is over
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from seatrial.journal import codes
from seatrial.store.queries import MEASURED, RUN_TABLES, UNFINISHED, conditions, tables_for
from seatrial.store.rows import CaseName, Filters, Measured, Outcome
from seatrial.store.schema import Store


def metric_names(store: Store) -> list[str]:
    """The names of all metrics that some run has."""
    return [name for (name,) in store.rows("SELECT DISTINCT name FROM metric_names ORDER BY name")]


def case_names(store: Store) -> dict[int, CaseName]:
    """All cases of all trials, by their rows."""
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
    """The figures of a metric of all runs that match and whose answer was right, by time. A run
    that has no metric ``elapsed`` of its own has its script's time as that, in seconds."""
    named = store.rows("SELECT id, unit, better FROM metric_names WHERE name = ?", (metric,))
    kinds: dict[int, tuple[str, str]] = {row: (unit, better) for row, unit, better in named}
    kinds[0] = ("s", "lower")  # of elapsed times; the rows of metrics begin at 1
    marks = ", ".join(map(str, kinds))
    where, values = conditions(store, filters, f"runs.code IN ({_listed(MEASURED)})")
    tables = tables_for(filters)
    columns = "runs.trial, runs.case_row, runs.run_id, coalesce(runs.started, runs.began)"
    found = store.rows(
        f"SELECT {columns}, value, metric FROM {tables} JOIN metrics ON metrics.run = runs.id"
        f" AND metrics.metric IN ({marks}) {where} ORDER BY 4, runs.id",
        values,
    )
    if metric == "elapsed":
        own = f"SELECT 1 FROM metrics WHERE run = runs.id AND metric IN ({marks})"
        found += store.rows(
            f"SELECT {columns}, runs.elapsed, 0 FROM {tables} {where}"
            f" AND runs.elapsed IS NOT NULL AND NOT EXISTS ({own}) ORDER BY 4, runs.id",
            values,
        )
        found.sort(key=lambda row: row[3])
    return [Measured._make((*row[:5], *kinds[row[5]])) for row in found]


def not_measured(store: Store, filters: Filters) -> dict[int, dict[str, int]]:
    """How many runs of each case (its row) are over and gave no right answer, by their verdict."""
    neither = f"runs.code NOT IN ({_listed((*MEASURED, *UNFINISHED))})"
    where, values = conditions(store, filters, neither)
    columns = "runs.case_row, runs.code, count(*)"
    sql = f"SELECT {columns} FROM {tables_for(filters)} {where} GROUP BY 1, 2"
    counts: dict[int, dict[str, int]] = {}
    for case, code, number in store.rows(sql, values):
        counts.setdefault(case, {})[codes.code_of(code).name] = number
    return counts


def outcomes(store: Store, filters: Filters) -> list[Outcome]:
    """The runs that match and are over, oldest first."""
    where, values = conditions(store, filters, f"runs.code NOT IN ({_listed(UNFINISHED)})")
    columns = (
        "runs.run_id, trials.tag, trials.machine, tests.name, cases.name, cases.parameters,"
        " cases.toolchain, cases.node, cases.walltime, runs.code, runs.why, runs.again,"
        " runs.started, runs.elapsed, runs.nodes"
    )
    sql = f"SELECT {columns} FROM {RUN_TABLES} {where} ORDER BY runs.began, runs.id"
    found: list[list[Any]] = [list(row) for row in store.rows(sql, values)]
    for row in found:
        row[11] = bool(row[11])
    return [Outcome(*row) for row in found]


def _listed(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers))
