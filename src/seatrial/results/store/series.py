"""Series over many trials: the figures of a metric, and the outcomes of runs.

measured(store, "triad", Filters(machine="frost"))      # figures by time, of all cases
outcomes(store, Filters(trial="stability"))             # the runs that are over
elapsed_points(store, trial.row, ["stream"])            # columns, for plots of any size
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from operator import attrgetter
from typing import Annotated, NamedTuple

from msgspec import Struct

from seatrial.journal.events import GaugeRead
from seatrial.judge.log_rules import node_of
from seatrial.model import codes
from seatrial.model.figures import place_of
from seatrial.results.store.queries import MEASURED, NO_OUTCOME, OF_RUNS, conditions, sql_list
from seatrial.results.store.schema import Store
from seatrial.results.store.tables import (
    CaseName,
    Column,
    Filters,
    Measured,
    MetricName,
    RunOutcome,
    TrialTag,
    read,
    selected,
    typed,
)
from seatrial.units import Direction

DAY_NS = 86_400 * 10**9


class Point(NamedTuple):
    """One figure: when (ns) its run started, and which run that was."""

    time: int
    value: float
    run_id: str
    trial: str


class MetricSeries(Struct, frozen=True):
    """The figures of one metric of one case on one machine in one stage, by time. ``excluded``
    counts runs and figures that were left out, by the reason. ``parts``: the figures that each
    point is the median of, where it is one."""

    metric: str
    machine: str
    case: str
    case_name: str
    test: str
    toolchain: str
    stage: str
    unit: str
    better: Direction
    points: list[Point]
    excluded: dict[str, int]
    parts: list[list[float]] = []

    @property
    def values(self) -> list[float]:
        return [point.value for point in self.points]


def metric_names(store: Store) -> list[str]:
    """Return the names of all metrics that some run has."""
    names = (name for (name,) in store.rows("SELECT DISTINCT name FROM metric_names"))
    return sorted(names, key=place_of)


def case_names(store: Store) -> dict[int, CaseName]:
    """Return all cases of all trials, by their rows."""
    rows = store.rows(
        f"SELECT {selected(CaseName, 'cases')}, cases.id FROM cases"
        " JOIN trials ON trials.id = cases.trial JOIN tests ON tests.id = cases.test"
    )
    return {row[-1]: name for name, row in zip(typed(CaseName, rows), rows, strict=True)}


def measured(store: Store, metric: str, filters: Filters) -> list[Measured]:
    """Return the figures of a metric of all matching runs whose answer was right, by time. The
    metric ``elapsed`` of a run that has no such figure of its own is its script's time in
    seconds."""
    with store.reading():
        query = "FROM metric_names WHERE name = ?"
        names = read(store, MetricName, "metric_names", query, (metric,))
        found: list[Measured] = []
        for name in names:
            of_metric = ("metrics.run = runs.id", f"metrics.metric = {name.id:d}")
            found += _figures(store, filters, name, "metrics.value", *of_metric)
        if metric == "elapsed":
            ids = sql_list(name.id for name in names) or "0"
            own = f"SELECT 1 FROM metrics WHERE run = runs.id AND metric IN ({ids})"
            without = ("runs.elapsed IS NOT NULL", f"NOT EXISTS ({own})")
            found += _figures(store, filters, _ELAPSED, "runs.elapsed", *without)
    found.sort(key=attrgetter("time", "run_id"))
    return found


_ELAPSED = MetricName(id=0, name="elapsed", unit="s", better="lower")


def _figures(
    store: Store, filters: Filters, name: MetricName, value: str, *more: str
) -> Iterator[Measured]:
    """Return the figures of matching runs whose answer was right and for which ``more`` conditions
    hold. ``value`` is a column of ``runs`` or ``metrics``."""
    right = f"runs.code IN ({sql_list(MEASURED)})"
    where, values = conditions(store, filters, *more, right, tests="runs.test")
    tables = "runs CROSS JOIN metrics" if value.startswith("metrics.") else "runs"
    sql = (
        "SELECT runs.trial, runs.case_row, runs.run_id,"
        f" coalesce(runs.script_started, runs.created), runs.stage, {value} FROM {tables} {where}"
    )
    columns = store.columns(sql, values)
    return map(Measured, *columns, repeat(name.unit), repeat(name.better))


def not_measured(store: Store, filters: Filters) -> dict[tuple[int, str], dict[str, int]]:
    """Return how many runs of each case (its row) in each stage are over without a right answer, by
    verdict. Recalled runs are left out."""
    neither = f"runs.code NOT IN ({sql_list((*MEASURED, *NO_OUTCOME))})"
    where, values = conditions(store, filters, neither)
    columns = "runs.case_row, runs.stage, runs.code, count(*)"
    sql = f"SELECT {columns} FROM runs {where} GROUP BY 1, 2, 3"
    counts: dict[tuple[int, str], dict[str, int]] = {}
    for case, stage, code, number in store.rows(sql, values):
        counts.setdefault((case, stage), {})[codes.code_of(code).name] = number
    return counts


def latest_runs(store: Store, filters: Filters) -> dict[tuple[int, str], int]:
    """Return when (ns) the latest run of each case (its row) in each stage started, of those that
    are over, whatever their verdicts. Runs that people cancelled and those that ran again are left
    out."""
    none = sql_list((*NO_OUTCOME, codes.CANCELLED.number))
    where, values = conditions(store, filters, f"runs.code NOT IN ({none})", "NOT runs.again")
    started = "max(coalesce(runs.script_started, runs.created))"
    sql = f"SELECT runs.case_row, runs.stage, {started} FROM runs {where} GROUP BY 1, 2"
    return {(case, stage): time for case, stage, time in store.rows(sql, values)}


class PassCount(Struct, frozen=True):
    """The runs of a case in a trial that were created on one day: how many counted and passed.
    ``time`` is when the first was created (ns), ``day`` the number of the day (UTC) since 1970."""

    case: Annotated[int, Column(source="runs.case_row")]
    trial: TrialTag
    day: Annotated[int, Column(source=f"runs.created / {DAY_NS:d}")]
    time: Annotated[int, Column(source="min(runs.created)")]
    counted: Annotated[int, Column(source="count(*)")]
    passed: Annotated[
        int, Column(source=f"sum(CASE WHEN runs.code = {codes.PASS.number:d} THEN 1 ELSE 0 END)")
    ]


def pass_counts(store: Store, filters: Filters, stage: str = "") -> list[PassCount]:
    """Return the counts of matching runs by case, trial and day, by time; of a ``stage`` if one is
    given. A rate of passed runs counts what ``model.codes`` says."""
    wanted = [
        f"runs.code NOT IN ({sql_list((*NO_OUTCOME, *codes.UNCOUNTED))})",
        f"(NOT runs.again OR runs.code IN ({sql_list(codes.OWN_FAULTS)}))",
    ]
    where, values = conditions(store, filters, *wanted, *(["runs.stage = ?"] if stage else []))
    sql = f"FROM runs{OF_RUNS} {where} GROUP BY 1, 2, 3 ORDER BY 4, 1"
    stages = [stage] if stage else []
    return read(store, PassCount, "runs", sql, (*stages, *values))


def outcomes(store: Store, filters: Filters, *more: str) -> list[RunOutcome]:
    """Return the matching runs that are over and for which ``more`` conditions hold, the oldest
    first. Recalled runs are left out."""
    where, values = conditions(store, filters, *more, f"runs.code NOT IN ({sql_list(NO_OUTCOME)})")
    sql = f"FROM runs{OF_RUNS} {where} ORDER BY runs.created, runs.id"
    return read(store, RunOutcome, "runs", sql, values)


def gauge_readings(store: Store, trials: Iterable[str]) -> dict[str, list[tuple[int, float]]]:
    """Return what gauges read in trials, given by their tags: (time in ns, value) by gauge, the
    oldest first. Failed readings are left out."""
    wanted = set(trials)
    sql = (
        "SELECT trials.tag, trial_events.detail, trial_events.time, trial_events.value"
        " FROM trial_events JOIN trials ON trials.id = trial_events.trial"
        " WHERE trial_events.number = ? ORDER BY trial_events.time"
    )
    found: dict[str, list[tuple[int, float]]] = {}
    for tag, gauge, time, value in store.rows(sql, (GaugeRead.number,)):
        if tag in wanted and isinstance(value, int | float):
            found.setdefault(gauge, []).append((time, float(value)))
    return found


def figures_by_run(store: Store, names: Iterable[str]) -> dict[str, dict[int, float]]:
    """Return the figures of some names: by name, then by the row of the run."""
    sql = (
        "SELECT metrics.run, metrics.value FROM metrics JOIN metric_names"
        " ON metric_names.id = metrics.metric WHERE metric_names.name = ?"
    )
    return {name: dict(store.rows(sql, (name,))) for name in names}


def failed_nodes(store: Store) -> dict[int, set[str]]:
    """Return the nodes on which a run found something, by the row of the run: of runs in which one
    job speaks for each of its nodes (``plugins/facts/collector.py``)."""
    found: dict[int, set[str]] = {}
    for name in metric_names(store):
        if node := node_of(name):
            sql = (
                "SELECT metrics.run FROM metrics JOIN metric_names"
                " ON metric_names.id = metrics.metric WHERE metric_names.name = ?"
            )
            for (run,) in store.rows(sql, (name,)):
                found.setdefault(run, set()).add(node)
    return found


# ---- elapsed times of one trial ------------------------------------------------------------


class ElapsedPoints(NamedTuple):
    """The runs of a test that started and are over, as columns in the order of their starts: run
    id, start of the script (ns), seconds."""

    test: str
    run_ids: list[str]
    script_started: list[int]
    elapsed: list[float | None]


class ElapsedSeries(Struct, frozen=True):
    """The points of each test. ``odd`` has the verdict's code of each run that did not pass;
    ``never`` counts runs that are over and never started. Recalled runs are in neither."""

    points: list[ElapsedPoints]
    odd: dict[str, int]
    never: int


# A run without an end of its script is taken to have run until its verdict, which the index lacks.
_SECONDS = (
    "CASE WHEN runs.elapsed IS NOT NULL THEN runs.elapsed ELSE (SELECT"
    " (coalesce(own.script_ended, own.judged) - own.script_started) / 1e9 FROM runs AS own"
    " WHERE own.id = runs.id) END"
)


def elapsed_points(store: Store, trial: int, names: Sequence[str] = ()) -> ElapsedSeries:
    """Return the elapsed times of the runs of a trial (its row), of all tests or those with these
    names. Tests are read one by one in the order of the index, so that nothing is sorted or looked
    up."""
    over = f"runs.test = ? AND runs.trial = ? AND runs.code NOT IN ({sql_list(NO_OUTCOME)})"
    asked = f"SELECT runs.run_id, runs.script_started, {_SECONDS} FROM runs WHERE {over}"
    points: list[ElapsedPoints] = []
    odd: dict[str, int] = {}
    never = 0
    with store.reading():
        of_trial = "SELECT DISTINCT test FROM cases WHERE trial = ?"
        sql = f"SELECT id, name FROM tests WHERE id IN ({of_trial}) ORDER BY name, id"
        for test, name in store.rows(sql, (trial,)):
            if names and name not in names:
                continue
            chosen = (test, trial)
            sql = f"{asked} AND runs.script_started IS NOT NULL ORDER BY runs.script_started"
            points.append(ElapsedPoints(name, *store.columns(sql, chosen)))
            sql = f"SELECT runs.run_id, runs.code FROM runs WHERE {over}"
            odd.update(store.rows(f"{sql} AND runs.code <> {codes.PASS.number}", chosen))
            sql = f"SELECT count(*) FROM runs WHERE {over} AND runs.script_started IS NULL"
            never += store.rows(sql, chosen)[0][0]
    return ElapsedSeries(points, odd, never)
