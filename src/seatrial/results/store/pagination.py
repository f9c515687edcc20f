"""Lists of runs, a page at a time, from a place that stays where it is when new runs come.

    first = page(store, Filters(machine="frost"), ORDERS["newest"], None, 100)
    then = page(store, Filters(machine="frost"), ORDERS["newest"], place_of(first[-1], ...), 100)

A place is the key by which the list is ordered, and the run's row. Newer runs do not change what
follows a place.
"""

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from msgspec import Struct

from seatrial.journal.events import EVENT_NAMES, JobEnded, RunJudged, ScriptEnded, SubmitEnded
from seatrial.journal.trial import TrialState
from seatrial.results.store.filters import conditions, listed, of_trials, trial_row
from seatrial.results.store.queries import run_rows
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
    numbers, rows = listed(_ENDS), listed(run.row for run in found)
    sql = (
        f"SELECT run, number, value, text FROM events WHERE run IN ({rows})"
        f" AND number IN ({numbers}) ORDER BY time, seq"
    )
    for run, number, value, text in store.rows(sql):
        if value not in (None, 0, "", "0"):
            ends[run] = End(_ENDS[number], value, text)
    return ends
