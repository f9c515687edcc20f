"""What a person waits for at the prompt: `--help`, `list`."""

from __future__ import annotations

from bench.measuring import SEATRIAL, Row, median_of, scratch, timed, write_suite

RUNS = 9


def measure() -> list[Row]:
    rows = []
    with scratch() as folder:
        for what, limit, cases, line in (
            ("seatrial --help", 150, 1, ["--help"]),
            ("seatrial list, 1,000 cases", 300, 1_000, ["list", "suite"]),
            ("seatrial list, 10,000 cases", 1000, 10_000, ["list", "suite"]),
        ):
            write_suite(folder, cases)
            timing = median_of(RUNS, lambda line=line: timed([*SEATRIAL, *line], folder))  # type: ignore[misc]
            wall = 1000 * timing.wall
            rows.append(
                Row(f"{what}: under {limit} ms", f"{wall:.0f} ms", "", f"{wall / limit:.2f}")
            )
    return rows
