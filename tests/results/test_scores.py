"""Scores by their formulas. The numbers come from the sources named beside them."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from seatrial.errors import InvalidFiles, UsageError
from seatrial.judge.outputs.io500 import BANDWIDTH, METADATA
from seatrial.model import codes
from seatrial.results import scores as formulas
from seatrial.results.scores import Score, ScoreFile, load_score, over_phases, score_of
from seatrial.results.selection import gather, parse_side
from seatrial.results.store.ingest import synced
from tests.results.store.trials import a_case

from .figures import Measuring, bound

OUTPUTS = Path(__file__).parents[1] / "judge" / "outputs" / "data"
SECONDS = ("time", "s", "lower")
RATE = ("rate", "Gflop/s", "higher")

MINIFE = """\
score: ssp
size: 6384
parts:
  minife: {test: minife, metric: time, work: 1065}
"""


def score(
    folder: Path, text: str, text_of_side: str = "t", size: int | None = 4, phase: int = -1
) -> Score:
    with synced(folder / "store.sqlite", folder) as store:
        side = gather(store, parse_side(text_of_side))
    return score_of(written(folder, text), side, size, phase)


def written(folder: Path, text: str) -> ScoreFile:
    path = folder / "score.yaml"
    path.write_text(text)
    return load_score(path)


def trial(
    folder: Path, tests: dict[str, tuple[int, tuple[str, str, str], list[float]]], tag: str = "t"
) -> None:
    """A trial of tests: nodes, metric, figures."""
    cases = {
        test: replace(bound(i, test), nodes=nodes, tasks=nodes * 8, threads=2)
        for i, (test, (nodes, _, _)) in enumerate(tests.items())
    }
    made = Measuring(folder, tag, list(cases.values()))
    for test, (_, kind, values) in tests.items():
        made.series(cases[test], kind, values)
    made.done()


# ---- formulas -----------------------------------------------------------------------------


def test_minife_on_hopper() -> None:
    """1065 Tflop / (2048 nodes * 92.4 s) = 0.00563 Tflop/s a node."""
    assert formulas.rate(1065, 2048, 92.4) == pytest.approx(0.00563, abs=5e-6)


def test_ssp_is_the_geometric_mean_times_the_size() -> None:
    assert formulas.ssp([0.001, 0.004], 1000) == pytest.approx(2.0)
    with pytest.raises(ValueError, match="0 is not above 0"):
        formulas.ssp([0.0, 1.0], 10)


def test_a_score_hides_its_parts() -> None:
    """One code 30 % faster, one 8 % slower, ten as before: SSP moves by 1.5 %."""
    before, after = [1.0] * 12, [1.3, 0.92, *[1.0] * 10]
    assert formulas.ssp(after, 1) / formulas.ssp(before, 1) == pytest.approx(1.015, abs=0.001)


def test_what_comes_late_counts_for_less() -> None:
    assert formulas.over_time([100, 300], [180, 185]) == 100 * 180 + 300 * 185


def test_ssi() -> None:
    # twice as fast on as many nodes of a system that is twice as large: 4 times
    used = formulas.utilisation(100, 2000, 100, 1000)
    assert formulas.ssi([used * 2.0], [1.0]) == pytest.approx(4.0)
    assert formulas.ssi([8.0, 1.0], [2.0, 1.0]) == pytest.approx(4.0)


def test_hpls_rate_is_what_it_prints() -> None:
    """HPCC's HPL_Tflops of its N and HPL_time, and HPL's Gflop/s of N and time."""
    assert formulas.hpl_rate(3520, 19.3592) / 1e12 == pytest.approx(0.00150289, rel=1e-5)
    told = json.loads((OUTPUTS / "hpl.json").read_text())
    time, shown = (next(o for o in told if o["name"] == name) for name in ("time", "rate"))
    rate = formulas.hpl_rate(time["labels"]["n"], time["value"])
    assert rate / 1e9 == pytest.approx(shown["value"], rel=1e-3)


def test_io500_is_what_it_prints() -> None:
    figures = {
        one["name"]: one["value"] for one in json.loads((OUTPUTS / "io500.json").read_text())
    }
    bandwidths = [figures[name] for name in BANDWIDTH]
    rates = [figures[name] for name in METADATA]
    assert formulas.io500(bandwidths, rates) == pytest.approx(figures["score"], rel=1e-4)
    with pytest.raises(ValueError, match="0 is not above 0"):
        formulas.io500([0.0, *bandwidths[1:]], rates)
    with pytest.raises(ValueError, match="3 and 8 phases"):
        formulas.io500(bandwidths[1:], rates)


def test_graph500_is_a_harmonic_mean() -> None:
    assert formulas.graph500([1e9, 3e9]) == pytest.approx(1.5e9)


# ---- of trials ----------------------------------------------------------------------------


def test_ssp_of_a_trial(tmp_path: Path) -> None:
    trial(tmp_path, {"minife": (2048, SECONDS, [92.3, 92.4, 200.0])})
    found = score(tmp_path, MINIFE)
    (part,) = found.parts
    assert (part.n, part.figure, part.count) == (3, 92.4, 2048)
    assert part.rate == pytest.approx(0.00563, abs=5e-6)
    assert found.value == pytest.approx(0.00563 * 6384, rel=1e-3) and found.unit == "Tflop/s"


def test_ssp_of_cores_and_over_phases(tmp_path: Path) -> None:
    trial(tmp_path, {"minife": (10, SECONDS, [10.0])}, "one")
    trial(tmp_path, {"minife": (10, SECONDS, [5.0])}, "two")
    text = MINIFE.replace("score: ssp", "score: ssp\nper: core\nunit: Gflop")
    assert score(tmp_path, text, "one").parts[0].count == 160  # 80 tasks of 2 threads
    text = MINIFE + "phases:\n  - {phase: p1, duration: 10d, size: 100}\n"
    text += "  - {phase: p2, duration: 30d, size: 200}\n"
    scores = [score(tmp_path, text, tag, phase=i) for i, tag in enumerate(("one", "two"))]
    assert [one.value for one in scores] == [pytest.approx(1065), pytest.approx(4260)]
    found = over_phases(written(tmp_path, text), scores)
    assert found.total == pytest.approx(1065 * 10 + 4260 * 30)
    assert (
        found.total is not None
        and found.average == pytest.approx(found.total / 40)
        and found.days == pytest.approx(40)
    )
    lost = over_phases(written(tmp_path, text), [replace(scores[0], value=None), scores[1]])
    assert lost.total is None and "phase p1" in lost.reason


def test_ssi_of_a_trial(tmp_path: Path) -> None:
    trial(tmp_path, {"milc": (100, SECONDS, [50.0]), "gtc": (100, RATE, [30.0])})
    text = """\
score: ssi
size: 2000
reference_size: 1000
parts:
  milc: {test: milc, metric: time, reference: 100, reference_count: 100}
  gtc: {test: gtc, metric: rate, reference: 10, reference_count: 50, capability: 2, weight: 3}
"""
    found = score(tmp_path, text)
    assert [part.rate for part in found.parts] == [4.0, 2 * 0.5 * 2 * 3]
    assert found.value == pytest.approx(math.exp((math.log(4) + 3 * math.log(6)) / 4))


def test_hpl_hpcg_and_graph500_of_a_trial(tmp_path: Path) -> None:
    case = a_case(1, "hpl", parameters={"N": 3520})
    made = Measuring(tmp_path, "t", [case, bound(2, "hpcg"), bound(3, "g500")])
    made.measure(case, {SECONDS: 19.36})
    made.series(made.cases[1], RATE, [0.9, 1.0, 1.1])
    made.series(made.cases[2], ("bfs", "TEPS", "higher"), [1e9, 3e9])
    made.done()
    hpl = "score: hpl\npeak: 10\nparts: {hpl: {test: hpl, metric: time, order: N}}\n"
    found = score(tmp_path, hpl)
    assert found.value == pytest.approx(1.503, rel=1e-3) and found.unit == "Gflop/s"
    assert found.share == pytest.approx(0.1503, rel=1e-3)
    hpcg = score(tmp_path, "score: hpcg\nparts: {a: {test: hpcg, metric: rate}}\n")
    assert (hpcg.value, hpcg.parts[0].n) == (1.0, 3)
    graph = score(tmp_path, "score: graph500\nparts: {a: {test: g500, metric: bfs}}\n")
    assert graph.value == pytest.approx(1.5e9)


@pytest.mark.parametrize(
    ("wanted", "unit", "said"),
    [
        ("hpl", "MB/s", "rate is in MB/s, and hpl is a rate such as Gflop/s"),
        ("hpcg", "GB/s", "rate is in GB/s, and hpcg is a rate such as Gflop/s"),
        ("hpl", "1", "rate is in no unit"),
        ("graph500", "Gflop/s", "rate is in Gflop/s, and graph500 is a rate such as TEPS"),
        ("hpl", "GFLOPS", ""),
        ("hpl", "TF/s", ""),
        ("hpcg", "GF", ""),
        ("graph500", "GTEPS", ""),
        ("graph500", "edges/s", ""),
    ],
)
def test_a_score_of_another_sort_of_rate_is_none(
    tmp_path: Path, wanted: str, unit: str, said: str
) -> None:
    trial(tmp_path, {"one": (1, ("rate", unit, "higher"), [100.0] * 3)})
    found = score(tmp_path, f"score: {wanted}\nparts: {{a: {{test: one, metric: rate}}}}\n")
    assert found.value == (None if said else pytest.approx(100.0))
    assert said in found.reason


def io500(folder: Path, **changes: tuple[float, str]) -> Score:
    told = json.loads((OUTPUTS / "io500.json").read_text())
    made = Measuring(folder, "t", [bound(1, "io500")])
    phases = {o["name"]: (o["value"], o["unit"]) for o in told if o["name"] != "score"} | changes
    made.measure(
        made.cases[0], {(name, unit, "higher"): value for name, (value, unit) in phases.items()}
    )
    made.done()
    return score(folder, "score: io500\nparts: {io500: {test: io500}}\n")


def test_io500_of_a_trial(tmp_path: Path) -> None:
    (told,) = (o for o in json.loads((OUTPUTS / "io500.json").read_text()) if o["name"] == "score")
    found = io500(tmp_path / "1")
    assert found.value == pytest.approx(told["value"], rel=1e-4) and len(found.parts) == 12
    zero = io500(tmp_path / "2", find=(0.0, "kIOPS"))
    assert zero.value is None and "find: it is 0" in zero.reason
    other = io500(tmp_path / "3", find=(1.0, "MiB/s"))
    assert other.value is None and "find: it is in MiB/s, not kIOPS" in other.reason


# ---- what is no score ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ("{test: nothing, work: 1}", "there is no test nothing; there are code, multi"),
        (
            "{test: code, metric: tine, work: 1}",
            "code has no metric tine; it has elapsed, rate",
        ),
        ("{test: code, metric: rate, work: 1}", "rate is in Gflop/s; ssp divides work by time"),
        ("{test: multi, metric: time, work: 1}", "several cases of multi fit, which differ in n"),
        ("{test: multi, metric: time, work: 1, where: {n: 9}}", "no case of multi has"),
        ("{test: multi, metric: time, work: 1, where: {n: 2}}", "no right answer: 1 timeout"),
        ("{test: code, metric: zero, work: 1}", "its figure is 0"),
        ("{test: code, metric: time, work: 1e200}", "bad: its rate is 2e+199: beyond 1e+150"),
    ],
)
def test_a_part_without_a_figure_is_no_score(tmp_path: Path, part: str, said: str) -> None:
    made = Measuring(
        tmp_path, "t", [bound(1, "code"), bound(2, "multi", n=1), bound(3, "multi", n=2)]
    )
    figures: dict[Any, float] = {SECONDS: 5.0, RATE: 5.0, ("zero", "s", "lower"): 0.0}
    made.measure(made.cases[0], figures)
    made.measure(made.cases[1], figures)
    made.measure(made.cases[2], verdict=codes.TIMEOUT)
    made.done()
    text = f"score: ssp\nparts:\n  good: {{test: code, metric: time, work: 1}}\n  bad: {part}\n"
    found = score(tmp_path, text)
    assert found.value is None and said in found.reason
    assert found.parts[0].rate is not None and found.parts[1].rate is None


def test_every_fault_of_a_file_is_told_with_its_line(tmp_path: Path) -> None:
    text = """\
score: ssi
peak: 3
parts:
  a: {test: x, work: 5}
phases: [{phase: p, duration: soon}, {phase: p, duration: 1d}]
"""
    with pytest.raises(InvalidFiles) as raised:
        written(tmp_path, text)
    said = [fault.split("score.yaml:")[1] for fault in raised.value.faults]
    assert [fault.partition(":")[0] for fault in said] == ["1", "2", "4", "4", "4", "5", "5", "5"]
    for part in (
        "reference_size: is missing",
        "peak: means nothing for ssi",
        "parts.a.work: means nothing for ssi; it is for ssp",
        "parts.a.reference: is missing",
        "'soon' is not a duration",
        "'p' is there twice",
    ):
        assert any(part in fault for fault in said), part
    with pytest.raises(InvalidFiles, match="'spp' is not one of graph500, hpcg"):
        written(tmp_path, "score: spp\nparts: {a: {test: x}}\n")
    with pytest.raises(InvalidFiles, match="hpl has one part, not 2"):
        written(tmp_path, "score: hpl\nparts: {a: {test: x}, b: {test: y}}\n")
    with pytest.raises(UsageError, match="no such file"):
        load_score(tmp_path / "none.yaml")


def test_the_example_of_the_docs_is_valid(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs/how-to/comparing.md").read_text()
    (example,) = re.findall(r"^```yaml\n(# score.yaml\n.*?)^```$", page, re.M | re.S)
    assert written(tmp_path, example).parts.keys() == {"minife", "gtc", "milc"}
