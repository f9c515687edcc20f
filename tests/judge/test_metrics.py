from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from seatrial.journal.events import MetricRecorded
from seatrial.judge import isolated
from seatrial.judge.formats import find_format, formats
from seatrial.judge.metrics import faults_of_metrics, figure_names, measure, reduced
from seatrial.model.codes import CHECK_ERROR, NO_FIGURE, TOO_LARGE
from seatrial.model.figures import MetricValue
from seatrial.model.file_model import typed
from seatrial.model.test import Metric, Reduce
from tests.programs import Workplace

from .helpers import DATA, TRIAD, a_test, sparse

STREAM = (DATA / "stream.out").read_bytes()


def a_metric(find: str = r"rate (\S+)", **keys: Any) -> Metric:
    return typed({"find": find, "unit": "GB/s", "better": "higher", **keys}, Metric)


def test_a_figure_by_pattern(tmp_path: Path) -> None:
    (tmp_path / "stdout").write_bytes(STREAM.replace(b"\n", b"\r\n"))
    figures, findings = measure(a_test(metrics={"triad": TRIAD}), tmp_path)
    assert figures == [MetricValue("triad", 5693.6, "MB/s", "higher")]
    assert findings == []


@pytest.mark.parametrize(
    ("how", "value"),
    [
        ("first", 3),
        ("last", 2),
        ("min", -1),
        ("max", 4),
        ("median", 2.5),
        ("mean", 2),
        ("sum", 8),
    ],
)
def test_reducing(tmp_path: Path, how: Any, value: float) -> None:
    (tmp_path / "log").write_text("rate 3\nrate .4D+1\nrate -1\nrate 2.0")
    metrics = {"r": a_metric(reduce=how, **{"in": "log"})}
    figure = MetricValue("r", value, "GB/s", "higher")
    assert measure(a_test(metrics=metrics), tmp_path) == ([figure], [])


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_reduced_values_lie_within(values: list[float]) -> None:
    picks: list[Reduce] = ["first", "last", "min", "max"]
    averages: list[Reduce] = ["median", "mean"]
    assert all(reduced(values, how) in values for how in picks)
    slack = max(1e-9 * max(map(abs, values)), 1e-320)  # halves of denormal numbers are rounded
    for how in averages:
        value = reduced(values, how)
        assert min(values) - slack <= value <= max(values) + slack


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", r"metric r: nothing in stdout matches 'rate (\S+)'"),
        (
            "[1,0]<stdout>:\n[1,0]<stdout>:speed 1\n",
            r"metric r: nothing in stdout matches 'rate (\S+)'; its lines seem to have a "
            "launcher's labels: begin the pattern behind them, or print none",
        ),
        ("rate 1\nrate 2\n", r"metric r: stdout has 2 values for 'rate (\S+)'; add `reduce:`"),
        ("rate nan", "metric r: 'nan' is not a finite number"),
        ("rate -inf", "metric r: '-inf' is not a finite number"),
        ("rate 1,234.5", "metric r: '1,234.5' is not a number"),
        ("rate \x1b[2J", r"metric r: '\x1b[2J' is not a number"),
    ],
)
def test_no_figure(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "stdout").write_text(text)
    figures, (finding,) = measure(a_test(metrics={"r": a_metric()}), tmp_path)
    assert figures == []
    assert finding.code is NO_FIGURE
    assert finding.text.startswith(said)


def test_a_sum_that_overflows_is_no_figure(tmp_path: Path) -> None:
    (tmp_path / "stdout").write_text("rate 1e308\nrate 1e308\n")
    figures, (finding,) = measure(a_test(metrics={"r": a_metric(reduce="sum")}), tmp_path)
    assert (figures, finding.code) == ([], NO_FIGURE)
    assert finding.text == "metric r: inf is not a finite number"


def test_one_metric_that_is_not_there_costs_no_other(tmp_path: Path) -> None:
    (tmp_path / "stdout").write_text("rate 1\n")
    sparse(tmp_path / "big", 1 << 30)
    metrics = {
        "gone": a_metric(**{"in": "gone"}),
        "big": a_metric(**{"in": "big"}),
        "dir": a_metric(**{"in": "."}),
        "bad": a_metric("("),
        "r": a_metric(),
    }
    figures, findings = measure(a_test(metrics=metrics), tmp_path)
    assert [figure.name for figure in figures] == ["r"]
    assert [f.code for f in findings] == [CHECK_ERROR, NO_FIGURE, TOO_LARGE, CHECK_ERROR]


def test_each_metric_has_its_own_limit(tmp_path: Path) -> None:
    (tmp_path / "stdout").write_text("rate 1\n" + "-" * 100)
    metrics = {
        "small": a_metric(size_limit=9),
        "all": a_metric(),
        "kib": a_metric(size_limit="1KiB"),
    }
    figures, (finding,) = measure(a_test(metrics=metrics), tmp_path)
    assert [figure.name for figure in figures] == ["all", "kib"]
    assert finding.code is TOO_LARGE


def test_a_search_that_takes_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolated, "SEARCH_SECONDS", 0.3)
    (tmp_path / "stdout").write_text("1" * 1_000_000)
    figures, (finding,) = measure(a_test(metrics={"r": a_metric(r"(\d+) MB")}), tmp_path)
    assert (figures, finding.code) == ([], CHECK_ERROR)
    assert finding.text.startswith("stdout: the pattern of r took longer than 0.3 s")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.binary() | st.text().map(lambda text: f"rate {text}\n".encode()))
def test_no_bytes_of_a_job_raise(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "stdout").write_bytes(data)
    metrics: dict[str, str | Metric] = {"from": "stream", "r": a_metric()}
    figures, findings = measure(a_test(metrics=metrics), tmp_path)
    assert len(figures) + len(findings) == 2
    assert all(math.isfinite(figure.value) for figure in figures)
    assert all(finding.code is NO_FIGURE for finding in findings)
    assert all(finding.text.isprintable() for finding in findings)


# ---- formats ------------------------------------------------------------------------------


def test_a_known_output_beside_a_pattern(tmp_path: Path) -> None:
    (tmp_path / "stdout").write_bytes(STREAM)
    threads = Metric(find=r"Threads counted = (\d+)", unit="1", better="higher")
    metrics: dict[str, str | Metric] = {"threads": threads, "from": "stream"}
    figures, findings = measure(a_test(metrics=metrics), tmp_path)
    assert [f.name for f in figures] == ["copy", "scale", "add", "triad", "threads"]
    assert findings == []
    clash: dict[str, str | Metric] = {"triad": TRIAD, "from": "stream"}
    figures, (finding,) = measure(a_test(metrics=clash), tmp_path)
    assert finding.code is CHECK_ERROR
    assert finding.text.startswith("metric triad is given twice")


def test_an_output_that_is_not_the_formats(tmp_path: Path) -> None:
    (tmp_path / "stdout").write_text("hello\n")
    figures, (finding,) = measure(a_test(metrics={"from": "stream"}), tmp_path)
    assert (figures, finding.code) == ([], NO_FIGURE)
    assert finding.text.startswith("stdout is not a whole stream output: its closing line")
    (tmp_path / "stdout").unlink()
    assert measure(a_test(metrics={"from": "stream"}), tmp_path)[1][0].code is NO_FIGURE
    assert measure(a_test(metrics={"from": "os"}), tmp_path)[1][0].code is CHECK_ERROR


def test_every_format_is_a_parser() -> None:
    assert "stream" in formats()
    for name in formats():
        parse = find_format(name).module.parse
        for text in ("", "\0", "hello\n" * 100):
            with pytest.raises(ValueError, match=r".{10}"):
                parse(text)


# ---- faults -------------------------------------------------------------------------------


def test_faults_of_written_metrics(tmp_path: Path) -> None:
    metrics: dict[str, str | Metric] = {
        "from": "strem",
        "python": "no.py:f",
        "word": "triad",
        "none": a_metric("a"),
        "two": a_metric("(a)(b)"),
        "bad": a_metric("("),
        "unit": Metric(find="(a)", unit=" ", better="higher"),
        "good": TRIAD,
    }
    faults = dict(faults_of_metrics(a_test(tmp_path, metrics=metrics)))
    assert list(faults) == [
        "metrics.from",
        "metrics.python",
        "metrics.word",
        "metrics.none.find",
        "metrics.two.find",
        "metrics.bad.find",
        "metrics.unit.unit",
    ]
    assert faults["metrics.from"].endswith("did you mean 'stream'?")
    assert faults["metrics.python"] == f"{tmp_path / 'no.py'} is missing"


@pytest.mark.parametrize("named", ["f.py", "f:g", "/f.py:g", "../f.py:g", "f.py:g()", "f.py:a.b"])
def test_a_function_has_one_form(tmp_path: Path, named: str) -> None:
    (tmp_path / "f.py").write_text("raise SystemExit  # never imported\ndef g(path): ...\n")
    assert len(faults_of_metrics(a_test(tmp_path, metrics={"python": named}))) == 1
    assert faults_of_metrics(a_test(tmp_path, metrics={"python": "f.py:g"})) == []


def test_kept_names(tmp_path: Path) -> None:
    (fault,) = faults_of_metrics(a_test(metrics={"from": TRIAD}))
    assert fault[0] == "metrics.from"


@pytest.mark.parametrize(
    ("metrics", "names"),
    [
        ({}, set()),
        ({"triad": TRIAD, "copy": TRIAD}, {"triad", "copy"}),
        ({"python": "figures.py:read", "triad": TRIAD}, None),
        ({"from": "stream"}, {"copy", "scale", "add", "triad"}),
        ({"from": "stream", "mine": TRIAD}, {"copy", "scale", "add", "triad", "mine"}),
        ({"from": "osu"}, None),
        ({"from": "no such format", "mine": TRIAD}, None),
    ],
)
def test_the_names_of_figures_before_a_test_has_run(
    metrics: dict[str, Any], names: set[str] | None
) -> None:
    assert figure_names([a_test(metrics=metrics)]) == names


def test_a_metric_without_a_direction_is_recorded_shown_and_never_judged(tmp_path: Path) -> None:
    place = Workplace(tmp_path)
    place.local()
    (tmp_path / "here").mkdir()
    metrics = {
        "drift": {"find": r"drift (\S+)", "better": "none", "unit": "kJ/mol"},
        "steps": {"find": r"steps (\S+)", "better": "none"},
        "share": {"find": r"share (\S+)", "better": "higher", "unit": 1},
    }
    text = "references: [{test: md, metric: drift, unit: kJ/mol, max: 1}]"
    (tmp_path / "here" / "references.yaml").write_text(text)
    place.test("md", "echo drift 5; echo steps 7; echo share 0.5", metrics=metrics)
    done = place.run("--name", "r")
    assert done.code == 1 and "drift has no direction (better: none)" in place.why("md", "r")
    (tmp_path / "here" / "references.yaml").unlink()
    for tag, drift in (("a", 5), ("b", 500)):
        place.test("md", f"echo drift {drift}; echo steps 7; echo share 0.5", metrics=metrics)
        done = place.run("--name", tag, "--repeat", "5")
        assert (done.code, f"drift   {drift} kJ/mol" in done.out) == (0, True)
    recorded = {(e.metric, e.unit, e.better) for e in place.events("b", MetricRecorded)}
    assert recorded == {
        ("drift", "kJ/mol", "none"),
        ("steps", "1", "none"),
        ("share", "1", "higher"),
    }
    compared = place.seatrial("compare", "a", "b", "--format", "json")
    rows = {row["metric"]: row for row in _rows(json.loads(compared.out))}
    assert (rows["drift"]["verdict"], rows["drift"]["why"]) == (
        "not compared",
        "it has no direction (better: none)",
    )
    assert rows["share"]["verdict"] == "same"
    assert compared.code == 0
    history = place.seatrial("history", "drift", "--check")
    assert history.code == 3 and "no change is for the worse" in history.err
    assert "kJ/mol, no direction, 10 figures" in history.out
    accepted = place.seatrial("reference", "accept", "a", "--dry-run")
    assert ("share" in accepted.out, "drift" in accepted.out + accepted.err) == (True, False)
    asked = place.seatrial("reference", "accept", "a", "--metric", "drift")
    assert (asked.code, "left out: drift: has no direction" in asked.err) == (2, True)
    shown = place.seatrial("show", place.ran()[-1]).out
    assert ["drift", "500", "kJ/mol", "none"] in [line.split() for line in shown.splitlines()]


def _rows(found: Any) -> Iterator[dict[str, Any]]:
    """Yield the rows anywhere in the JSON of a comparison."""
    if isinstance(found, dict):
        if "metric" in found and "verdict" in found:
            yield found
        found = list(found.values())
    for each in found if isinstance(found, list) else ():
        yield from _rows(each)


@pytest.mark.parametrize("unit", ["true", "2", "[a]", "0x1g]"])
def test_only_1_is_a_unit_without_quotes(tmp_path: Path, unit: str) -> None:
    place = Workplace(tmp_path)
    place.local()
    folder = place.test("md", "true")
    text = (folder / "test.yaml").read_text()
    metric = f"metrics: {{a: {{find: '(1)', better: lower, unit: {unit}}}}}\n"
    (folder / "test.yaml").write_text(text + metric)
    assert place.run().code == 2


def test_labels_warnings_and_numbers_of_fortran_in_real_runs(tmp_path: Path) -> None:
    """As the trial records them: an output that a launcher labelled, with a warning between its
    rows, and exponents without a letter in a check and a metric."""
    place = Workplace(tmp_path)
    place.local()
    rows = (DATA / "osu-7-bw-tails.out").read_text().splitlines()
    rows.insert(6, "UCX  WARN  no transport")
    (tmp_path / "osu.out").write_text("".join(f"[1,0]<stdout>:{row}\n" for row in rows))
    place.test("bw", f"cat {tmp_path / 'osu.out'}", metrics={"from": "osu"})
    place.test(
        "flux",
        "echo residual = 0.1234567-104; echo big = 0.2500+101",
        verify=[
            {"value": r"residual = (\S+)", "at_most": 1e-12},
            {"value": r"big = (\S+)", "equals": 0.25e101, "relative": 1e-6},
        ],
        metrics={"residual": {"find": r"residual = (\S+)", "better": "lower"}},
    )
    assert place.run("--name", "t").code == 0
    recorded = {e.metric: e.value for e in place.events("t", MetricRecorded)}
    assert recorded["residual"] == 0.1234567e-104
    assert recorded["bandwidth_p99{benchmark=MPI Bandwidth,bytes=8}"] == 28.0
    assert place.why("bw") == (
        "stdout: 1 line is not known and passed over; the first: 'UCX  WARN  no transport'"
    )
