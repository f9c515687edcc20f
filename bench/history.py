"""`seatrial history` of 10,000 series of 365 points, one in fifty with a step of 5 %: the whole
command, its store up to date. A journal of 3.65 million runs would take half an hour to read, and
is not what is measured: one trial of 10,000 runs is read, and its rows in the store repeated."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from bench.compare import SPREAD, write_trial
from bench.measuring import SEATRIAL, Row, scratch, timed
from seatrial.results.store.tables import RUN_TIMES

SERIES = 10_000
POINTS = 365
STEP = 0.95
DAY = 86_400 * 1_000_000_000


def measure() -> list[Row]:
    with scratch() as folder:
        write_trial(folder / "trials", "nightly", SERIES, 1, 0.0)
        timed([*SEATRIAL, "trials"], folder)
        changed = repeat(folder / "trials" / "store.sqlite")
        timing = timed([*SEATRIAL, "history", "read"], folder)
    return [
        Row(
            f"history of {SERIES} series of {POINTS} points in under 60 s",
            f"{timing.wall:.0f} s, {timing.cpu:.0f} s CPU, {timing.memory / 1024:.1f} GiB",
            f"{changed} steps; {timing.output.splitlines()[-1].partition(': ')[2]}",
            f"{timing.wall / 60:.2f}",
        )
    ]


def repeat(store: Path) -> int:
    """Give each case as many runs as there are points, with figures of their own; one in fifty
    has a step. How many these are."""
    rng = random.Random(1)
    with closing(sqlite3.connect(store)) as database:
        rows = database.execute(
            "SELECT name, sql FROM sqlite_master WHERE sql LIKE 'CREATE INDEX%'"
        )
        indexes = dict(rows.fetchall())
        for name in indexes:
            database.execute(f"DROP INDEX {name}")
        columns = [name for _, name, *_ in database.execute("PRAGMA table_info(runs)")]
        moved = {
            "id": f"id + {SERIES} * ?1",
            "run_id": "run_id || '-' || ?1",
            "seq": f"seq + {SERIES} * ?1",
            **{name: f"{name} + {DAY} * ?1" for name in (*RUN_TIMES, "last")},
        }
        copies = ", ".join(moved.get(name, name) for name in columns)
        for point in range(1, POINTS):
            database.execute(
                f"INSERT INTO runs SELECT {copies} FROM runs WHERE id <= {SERIES}", (point,)
            )
        kind = "SELECT id FROM metric_names WHERE name = 'read'"
        [(metric,)] = database.execute(kind).fetchall()
        database.execute("DELETE FROM metrics")
        changed = set(rng.sample(range(SERIES), SERIES // 50))
        database.executemany("INSERT INTO metrics VALUES (?, ?, ?)", _figures(rng, metric, changed))
        for sql in indexes.values():
            database.execute(sql)
        database.execute("ANALYZE")
        database.commit()
        return len(changed)


def _figures(
    rng: random.Random, metric: int, changed: set[int]
) -> Iterator[tuple[int, int, float]]:
    for point in range(POINTS):
        for number in range(SERIES):
            stepped = STEP if number in changed and point >= POINTS // 2 else 1.0
            yield point * SERIES + number + 1, metric, 1000 * stepped * (1 + rng.gauss(0, SPREAD))
