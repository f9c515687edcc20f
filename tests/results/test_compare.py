from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bench.quality import sides
from msgspec.structs import replace

from seatrial.errors import UsageError
from seatrial.model import codes
from seatrial.results.compare import Comparison, ComparisonRow, compare_sides
from seatrial.results.selection import gather, parse_side
from seatrial.results.store.ingest import synced
from seatrial.show.compare import compare_page
from seatrial.show.text import page_text
from tests.results.store.trials import NOON, a_case

from .figures import TIME, TRIAD, Measuring, bound, steady

Fill = Callable[[Measuring], None]


def compared(folder: Path, *texts: str, **options: Any) -> Comparison:
    with synced(folder / "store.sqlite", folder) as store:
        first, second = (gather(store, parse_side(text)) for text in texts)
    return compare_sides(first, second, **options)


def two(folder: Path, first: Fill, second: Fill, cases: int = 1, **options: Any) -> Comparison:
    for tag, fill in (("a", first), ("b", second)):
        trial = Measuring(folder, tag, [bound(i, size=i) for i in range(cases)])
        fill(trial)
        trial.done()
    return compared(folder, "a", "b", **options)


def row(found: Comparison, metric: str = "triad", case: str = "") -> ComparisonRow:
    (one,) = (r for r in found.rows if r.metric == metric and case in r.case)
    return one


def figures(values: list[float], kind: tuple[str, str, str] = TRIAD) -> Fill:
    return lambda trial: trial.series(trial.cases[0], kind, values)


# ---- verdicts -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "factor", "verdict"),
    [
        (TRIAD, 1.05, "better"),
        (TRIAD, 0.95, "worse"),
        (TIME, 1.05, "worse"),
        (TIME, 0.95, "better"),
        (TRIAD, 1.0, "same"),
        (TRIAD, 0.99, "same"),
    ],
)
def test_the_direction_decides(
    tmp_path: Path, kind: tuple[str, str, str], factor: float, verdict: str
) -> None:
    first, second = steady(100, 6), steady(100 * factor, 6, seed=2)
    found = two(tmp_path, figures(first, kind), figures(second, kind))
    one = row(found, kind[0])
    assert one.verdict == verdict
    assert one.ratio == pytest.approx(factor, rel=0.005)
    assert one.low is not None and one.high is not None and one.ratio is not None
    assert one.low <= one.ratio <= one.high
    sign = -1 if kind is TIME else 1
    assert one.better_by == pytest.approx(100 * sign * (one.ratio - 1)), "positive is better"
    ends = sorted(100 * sign * (end - 1) for end in (one.low, one.high))
    assert [one.better_from, one.better_to] == pytest.approx(ends)
    assert (one.first.n, one.second.n) == (6, 6)
    assert found.without_elapsed == 1 and [r.metric for r in found.rows] == [kind[0]]
    elapsed = row(compared(tmp_path, "a", "b", elapsed=True), "elapsed")
    assert elapsed.verdict == "same" and elapsed.unit == "s"


def test_the_threshold_is_what_matters(tmp_path: Path) -> None:
    fills = figures(steady(100, 6)), figures(steady(97, 6, seed=2))
    assert row(two(tmp_path / "1", *fills)).verdict == "worse"
    assert row(two(tmp_path / "2", *fills, least=0.04)).verdict == "same"


def test_the_largest_difference_comes_first(tmp_path: Path) -> None:
    def fill(factors: list[float]) -> Fill:
        def filled(trial: Measuring) -> None:
            for case, factor in zip(trial.cases, factors, strict=True):
                trial.series(case, TRIAD, steady(100 * factor, 6, seed=case.threads))

        return filled

    fills = fill([1, 1, 1]), fill([0.95, 1.3, 1])
    found = two(tmp_path, *fills, cases=3, elapsed=True)
    assert [(r.verdict, r.case) for r in found.rows if r.metric == "triad"] == [
        ("better", "stream{size=1}"),
        ("worse", "stream{size=0}"),
        ("same", "stream{size=2}"),
    ]
    (elapsed, triad) = found.means
    assert (elapsed.metric, triad.metric, triad.ratios, triad.without) == ("elapsed", "triad", 3, 0)
    assert triad.mean == pytest.approx((0.95 * 1.3) ** (1 / 3), rel=0.01)
    assert triad.unclear == 0


def test_a_mean_of_unclear_rows_says_so(tmp_path: Path) -> None:
    def fill(factor: float) -> Fill:
        def filled(trial: Measuring) -> None:
            for case in trial.cases:
                trial.series(case, TRIAD, steady(100 * factor, 2, seed=case.threads))

        return filled

    found = two(tmp_path, fill(1), fill(2), cases=3)
    triad = next(mean for mean in found.means if mean.metric == "triad")
    assert (triad.ratios, triad.unclear) == (3, 3)
    told = page_text(compare_page([found], [[]]))
    assert "3 ratios, all of them unclear: no evidence of a difference" in told


def test_what_fails_or_is_gone_stays_as_missing_with_its_cause(tmp_path: Path) -> None:
    def first(trial: Measuring) -> None:
        for case in trial.cases[:3]:
            trial.series(case, TRIAD, steady(100, 4))
        trial.measure(trial.cases[3], verdict=codes.FAILED)

    def second(trial: Measuring) -> None:
        trial.series(trial.cases[0], TRIAD, steady(100, 4))
        trial.measure(trial.cases[0], {TRIAD: 1.0}, verdict=codes.WRONG_ANSWER)
        trial.measure(trial.cases[1], verdict=codes.TIMEOUT)
        trial.measure(trial.cases[3])

    found = two(tmp_path, first, second, cases=4)
    kept = row(found, case="size=0")
    assert kept.verdict == "same" and kept.second.excluded == {"wrong answer": 1}
    timed_out = row(found, case="size=1")
    assert timed_out.verdict == "missing" and timed_out.first.n == 4
    assert timed_out.why == "the second side has no right answer: 1 timeout"
    assert "no such case" in row(found, case="size=2").why
    # size=2 has no case on the second side; of size=1 it has no right answer, which is told apart
    lost = [one for one in found.rows if "size=2" in one.case]
    assert f"{len(lost)} row" in found.doubts[0] and "without a figure" in found.doubts[0]
    back = row(found, "elapsed", "size=3")
    assert back.verdict == "missing" and back.first.excluded == {"failed": 1} and back.second.n == 1


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        ([100.0], [50.0], "one figure has no spread"),
        ([100.0, 101.0], [50.0, 51.0], "whatever they are: it takes 2 and 8, or 4 on"),
        ([0.0] * 5, [5.0] * 5, "medians of 0 and 5"),
        ([-5.0] * 5, [5.0] * 5, "medians of -5 and 5"),
        ([0.0] * 5, [0.0] * 5, "medians of 0 and 0"),
    ],
)
def test_what_cannot_be_concluded_is_said(
    tmp_path: Path, first: list[float], second: list[float], said: str
) -> None:
    found = row(two(tmp_path, figures(first), figures(second)))
    assert found.verdict == "unclear" and said in found.why


def test_of_few_runs_a_difference_is_told_with_its_doubt(tmp_path: Path) -> None:
    few = two(tmp_path / "few", figures(steady(100, 6)), figures(steady(90, 6, seed=2)))
    assert few.notices == [
        "1 of 1 differences are of fewer than 8 runs on a side: where figures fall into two modes, "
        "all of so few may fall into one by chance"
    ]
    many = two(tmp_path / "many", figures(steady(100, 8)), figures(steady(90, 8, seed=2)))
    assert many.count("worse") == 1 and many.notices == []


def test_cases_that_did_not_run_yet_are_counted(tmp_path: Path) -> None:
    for tag in ("before", "after"):
        trial = Measuring(tmp_path, tag, [bound(1, size=1), bound(2, size=2), bound(3, size=4)])
        for case in trial.cases[: 3 if tag == "before" else 1]:
            trial.series(case, TRIAD, steady(100, 5))
        trial.done()
    assert (
        "after: 2 cases without a run that is over" in compared(tmp_path, "before", "after").notices
    )


def test_defaults_that_changed_are_told(tmp_path: Path) -> None:
    for tag, default in (("before", "1M"), ("after", "64K")):
        trial = Measuring(tmp_path, tag, [bound(1)], defaults={"transfer": default})
        trial.series(trial.cases[0], TRIAD, steady(100, 5))
        trial.done()
    found = compared(tmp_path, "before", "after")
    assert row(found).differs == ["transfer, whose default was 1M and 64K"]


def test_equal_figures_are_the_same(tmp_path: Path) -> None:
    assert row(two(tmp_path, figures([5.0] * 5), figures([5.0] * 5))).verdict == "same"


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (("triad", "GB/s", "higher"), "units differ: MB/s and GB/s"),
        (("triad", "GB/s", "lower"), "units differ: MB/s and GB/s"),
        (("triad", "GB/s", ""), "units differ: MB/s and GB/s"),
        (("triad", "MB/s", "lower"), "directions differ: higher is better and lower is better"),
        (("triad", "MB/s", "none"), "directions differ: higher is better and no direction"),
    ],
)
def test_units_and_directions_are_never_mixed(
    tmp_path: Path, kind: tuple[str, str, str], said: str
) -> None:
    found = row(two(tmp_path, figures([1.0] * 5), figures([1.0] * 5, kind)))
    assert found.verdict == "not compared" and found.ratio is None
    assert found.why == said


def test_a_lone_outlier_does_not_make_a_difference(tmp_path: Path) -> None:
    slow = [*steady(100, 9), 20.0]
    assert row(two(tmp_path, figures(slow), figures(steady(100, 10, seed=3)))).verdict == "same"


def test_among_many_cases_that_do_not_differ_none_is_said_to(tmp_path: Path) -> None:
    """At 95 % confidence each, 200 rows of 5 % noise would name about three that are worse."""
    rng = random.Random(1)

    def fill(trial: Measuring) -> None:
        for case in trial.cases:
            trial.series(case, TRIAD, [100 * rng.lognormvariate(0, 0.05) for _ in range(5)])

    found = two(tmp_path, fill, fill, cases=200)
    assert not found.count("worse") and not found.count("better")
    assert any("chance may make such a difference" in r.why for r in found.rows)


@pytest.mark.parametrize("noise", list(sides.NOISES))
def test_rows_that_do_not_differ_are_rarely_named_of_four_runs(noise: str) -> None:
    assert sides.false_alarms(noise, 4, 8, seed=3) <= 0.2


@pytest.mark.parametrize(
    ("case", "least"),
    [
        ("10 of 100, gauss 1 %", 0.9),
        ("all of 100, gauss 2 %", 0.8),
        ("10 of 0.3 %, beside 11 of 6 %", 1),
        ("10 of 0.3 %, beside 11 of two modes", 1),
        ("1 of 0.3 %, beside 11 of two modes", 1),
    ],
)
def test_rows_that_are_5_percent_worse_are_found_of_five_runs(case: str, least: float) -> None:
    found, _ = sides.found_worse(case, 5, 8, seed=3)
    assert found >= least


# ---- which cases are the same -------------------------------------------------------------


def of_toolchains(folder: Path, tag: str, chains: dict[str, float], machine: str = "frost") -> None:
    cases = [
        replace(bound(i, threads=2), toolchain=chain, id=f"{tag}{chain}")
        for i, chain in enumerate(chains)
    ]
    trial = Measuring(folder, tag, cases, machine=machine)
    for case in cases:
        trial.series(case, TRIAD, steady(chains[case.toolchain], 5))
    trial.done()


def test_toolchains_are_compared_where_a_side_has_one(tmp_path: Path) -> None:
    of_toolchains(tmp_path, "t", {"gcc": 100, "clang": 110})
    found = compared(tmp_path, "t:toolchain=gcc", "t:toolchain=clang")
    assert found.across == ["toolchain"]
    assert row(found).verdict == "better" and row(found).case == "stream{threads=2}"


def test_several_toolchains_are_never_pooled(tmp_path: Path) -> None:
    of_toolchains(tmp_path, "a", {"gcc": 100, "clang": 200})
    of_toolchains(tmp_path, "b", {"gcc": 100, "intel": 300})
    found = compared(tmp_path, "a", "b")
    verdicts = {r.case: r.verdict for r in found.rows if r.metric == "triad"}
    assert verdicts == {
        "stream{threads=2}@gcc": "same",
        "stream{threads=2}@clang": "missing",
        "stream{threads=2}@intel": "missing",
    }
    of_toolchains(tmp_path, "c", {"intel": 300, "nvc": 300})
    with pytest.raises(UsageError, match=r"clang, gcc and intel, nvc; choose one of each"):
        compared(tmp_path, "a", "c")


def test_machines_are_compared_by_test_and_parameters(tmp_path: Path) -> None:
    of_toolchains(tmp_path, "a", {"gcc": 100}, machine="frost")
    of_toolchains(tmp_path, "b", {"cray": 150}, machine="c5")
    found = compared(tmp_path, "@machine=frost", "@machine=c5")
    assert found.across == ["machine", "toolchain"] and row(found).verdict == "better"


def test_launch_modes_are_compared_across_what_goes_with_them(tmp_path: Path) -> None:
    cases = [
        a_case(1, parameters={"launch": "mpi", "ranks": 8}, tasks=8),
        a_case(2, parameters={"launch": "hybrid", "ranks": 2}, tasks=2),
        a_case(3, parameters={"launch": "hybrid", "ranks": 4}, tasks=4),
    ]
    trial = Measuring(tmp_path, "t", cases)
    for case in cases:
        trial.series(case, TRIAD, steady(100, 5))
    trial.done()
    sides = ("t:launch=mpi", "t:launch=hybrid,ranks=2")
    one = row(compared(tmp_path, *sides))
    assert one.case == "stream" and one.verdict == "same" and "tasks 8 and 2" in one.differs
    with pytest.raises(UsageError, match="parameters differ; see --across"):
        compared(tmp_path, "t:launch=mpi", "t:launch=hybrid")
    mixed = row(compared(tmp_path, "t:launch=mpi", "t:launch=hybrid", across=["ranks"]))
    assert mixed.verdict == "not compared"
    assert mixed.why == "the second side has several cases here, which differ in ranks"


def test_nodes_are_pooled_unless_each_is_asked_for(tmp_path: Path) -> None:
    for tag in ("a", "b"):
        cases = [replace(bound(1), id=f"c{n}", node=f"n{n}") for n in range(3)]
        trial = Measuring(tmp_path, tag, cases)
        for case in cases:
            trial.series(case, TRIAD, steady(100, 2, seed=cases.index(case)))
        trial.done()
    assert row(compared(tmp_path, "a", "b")).first.n == 6
    each = compared(tmp_path, "a", "b", each_node=True)
    assert [r.case for r in each.rows if r.metric == "triad"] == [f"stream%n{n}" for n in range(3)]


def test_stages_are_told_apart(tmp_path: Path) -> None:
    trial = Measuring(tmp_path, "t", [bound(1)])
    trial.series(trial.cases[0], TRIAD, steady(100, 5), stage="alone")
    trial.series(trial.cases[0], TRIAD, steady(80, 5), stage="full")
    trial.done()
    assert row(compared(tmp_path, "t:stage=alone", "t:stage=full")).verdict == "worse"
    itself = compared(tmp_path, "t", "t")
    assert {r.case for r in itself.rows} == {"stream [alone]", "stream [full]"}
    assert "10 of the runs are on both sides" in itself.notices[0]


def test_several_trials_of_a_side_are_one_series(tmp_path: Path) -> None:
    for number, tag in enumerate(("w-1", "w-2", "v-1", "v-2")):
        trial = Measuring(tmp_path, tag, [bound(1)], created=NOON + number)
        trial.series(trial.cases[0], TRIAD, steady(100 if tag[0] == "w" else 90, 3, seed=number))
        trial.done()
    found = row(compared(tmp_path, "w-*", "v-*"))
    assert (found.first.n, found.second.n, found.verdict) == (6, 6, "worse")


def test_rehearsed_figures_are_told(tmp_path: Path) -> None:
    for tag in ("a", "b"):
        trial = Measuring(tmp_path, tag, [bound(1)], rehearsed=tag == "b")
        trial.series(trial.cases[0], TRIAD, steady(100, 3))
        trial.done()
    assert compared(tmp_path, "a", "b").notices == ["b: rehearsed, its figures were never measured"]


def test_only_some_metrics(tmp_path: Path) -> None:
    fills = figures(steady(100, 3)), figures(steady(100, 3))
    found = two(tmp_path, *fills, metric=lambda name: name == "elapsed")
    assert [r.metric for r in found.rows] == ["elapsed"]
    with pytest.raises(UsageError, match="no such metric; there are elapsed, triad"):
        compared(tmp_path, "a", "b", metric=lambda name: False)


def test_names_and_trials_without_anything_are_told(tmp_path: Path) -> None:
    found = figures(steady(100, 3))
    with pytest.raises(UsageError, match="b: no run of it is over yet"):
        two(tmp_path / "1", found, lambda trial: None)
    with pytest.raises(UsageError, match=r"--across ranks: no case has this .* there are size"):
        two(tmp_path / "2", found, found, across=["ranks"])
