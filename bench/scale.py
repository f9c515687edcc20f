"""Cost per case from 1,000 to 100,000: really run up to 10,000, a dry run above."""

from __future__ import annotations

import shutil

from bench.measuring import SEATRIAL, Row, scratch, timed, write_suite

RUN = (1_000, 10_000)
DRY = (1_000, 10_000, 100_000)


def measure() -> list[Row]:
    rows = []
    for name, sizes, options in (("run", RUN, ["-q"]), ("dry run", DRY, ["--dry-run"])):
        costs = []
        for cases in sizes:
            with scratch() as folder:
                write_suite(folder, cases)
                timing = timed([*SEATRIAL, "run", "suite", *options], folder)
                shutil.rmtree(folder / "trials")
            costs.append((cases, timing))
        said = ", ".join(f"{n}: {1000 * t.wall / n:.2f} ms" for n, t in costs)
        rows.append(
            Row(
                f"scale: wall time a case, {name}, flat",
                said,
                f"driver's memory at {costs[-1][0]}: {costs[-1][1].memory:.0f} MiB (under 500)",
                f"{costs[-1][1].wall / costs[-1][0] / (costs[0][1].wall / costs[0][0]):.2f}",
            )
        )
    return rows
