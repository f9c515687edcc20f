"""The files that keep imported jobs, from which the table of the store is made again."""

from __future__ import annotations

from pathlib import Path

import msgspec

from seatrial.plugins.usage.jobs import JOBS, UserJob
from seatrial.results.store.schema import Store


def fill(store: Store, trials: Path) -> None:
    """Fill the table with the jobs that are kept below the folder of trials."""
    with store.writing() as writer:
        for file in sorted((trials / "usage").glob("*/*.jsonl")):
            with file.open("rb") as lines:
                writer.upsert(JOBS, [msgspec.json.decode(line, type=UserJob) for line in lines])
