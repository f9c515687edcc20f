"""Lists of runs: a page at a time, and the other runs of a case.

    first = page(store, Filters(machine="frost"), ORDERS["newest"], None, 100)
    then = page(store, Filters(machine="frost"), ORDERS["newest"], place_of(first[-1], ...), 100)

A place in a list is the key by which it is ordered, and the run's row. Newer runs do not change
what follows a place.
"""

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from msgspec import Struct

from seatrial.journal.events import EVENT_NAMES, JobEnded, RunJudged, ScriptEnded, SubmitEnded
from seatrial.journal.trial import TrialState
from seatrial.results.store.queries import (
    MEASURED,
    NEWEST,
    conditions,
    of_trials,
    run_rows,
    sql_list,
    trial_row,
)
from seatrial.results.store.schema import Store
from seatrial.results.store.tables import FAILED, Filters, RunRow

MAX_CHOICES = 500


class Order(NamedTuple):
    """An order of a list. ``key`` is an SQL expression that is never NULL; ``field`` is the
    attribute of RunRow with its value. ``of`` is the SQL condition of the runs that have a key, ""
    for all."""

    key: str
    field: str
    descending: bool
    of: str = ""


ORDERS = {
    "newest": Order("runs.created", "created", True),
    "oldest": Order("runs.created", "created", False),
    "longest": Order("coalesce(runs.elapsed, -1.0)", "elapsed", True),
    "shortest": Order("coalesce(runs.elapsed, -1.0)", "elapsed", False),
}
BY_VERDICT = Order("runs.judged", "judged", True, of=f"runs.state = {FAILED}")


class PageCursor(NamedTuple):
    """The end of a page: the key and the row of its last run."""

    key: int | float
    row: int


def place_of(run: RunRow, order: Order) -> PageCursor:
    """Return the place behind a run."""
    key = getattr(run, order.field)
    return PageCursor(-1.0 if key is None else key, run.row)


def page(
    store: Store,
    filters: Filters,
    order: Order,
    place: PageCursor | None,
    limit: int,
    more: Sequence[str] = (),
) -> list[RunRow]:
    """Return at most ``limit`` of the matching runs behind a place, for which ``more`` conditions
    hold."""
    conditioned = [*more, *([order.of] if order.of else [])]
    if place is not None:
        sign = "<" if order.descending else ">"
        key = f"{order.key} {sign}"
        row = f"runs.id {sign} {place.row:d}"
        conditioned += [f"{key}= {place.key!r}", f"({key} {place.key!r} OR {row})"]
    direction = "DESC" if order.descending else "ASC"
    ordered = f"ORDER BY {order.key} {direction}, runs.id {direction}"
    with store.reading():
        # An index can be searched by these, as ``conditions`` hides their columns from it.
        conditioned += [f"runs.created >= {filters.since:d}"] if filters.since else []
        conditioned += [f"runs.created < {filters.until:d}"] if filters.until else []
        if filters.trial:
            conditioned.append(f"runs.trial = {trial_row(store, filters.trial)}")
        # By the index of the order, which ends as soon as the page is full; where there is none,
        # by what the filters choose.
        runs = "+runs" if order.key.startswith("runs.") else "runs"
        where, values = conditions(store, filters, *conditioned, runs=runs)
        return run_rows(store, where, values, ordered, limit)


def causes_of(store: Store, filters: Filters, more: Sequence[str] = ()) -> dict[str, int]:
    """Return how many of the matching runs failed of each cause, the most frequent first; "" are
    those of which nothing is known. ``more`` conditions hold for all."""
    with store.reading():
        where, values = conditions(store, filters, *more)
        rows = store.rows(
            f"SELECT runs.cause, count(*) FROM runs {where} GROUP BY runs.cause", values
        )
    return dict(sorted(rows, key=lambda row: (-row[1], row[0])))


class BuildRow(Struct, frozen=True):
    """The build that a run has used. Times in ns; ``ended`` and ``failed`` are None while it is
    being built."""

    key: str
    started: int | None
    ended: int | None
    failed: bool | None


def build_of(store: Store, trial: int, key: str) -> BuildRow | None:
    """Return a build of a trial (its row) by its key; None where the journal has none."""
    sql = "SELECT started, ended, value FROM builds WHERE trial = ? AND key = ?"
    found = store.rows(sql, (trial, key)) if key else []
    if not found:
        return None
    started, ended, value = found[0]
    return BuildRow(key, started, ended, None if ended is None else value != 0)


def builds_under_way(store: Store, filters: Filters) -> int:
    """Return how many builds of the matching trials have begun and not ended. The filters of runs
    say nothing of them, as a build is of many runs that are not there yet."""
    running = f"SELECT id FROM trials WHERE state = '{TrialState.RUNNING.value}'"
    with store.reading():
        matching = of_trials(store, filters, "trial")
        found = [f"ended IS NULL AND trial IN ({running})", *([matching] if matching else [])]
        ((number,),) = store.rows(f"SELECT count(*) FROM builds WHERE {' AND '.join(found)}")
    return int(number)


class Choices(Struct, frozen=True, kw_only=True):
    """The values that filters can have: the tags of trials, the newest first, names of machines and
    the tags of tests."""

    trials: list[str]
    machines: list[str]
    tags: list[str]


def choices(store: Store) -> Choices:
    """Return the values that filters can have."""
    trials = store.rows("SELECT tag, machine FROM trials ORDER BY created DESC, id DESC")
    tests = store.rows("SELECT DISTINCT tags FROM tests")
    return Choices(
        trials=list(dict.fromkeys(tag for tag, _ in trials))[:MAX_CHOICES],
        machines=sorted({machine for _, machine in trials})[:MAX_CHOICES],
        tags=sorted({tag for (tags,) in tests for tag in tags.split("\n") if tag})[:MAX_CHOICES],
    )


# ---- how failures came to their end ---------------------------------------------------------

_ENDS = {kind.number: EVENT_NAMES[kind] for kind in (SubmitEnded, ScriptEnded, JobEnded)}


class End(Struct, frozen=True):
    """The event that shows that a run failed, and what it says."""

    event: str
    value: Any
    text: str


def ends_of(store: Store, found: Collection[RunRow]) -> dict[int, End]:
    """Return for each run the last event of trouble before its verdict, or the verdict's own
    (``check_end``) where there is none, as where the answer is wrong."""
    ends = {run.row: End(EVENT_NAMES[RunJudged], run.code, run.why) for run in found}
    if not found:
        return ends
    numbers, rows = sql_list(_ENDS), sql_list(run.row for run in found)
    sql = (
        f"SELECT run, number, value, text FROM events WHERE run IN ({rows})"
        f" AND number IN ({numbers}) ORDER BY time, seq"
    )
    for run, number, value, text in store.rows(sql):
        if value not in (None, 0, "", "0"):
            ends[run] = End(_ENDS[number], value, text)
    return ends


# ---- runs of one case ----------------------------------------------------------------------------
#
# The other runs of a case, in the same trial and in others on the same machine.
#
# siblings(store, run)                 # the newest first, the run itself among them
# earlier(store, found, run)           # the figures of each metric up to it, by time


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
        found = f"SELECT count(*) FROM runs WHERE case_row IN ({sql_list(cases)})"
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
    where = f"WHERE runs.id IN ({sql_list(rows)})"
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
        f" WHERE run IN ({sql_list(before)})"
    )
    result: dict[Kind, list[tuple[RunRow, float]]] = {}
    for row, name, unit, value in store.rows(sql):
        result.setdefault((name, unit), []).append((before[row], value))
    for figures in result.values():
        figures.sort(key=lambda one: (one[0].created, one[0].row))
    return result
