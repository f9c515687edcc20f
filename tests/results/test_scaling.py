from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from seatrial.errors import UsageError
from seatrial.model import codes
from seatrial.model.test import Case
from seatrial.results.scaling import ScalingQuery, ScalingTable, scaling
from seatrial.results.selection import gather, parse_side
from seatrial.results.store.ingest import synced
from seatrial.show.scaling import scaling_page
from seatrial.show.text import page_text
from tests.cli.test_query_common import ask
from tests.results.store.trials import a_case

from .figures import TIME, TRIAD, Measuring, bound, steady

XS = (1, 2, 4, 8, 16)


def tables(folder: Path, *texts: str, **asked: Any) -> list[ScalingTable]:
    with synced(folder / "store.sqlite", folder) as store:
        sides = [gather(store, parse_side(text)) for text in texts]
    return scaling(sides, ScalingQuery(**asked))


def threads(*xs: int, toolchain: str = "gcc", **more: Any) -> list[Case]:
    return [
        replace(bound(x, threads=x, **more), toolchain=toolchain, id=f"{toolchain}{x}") for x in xs
    ]


def sweep(
    folder: Path, levels: Sequence[float], tag: str = "t", runs: int = 5, spread: float = 0.003
) -> None:
    """A trial of stream over 1, 2, 4... threads, with those levels of triad."""
    trial = Measuring(folder, tag, threads(*XS[: len(levels)]))
    for case, level in zip(trial.cases, levels, strict=True):
        trial.series(case, TRIAD, steady(level, runs, spread))
    trial.done()


def test_speed_up_efficiency_and_the_knee(tmp_path: Path) -> None:
    sweep(tmp_path, [100, 198, 380, 420, 425])
    (table,) = tables(tmp_path, "t", x="threads", metric="triad")
    (line,) = table.lines
    assert [cell.x for cell in line.cells] == list(XS)
    assert [cell.ideal for cell in line.cells] == list(XS)
    assert line.cells[2].speedup == pytest.approx(3.8, rel=0.01)
    assert line.cells[2].efficiency == pytest.approx(0.95, rel=0.01)
    assert line.cells[3].gain == pytest.approx(420 / 380 - 1, rel=0.1)
    low, high = line.cells[2].low, line.cells[2].high
    assert low is not None and high is not None and low < 3.8 < high
    assert (line.knee, line.certain) == (4.0, True)
    assert table.best is not None and (table.best.x, table.best.equals) == (16.0, [])
    assert (table.case, table.unit) == ("stream@gcc", "MB/s")


def test_a_dip_is_no_knee_where_more_pays_later(tmp_path: Path) -> None:
    sweep(tmp_path, [100, 200, 210, 800, 1500])
    ((line,),) = (t.lines for t in tables(tmp_path, "t", x="threads", metric="triad"))
    assert line.knee is None and line.reason == "more still pays at 16"


def test_a_knee_within_the_noise_is_not_certain(tmp_path: Path) -> None:
    sweep(tmp_path, [100, 149], spread=0.03)
    ((line,),) = (t.lines for t in tables(tmp_path, "t", x="threads", metric="triad"))
    assert (line.knee, line.certain) == (1.0, False) and line.reason == (
        "not certain: more may pay, within the noise; repeat the runs"
    )
    sweep(tmp_path, [100, 110], tag="once", runs=1)
    ((line,),) = (t.lines for t in tables(tmp_path, "once", x="threads", metric="triad"))
    assert (line.knee, line.certain) == (1.0, False) and "single runs" in line.reason


def test_the_figure_of_merit_scales_unless_another_is_asked_for(tmp_path: Path) -> None:
    sweep(tmp_path, [100, 198])
    (table,) = tables(tmp_path, "t", x="threads")
    assert (table.metric, table.unit) == ("triad", "MB/s")
    (table,) = tables(tmp_path, "t", x="threads", metric="elapsed")
    assert table.metric == "elapsed"
    cases = threads(1, 2)
    trial = Measuring(tmp_path, "plain", cases)
    for case in cases:
        trial.measure(case, elapsed=2.0)
    trial.done()
    (table,) = tables(tmp_path, "plain", x="threads")
    assert table.metric == "elapsed"


def test_the_same_time_is_ideal_where_the_work_grows(tmp_path: Path) -> None:
    cases = [a_case(n, parameters={"size": 1000 * n}, nodes=n) for n in (1, 2, 4)]
    trial = Measuring(tmp_path, "weak", cases)
    for case, seconds in zip(cases, (10, 10, 20), strict=True):
        for _ in range(3):
            trial.measure(case, elapsed=seconds)
    trial.done()
    (table,) = tables(tmp_path, "weak", x="nodes", weak=True)
    assert table.along == ["size"] and table.case == "stream@gcc"
    assert [cell.efficiency for cell in table.lines[0].cells] == [1.0, 1.0, 0.5]
    assert [cell.speedup for cell in table.lines[0].cells] == [1.0, 2.0, 2.0]
    (strong,) = tables(tmp_path, "weak", x="nodes")
    assert [cell.speedup for cell in strong.lines[0].cells] == [1.0, 1.0, 0.5]


def test_lines_by_toolchain_and_the_best_of_all(tmp_path: Path) -> None:
    cases = [*threads(1, 2, 4), *threads(1, 2, 4, toolchain="clang")]
    trial = Measuring(tmp_path, "t", cases)
    for case, level in zip(cases, (100, 200, 230, 120, 232, 231), strict=True):
        trial.series(case, TRIAD, steady(level, 6, 0.005))
    trial.done()
    (table,) = tables(tmp_path, "t", x="threads", metric="triad", by=("toolchain",))
    assert [line.by for line in table.lines] == ["gcc", "clang"] and table.case == "stream"
    assert table.best is not None
    assert {(table.best.by, table.best.x), *table.best.equals} >= {("clang", 2.0), ("clang", 4.0)}
    assert ("gcc", 2.0) not in table.best.equals
    words = page_text(scaling_page([table], ScalingQuery(x="threads")))
    assert "clang, threads 2: 232.1 MB/s; as good within the noise: gcc, threads 4; clang" in words
    assert len(tables(tmp_path, "t", x="threads", metric="triad")) == 2


@pytest.mark.parametrize("runs", [1, 5])
def test_a_speed_up_beyond_ideal_is_told(tmp_path: Path, runs: int) -> None:
    """GTC as printed: 13 times as fast from 64 to 256 cores, where 1,024 were meant."""
    cases = threads(64, 256)
    trial = Measuring(tmp_path, "t", cases)
    for case, level in zip(cases, (100.0, 1300.0), strict=True):
        trial.series(case, TRIAD, [level * (1 + i / 1000) for i in range(runs)])
    trial.done()
    ((line,),) = (t.lines for t in tables(tmp_path, "t", x="threads", metric="triad"))
    assert [cell.x for cell in line.beyond_ideal] == [256.0]
    out = ask(tmp_path, "scaling", "t", "--x", "threads", "--metric", "triad").out
    assert "threads 64 to 256: a speed-up of 13 is beyond ideal (4)" in out


def test_an_ideal_speed_up_is_not_beyond_it(tmp_path: Path) -> None:
    sweep(tmp_path, [100, 200, 400], tag="once", runs=1, spread=0.0)
    ((line,),) = (t.lines for t in tables(tmp_path, "once", x="threads", metric="triad"))
    assert line.beyond_ideal == []


def test_versions_by_trial(tmp_path: Path) -> None:
    sweep(tmp_path, [100, 150], tag="v1")
    sweep(tmp_path, [100, 190], tag="v2")
    (table,) = tables(tmp_path, "v1", "v2", x="threads", metric="triad", by=("trial",))
    assert [line.cells[1].speedup for line in table.lines] == [
        pytest.approx(1.5, rel=0.01),
        pytest.approx(1.9, rel=0.01),
    ]


def test_failed_cells_stay_with_their_cause(tmp_path: Path) -> None:
    trial = Measuring(tmp_path, "t", threads(1, 2, 4, 8))
    trial.measure(trial.cases[0], verdict=codes.OUT_OF_MEMORY)
    trial.series(trial.cases[1], TRIAD, [10.0, 10.1, 10.2])
    trial.measure(trial.cases[2], {TRIAD: 0.0})
    trial.done()
    (table,) = tables(tmp_path, "t", x="threads", metric="triad")
    (line,) = table.lines
    assert [cell.reason for cell in line.cells] == [
        "1 out of memory",
        "",
        "0 is not above 0",
        "not run",
    ]
    assert line.base == 2.0 and line.cells[1].speedup == 1.0
    assert line.reason == "one value measured: nothing to compare"


def test_units_are_not_mixed(tmp_path: Path) -> None:
    trial = Measuring(tmp_path, "t", threads(1, 2))
    trial.measure(trial.cases[0], {TRIAD: 1.0})
    trial.measure(trial.cases[1], {("triad", "GB/s", "higher"): 1.0})
    trial.done()
    (table,) = tables(tmp_path, "t", x="threads", metric="triad")
    assert not table.lines and "units differ: MB/s and GB/s; nothing" in table.reason


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"x": "treads"}, r"--x treads: is none of nodes, tasks, threads, cores, bind"),
        ({"x": "bind"}, "--x bind: is close in every case"),
        ({"x": "zero", "weak": True}, "--weak: the work grows with numbers above 0; zero has 0"),
        ({"x": "nodes"}, "--x nodes: is 1 in every case"),
        ({"x": "threads", "by": ("compiler",)}, "--by compiler: is none of toolchain, machine"),
        ({"x": "threads", "by": ("threads",)}, "that is --x already"),
        ({"x": "threads", "metric": "triat"}, "--metric triat: no run has it; there are elapsed"),
    ],
)
def test_what_cannot_be_asked_is_told(tmp_path: Path, asked: dict[str, Any], said: str) -> None:
    trial = Measuring(tmp_path, "t", threads(1, 2, bind="close", zero=0))
    for case in trial.cases:
        trial.measure(case, {TRIAD: 5.0})
    trial.done()
    with pytest.raises(UsageError, match=said):
        tables(tmp_path, "t", **asked)


def test_cases_that_differ_in_more_are_told(tmp_path: Path) -> None:
    cases = [bound(i, threads=t, size=i) for i, t in enumerate((1, 1, 2))]
    trial = Measuring(tmp_path, "t", cases)
    for case in cases:
        trial.measure(case)
    trial.done()
    with pytest.raises(UsageError, match="no two cases differ in it alone, but in size, too"):
        tables(tmp_path, "t", x="threads")
    (table,) = tables(tmp_path, "t:size=[12]", x="threads")
    assert table.along == ["size"]
    (table,) = tables(tmp_path, "t", x="threads", by=("size",))
    assert [line.reason for line in table.lines] == ["one value measured: nothing to compare"] * 3


def test_what_differs_is_told_though_it_is_no_parameter(tmp_path: Path) -> None:
    for machine, count in (("carver", 1), ("hopper", 2)):
        trial = Measuring(tmp_path, machine, threads(count), machine=machine)
        trial.measure(trial.cases[0])
        trial.done()
    with pytest.raises(UsageError, match=r"alone, but in machine, too; .*--by machine"):
        tables(tmp_path, "*", x="threads")


def test_tables_of_several_machines_name_theirs(tmp_path: Path) -> None:
    for machine in ("carver", "hopper"):
        trial = Measuring(tmp_path, machine, threads(1, 2), machine=machine)
        for case in trial.cases:
            trial.measure(case)
        trial.done()
    named = [table.case for table in tables(tmp_path, "*", x="threads")]
    assert named == ["stream@gcc on carver", "stream@gcc on hopper"]
    (table,) = tables(tmp_path, "*", x="threads", by=("machine",))
    assert table.case == "stream@gcc"
    said = ask(tmp_path, "best", "carver", "hopper", "--over", "threads").out
    assert "stream@gcc on hopper: " in said


def settings(folder: Path, name: str, levels: dict[str, float]) -> None:
    trial = Measuring(folder, "t", [bound(i, **{name: each}) for i, each in enumerate(levels)])
    for case, level in zip(trial.cases, levels.values(), strict=True):
        trial.series(case, TRIAD, steady(level, 6, 0.002))
    trial.done()


def test_words_are_settings_without_an_order(tmp_path: Path) -> None:
    settings(tmp_path, "order", {"smp": 80.0, "grid": 100.0, "snake": 60.0, "hilbert": 99.5})
    (table,) = tables(tmp_path, "t", x="order", metric="triad")
    (line,) = table.lines
    assert table.fixed and not table.ordered
    assert [table.named(cell.x) for cell in line.cells] == ["smp", "grid", "snake", "hilbert"]
    assert [cell.speedup for cell in line.cells] == pytest.approx([0.8, 1.0, 0.6, 0.995], rel=0.01)
    assert [table.named(x) for x in line.plateau] == ["grid", "hilbert"]
    assert not line.drops and table.best is not None and table.named(table.best.x) == "grid"
    out = ask(tmp_path, "scaling", "t", "--x", "order", "--metric", "triad").out
    assert "settings: each beside the best" in out and "as good: order grid, hilbert" in out
    assert "best median: order grid: " in out


def test_a_number_may_be_0(tmp_path: Path) -> None:
    settings(tmp_path, "free", {"2": 70.0, "0": 50.0, "1": 100.0})
    (table,) = tables(tmp_path, "t", x="free", metric="triad")
    (line,) = table.lines
    assert table.fixed and table.ordered and table.names == ["0", "1", "2"]
    assert [cell.speedup for cell in line.cells] == pytest.approx([0.5, 1.0, 0.7], rel=0.01)
    assert [(table.named(d.before), table.named(d.after)) for d in line.drops] == [("1", "2")]
    out = ask(tmp_path, "scaling", "t", "--x", "free", "--metric", "triad").out
    assert "plateau: free 1:" in out and "from free 1 to 2 (95 %" in out


# ---- cores: tasks x threads ---------------------------------------------------------------


def hybrid(folder: Path) -> None:
    """1, 2 and 4 ranks with 1, 2 and 4 threads: 10 for each core, and 1 less for each thread more;
    a second test has another metric."""
    shapes = [(ranks, each) for ranks in (1, 2, 4) for each in (1, 2, 4)]
    cases = [
        replace(bound(i, ranks=ranks, omp=each), tasks=ranks, threads=each, id=f"r{ranks}t{each}")
        for i, (ranks, each) in enumerate(shapes)
    ]
    other = [replace(bound(i + 20, "hpl", ranks=i), tasks=i, id=f"h{i}") for i in (1, 2)]
    trial = Measuring(folder, "t", [*cases, *other])
    for case, (ranks, each) in zip(trial.cases, shapes, strict=False):
        trial.series(case, TRIAD, steady(10.0 * ranks * each - (each - 1), 4, 0.001))
    for case in other:
        trial.series(case, TIME, steady(50, 3))
    trial.done()


def test_over_cores_hybrid_settings_are_read_off_against_one_core(tmp_path: Path) -> None:
    hybrid(tmp_path)
    (table,) = tables(tmp_path, "t", x="cores", metric="triad")
    assert [line.by for line in table.lines] == ["tasks=1", "tasks=2", "tasks=4"]
    assert table.along == ["ranks", "omp"]
    cells = {line.by: {cell.x: cell.speedup for cell in line.cells} for line in table.lines}
    assert cells["tasks=4"].keys() == {4, 8, 16}
    assert cells["tasks=1"][1] == 1 and cells["tasks=1"][4] == pytest.approx(3.7, rel=0.01)
    assert cells["tasks=2"][4] == pytest.approx(3.9, rel=0.01)
    assert cells["tasks=4"][4] == pytest.approx(4.0, rel=0.01), "not 1: the base is one core"
    (named,) = tables(tmp_path, "t", x="cores", metric="triad", by=("ranks",))
    assert [line.by for line in named.lines] == ["ranks=1", "ranks=2", "ranks=4"]
    assert named.lines[2].cells[0].speedup == cells["tasks=4"][4]


def test_over_cores_each_toolchain_is_read_off_against_itself(tmp_path: Path) -> None:
    trial = Measuring(tmp_path, "t", [*threads(1, 2), *threads(1, 2, toolchain="clang")])
    for case, level in zip(trial.cases, (100.0, 190.0, 50.0, 99.0), strict=True):
        trial.series(case, TRIAD, steady(level, 4, 0.001))
    trial.done()
    (table,) = tables(tmp_path, "t", x="cores", metric="triad", by=("toolchain",))
    cells = {line.by: {cell.x: cell.speedup for cell in line.cells} for line in table.lines}
    assert cells["gcc"][2] == cells["clang"][2] == 1
    assert cells["clang"][4] == pytest.approx(1.98, rel=0.01)
    (table,) = tables(tmp_path, "t:toolchain=gcc", x="cores", metric="triad")
    assert [line.by for line in table.lines] == [""], "all have as many tasks: nothing to name"


def test_tests_without_the_metric_are_left_out_and_named(tmp_path: Path) -> None:
    hybrid(tmp_path)
    answer = ask(tmp_path, "scaling", "t", "--x", "cores", "--metric", "triad")
    assert answer.code == 0 and answer.out.count(" over cores") == 1
    assert answer.out.splitlines()[-1] == "without triad: hpl"
    assert "tasks=1: " in answer.out and "no such figure" not in answer.out
    assert "best median: tasks=4, cores 16" in answer.out
