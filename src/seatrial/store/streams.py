"""What a glance or a plot asks of many runs and events: cheap for stores of any size.

newest_events(store, limit=100)                      # of all trials
elapsed_points(store, trial.row, ["stream"])         # columns, one entry for each run
verdicts(store, Filters(since=...))                  # {"pass": 812, "timeout": 3}
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from seatrial.journal import codes
from seatrial.store.choosing import listed, runs_chosen, trials_chosen
from seatrial.store.queries import UNFINISHED, codes_of, event_name
from seatrial.store.rows import Filters, StreamRow
from seatrial.store.schema import Store
from seatrial.store.tables import AGAIN

LATEST = (1 << 63) - 1
RUNS_AT_ONCE = 100


def verdicts(store: Store, filters: Filters) -> dict[str, int]:
    """How many of the runs that match have which verdict, the most frequent first; a run whose
    case runs again counts as ``run again``."""
    found: Counter[str] = Counter()
    for state, code, number in codes_of(store, filters):
        found["run again" if state == AGAIN else codes.code_of(code).name] += number
    return dict(found.most_common())


class Points(NamedTuple):
    """The runs of a test that started and are over as columns, in the order of their starts: run
    id, start in ns, seconds."""

    test: str
    run_ids: list[str]
    started: list[int]
    elapsed: list[float | None]


class Elapsed(NamedTuple):
    """Points of tests. ``odd`` has the verdict's code of each run that did not pass, ``never``
    counts those that are over and never started."""

    points: list[Points]
    odd: dict[str, int]
    never: int


# A run that told no end ran to its verdict. The index has all but that.
_SECONDS = (
    "CASE WHEN runs.elapsed IS NOT NULL THEN runs.elapsed ELSE (SELECT"
    " (coalesce(own.ended, own.finished) - own.started) / 1e9 FROM runs AS own"
    " WHERE own.id = runs.id) END"
)


def elapsed_points(store: Store, trial: int, names: Sequence[str] = ()) -> Elapsed:
    """How long the runs of a trial (its row) took, of all tests or those of these names. They are
    read test by test as the index has them, so that nothing is sorted or looked up."""
    over = f"runs.test = ? AND runs.trial = ? AND runs.code NOT IN ({listed(UNFINISHED)})"
    asked = f"SELECT runs.run_id, runs.started, {_SECONDS} FROM runs WHERE {over}"
    points: list[Points] = []
    odd: dict[str, int] = {}
    never = 0
    with store.reading():
        of_trial = "SELECT DISTINCT test FROM cases WHERE trial = ?"
        sql = f"SELECT id, name FROM tests WHERE id IN ({of_trial}) ORDER BY name, id"
        for test, name in store.rows(sql, (trial,)):
            if names and name not in names:
                continue
            chosen = (test, trial)
            sql = f"{asked} AND runs.started IS NOT NULL ORDER BY runs.started"
            points.append(Points(name, *store.columns(sql, chosen)))
            sql = f"SELECT runs.run_id, runs.code FROM runs WHERE {over}"
            odd.update(store.rows(f"{sql} AND runs.code <> {codes.PASS.number}", chosen))
            sql = f"SELECT count(*) FROM runs WHERE {over} AND runs.started IS NULL"
            never += store.rows(sql, chosen)[0][0]
    return Elapsed(points, odd, never)


def newest_events(
    store: Store, filters: Filters, *, of_trials: bool = False, limit: int = 100
) -> list[StreamRow]:
    """The newest events, newest first, of the trials that ``trial``, ``machine`` and ``rehearsed``
    of the filters choose, from ``since`` to before ``until``; ``of_trials`` leaves out those of
    runs."""
    within = Window(filters.since, filters.until or LATEST)
    with store.reading():
        found = _of_trials(store, trials_chosen(store, filters), within, limit)
        if not of_trials:
            found += _of_runs(store, runs_chosen(store, filters), within, limit)
    found.sort(key=lambda event: event.time, reverse=True)
    return found[:limit]


class Window(NamedTuple):
    """From ``since`` to before ``until``, in ns."""

    since: int
    until: int


_FACTS = "time, number, value, detail, text"


def _of_trials(store: Store, chosen: str, within: Window, limit: int) -> list[StreamRow]:
    """The newest events of trials themselves. Trials are asked one after the other, those with
    the latest events first, while they can add something."""
    found: list[StreamRow] = []
    sql = f"SELECT id, tag, machine, last FROM trials WHERE last >= ?{chosen} ORDER BY last DESC"
    for row, tag, machine, last in store.rows(sql, (within.since,)):
        if len(found) >= limit and last < found[limit - 1].time:
            break
        events = store.rows(
            f"SELECT {_FACTS} FROM trial_events WHERE trial = ? AND time >= ? AND time < ?"
            f" ORDER BY time DESC, seq DESC LIMIT {int(limit)}",
            (row, *within),
        )
        found += [_row((tag, machine, "", "", ""), *event) for event in events]
        found.sort(key=lambda event: event.time, reverse=True)
    return found


def _of_runs(store: Store, chosen: str, within: Window, limit: int) -> list[StreamRow]:
    """The newest events of runs, which are kept run by run: those of runs whose last event is
    the latest are looked at, some runs at a time, until older runs can add nothing."""
    found: list[StreamRow] = []
    sql = (
        "SELECT runs.id, runs.last FROM runs WHERE runs.last >= ? AND runs.began < ?"
        f"{chosen} ORDER BY runs.last DESC, runs.id DESC LIMIT {RUNS_AT_ONCE} OFFSET ?"
    )
    for skip in itertools.count(0, RUNS_AT_ONCE):
        runs = dict(store.rows(sql, (*within, skip)))
        newest = max(runs.values(), default=0)
        if not runs or (len(found) >= limit and newest < found[limit - 1].time):
            break
        heads = _heads(store, runs)
        events = store.rows(
            f"SELECT run, {_FACTS} FROM events WHERE run IN ({listed(runs)})"
            " AND time >= ? AND time < ? ORDER BY seq DESC",
            within,
        )
        found += [_row(heads[run], *event) for run, *event in events]
        found.sort(key=lambda event: event.time, reverse=True)
        del found[limit:]
    return found


Head = tuple[str, str, str, str, str]


def _heads(store: Store, runs: Iterable[int]) -> dict[int, Head]:
    """Trial, machine, application, test and id of runs, by their rows."""
    sql = (
        "SELECT runs.id, trials.tag, trials.machine, tests.app, tests.name, runs.run_id FROM runs"
        " LEFT JOIN trials ON trials.id = runs.trial LEFT JOIN tests ON tests.id = runs.test"
        f" WHERE runs.id IN ({listed(runs)})"
    )
    return {
        row: (tag, machine, app or "", test or "", run_id)
        for row, tag, machine, app, test, run_id in store.rows(sql)
    }


def _row(head: Head, time: int, number: int, value: Any, detail: str, text: str) -> StreamRow:
    return StreamRow(time, *head, event_name(number, detail), value, detail, text)
