"""A year of a machine with 100,000 jobs as one file, beside reading their rows from SQLite.

    python -m bench usage_report

The jobs are a made year of two machines (`tests/plugins/usage/made_year.py`). A bare Python reads
the same rows once, and does nothing with them; the report asks twelve questions.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.plugins.usage.kept import keep
from tests.plugins.usage.made_year import made_year

from bench.measuring import SEATRIAL, Row, scratch, timed
from seatrial.plugins.usage.jobs import JOBS as TABLE
from seatrial.results.store.ingest import synced

JOBS = 200_000  # of two machines
ROUNDS = 3
LIMIT_S = 5.0

READ = """
import sqlite3, sys
rows = sqlite3.connect("store.sqlite").execute(
    f"SELECT {sys.argv[1]} FROM usage_jobs WHERE machine = 'hopper'"
)
print(sum(len(some) for some in iter(lambda: rows.fetchmany(5000), [])))
"""


def measure() -> list[Row]:
    with scratch() as folder:
        keep(folder, made_year(JOBS, seed=1).jobs)
        with synced(folder / "store.sqlite", folder):
            pass
        return [_report(folder)]


def _report(folder: Path) -> Row:
    line = [*SEATRIAL, "--trials", ".", "usage", "report", "2011", "-m", "hopper", "--zone", "UTC"]
    ours = min((timed(line, folder) for _ in range(ROUNDS)), key=lambda run: run.cpu)
    bare = [sys.executable, "-c", READ, ", ".join(TABLE.names)]
    rows = min((timed(bare, folder) for _ in range(ROUNDS)), key=lambda run: run.cpu)
    size = (folder / "usage-hopper-2011.html").stat().st_size
    return Row(
        f"`usage report` of {int(rows.output):,} jobs in under {LIMIT_S:g} s of CPU",
        f"{ours.cpu:.2f} s CPU, {ours.memory:.0f} MB, {size / 1000:.0f} kB",
        f"reading the rows {rows.cpu:.2f} s",
        f"{ours.cpu / LIMIT_S:.2f}",
    )
