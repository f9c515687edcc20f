"""Figures for each core, node or node-hour."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.cli.test_query_common import ask

from .figures import TIME, TRIAD, Measuring, bound


def machines(folder: Path) -> None:
    """Carver: 8 cores of a node; hopper: 48 cores of two, three times as fast."""
    for name, nodes, tasks, speed in (("carver", 1, 8, 80.0), ("hopper", 2, 48, 240.0)):
        case = replace(bound(1), nodes=nodes, tasks=tasks, tasks_per_node=24, threads=1)
        trial = Measuring(folder, name, [case], machine=name)
        for i in range(6):
            rate = speed * (1 + i / 1000)
            trial.measure(case, {TRIAD: rate, TIME: 8000 / rate}, elapsed=3600.0)
        trial.done()


def rows(folder: Path, *words: str) -> dict[str, Any]:
    answer = ask(folder, "compare", "carver", "hopper", *words, "--format", "json")
    return {row["metric"]: row for row in json.loads(answer.out)["comparisons"][0]["rows"]}


@pytest.mark.parametrize(
    ("per", "units", "factor"),
    [
        ("core", ("MB/s/core", "core-s"), 0.5),
        ("node", ("MB/s/node", "node-s"), 1.5),
        ("node-hour", ("MB/s/node-h", "node-h"), 1.5),
    ],
)
def test_rates_and_times(tmp_path: Path, per: str, units: tuple[str, str], factor: float) -> None:
    machines(tmp_path)
    assert rows(tmp_path)["triad"]["ratio"] == pytest.approx(3.0)
    found = rows(tmp_path, "--per", per)
    assert (found["triad"]["unit"], found["time"]["unit"]) == units
    assert found["triad"]["ratio"] == pytest.approx(factor)
    assert found["time"]["ratio"] == pytest.approx(1 / factor)
    verdict = "better" if factor > 1 else "worse"
    assert found["triad"]["verdict"] == found["time"]["verdict"] == verdict


def test_the_best_machine_per_core(tmp_path: Path) -> None:
    machines(tmp_path)
    words = ("best", "*", "--over", "machine", "--metric", "triad")
    for more, best in (((), "hopper"), (("--per", "core"), "carver")):
        (table,) = json.loads(ask(tmp_path, *words, *more, "--format", "json").out)
        assert table["settings"][0]["values"] == {"machine": best}
