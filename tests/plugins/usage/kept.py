"""Jobs for tests, kept as an import keeps them."""

import time
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from seatrial.plugins.usage.archive import Archive, Rejects, Segment
from seatrial.plugins.usage.jobs import UserJob


def keep(
    trials: Path, jobs: Sequence[UserJob], covered: tuple[int, int] | None = None, asked: int = 0
) -> None:
    """Keep jobs of any machines below the folder of trials, as if they had been imported: all that
    ran within the span ``covered`` (in s; None: of their times), asked at a time in ns (0: now)."""

    def machine(job: UserJob) -> str:
        return job.machine

    for name, rows in groupby(sorted(jobs, key=machine), machine):
        about = Segment(machine=name, source="made", asked=asked or time.time_ns())
        Archive(trials, name).write(about, rows, covered, Rejects())
