"""Questions about a million jobs of others, beside what it takes to read their rows from SQLite.

    python -m bench usage_questions

The jobs are a made year of two machines (`tests/plugins/usage/made_year.py`), repeated with other
ids. Beside each question, a bare Python reads the same columns as rows, and does nothing with them.
"""

from __future__ import annotations

import sys
from pathlib import Path

from msgspec.structs import replace
from tests.plugins.usage.kept import keep
from tests.plugins.usage.made_year import made_year

from bench.measuring import SEATRIAL, Row, Timing, scratch, timed
from seatrial.results.store.ingest import synced

JOBS, YEAR = 1_000_000, 20_000
LIMIT_S = 3.0
ROUNDS = 3
APPLICATIONS = "applications.yaml"

QUESTIONS = {
    "usage --by month,size": "started ended suspended_s state asked cores",
    "usage --by application": "started ended suspended_s state asked cores name executable",
    "usage --by mode --of users": "started ended suspended_s state asked cores queue name person",
    "usage waits --size 3 --walltime 36h": "started ended suspended_s state asked nodes eligible "
    "limit_s cores",
    "usage share --above 8192cores --by month": "started ended suspended_s state asked cores",
}
"""What is asked, and the columns that it needs."""

READ = """
import sqlite3, sys
connection = sqlite3.connect("store.sqlite")
rows = connection.execute(f"SELECT {', '.join(sys.argv[1:])} FROM usage_jobs")
print(sum(len(some) for some in iter(lambda: rows.fetchmany(5000), [])))
"""


def measure() -> list[Row]:
    with scratch() as folder:
        _fill(folder)
        return [_asked(folder, words, columns) for words, columns in QUESTIONS.items()]


def _fill(folder: Path) -> None:
    year = made_year(YEAR, seed=1)
    for copy in range(JOBS // YEAR):
        keep(folder, [replace(job, job=f"{copy}-{job.job}") for job in year.jobs])
    codes = sorted(set(year.applications))
    rules = "".join(
        f"  - {{application: {code}, executable: {code}.x, name: ['{code}_*', {code}-prod, "
        f"ccm_{code}]}}\n"
        for code in codes
    )
    modes = "modes:\n  - {mode: compat, queue: ccm_queue}\n  - mode: native\n"
    (folder / APPLICATIONS).write_text(f"applications:\n{rules}{modes}")
    with synced(folder / "store.sqlite", folder):
        pass


def _asked(folder: Path, words: str, columns: str) -> Row:
    line = [*SEATRIAL, "--trials", ".", *words.split(), "--applications", APPLICATIONS]
    ours = _best([timed(line, folder) for _ in range(ROUNDS)])
    bare = [sys.executable, "-c", READ, *columns.split()]
    rows = _best([timed(bare, folder) for _ in range(ROUNDS)])
    return Row(
        f"`{words}` of {int(rows.output):,} jobs in under {LIMIT_S:g} s of CPU",
        f"{ours.cpu:.2f} s CPU, {ours.memory:.0f} MB",
        f"the same columns as rows of Python's sqlite3 {rows.cpu:.2f} s",
        f"{ours.cpu / rows.cpu:.2f}",
    )


def _best(runs: list[Timing]) -> Timing:
    return min(runs, key=lambda run: run.cpu)
