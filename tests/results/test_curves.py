"""Curves over a size: numeric order, bands, and where two of them cross."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from bench.quality import curves as quality
from bench.quality.curves import AT, CROSSING, SIZES, linear
from msgspec.structs import replace

from seatrial.errors import UsageError
from seatrial.judge.statistics.two_samples import Verdict
from seatrial.model import codes
from seatrial.results.best import BestTable, Setting, SizeRange, size_ranges
from seatrial.results.scaling import CurveTable, ScalingQuery, band_of, curves
from seatrial.results.selection import gather, parse_side
from seatrial.results.sizes import Cell, meeting, pairs_of
from seatrial.results.store.ingest import synced
from tests.cli.test_query_common import ask
from tests.programs import Workplace

from .figures import Measuring, bound


def latency(size: int, benchmark: str = "MPI Bcast Latency") -> tuple[str, str, str]:
    return f"latency{{benchmark={benchmark},bytes={size}}}", "us", "lower"


def osu(
    folder: Path,
    places: Mapping[str, Callable[[int], float]],
    sizes: Sequence[int] = SIZES,
    runs: int = 5,
    noise: float = 0.02,
    seed: int = 1,
    tag: str = "osu1",
) -> None:
    """A trial of a benchmark over sizes, at places that each have a law of size."""
    rng = random.Random(seed)
    cases = {place: bound(i, "osu", place=place) for i, place in enumerate(places, 1)}
    trial = Measuring(folder, tag, list(cases.values()))
    for _ in range(runs):
        for place, law in places.items():
            figures = {
                latency(size): law(size) * rng.lognormvariate(0, noise)
                for size in rng.sample(list(sizes), len(sizes))
            }
            trial.measure(cases[place], figures)
    trial.done()


def tables(folder: Path, *texts: str, **asked: Any) -> list[CurveTable]:
    with synced(folder / "store.sqlite", folder) as store:
        sides = [gather(store, parse_side(text)) for text in texts]
    return curves(sides, ScalingQuery(**asked))


# X has the lower latency, Z the greater bandwidth: they are alike at AT bytes
PLACES = dict(zip("XZ", CROSSING, strict=True))


def test_a_planted_crossing_is_told_with_its_sizes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    osu(tmp_path, {**PLACES, "Y": linear(2, 1000)})
    (table,) = tables(tmp_path, "osu1", x="bytes", by=("place",))
    assert (table.case, table.metric) == ("osu@gcc", "latency{benchmark=MPI Bcast Latency}")
    assert [cell.x for cell in table.lines[0].cells] == SIZES
    x_z, x_y, z_y = table.meetings
    (crossing,) = x_z.crossings
    assert (crossing.before, crossing.last, crossing.after, crossing.first) == (
        *("place=X", 2048.0),
        *("place=Z", 4096.0),
    )
    assert crossing.near == pytest.approx(AT, rel=0.1)
    assert len(z_y.crossings) == 1 and not x_y.crossings
    assert [span.ahead for span in x_y.spans] == [""]
    cell = table.lines[1].cells[-1]
    assert cell.times == pytest.approx(4.0, rel=0.05) and cell.verdict == "better"
    assert table.lines[2].cells[-1].times == pytest.approx(1.0, rel=0.05)  # beside the first, too
    out = ask(tmp_path, "scaling", "osu1", "--x", "bytes").out
    assert "place=X is ahead up to 2 KiB, place=Z from 4 KiB: they cross near 2." in out
    assert "no order beyond noise between place=X and place=Y" in out
    assert "efficiency" not in out and "speed-up" not in out
    rows = [line.split() for line in out.splitlines() if " KiB " in line or " MiB " in line]
    first = [" ".join(row[-5:-3] if row[-1] == "5" else row[:2]) for row in rows[:13]]
    assert first == [f"{2**n} KiB" for n in range(10)] + [f"{2**n} MiB" for n in range(3)]
    assert max(map(len, out.splitlines())) <= 80


def test_every_form_has_the_curves(tmp_path: Path) -> None:
    osu(tmp_path, PLACES, sizes=[0, *SIZES[:14]])
    (record,) = json.loads(ask(tmp_path, "scaling", "osu1", "--x", "bytes", "--format", "json").out)
    assert record["meetings"][0]["crossings"][0]["last"] == 2048
    assert record["lines"][0]["cells"][0]["x"] == 0 and "values" not in str(record)
    csv = ask(tmp_path, "scaling", "osu1", "--x", "bytes", "--format", "csv").out.splitlines()
    assert csv[0].startswith("case,metric,unit,line,x,median,runs,low,high") and len(csv) == 31
    svg = ask(tmp_path, "scaling", "osu1", "--x", "bytes", "--format", "svg").out
    assert svg.count('fill-opacity="0.2"') == 2 and "4 KiB" in svg
    assert "0 B has no place on a logarithmic axis" in svg


def test_a_ratio_over_a_label_tells_the_crossing(tmp_path: Path) -> None:
    osu(tmp_path, PLACES, sizes=[0, *SIZES[:14]])
    out = ask(tmp_path, "ratio", "osu1", "--of", "place=X,Z", "--x", "bytes").out
    assert "latency{benchmark=MPI Bcast Latency}, Z over X, by bytes\nin us, lower" in out
    assert "place" not in out.split("range:")[0].splitlines()[-2]
    assert "X is ahead up to 2 KiB, Z from 4 KiB: they cross near 2." in out
    assert "bytes is a size: no speed-up is to be expected" in out
    rows = [line.strip() for line in out.splitlines() if line.endswith(("slower", "faster"))]
    sizes = [row.partition("  ")[0] for row in rows]
    assert sizes[:4] == ["0 B", "1 B", "2 B", "4 B"] and sizes[-1] == "8 KiB"


def test_parameters_with_a_unit_and_atoms_are_sizes(tmp_path: Path) -> None:
    cases = [
        bound(10 * i + j, "io", api=api, transfer=size, atoms=10**j)
        for i, api in enumerate(("posix", "mpiio"))
        for j, size in enumerate(("4K", "64K", "1M", "16M", "256M"))
    ]
    trial = Measuring(tmp_path, "io1", cases)
    rate = ("write", "MiB/s", "higher")
    for n, case in enumerate(cases):
        level = (100, 120, 140, 160, 180, 60, 90, 150, 200, 260)[n]
        trial.series(case, rate, [level * (1 + i / 500) for i in range(5)])
    trial.done()
    (table,) = tables(tmp_path, "io1", x="transfer", by=("api",))
    assert [cell.x for cell in table.lines[0].cells] == [4096 * 16**n for n in range(5)]
    assert table.along == ["atoms"]
    assert [(c.last, c.first) for c in table.meetings[0].crossings] == [(65536.0, 1048576.0)]
    (table,) = tables(tmp_path, "io1", x="atoms", size=True)
    assert [cell.x for cell in table.lines[0].cells] == [1, 10, 100, 1000, 10000]
    assert table.named(10000.0) == "10000"
    assert (
        ask(tmp_path, "scaling", "io1", "--x", "atoms", "--by", "api").out.count("does not pay") > 0
    )
    refused = ask(tmp_path, "scaling", "io1", "--x", "atoms", "--size", "--weak")
    assert refused.code == 2 and "a size has no ideal" in refused.err


def test_a_setting_that_failed_is_a_curve_without_figures(tmp_path: Path) -> None:
    cases = {place: bound(i, "osu", place=place) for i, place in enumerate("XZ")}
    trial = Measuring(tmp_path, "osu1", list(cases.values()))
    for _ in range(3):
        trial.measure(cases["X"], {latency(size): 2.0 + size for size in (1, 2, 4)})
        trial.measure(cases["Z"], verdict=codes.TIMEOUT)
    trial.done()
    (table,) = tables(tmp_path, "osu1", x="bytes")
    assert [cell.reason for cell in table.lines[1].cells] == ["3 timeout"] * 3
    out = ask(tmp_path, "scaling", "osu1", "--x", "bytes").out
    assert "3 timeout" in out and "no size has a figure of both" in out


def test_odd_labels_are_told_and_lose_nothing(tmp_path: Path) -> None:
    """The same size written twice, figures of 0, no direction, many curves without an order."""
    us = ("us", "lower")
    odd = {"4096": 2.0, "4KiB": 2.5, "8KiB": 3.0, "16KiB": 0.0}
    cases = {place: bound(i, "osu", place=place) for i, place in enumerate("ABCDEFGHI")}
    trial = Measuring(tmp_path, "osu1", list(cases.values()))
    for case in cases.values():
        figures: dict[Any, float] = {(f"t{{bytes={size}}}", *us): v for size, v in odd.items()}
        none = {(f"hits{{bytes={size}}}", "1", "none"): 1.0 for size in (1, 2)}
        trial.measure(case, {**figures, **none})
    trial.done()
    out = ask(tmp_path, "scaling", "osu1:place=[AB]", "--x", "bytes", "--metric", "t").out
    assert out.count("several cases, which differ in bytes") == 2
    assert out.count("0 is not above 0") == 2 and "8 KiB" in out
    ratio = ask(tmp_path, "ratio", "osu1", "--of", "place=A,B", "--x", "bytes").out
    assert "4 KiB" in ratio and "0 is not above 0" in ratio
    out = ask(tmp_path, "scaling", "osu1", "--x", "bytes", "--metric", "hits").out
    assert "no direction" in out and "as good" not in out
    out = ask(tmp_path, "scaling", "osu1", "--x", "bytes", "--metric", "t").out
    assert "no order beyond noise in 8 pairs of curves" in out
    assert "9 curves: each was compared with place=A alone" in out
    assert "--metric names another" in ask(tmp_path, "scaling", "osu1", "--x", "bytes").out


def test_names_and_labels_that_are_no_size_are_refused(tmp_path: Path) -> None:
    osu(tmp_path, PLACES, sizes=[1, 2], runs=1)
    for x, reason in (
        ("size", "--x size: is none of nodes, tasks, threads, cores, place, benchmark, bytes"),
        ("benchmark", "--x benchmark: is MPI Bcast Latency in every case"),
    ):
        refused = ask(tmp_path, "scaling", "osu1", "--x", x)
        assert refused.code == 2 and reason in refused.err.replace("\n", " ")
    refused = ask(tmp_path, "scaling", "osu1", "--x", "place", "--size")
    assert refused.code == 2 and "place has 'X', which is no number" in refused.err
    refused = ask(tmp_path, "scaling", "osu1", "--x", "bytes", "--metric", "bandwidth")
    assert refused.code == 2 and "--metric bandwidth: no run has it" in refused.err
    with pytest.raises(UsageError, match="is --x already"):
        tables(tmp_path, "osu1", x="bytes", by=("bytes",))


OSU = r"""printf '# OSU MPI Broadcast Latency Test v7.3\n# Size       Avg Latency(us)\n'
case $place in X) start=2 rate=1000;; Z) start=4 rate=4000;; esac
awk -v s=$start -v r=$rate -v seed=$RANDOM 'BEGIN { srand(seed)
    for (n = 1; n <= 65536; n *= 2) printf "%d %.2f\n", n, (s + n / r) * (1 + rand() / 50) }'
"""


def test_osu_in_two_places_from_the_runs_on(tmp_path: Path) -> None:
    """A benchmark that prints OSU's form runs four times in each place."""
    place = Workplace(tmp_path)
    place.local()
    place.test("bcast", OSU, metrics={"from": "osu"}, parameters={"place": ["X", "Z"]})
    assert place.run("--name", "osu1", "--repeat", "4").code == 0
    out = ask(place.trials, "scaling", "osu1", "--x", "bytes").out
    assert "bcast@plain: latency{benchmark=MPI Broadcast Latency} over bytes" in out
    assert "place=X is ahead up to 2 KiB, place=Z from 4 KiB: they cross near 2." in out
    assert "best: place=X up to 2 KiB, place=Z from 4 KiB" in ask(place.trials, "best", "osu1").out
    head = ask(place.trials, "runs", "--trial", "osu1", "--format", "csv").out.splitlines()[0]
    assert re.findall(r"bytes=(\d+)", head) == [str(2**n) for n in range(17)]
    over = ask(place.trials, "scaling", "osu1", "--x", "place").out
    assert "bytes=1} is one of 17 figures; --metric names another" in over


def test_figures_of_a_run_are_listed_by_size(tmp_path: Path) -> None:
    case = bound(1, "osu", place="X")
    trial = Measuring(tmp_path, "osu1", [case])
    figures = {latency(size): 2.0 for size in (16, 1, 2, 32, 4)}
    trial.measure(case, {**figures, ("barrier", "us", "lower"): 1.0})
    trial.done()
    out = ask(tmp_path, "show", "r00001osu1").out
    rows = [line for line in out.splitlines() if line.endswith("lower") and "bytes=" in line]
    shown = [line.split("bytes=")[1].split("}")[0] for line in rows]
    assert shown == ["1", "2", "4", "16", "32"]
    runs = json.loads(ask(tmp_path, "show", "r00001osu1", "--format", "json").out)
    names = [one["name"] for one in runs["metrics"]]
    assert names == ["barrier", *(latency(size)[0] for size in (1, 2, 4, 16, 32))]


# ---- the best at each size -----------------------------------------------------------------------


def test_best_never_ranks_by_one_size_in_silence(tmp_path: Path) -> None:
    osu(tmp_path, {**PLACES, "Y": linear(2.6, 1000)})
    for words in ((), ("--metric", "latency"), ("--x", "bytes")):
        out = ask(tmp_path, "best", "osu1", "--over", "place", *words).out
        assert "best: place=X up to 2 KiB, place=Z from 4 KiB" in out
        assert "osu@gcc: latency{benchmark=MPI Bcast Latency} over place, by bytes" in out
        assert "at each of 23 sizes" in out
        rows = [line.split()[:3] for line in out.splitlines() if "  place=" in line]
        assert rows[0] == ["1", "B", "place=X"] and rows[-1] == ["4", "MiB", "place=Z"]
    for name in ("latency{bytes=8}", "latency{benchmark=MPI Bcast Latency,bytes=8}"):
        out = ask(tmp_path, "best", "osu1", "--over", "place", "--metric", name).out
        assert "latency{benchmark=MPI Bcast Latency,bytes=8} in us (lower is better)" in out
        assert "best: place=X: " in out and "one of" not in out
    found = json.loads(ask(tmp_path, "best", "osu1", "--over", "place", "--format", "json").out)
    assert [one["size"] for one in found] == SIZES
    assert {one["of_case"] for one in found} == {"osu@gcc"}


def test_best_over_sizes_tells_what_cannot_be_told(tmp_path: Path) -> None:
    osu(tmp_path, {"X": linear(2, 1000), "Y": linear(2, 1000)})
    out = ask(tmp_path, "best", "osu1").out
    assert "best: " not in out or "place=X or place=Y" in out or "place=Y or place=X" in out
    assert "no order beyond noise" in out or "or: neither is told to be worse" in out


def test_best_says_of_how_many_figures_its_own_is_one(tmp_path: Path) -> None:
    cases = {place: bound(i, "osu", place=place) for i, place in enumerate("XZ", 1)}
    trial = Measuring(tmp_path, "osu1", list(cases.values()))
    for run in range(4):
        for at, (place, case) in enumerate(cases.items()):
            figures = {latency(size, "MPI Bcast"): 2.0 + at + run / 100 for size in (1, 2, 4)}
            more = {latency(size, "MPI Scan"): 5.0 - at + run / 100 for size in (1, 2)}
            if place:
                trial.measure(case, figures | more)
    trial.done()
    out = ask(tmp_path, "best", "osu1", "--over", "place").out
    assert "latency{benchmark=MPI Bcast} is one of 2 figures; --metric names another" in out
    assert "best: place=X at every size" in out
    refused = ask(tmp_path, "best", "osu1", "--over", "place", "--metric", "latency")
    assert refused.code == 2
    assert "--metric latency: is 2 figures; name one of latency{benchmark=MPI Bc" in refused.err
    for metric, best in (("latency{benchmark=MPI Scan}", "Z"), ("latency{bytes=4}", "X")):
        out = ask(tmp_path, "best", "osu1", "--over", "place", "--metric", metric).out
        assert f"best: place={best}" in out
    scaled = ask(tmp_path, "scaling", "osu1", "--x", "bytes", "--metric", "latency").out
    assert scaled.count(" over bytes") == 2


def test_ranges_are_the_fewest() -> None:
    def at(size: int, best: str, *others: str) -> BestTable:
        settings = [Setting(values={"p": best}, verdict="best")]
        settings += [Setting(values={"p": one}, verdict="unclear") for one in others]
        told: Any = {"case": "c", "metric": "m", "unit": "us", "better": "lower"}
        return BestTable(over=["p"], size=size, settings=settings, statistic="median", **told)

    first = [at(1, "X", "Y"), at(2, "Y", "X"), at(4, "X"), at(8, "Z", "X")]
    tables = [*first, at(16, "Z"), at(32, "Y")]
    assert size_ranges(tables) == [
        SizeRange(["p=X"], 1, 8),
        SizeRange(["p=Z"], 16, 16),
        SizeRange(["p=Y"], 32, 32),
    ]
    assert size_ranges([]) == []


# ---- chance --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in quality.WORLDS if name.startswith("equal,")])
def test_equal_curves_do_not_cross(name: str) -> None:
    assert quality.counts(quality.WORLDS[name], 12, 7)[0] == 0


def test_curves_that_are_equal_in_part_seldom_cross() -> None:
    """The sizes that differ make it easier for chance to tell one of the others."""
    told, _, by_medians = quality.counts(quality.WORLDS["equal up to 64 KiB, 5 runs"], 12, 7)
    assert told <= 1 and by_medians > 9


def test_a_crossing_is_found_between_its_sizes() -> None:
    for name in ("crossing at 2,667 B", "crossing, 3 runs"):
        told, right, _ = quality.counts(quality.WORLDS[name], 8, 7)
        assert told == 8 and right >= 7, name
    pairs = quality.measured(quality.World(CROSSING, noise=0.01), 1)
    (crossing,) = quality.met(pairs).crossings
    assert crossing.near == pytest.approx(AT, rel=0.05)


def test_a_size_that_stands_alone_must_be_beyond_chance() -> None:
    """At one of 23 sizes the first curve is told to be slower: by noise, or by far."""

    def crossings(alone: Sequence[float], verdicts: Sequence[Verdict]) -> int:
        first = [Cell(x=x, n=5, median=2.0, values=[1.9, 2.0, 2.0, 2.1, 2.2]) for x in SIZES]
        second = [
            replace(cell, values=list(alone), median=sorted(alone)[2]) if at == 3 else cell
            for at, cell in enumerate(first)
        ]
        return len(meeting(("X", "Z"), pairs_of(first, second), verdicts).crossings)

    told: list[Verdict] = ["same" if at < 10 else "worse" for at in range(23)]
    told[3] = "better"
    assert crossings([1.7, 1.75, 1.8, 1.85, 1.88], told) == 0
    assert crossings([0.7, 0.75, 0.8, 0.85, 0.88], told) == 1
    told[4] = "better"  # no longer alone
    assert crossings([1.7, 1.75, 1.8, 1.85, 1.88], told) == 1


def test_bands_hold_the_median() -> None:
    assert band_of([3.0]) == (None, None) and band_of([3.0, 1.0, 2.0]) == (1.0, 3.0)
    rng = random.Random(5)
    samples = [[rng.lognormvariate(0, 0.3) for _ in range(9)] for _ in range(400)]
    held = sum(low <= 1 <= high for low, high in map(band_of, samples) if low and high)
    assert held >= 0.95 * 400


def test_a_range_over_sizes_with_a_unit_has_its_edges(tmp_path: Path) -> None:
    cases = [
        bound(10 * i + j, "io", api=api, transfer=size)
        for i, api in enumerate(("posix", "mpiio"))
        for j, size in enumerate(("4K", "64K", "1M"))
    ]
    trial = Measuring(tmp_path, "io1", cases)
    for n, case in enumerate(cases):
        trial.series(case, ("write", "MiB/s", "higher"), [100 + 20 * n + i / 9 for i in range(5)])
    trial.done()
    out = ask(tmp_path, "best", "io1", "--over", "api", "--best-of", "transfer").out
    assert "transfer=1M" in out and "is the largest with a figure" in out
