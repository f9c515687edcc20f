"""Ratios of two metrics, and parts of a whole: by the command, and by figures of every size."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.journal.events import MetricRecorded, RunJudged
from seatrial.judge.derived import OTHER, breakdowns, find_excess, ratios
from seatrial.model.figures import MetricValue
from seatrial.model.test import Metric
from tests.programs import Workplace
from tests.show.web.served import Served

from .helpers import a_test

SHARE = {"of": "read", "over": "write"}


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    place = Workplace(tmp_path)
    place.local()
    return place


def a_run(place: Workplace, name: str, printed: str, **keys: Any) -> None:
    """A test that prints figures: ``read 15 GB/s, write 30``, whose unit is s if none is told."""
    told = [each.split() for each in printed.split(",")]
    metrics = {
        metric: {"find": rf"^{metric} (\S+)", "unit": unit[0] if unit else "s", "better": "none"}
        for metric, _, *unit in told
    }
    metrics |= keys.pop("metrics", {})
    script = "; ".join(f"echo {metric} {value}" for metric, value, *_ in told if value != "none")
    place.test(name, script, metrics=metrics, **keys)


def judged(place: Workplace) -> dict[str, tuple[str, str]]:
    return {end.test: (end.verdict, end.reason) for end in place.events("t", RunJudged)}


def figures_of(place: Workplace) -> dict[tuple[str, str], float]:
    found = place.events("t", MetricRecorded)
    return {(event.test, event.metric): event.value or 0.0 for event in found}


def test_a_ratio_is_a_figure_of_the_run_like_any_other(place: Workplace) -> None:
    both, better = "read 15 GB/s, write 23560 MiB/s", {**SHARE, "better": "higher"}
    a_run(place, "right", both, metrics={"read_share": better})
    a_run(place, "slow", both, metrics={"read_share": better})
    a_run(place, "percent", both, metrics={"read_share": {**SHARE, "unit": "%"}})
    a_run(place, "busy", "took 9000 s", metrics={"busy": {"of": "took", "over": "elapsed"}})
    a_run(place, "zero", "read 15, write 0", metrics={"read_share": better})
    a_run(place, "huge", "read 1e149, write 1e-149", metrics={"read_share": better})
    a_run(place, "lacking", "read 15, write none", metrics={"read_share": better})
    references = [
        {"test": "right", "metric": "read_share", "value": 60, "unit": "%", "lower": -0.02},
        {"test": "slow", "metric": "read_share", "min": 0.7, "unit": "1"},
    ]
    (place.folder / "here").mkdir()
    (place.folder / "here/references.yaml").write_text(json.dumps({"references": references}))
    done = place.run("--name", "t")
    assert done.code == 1, done.said
    found, figures = judged(place), figures_of(place)
    assert found["right"] == ("pass", ""), done.said
    assert figures["right", "read_share"] == pytest.approx(15e9 / (23560 * 2**20))
    assert figures["percent", "read_share"] == pytest.approx(60.718, rel=1e-4)
    assert figures["busy", "busy"] > 100
    assert found["slow"][0] == "performance" and "read_share 0.6072" in found["slow"][1]
    zero = "metric read_share: write 0 s has no part: nothing is divided by 0"
    assert found["zero"] == ("no figure", zero)
    assert found["huge"][0] == "no figure" and "as no measurement is" in found["huge"][1]
    assert found["lacking"][0] == "no figure" and found["lacking"][1].endswith("; and 1 more")
    assert ("zero", "read_share") not in figures and ("zero", "read") in figures


def test_judged_again_it_is_the_same_and_one_that_is_new_is_added(place: Workplace) -> None:
    both = "read 15 GB/s, write 23560 MiB/s"
    a_run(place, "old", both, metrics={"read_share": SHARE})
    a_run(place, "new", both)
    place.run("--name", "t")
    a_run(place, "new", both, metrics={"write_share": {"of": "write", "over": "read"}})
    place.seatrial("judge", "t", "--again", "--reason", "a ratio")
    figures = figures_of(place)
    assert figures["old", "read_share"] * figures["new", "write_share"] == pytest.approx(1)
    assert len(figures) == 6 == place.count(MetricRecorded)


def test_what_cannot_be_divided_is_refused_before_a_run(place: Workplace) -> None:
    a_run(
        place,
        "a",
        "read 15 us, write 3 MB/s",
        metrics={
            "apart": SHARE,
            "unit": {"of": "read", "over": "read", "unit": "MB/s"},
            "half": {"of": "read"},
            "named": {"of": "raed", "over": "read"},
            "twice": {"of": "apart", "over": "read"},
            "both": {"of": "read", "over": "read", "find": "a (.)"},
            "nothing": {"better": "none"},
            "aimless": {"find": "a (.)"},
            "more": {"of": "read", "over": "read", "reduce": "max", "in": "log", "size_limit": 1},
        },
        parts={"read": ["write", "read"], "write": ["x"], "elapsed": [], "half": ["read"]},
    )
    done = place.run("--name", "t")
    assert done.code == 2 and not place.trials.exists()
    for key, words in {
        "metrics.apart.over": "read is in us, which is of another dimension than MB/s",
        "metrics.unit.unit": "MB/s is no unit of a ratio; write 1 or %",
        "metrics.half.over": "is missing; `of` and `over` are given together",
        "metrics.named.of": "the test has no metric raed; did you mean 'read'?",
        "metrics.twice.of": "apart is a ratio itself; name metrics that are found",
        "metrics.both.find": "a metric is found, or is a ratio",
        "metrics.nothing.find": "is missing; it must be given",
        "metrics.aimless.better": "is missing; it must be given",
        "metrics.more.in": "is of metrics that are found",
        "metrics.more.reduce": "is of metrics that are found",
        "metrics.more.size_limit": "is of metrics that are found",
        "parts.read[0]": "write is in MB/s, which is of another dimension than us",
        "parts.read[1]": "read is the whole itself",
        "parts.write[0]": "the test has no metric x",
        "parts.elapsed": "has no parts",
        "parts.half": "half is a ratio itself",
    }.items():
        assert any(f" {key}: {words}" in line for line in done.said.splitlines()), (key, done.said)


def test_a_criterion_asks_for_a_ratio(place: Workplace) -> None:
    read_share = {"read_share": {**SHARE, "better": "higher"}}
    a_run(place, "io", "read 15 GB/s, write 23560 MiB/s", metrics=read_share)
    criterion = {"criterion": "figure_of_merit", "metric": "read_share", "at_least": 0.6}
    about = {"component": "io", "kind": "once", "repeat": 3, "criteria": [criterion]}
    plan = {"plan": "p", "machine": "machine.yaml", "suites": ["suite"], "components": [about]}
    (place.folder / "plan.yaml").write_text(json.dumps(plan))
    done = place.seatrial("accept", "run", "plan.yaml")
    assert done.code == 0, done.said
    (line,) = [each for each in done.out.splitlines() if each.startswith("figure of merit of")]
    assert "met" in line and "0.6072" in line and "median 0.6072 of 3 runs" in line


def test_figures_with_labels_are_divided_one_by_one() -> None:
    labelled = [("bw{bytes=8}", 2.0), ("bw{bytes=16}", 3.0), ("bibw{bytes=16}", 6.0)]
    figures = [MetricValue(name, value, "MB/s", "higher") for name, value in labelled]
    metric = Metric(of="bibw", over="bw", better="none")
    found, findings = ratios(a_test(metrics={"both_ways": metric}), figures)
    assert [(one.name, one.value) for one in found] == [("both_ways{bytes=16}", 2.0)]
    (finding,) = findings
    assert finding.text.startswith("metric both_ways{bytes=8}: there is no figure bibw{bytes=8}")


# ---- parts of a whole ----------------------------------------------------------------------------

PARTS = {"total": ["compute", "communication", "io"]}


def test_parts_have_shares_and_more_than_the_whole_is_told(place: Workplace) -> None:
    a_run(place, "right", "total 10, compute 4.25, communication 3250 ms, io 1.5", parts=PARTS)
    a_run(place, "whole", "total 10.0, compute 4.26, communication 4.31, io 1.44", parts=PARTS)
    a_run(place, "excess", "total 10.0, compute 5.2, communication 4.1, io 1.2", parts=PARTS)
    a_run(place, "below", "total 10, compute -1, communication 4, io 1", parts=PARTS)
    a_run(place, "lacking", "total 10, compute 1, communication none, io 1", parts=PARTS)
    a_run(place, "elapsed", "io 1000 s", parts={"elapsed": ["io"]})
    place.run("--name", "t")
    found = judged(place)
    assert found["right"] == found["whole"] == ("pass", "")
    excess = (
        "parts of total: compute 5.2 s + communication 4.1 s + io 1.2 s = 10.5 s is more than "
        "total 10 s, and rounding explains 0.2; parts must not overlap"
    )
    assert found["excess"] == ("check error", excess)
    assert found["below"] == (
        "check error",
        "parts of total: compute -1 s is below 0, so it is no part",
    )
    assert found["lacking"][0] == "no figure"
    assert found["elapsed"][0] == "check error" and "is more than elapsed" in found["elapsed"][1]


def test_the_shares_of_parts_are_shown(place: Workplace) -> None:
    printed = "total 10, compute 4.25, communication 3250 ms, io 1.5"
    a_run(place, "app", printed, parts=PARTS)
    place.run("--name", "t", "--repeat", "2")
    shown = place.seatrial("show", "--last").out.split("Parts of the whole")[1]
    rows = [line.split() for line in shown.split("stdout")[0].splitlines()]
    assert ["compute", "total", "4.25", "s", "42.5", "%"] in rows
    assert ["communication", "total", "3.25", "s", "32.5", "%"] in rows
    assert ["other", "total", "1", "s", "10", "%"] in rows
    record = json.loads(place.seatrial("show", "--last", "--format", "json").out)
    (whole,) = record["breakdowns"]
    assert [part["share"] for part in whole["parts"]] == pytest.approx([0.425, 0.325, 0.15, 0.1])
    with Served(place.trials) as served:
        html = served.get(f"/runs/t/{record['run']['run_id']}")[1]
    assert "Parts of the whole" in html and "total: compute: 42.5" in html
    report = place.folder / "report.md"
    place.seatrial("report", "write", "t", "-o", str(report))
    text = report.read_text()
    assert "Parts of total of app" in text and "| 2 | communication | 3.25 | 32.5 % |" in text


def test_a_whole_of_nothing_has_no_shares() -> None:
    figures = [MetricValue(name, 0.0, "s", "lower") for name in ("total", "io")]
    (whole,) = breakdowns({"total": ["io"], "none": ["io"]}, figures)
    assert not whole.parts
    assert whole.reason == "total 0 s has no parts: shares are of more than 0"


@given(
    st.lists(st.integers(0, 10**6), min_size=1, max_size=6).filter(any),
    st.integers(0, 10**6),
    st.integers(0, 4),
)
def test_what_was_printed_with_few_digits_is_never_more_than_its_whole(
    parts: list[int], rest: int, digits: int
) -> None:
    exact = [part / 1e4 for part in parts]
    whole = (sum(parts) + rest) / 1e4
    names = [f"p{i}" for i in range(len(parts))]
    printed = dict(zip(names, (round(each, digits) for each in exact), strict=True))
    printed["whole"] = round(whole, digits)
    figures = [MetricValue(name, value, "s", "lower") for name, value in printed.items()]
    test = a_test(parts={"whole": names})
    assert not list(find_excess(test, figures))
    for found in breakdowns(test.parts, figures):
        left = found.value - sum(part.value for part in found.parts if part.name != OTHER)
        other = [part.value for part in found.parts if part.name == OTHER]
        assert other == pytest.approx([left]) if other else left <= (len(parts) + 1) * 0.5
