"""The report on a trial of 100,000 runs: how long it takes, how large it is.

The trial is a rehearsed one. The store is up to date before, as it is where anybody asked anything
of the trial; reading the journal, all judgements, drawing and writing are in the time.
"""

from __future__ import annotations

from pathlib import Path

from bench import rehearsal
from bench.measuring import SEATRIAL, Row, Timing, scratch, timed

DAYS = 8.7  # of about 11,500 jobs
SECONDS, MEGABYTES = 10, 3


def measure() -> list[Row]:
    with scratch() as folder:
        plan = rehearsal.write_plan(folder)
        jobs = rehearsal.rehearse(folder, plan, "--days", f"{DAYS}")[1]
        _report(folder, plan)
        timing = min((_report(folder, plan) for _ in range(3)), key=lambda one: one.wall)
        size = (folder / "report.html").stat().st_size / 1e6
        signed = timed([*SEATRIAL, "report", "verify", "report.html"], folder, check=False)
    return [
        Row(
            f"report on 100,000 runs in under {SECONDS} s and {MEGABYTES} MB",
            f"{timing.wall:.1f} s, {size:.2f} MB, {jobs} runs, {timing.memory:.0f} MiB of memory",
            f"checking its journal's checksum {signed.wall:.2f} s",
            f"{timing.wall / SECONDS:.2f}, {size / MEGABYTES:.2f}",
        )
    ]


def _report(folder: Path, plan: Path) -> Timing:
    return timed([*SEATRIAL, "report", str(plan), "--rehearsed", "-o", "report.html"], folder)
