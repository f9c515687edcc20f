"""The best of settings: ranked over any parameters, with what cannot be told from it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from seatrial.errors import UsageError
from seatrial.journal import codes
from seatrial.store.ingest import synced
from seatrial.studies.best import BestQuery, BestTable, best_settings
from seatrial.studies.selection import gather, parse_side

from ..cli.test_query_common import ask
from .figures import TIME, TRIAD, Measuring, bound, steady

ORDERS, STRIPES = ("smp", "grid", "snake"), (1, 4, 16)


def tables(folder: Path, *texts: str, **asked: Any) -> list[BestTable]:
    with synced(folder / "store.sqlite", folder) as store:
        sides = [gather(store, parse_side(text)) for text in texts or ("*",)]
    return best_settings(sides, BestQuery(**asked))


def sweep(folder: Path, tag: str = "t", kind: Any = TRIAD, seed: int = 1) -> None:
    """Orders by stripes: the best is grid with 4, grid with 16 is as good; snake with 16 fails."""
    speeds = {("grid", 4): 100.0, ("grid", 16): 99.95, ("smp", 4): 97.0, ("snake", 4): 80.0}
    cases = {
        (order, stripe): bound(10 * i + j, order=order, stripe=stripe)
        for i, order in enumerate(ORDERS)
        for j, stripe in enumerate(STRIPES)
    }
    trial = Measuring(folder, tag, list(cases.values()))
    for key, case in cases.items():
        speed = speeds.get(key, 50.0)
        if key == ("snake", 16):
            trial.measure(case, verdict=codes.TIMEOUT)
            trial.measure(case, verdict=codes.OUT_OF_MEMORY)
        else:
            values = [speed / 100 * value for value in steady(100, 6, 0.002, seed=seed)]
            trial.series(case, kind, values if kind is TRIAD else [1000 / v for v in values])
    trial.done()


@pytest.mark.parametrize("kind", [TRIAD, TIME])
def test_settings_are_ranked_over_words_and_numbers(tmp_path: Path, kind: Any) -> None:
    sweep(tmp_path, kind=kind)
    (table,) = tables(tmp_path, over=("order", "stripe"))
    assert (table.metric, table.case) == (kind[0], "stream@gcc")
    best, second, third = table.settings[:3]
    assert best.verdict == "best" and best.ratio == 1.0
    assert {best.name, second.name} == {"order=grid, stripe=4", "order=grid, stripe=16"}
    assert table.as_good == [second]
    assert (third.name, third.verdict) == ("order=smp, stripe=4", "worse")
    assert third.ratio == pytest.approx(0.97, abs=0.004)
    assert third.low is not None and third.high is not None
    assert third.low < 0.97 < third.high < 0.98
    failed = table.settings[-1]
    assert (failed.verdict, failed.n, failed.why) == ("no figure", 0, "1 timeout, 1 out of memory")
    assert {one.name for one in table.settings if one.on_plateau} == {
        "order=grid, stripe=4",
        "order=grid, stripe=16",
        "order=smp, stripe=4",
    }


def test_all_parameters_that_vary_are_taken_by_themselves(tmp_path: Path) -> None:
    sweep(tmp_path)
    (table,) = tables(tmp_path)
    assert table.over == ["order", "stripe"]
    by_order = tables(tmp_path, over=("order",))
    assert [one.case for one in by_order] == [f"stream{{stripe={n}}}@gcc" for n in STRIPES]
    assert [one.settings[0].name for one in by_order][1] == "order=grid"


def test_trials_are_blocks_that_agree(tmp_path: Path) -> None:
    for i in (1, 2, 3):
        sweep(tmp_path, f"t{i}", seed=i)
    (table,) = tables(tmp_path, "t*:stripe=4", over=("order",))
    assert (table.agreement, table.blocks) == ((3, 3), "trials")
    assert [one.n for one in table.settings] == [18] * 3
    out = ask(tmp_path, "best", "t*:stripe=4", "--over", "order").out
    assert "best in 3 of 3 trials" in out


def test_jobs_that_settings_share_are_blocks(tmp_path: Path) -> None:
    cases = [bound(i, order=order) for i, order in enumerate(("smp", "grid"))]
    trial = Measuring(tmp_path, "t", cases)
    for job, levels in (("7", (10.0, 20.0)), ("8", (10.0, 21.0)), ("9", (22.0, 18.0))):
        for case, level in zip(cases, levels, strict=True):
            trial.measure(case, {TRIAD: level}, job=job)
    trial.done()
    (table,) = tables(tmp_path)
    assert (table.settings[0].name, table.agreement) == ("order=grid", (2, 3))
    assert table.blocks == "jobs"


def test_by_the_best_of_n(tmp_path: Path) -> None:
    cases = [bound(i, pages=pages) for i, pages in enumerate(("4k", "thp", "2M"))]
    trial = Measuring(tmp_path, "t", cases)
    trial.series(cases[0], TIME, [10.0, 10.1, 10.2, 10.3, 30.0])
    trial.series(cases[1], TIME, [9.9, 10.25, 10.28, 10.29, 10.3])
    trial.series(cases[2], TIME, [11.0, 11.1, 11.2, 11.3, 11.4])
    trial.done()
    (table,) = tables(tmp_path, statistic="least")
    assert [(one.name, one.least, one.verdict) for one in table.settings] == [
        ("pages=thp", 9.9, "best"),
        ("pages=4k", 10.0, "as good"),
        ("pages=2M", 11.0, "worse"),
    ]
    assert table.settings[0].bound == 10.29
    assert table.settings[1].ratio == pytest.approx(0.99)


def test_constant_resources_are_told(tmp_path: Path) -> None:
    cases = [
        replace(bound(t, threads=t), threads=t, tasks=8 // t, tasks_per_node=8 // t, nodes=1)
        for t in (1, 2, 4, 8)
    ]
    trial = Measuring(tmp_path, "t", cases)
    for case, level in zip(cases, (90.0, 100.0, 99.0, 60.0), strict=True):
        trial.series(case, TRIAD, steady(level, 6, 0.002))
    trial.done()
    (table,) = tables(tmp_path)
    assert table.cores == 8
    assert [one.name for one in table.settings if one.on_plateau] == ["threads=2", "threads=4"]
    out = ask(tmp_path, "best", "t").out
    assert "constant resources: 8 cores in each setting" in out and "ideal" not in out


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"over": ("ordre",)}, "--over ordre: is none of order, stripe, nodes, tasks"),
        ({"over": ("toolchain",)}, "--over toolchain: no two cases differ in that alone"),
        ({"metric": "triat"}, "--metric triat: no run has it; there are elapsed, triad"),
    ],
)
def test_what_cannot_be_asked_is_told(tmp_path: Path, asked: Any, said: str) -> None:
    sweep(tmp_path)
    with pytest.raises(UsageError, match=said):
        tables(tmp_path, **asked)


def test_single_runs_and_nothing_measured(tmp_path: Path) -> None:
    cases = [bound(i, order=order) for i, order in enumerate(("smp", "grid"))]
    trial = Measuring(tmp_path, "t", cases)
    for case in cases:
        trial.measure(case, {TRIAD: 10.0 + len(case.id)})
    trial.done()
    out = ask(tmp_path, "best", "t").out
    assert "single runs tell no difference: repeat" in out
    failing = Measuring(tmp_path, "f", cases)
    for case in cases:
        failing.measure(case, verdict=codes.WRONG_ANSWER)
    failing.done()
    out = ask(tmp_path, "best", "f").out
    assert "no setting has a figure" in out and out.count("1 wrong answer") == 2


def test_it_is_printed_and_given_as_json(tmp_path: Path) -> None:
    sweep(tmp_path)
    out = ask(tmp_path, "best", "t", "--over", "order,stripe", "--metric", "triad").out
    assert "stream@gcc: triad in MB/s (higher is better) over order, stripe" in out
    assert "cannot be told from the best: order=grid, stripe=" in out
    assert "1 setting without a figure" in out and "plateau: the best and order=" in out
    (table,) = json.loads(ask(tmp_path, "best", "t", "--format", "json").out)
    assert table["settings"][-1]["excluded"] == {"timeout": 1, "out of memory": 1}
    assert table["settings"][0]["verdict"] == "best"
