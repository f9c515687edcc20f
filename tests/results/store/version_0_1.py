"""A trial that version 0.1 wrote, and the store that it made of it, kept as files.

Of its thirteen runs ten passed, one had a wrong answer, and two waited for nodes when a blackout
began. Version 0.1 wrote of these that a job was ``taken back before it started``, and that the run
was cancelled.
"""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from pathlib import Path

DATA = Path(__file__).with_name("data") / "version-0.1"
TAG = "p-c"
RECALLED = ("2ydxosbrjfam", "gjt3y4yz4oql")
START = 1_790_000_000_000_000_000


def trial_of_0_1(trials: Path) -> Path:
    """Put the trial into a folder of trials. Returns its folder."""
    return Path(shutil.copytree(DATA / TAG, trials / TAG))


def store_of_0_1(path: Path) -> None:
    """Make the store of version 10, with its runs and without their events."""
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.executescript((DATA / "store.sql").read_text())
