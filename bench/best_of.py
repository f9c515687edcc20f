"""`best` and `compare` with `--best-of`: two equal systems, one tried on 20 numbers of nodes, one
on a single one. Beside it what people do by hand: the best case of each, compared as if it had not
been chosen."""

from __future__ import annotations

import random
from time import process_time

from bench.measuring import Row
from seatrial.judge.statistics import two_samples
from seatrial.results.case_figures import CaseRuns
from seatrial.results.compare import compare_sides
from seatrial.results.selection import Side

KIND = ("create", "ops/s", "higher")
TRIED, RUNS, NOISE, PAIRS = 20, 12, 0.03, 400
SEED = 2027


def measure() -> list[Row]:
    rng = random.Random(SEED)
    told = by_hand = outside = outside_by_hand = 0
    seconds = 0.0
    for _ in range(PAIRS):
        many, few = _system(rng, "many", TRIED), _system(rng, "few", 1)
        started = process_time()
        (row,) = compare_sides(Side("a", [], many), Side("b", [], few), best_of=("nodes",)).rows
        seconds += process_time() - started
        assert row.low is not None and row.high is not None
        told += row.verdict in ("better", "worse")
        outside += not row.low <= 1 <= row.high
        place = int(row.best_at[0].at["nodes"]) - 1
        naive = two_samples.compare(many[place].values[KIND], few[0].values[KIND], "higher")
        by_hand += naive.verdict in ("better", "worse")
        outside_by_hand += not (naive.low or 0.0) <= 1 <= (naive.high or 2.0)
    return [
        Row(
            f"equal systems, the best of {TRIED} cases beside one: told to differ in 5 % at most",
            f"{100 * told / PAIRS:.1f} %; its interval does not hold 1: "
            f"{100 * outside / PAIRS:.1f} %; {1000 * seconds / PAIRS:.1f} ms CPU each",
            f"by hand {100 * by_hand / PAIRS:.1f} % and {100 * outside_by_hand / PAIRS:.1f} %",
            f"{told / PAIRS / 0.05:.2f}",
        )
    ]


def _system(rng: random.Random, machine: str, tried: int) -> list[CaseRuns]:
    """Cases of one level over so many numbers of nodes."""
    return [
        CaseRuns(
            *("md", {}, machine, "", "", "", machine, nodes, nodes, 1, "", [1] * RUNS),
            values={KIND: [100 * (1 + rng.gauss(0, NOISE)) for _ in range(RUNS)]},
            excluded={},
        )
        for nodes in range(1, tried + 1)
    ]
