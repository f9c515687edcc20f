"""Ratios of two ways of running: the figures of the paper on compatibility mode, planted truths."""

from __future__ import annotations

import csv
import io
import json
import math
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from seatrial.errors import UsageError
from seatrial.judge.statistics.two_samples import interval, ratio_of_ratios
from seatrial.model import codes
from seatrial.model.test import Case
from seatrial.results.ratios import RatioQuery, RatioTable, extremes, ratios
from seatrial.results.selection import gather, parse_side
from seatrial.results.store.ingest import synced
from tests.cli.test_query_common import ask
from tests.results.store.trials import a_case

from .figures import Kind, Measuring, bound, steady

WALL: Kind = ("wall", "s", "lower")
RATE: Kind = ("rate", "steps/s", "higher")
BOTH = ("native", "compat")

# Figures 8 to 13 of the paper on Cluster Compatibility Mode, as far as its text names them: ratios
# of 1.11 (GTC, 64 tasks) and 1.93 (MILC, 256), of 1.02 and 2.32 at the ends, and speed-ups of 8.2
# against 11.6 of 16. All other figures, and the tests that have the ends, are made up.
PAPER: Mapping[str, Mapping[int, tuple[float, float]]] = {
    "GTC": {64: (1000.0, 1.11), 256: (260.0, 1.21), 1024: (1000 / 11.6, 1.11 * 11.6 / 8.2)},
    "MILC": {64: (800.0, 1.25), 256: (220.0, 1.93)},
    "Paratec": {64: (600.0, 1.18), 256: (190.0, 1.74)},
    "ImpactT": {64: (400.0, 1.14), 256: (120.0, 1.33)},
    "slowest": {16: (1.5, 2.32)},
    "fastest": {16: (50.0, 1.02)},
}


def ways(test: str, *xs: int) -> list[Case]:
    return [
        replace(
            bound(100 * i + x, test), toolchain=way, tasks=x, id=f"{test}-{way}-{x}", parameters={}
        )
        for i, way in enumerate(BOTH)
        for x in xs
    ]


def paper(folder: Path) -> None:
    cases = {test: ways(test, *sizes) for test, sizes in PAPER.items()}
    trial = Measuring(folder, "ccm", [case for each in cases.values() for case in each])
    for test, sizes in PAPER.items():
        for case in cases[test]:
            native, ratio = sizes[case.tasks]
            level = native * (ratio if case.toolchain == "compat" else 1.0)
            trial.series(case, WALL, [level * factor for factor in (0.995, 0.999, 1, 1.001, 1.005)])
    trial.done()


def tables(folder: Path, *texts: str, **asked: Any) -> list[RatioTable]:
    with synced(folder / "store.sqlite", folder) as store:
        sides = [gather(store, parse_side(text)) for text in texts]
    usual = {"of": "toolchain", "values": BOTH, "x": "tasks", "metric": "wall"}
    return ratios(sides, RatioQuery(**{**usual, **asked}))


ASKED = ("ratio", "ccm", "--of", "toolchain=native,compat", "--x", "tasks", "--metric", "wall")


def test_the_papers_figures(tmp_path: Path) -> None:
    paper(tmp_path)
    found = {table.test: table for table in tables(tmp_path, "ccm")}
    for test, sizes in PAPER.items():
        measured = {int(cell.x): cell for cell in found[test].cells}
        assert measured.keys() == sizes.keys()
        for x, (_, ratio) in sizes.items():
            cell = measured[x]
            assert cell.ratio == pytest.approx(ratio, rel=1e-9)
            assert cell.low is not None and cell.high is not None and cell.low < ratio < cell.high
            assert cell.verdict == "worse"
    ends = extremes(list(found.values()))
    assert ends is not None
    assert [(round(one.ratio, 9), one.test, one.x) for one in ends] == [
        (1.02, "fastest", "16"),
        (2.32, "slowest", "16"),
    ]
    gtc = found["GTC"]
    last = gtc.cells[-1]
    assert last.first.speedup == pytest.approx(11.6) and last.first.ideal == 16
    assert last.second.speedup == pytest.approx(8.2)
    assert gtc.change is not None and gtc.change.ratio == pytest.approx(11.6 / 8.2)
    assert gtc.change.low is not None and gtc.change.low > 1.4
    assert gtc.change.high is not None and gtc.change.high < 1.43
    answer = ask(tmp_path, *ASKED, "--test", "GTC", "--test", "MILC")
    assert answer.code == 0
    assert "speed-up from tasks 64 to 1024: native 11.6, compat 8.2, of 16" in answer.out
    assert "range: 1.25 at tasks 64 .. 1.93 at tasks 256" in answer.out
    assert answer.out.splitlines()[-1] == "over all: 1.11 GTC 64 .. 1.93 MILC 256"
    assert "ratio of ratios from tasks 64 to 1024: 1.415 (95 %: " in answer.out


def test_programs_get_json_and_csv(tmp_path: Path) -> None:
    paper(tmp_path)
    (gtc,) = json.loads(ask(tmp_path, *ASKED, "-k", "GTC", "--format", "json").out)
    assert [cell["x"] for cell in gtc["cells"]] == [64, 256, 1024]
    assert gtc["cells"][0]["ratio"] == pytest.approx(1.11)
    assert "values" not in gtc["cells"][0]["first"] and gtc["change"]["ratio"] == pytest.approx(
        11.6 / 8.2
    )
    rows = list(csv.DictReader(io.StringIO(ask(tmp_path, *ASKED, "--format", "csv").out)))
    assert len(rows) == sum(map(len, PAPER.values()))
    milc = next(row for row in rows if row["case"] == "MILC" and row["x"] == "256")
    assert float(milc["ratio"]) == pytest.approx(1.93) and milc["verdict"] == "slower"
    assert float(milc["second_median"]) == pytest.approx(220 * 1.93)


@pytest.mark.parametrize("measured", BOTH)
def test_where_one_way_gave_no_figure_the_other_is_still_shown(
    tmp_path: Path, measured: str
) -> None:
    cases = ways("lammps", 2, 4)
    trial = Measuring(tmp_path, "t", cases)
    for case in cases:
        trial.measure(case, {WALL: 10.0} if case.toolchain == measured else None)
    trial.done()
    (table,) = tables(tmp_path, "t")
    of_both = [(cell.first.n, cell.second.n) for cell in table.cells]
    assert of_both == [(1, 0) if measured == "native" else (0, 1)] * 2
    assert table.known == [] and (table.lowest, table.highest) == (None, None)
    with pytest.raises(UsageError, match="other"):
        tables(tmp_path, "t", metric="other")


def test_of_a_rate_the_ratio_is_of_times_too(tmp_path: Path) -> None:
    """Half the rate is twice the time; the interval turns with it."""
    cases = ways("lammps", 2, 4)
    trial = Measuring(tmp_path, "t", cases)
    for case, level in zip(cases, (100.0, 190.0, 50.0, 60.0), strict=True):
        trial.series(case, RATE, steady(level, 8, 0.02))
    trial.done()
    (table,) = tables(tmp_path, "t", metric="rate")
    first, last = table.cells
    assert first.ratio == pytest.approx(2.0, rel=0.03)
    assert first.low is not None and first.high is not None
    assert first.low < first.ratio < first.high and first.verdict == "worse"  # type: ignore[operator]
    assert last.first.speedup == pytest.approx(1.9, rel=0.03)
    assert last.second.speedup == pytest.approx(1.2, rel=0.03)
    assert table.change is not None and last.ratio is not None and first.ratio is not None
    assert table.change.ratio == pytest.approx(last.ratio / first.ratio)
    assert table.change.low is not None and table.change.low > 1.4


def test_what_failed_stays_with_its_cause(tmp_path: Path) -> None:
    cases = ways("milc", 64, 256, 512)
    trial = Measuring(tmp_path, "t", cases[:-1])
    for case in cases[:3]:
        trial.series(case, WALL, steady(1000 / case.tasks, 4))
    trial.series(cases[3], WALL, steady(20.0, 4))
    for _ in range(2):
        trial.measure(cases[4], verdict=codes.TIMEOUT)
    trial.done()
    (table,) = tables(tmp_path, "t")
    assert [cell.ratio is not None for cell in table.cells] == [True, False, False]
    assert [cell.second.reason for cell in table.cells] == ["", "2 timeout", "no such case"]
    assert not any(cell.first.reason for cell in table.cells)
    assert table.change is None
    out = ask(tmp_path, *ASKED[:1], "t", *ASKED[2:]).out
    assert "compat: 2 timeout" in out and "compat: no such case" in out and "range" not in out


def test_any_parameter_may_be_the_way(tmp_path: Path) -> None:
    """Two orders over a size that is a word; another parameter follows the order one to one."""
    shapes = [(o, deck) for o in ("smp", "grid") for deck in ("small", "big")]
    cases = [
        bound(i, order=order, deck=deck, file=f"order.{order}")
        for i, (order, deck) in enumerate(shapes)
    ]
    trial = Measuring(tmp_path, "t", [*cases, a_case(9, "other")])
    for case, level in zip(cases, (1.0, 2.0, 0.5, 2.0), strict=True):
        trial.series(case, WALL, steady(level, 5))
    trial.done()
    (table,) = tables(tmp_path, "t", of="order", values=("smp", "grid"), x="deck")
    assert table.along == ["file"] and table.names == ["small", "big"] and table.change is None
    assert [cell.ratio for cell in table.cells] == pytest.approx([0.5, 1.0], rel=0.02)
    assert table.cells[0].verdict == "better"
    out = ask(tmp_path, "ratio", "t", "--of", "order=smp,grid", "--x", "deck", "--metric", "wall")
    assert "range: 0.4982 at deck small .. 1 at deck big" in out.out
    assert out.out.splitlines()[-1] == "not with both smp and grid: other"


def carver_and_hopper(folder: Path, *more: tuple[str, str]) -> None:
    """NAMD over cores, on two machines whose toolchains have names of their own: Hopper takes 14 %
    more time with 6 and 12 cores, and 10 % less with 24."""
    for machine, toolchain in (("carver", "intel"), ("hopper", "pgi"), *more):
        cases = [
            a_case(n, "namd", parameters={"cores": n}, threads=n, toolchain=toolchain)
            for n in (6, 12, 24)
        ]
        tag = f"{machine}-{toolchain}"
        trial = Measuring(folder, tag, cases, machine=machine)
        for case in cases:
            slower = {"carver": 1.0, "hopper": 0.9 if case.threads == 24 else 1.14}[machine]
            trial.series(case, WALL, steady(1000 / case.threads * slower, 5, 0.001))
        trial.done()


@pytest.mark.parametrize(
    "of", ["machine=carver,hopper", "toolchain=intel,pgi", "trial=carver-intel,hopper-pgi"]
)
def test_two_machines_whose_toolchains_have_other_names(tmp_path: Path, of: str) -> None:
    carver_and_hopper(tmp_path)
    name, _, values = of.partition("=")
    one, other = values.split(",")
    (table,) = tables(tmp_path, "*", of=name, values=(one, other), x="cores")
    assert [cell.ratio for cell in table.cells] == pytest.approx([1.14, 1.14, 0.9], rel=2e-3)
    assert [cell.word for cell in table.cells] == ["slower", "slower", "faster"]
    follow = {"machine", "toolchain"} - {name}
    assert follow <= {*table.along}
    for command in (("scaling", "--x", "cores", "--by", name), ("best", "--over", f"{name},cores")):
        found = ask(tmp_path, command[0], "*", *command[1:], "--metric", "wall", "--format", "json")
        records = json.loads(found.out)
        assert len(records) == 1, found.out


def test_what_else_two_ways_differ_in_is_named(tmp_path: Path) -> None:
    carver_and_hopper(tmp_path, ("carver", "gcc"))
    done = ask(tmp_path, "ratio", "*", "--of", "machine=carver,hopper", "--x", "cores")
    assert done.code == 2
    assert "but in toolchain (gcc, intel and pgi), too; choose cases" in done.err
    chosen = ("carver-intel", "hopper-pgi")
    done = ask(tmp_path, "ratio", *chosen, "--of", "machine=carver,hopper", "--x", "cores")
    assert done.code == 0


def test_constant_resources_have_no_speed_up_and_what_is_unclear_is_marked(tmp_path: Path) -> None:
    shapes = [(mode, n) for mode in ("native", "compat") for n in (1, 2, 4)]
    cases = [
        a_case(i, "gtch", parameters={"mode": mode}, tasks=4 // n, tasks_per_node=4 // n, threads=n)
        for i, (mode, n) in enumerate(shapes)
    ]
    trial = Measuring(tmp_path, "t", cases)
    for case in cases:
        level = 10.0 if case.parameters["mode"] == "native" else 12.0
        trial.series(case, WALL, [level, level * 1.001] if case.threads == 4 else steady(level, 5))
    trial.done()
    asked = ("ratio", "t", "--of", "mode=native,compat", "--x", "threads", "--metric", "wall")
    out = ask(tmp_path, *asked).out
    assert "constant resources: no speed-up is to be expected" in out
    assert "speed-up from" not in out and "ratio of ratios" not in out
    assert "threads 4 (unclear)" in out and out.count("slower") == 2
    (record,) = json.loads(ask(tmp_path, *asked, "--format", "json").out)
    assert record["fixed"] and record["cells"][0]["first"]["ideal"] is None


def test_resources_are_constant_where_a_user_says_so(tmp_path: Path) -> None:
    trial = Measuring(tmp_path, "t", cases := ways("milc", 64, 128))
    for case in cases:
        trial.series(case, WALL, steady(10.0, 5))
    trial.done()
    usual, fixed = (ask(tmp_path, *ASKED[:1], "t", *ASKED[2:], *more) for more in ([], ["--fixed"]))
    assert "speed-up from tasks 64 to 128" in usual.out and "constant" not in usual.out
    assert "speed-up from" not in fixed.out and "constant resources" in fixed.out
    both = ask(tmp_path, *ASKED[:1], "t", *ASKED[2:], "--weak", "--fixed")
    assert both.code == 2 and "--weak and --fixed" in both.err


def test_single_runs_have_a_ratio_and_no_interval(tmp_path: Path) -> None:
    cases = ways("milc", 64, 128)
    trial = Measuring(tmp_path, "t", cases)
    for case in cases:
        trial.measure(case, {WALL: float(case.tasks)})
    trial.done()
    (table,) = tables(tmp_path, "t")
    assert [(cell.ratio, cell.low, cell.verdict) for cell in table.cells] == [
        (1.0, None, "unclear")
    ] * 2
    assert table.change is not None and table.change.low is None
    assert "single runs" in ask(tmp_path, *ASKED[:1], "t", *ASKED[2:]).out


def test_units_and_directions_are_not_mixed(tmp_path: Path) -> None:
    cases = ways("milc", 64)
    trial = Measuring(tmp_path, "t", cases)
    trial.measure(cases[0], {WALL: 1.0, ("plain", "", "none"): 1.0})
    trial.measure(cases[1], {("wall", "ms", "lower"): 1.0, ("plain", "", "none"): 1.0})
    trial.done()
    (table,) = tables(tmp_path, "t")
    assert not table.cells and "units differ: s and ms; nothing" in table.reason
    (table,) = tables(tmp_path, "t", metric="plain")
    assert not table.cells and "no direction" in table.reason


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"of": "chain"}, r"--of chain: is none of nodes, tasks, threads, cores, toolchain"),
        ({"x": "taks"}, "--x taks: is none of"),
        ({"of": "tasks"}, "--of tasks: that is --x already"),
        ({"values": ("native", "ccm")}, "no case has ccm; there are native, compat"),
        ({"metric": "wal"}, "--metric wal: no run has it; there are elapsed, wall"),
    ],
)
def test_what_cannot_be_asked_is_told(tmp_path: Path, asked: dict[str, Any], said: str) -> None:
    cases = ways("milc", 64, 128)
    trial = Measuring(tmp_path, "t", cases)
    for case in cases:
        trial.measure(case, {WALL: 5.0})
    trial.done()
    with pytest.raises(UsageError, match=said):
        tables(tmp_path, "t", **asked)


@pytest.mark.parametrize("text", ["toolchain", "toolchain=a", "t=a,b,c", "t=a,a", "=a,b", "t=a,"])
def test_two_values_are_wanted(tmp_path: Path, text: str) -> None:
    paper(tmp_path)
    answer = ask(tmp_path, "ratio", "ccm", "--of", text, "--x", "tasks")
    assert answer.code == 2 and "write e.g. toolchain=native,compat" in answer.err


# ---- how often the intervals hold the truth -----------------------------------------------


def drawn(rng: random.Random, level: float, count: int, spread: float) -> list[float]:
    return [level * math.exp(rng.gauss(0, spread)) for _ in range(count)]


def share_of_truths(count: int, ends: Sequence[tuple[float, float]], truth: float) -> float:
    return sum(low <= truth <= high for low, high in ends) / count


@pytest.mark.parametrize("runs", [3, 4, 5, 8, 15])
def test_the_interval_holds_the_truth_in_19_of_20(runs: int) -> None:
    """1,000 simulations of two log-normal samples whose spreads differ."""
    rng = random.Random(runs)
    ends = [interval(drawn(rng, 10, runs, 0.03), drawn(rng, 14, runs, 0.05)) for _ in range(1000)]
    assert 0.93 <= share_of_truths(1000, ends, 1.4) <= 0.97


@pytest.mark.parametrize("runs", [3, 4, 5, 10])
def test_that_of_the_ratio_of_ratios_is_a_little_wide(runs: int) -> None:
    rng = random.Random(runs)
    levels = ((10, 0.03), (11, 0.05), (3, 0.02), (4.5, 0.04))  # 1.1, then 1.5
    found = [
        ratio_of_ratios(*(drawn(rng, level, runs, spread) for level, spread in levels))
        for _ in range(1000)
    ]
    ends = [(one.low or 0.0, one.high or 0.0) for one in found]
    assert 0.95 <= share_of_truths(1000, ends, 1.5 / 1.1) <= 0.985
