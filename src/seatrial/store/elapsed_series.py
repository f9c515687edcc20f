"""The elapsed times of a trial's runs as columns, for plots of any size.

elapsed_points(store, trial.row, ["stream"])         # one entry for each run
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from seatrial.journal import codes
from seatrial.store.queries import NO_OUTCOME
from seatrial.store.schema import Store
from seatrial.store.sql_filters import listed


class ElapsedPoints(NamedTuple):
    """The runs of a test that started and are over, as columns in the order of their starts: run
    id, start of the script (ns), seconds."""

    test: str
    run_ids: list[str]
    script_started: list[int]
    elapsed: list[float | None]


class ElapsedSeries(NamedTuple):
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
    over = f"runs.test = ? AND runs.trial = ? AND runs.code NOT IN ({listed(NO_OUTCOME)})"
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
