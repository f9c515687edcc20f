"""The best of settings: ranked over any parameters, with what cannot be told from it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from seatrial.errors import UsageError
from seatrial.model import codes
from seatrial.results.best import BestQuery, BestTable, best_settings
from seatrial.results.selection import gather, parse_side
from seatrial.results.store.ingest import synced
from tests.cli.test_query_common import ask

from .figures import TIME, TRIAD, Measuring, bound, io_sweep, steady

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
    assert table.indistinct == [second]
    assert (third.name, third.verdict) == ("order=smp, stripe=4", "worse")
    assert third.ratio == pytest.approx(0.97, abs=0.004)
    assert third.low is not None and third.high is not None
    assert third.low < 0.97 < third.high < 0.98
    failed = table.settings[-1]
    assert (failed.verdict, failed.n, failed.reason) == (
        "no figure",
        0,
        "1 timeout, 1 out of memory",
    )
    assert {one.name for one in table.settings if one.on_plateau} == {
        "order=grid, stripe=4",
        "order=grid, stripe=16",
        "order=smp, stripe=4",
    }


def test_settings_at_a_default_are_ranked_with_the_others(tmp_path: Path) -> None:
    io_sweep(tmp_path)
    (table,) = tables(tmp_path)
    assert len(table.settings) == 16 and not table.left_out
    assert table.settings[0].median == 154.1
    assert table.settings[0].values == {
        "api": "posix",
        "files": "each",
        "writers": "2",
        "transfer": "64K",
    }
    out = ask(tmp_path, "best", "io1", "--metric", "write").out
    assert "best: api=posix, files=each, writers=2, transfer=64K: 154.1 MiB/s" in out
    assert "all of these: one figure has no spread: repeat the run" in out
    of_ranges = ask(tmp_path, "best", "io1", "--over", "api", "--best-of", "writers,files").out
    assert of_ranges.count("best of writers, files") == 2
    assert of_ranges.count("The best of several noisy cases") == 1 and "noisy" not in out
    by_default = tables(tmp_path, "io1:writers=2,api=posix", over=("files", "transfer"))
    assert [len(one.settings) for one in by_default] == [4]


def test_ten_lines_with_a_default(tmp_path: Path) -> None:
    cases = {}
    for i, place in enumerate("ab"):
        cases[place, 1] = bound(i, place=place)  # it is not told by its default
        cases |= {(place, n): bound(10 * n + i, place=place, ranks=n) for n in (2, 4)}
    trial = Measuring(tmp_path, "t", list(cases.values()), defaults={"ranks": 1})
    lat = ("lat", "us", "lower")
    for (place, ranks), case in cases.items():
        level = 101.5 if place == "a" else 104.0
        trial.series(case, lat, [ranks * level + i for i in range(4)])
    trial.done()
    (table,) = tables(tmp_path)
    assert table.settings[0].values == {"place": "a", "ranks": "1"}
    assert "best: place=a, ranks=1: 103 us" in ask(tmp_path, "best", "t").out
    scaled = ask(tmp_path, "scaling", "t", "--x", "ranks", "--metric", "lat").out
    assert "ranks 1, the smallest measured" in scaled and "ranks 2, the smallest" not in scaled
    ratio = ask(tmp_path, "ratio", "t", "--of", "ranks=1,4", "--x", "place", "--metric", "lat").out
    assert "4 over 1" in ratio and "no such case" not in ratio
    matrix = json.loads(ask(tmp_path, "matrix", "t", "--by", "ranks", "--format", "json").out)
    assert matrix["columns"] == ["1", "2", "4"] and matrix["left_out"] == 0
    compared = ask(tmp_path, "compare", "t:ranks=1", "t:ranks=2", "--format", "json")
    rows = json.loads(compared.out)["comparisons"][0]["rows"]
    assert {row["case"]: row["verdict"] for row in rows} == {
        "stream{place=a}": "worse",
        "stream{place=b}": "worse",
    }


def test_a_trial_from_before_the_parameter_is_as_one_at_the_default(tmp_path: Path) -> None:
    old = Measuring(tmp_path, "old", [bound(1, order="smp"), bound(2, order="grid")])
    new = Measuring(tmp_path, "new", old.cases, defaults={"ranks": 1})
    for trial in (old, new):
        for case, level in zip(trial.cases, (10.0, 20.0), strict=True):
            trial.series(case, TRIAD, [level, level + 0.1])
        trial.done()
    (table,) = tables(tmp_path, "old", "new")
    assert table.over == ["order"] and [one.n for one in table.settings] == [4, 4]
    assert ask(tmp_path, "compare", "old", "new", "--format", "json").code == 3
    with_ranks = ask(tmp_path, "best", "old", "new:order=smp", "--over", "ranks,order")
    assert "--over ranks,order" in with_ranks.err


def test_cases_that_are_in_no_table_are_counted(tmp_path: Path) -> None:
    cases = [bound(1, order="smp", deck="a"), bound(2, order="grid", deck="a")]
    cases += [bound(3, order="smp", deck="b"), bound(4, deck="a")]
    trial = Measuring(tmp_path, "t", cases)
    for case in cases:
        trial.measure(case, {TRIAD: 10.0})
    trial.done()
    (table,) = tables(tmp_path, over=("order",))
    assert table.left_out == {"without order": 1, "with no other to be ranked with": 1}
    out = ask(tmp_path, "best", "t", "--over", "order").out
    last = "left out: 2 cases: 1 without order, 1 with no other to be ranked with"
    assert out.splitlines()[-1] == last


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
    assert "order=grid: one figure has no spread: repeat the run" in out
    assert "run each with --repeat 5" in out
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
