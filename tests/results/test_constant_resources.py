"""Ranks times threads are the same: the best, those as good, and where the speed drops."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from seatrial.errors import UsageError
from seatrial.model.test import Case
from seatrial.results.scaling import ScalingTable
from tests.cli.test_query_common import ask

from .figures import TIME, TRIAD, Kind, Measuring, bound, steady
from .test_scaling import sweep as growing
from .test_scaling import tables

# LAMMPS with 128 cores: flat up to 8 threads a rank, half as fast from 16 on.
SPEEDS = {1: 100.0, 2: 101.0, 4: 100.0, 8: 98.0, 16: 48.0, 32: 30.0}


def sweep(
    folder: Path,
    speeds: dict[int, float],
    cores: int = 128,
    kind: Kind = TRIAD,
    runs: int = 8,
    left_out: Sequence[int] = (),
    spread: float = 0.003,
) -> None:
    trial = Measuring(folder, "t", [_case(x, cores) for x in speeds])
    for case, (x, speed) in zip(trial.cases, speeds.items(), strict=True):
        value = speed if kind[2] == "higher" else 1000 / speed
        if x not in left_out:
            trial.series(case, kind, steady(value, runs, spread))
    trial.done()


def _case(threads: int, cores: int) -> Case:
    tasks = cores // threads
    shape = {"tasks": tasks, "tasks_per_node": tasks, "threads": threads, "nodes": 1}
    return replace(bound(threads, omp=threads), **shape)


def table(folder: Path, kind: Kind = TRIAD, x: str = "threads", **asked: object) -> ScalingTable:
    (found,) = tables(folder, "t", x=x, metric=kind[0], **asked)
    return found


@pytest.mark.parametrize("kind", [TRIAD, TIME])
@pytest.mark.parametrize("x", ["threads", "omp"])
def test_the_ideal_is_flat(tmp_path: Path, kind: Kind, x: str) -> None:
    sweep(tmp_path, SPEEDS, kind=kind)
    found = table(tmp_path, kind, x)
    assert found.fixed, "tasks times threads are the same"
    (line,) = found.lines
    assert [cell.ideal for cell in line.cells] == [1.0] * 6
    assert (line.base, line.knee) == (2.0, None)
    assert line.cells[4].speedup == pytest.approx(48 / 101, rel=0.01)
    assert line.plateau == [1.0, 2.0, 4.0, 8.0]
    assert found.best is not None and found.best.x == 2
    assert [(drop.before, drop.after) for drop in line.drops] == [(8.0, 16.0), (16.0, 32.0)]
    drop = line.drops[0]
    assert drop.per_cent == pytest.approx(51, abs=0.5)
    assert drop.low is not None and drop.high is not None
    assert drop.low < drop.per_cent < drop.high < drop.low + 3


def test_it_is_printed_with_the_interval_of_each_drop(tmp_path: Path) -> None:
    sweep(tmp_path, SPEEDS)
    answer = ask(tmp_path, "scaling", "t", "--x", "threads", "--metric", "triad")
    assert answer.code == 0, answer.err
    assert "constant resources" in answer.out
    assert re.search(r"drops by 5\d\.\d % from threads 8 to 16 \(95 %: 5", answer.out)
    assert "plateau: threads 1 to 8" in answer.out
    assert "best median: threads 2" in answer.out
    assert "knee" not in answer.out and "smallest measured" not in answer.out
    shown = ask(tmp_path, "scaling", "t", "--x", "threads", "--metric", "triad", "--format", "json")
    (record,) = json.loads(shown.out)
    assert record["fixed"] is True
    assert record["lines"][0]["drops"][0]["before"] == 8


def test_cells_that_were_not_measured_stay(tmp_path: Path) -> None:
    sweep(tmp_path, SPEEDS, left_out=[4, 16])
    (line,) = table(tmp_path).lines
    assert [cell.speedup is None for cell in line.cells] == [
        False, False, True, False, True, False
    ]  # fmt: skip
    assert line.plateau == [1.0, 2.0, 8.0]
    assert [(drop.before, drop.after) for drop in line.drops] == [(8.0, 32.0)]


def test_a_drop_of_single_runs_has_no_interval(tmp_path: Path) -> None:
    sweep(tmp_path, SPEEDS, runs=1)
    (line,) = table(tmp_path).lines
    assert [drop.low for drop in line.drops] == [None, None]
    answer = ask(tmp_path, "scaling", "t", "--x", "threads", "--metric", "triad")
    assert "of single runs: repeat" in answer.out


def test_noise_is_no_drop(tmp_path: Path) -> None:
    sweep(tmp_path, {1: 100.0, 2: 93.0, 4: 99.0}, runs=4, spread=0.2)
    (line,) = table(tmp_path).lines
    assert not line.drops and line.plateau == [1.0, 2.0, 4.0]


def test_a_small_drop_is_not_told(tmp_path: Path) -> None:
    sweep(tmp_path, {1: 100.0, 2: 96.0, 4: 90.0}, spread=0.0003)
    (line,) = table(tmp_path).lines
    assert [(drop.before, drop.after) for drop in line.drops] == [(2.0, 4.0)]
    assert line.plateau == [1.0, 2.0]


def test_one_value_is_nothing_to_compare(tmp_path: Path) -> None:
    sweep(tmp_path, {1: 100.0, 2: 96.0}, left_out=[2])
    (line,) = table(tmp_path).lines
    assert (line.reason, line.plateau) == ("fewer than two values measured", [])
    assert ask(tmp_path, "scaling", "t", "--x", "threads", "--metric", "triad").code == 0


def test_resources_that_grow_are_not_constant_unless_it_is_said(tmp_path: Path) -> None:
    growing(tmp_path, [100.0, 99.0, 50.0])
    assert not table(tmp_path).fixed
    assert table(tmp_path, fixed=True).fixed
    with pytest.raises(UsageError, match="--weak and --fixed"):
        table(tmp_path, fixed=True, weak=True)


DIP = {1: 100.0, 2: 101.0, 4: 80.0, 8: 98.0, 16: 90.0, 32: 60.0}


@pytest.mark.parametrize("kind", [TRIAD, TIME])
def test_a_value_that_is_slower_than_both_beside_it_is_a_dip(tmp_path: Path, kind: Kind) -> None:
    sweep(tmp_path, DIP, kind=kind)
    found = [(drop.before, drop.after, drop.until) for drop in table(tmp_path, kind).lines[0].drops]
    assert found == [(2.0, 4.0, 8.0), (8.0, 16.0, None), (16.0, 32.0, None)]
    words = ["--metric", kind[0]]
    for command in (["scaling", "t", "--x", "threads"], ["best", "t", "--over", "threads"]):
        said = " ".join(ask(tmp_path, *command, *words).out.split())
        assert re.search(
            r"drops by \S+ % from threads 2 to 4 \(95 %: [^)]+ %\), at 4 alone: 8", said
        )
        assert re.search(r"from threads 8 to 16 \(95 %: [^)]+ %\) drops by", said)
    (shown,) = json.loads(ask(tmp_path, "best", "t", *words, "--format", "json").out)
    assert [(drop["before"], drop["until"]) for drop in shown["drops"]] == [
        (2.0, 8.0),
        (8.0, None),
        (16.0, None),
    ]


def test_a_rise_within_the_noise_makes_no_dip(tmp_path: Path) -> None:
    """From 4 to 8 the speed rises by less than the intervals allow, or by less than 5 %."""
    sweep(tmp_path, {1: 100.0, 4: 60.0, 8: 62.0}, spread=0.0003)
    (drop,) = table(tmp_path).lines[0].drops
    assert (drop.after, drop.until) == (4.0, None)


def test_best_tells_drops_of_constant_resources_by_medians_alone(tmp_path: Path) -> None:
    sweep(tmp_path, DIP)
    assert "drops" not in ask(tmp_path, "best", "t", "--statistic", "least").out
    growing(tmp_path / "other", [100.0, 60.0, 90.0])
    assert "drops" not in ask(tmp_path / "other", "best", "t").out
