from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.errors import InvalidFiles
from seatrial.judge.references import (
    AmbiguousReference,
    Learned,
    Reference,
    References,
    bounds,
    in_unit,
    judge,
    load,
    loads,
    matching,
)
from seatrial.model.codes import CHECK_ERROR, PERFORMANCE
from seatrial.model.figures import MetricValue
from seatrial.units import Better

FILE = Path("machines/frost/references.yaml")
WHOLE = """\
references:
  - test: stream
    metric: triad
    where: {touch: all, threads: 2}
    toolchain: gcc*
    unit: MB/s
    value: 12000
    lower: -0.05
    upper: 0.10
    learned: {trial: T1, runs: 5, at: 2026-11-21}
  - {test: stream, metric: copy, unit: MB/s, min: 11400, max: 13000.5}
"""


def a_reference(**keys: Any) -> Reference:
    given_bounds = keys.keys() & {"value", "min", "max"}
    keys = {"test": "stream", "metric": "triad", "unit": "MB/s"} | keys
    return Reference(**keys) if given_bounds else Reference(**keys, value=100.0)


# ---- reading ------------------------------------------------------------------------------


def test_a_whole_file(tmp_path: Path) -> None:
    (tmp_path / "references.yaml").write_text(WHOLE)
    first, second = load(tmp_path / "references.yaml").entries
    assert first == a_reference(
        where={"touch": "all", "threads": 2},
        toolchain="gcc*",
        value=12000.0,
        lower=-0.05,
        upper=0.10,
        learned=Learned(trial="T1", runs=5, at="2026-11-21"),
    )
    assert second == a_reference(metric="copy", min=11400.0, max=13000.5)


def test_no_file_is_no_references(tmp_path: Path) -> None:
    assert load(tmp_path / "no.yaml") == References()
    (tmp_path / "dangling.yaml").symlink_to("no.yaml")
    with pytest.raises(InvalidFiles, match="cannot be read"):
        load(tmp_path / "dangling.yaml")
    assert loads("references: []\n", FILE) == References()
    with pytest.raises(InvalidFiles, match="cannot be read: File name too long"):
        load(tmp_path / ("x" * 300))


@pytest.mark.parametrize(
    ("bound", "fault"),
    [
        ("", "value: is missing; give value, or min or max"),
        ("lower: -0.1, min: 1", "lower: is relative to value, which is not given"),
        ("value: 1, min: 1", "min: give value with lower and upper, or min and max, not both"),
        ("value: 1, max: 2", "max: give value with lower and upper, or min and max, not both"),
        ("value: 0", "value: 0 has no relative bounds; give min or max instead"),
        ("value: 1, lower: 0.05", "lower: 0.05 is not between -1 and 0; write -0.05 for 5 % below"),
        ("value: 1, lower: -5", "lower: -5 is not between -1 and 0; write -0.05 for 5 % below"),
        ("value: 1, upper: -0.05", "upper: -0.05 is not between 0 and 1; write 0.05 for 5 %"),
        ("value: 1, upper: 5", "upper: 5 is not between 0 and 1; write 0.05 for 5 % above"),
        ("min: 2, max: 1", "min: 2 is more than max, 1"),
        ("value: 1, unit: ''", "unit: is empty"),
        ("value: many", "value: 'many' is not a number"),
        ("value: .nan", "value: '.nan' is not a number"),
        ("vaule: 1", "vaule: is not a key here; did you mean 'value'?"),
    ],
)
def test_faults_have_their_place(bound: str, fault: str) -> None:
    unit = "" if "unit" in bound else "unit: GB/s, "
    text = f"references:\n  - {{test: a, metric: b, {unit}{bound}}}\n"
    with pytest.raises(InvalidFiles) as raised:
        loads(text, FILE)
    assert raised.value.faults[0].startswith(f"{FILE}:2: references[0].{fault}")


@pytest.mark.parametrize(
    ("keys", "faults"),
    [
        ({"sha256": "0" * 64}, ["sha256"]),
        ({"file": "a", "sha256": "0" * 64}, []),
        ({"file": "a", "sha256": "0" * 63}, ["sha256"]),
        ({"file": "a", "sha256": "A" * 64}, ["sha256"]),
        ({"file": "a", "sha256": "0" * 64, "metric": "m", "unit": "s"}, ["metric", "unit"]),
        ({"file": "a", "sha256": "0" * 64, "value": 1.0, "lower": -0.1}, ["value", "lower"]),
        ({"file": "a", "sha256": "0" * 64, "upper": 0.1}, ["upper"]),
        ({"file": "a", "sha256": "0" * 64, "min": 0.0, "max": 1.0}, ["min", "max"]),
    ],
)
def test_faults_of_the_sum_of_a_file(keys: dict[str, Any], faults: list[str]) -> None:
    text = json.dumps({"references": [{"test": "t", **keys}]})
    try:
        found = loads(text, FILE).by_file
        assert not faults and list(found) == [("t", "a")]
    except InvalidFiles as error:
        assert [fault.split(": ")[1] for fault in error.faults] == [
            f"references[0].{key}" for key in faults
        ]


def test_all_faults_are_told_at_once_and_twice_the_same_is_one() -> None:
    entry = "  - {test: a, metric: b, where: {n: 2}, unit: s, value: 0}\n"
    with pytest.raises(InvalidFiles) as raised:
        loads("references:\n" + 2 * entry, FILE)
    assert raised.value.faults == [
        f"{FILE}:2: references[0].value: 0 has no relative bounds; give min or max instead",
        f"{FILE}:3: references[1].value: 0 has no relative bounds; give min or max instead",
        f"{FILE}:3: references[1]: is for the same as the one in line 2",
    ]


# ---- matching -----------------------------------------------------------------------------

GENERAL = a_reference()
GCC = a_reference(toolchain="gcc*")
TWO = a_reference(where={"threads": 2})
TWO_GCC = a_reference(where={"threads": 2}, toolchain="gcc*")
BOTH = a_reference(where={"threads": 2, "touch": "all"})


@pytest.mark.parametrize(
    ("entries", "winner"),
    [
        ([], None),
        ([GENERAL], GENERAL),
        ([GENERAL, GCC], GCC),
        ([GCC, TWO], TWO),
        ([TWO, TWO_GCC], TWO_GCC),
        ([BOTH, TWO_GCC, GENERAL], BOTH),
        ([a_reference(toolchain="clang*"), GENERAL], GENERAL),
        ([a_reference(where={"threads": 4}), GENERAL], GENERAL),
        ([a_reference(where={"nodes": 1})], None),
        ([a_reference(metric="copy")], None),
        ([a_reference(test="hpl")], None),
    ],
)
def test_the_most_specific_reference_wins(
    entries: list[Reference], winner: Reference | None
) -> None:
    for order in (entries, entries[::-1]):
        references = References.of(list(order))
        parameters: dict[str, Any] = {"threads": 2, "touch": "all"}
        assert matching(references, "stream", "triad", parameters, "gcc-13") == winner


@pytest.mark.parametrize(
    ("bound", "written", "same"),
    [
        (2, 2, True),
        (2, "2", True),
        (2, 2.0, True),
        (True, "true", True),
        (True, 1, False),
        ("all", "one", False),
    ],
)
def test_parameters_are_compared_as_scripts_see_them(bound: Any, written: Any, same: bool) -> None:
    references = References.of([a_reference(where={"p": written})])
    found = matching(references, "stream", "triad", {"p": bound}, "gcc")
    assert (found is not None) == same


def test_a_tie_is_a_fault() -> None:
    references = References.of([TWO, a_reference(where={"touch": "all"}, value=5.0)])
    with pytest.raises(AmbiguousReference, match=r"where: {threads: 2} and where: {touch: all}"):
        matching(references, "stream", "triad", {"threads": 2, "touch": "all"}, "gcc")


# ---- judging ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keys", "better", "expected"),
    [
        ({}, "higher", (95, None)),
        ({}, "lower", (None, 105)),
        ({"lower": -0.1}, "lower", (90, None)),
        ({"upper": 0.1}, "higher", (None, 110)),
        ({"lower": -0.1, "upper": 0.2}, "higher", (90, 120)),
        ({"value": -100.0, "lower": -0.1, "upper": 0.2}, "higher", (-110, -80)),
        ({"min": 7.0}, "lower", (7, None)),
        ({"min": 7.0, "max": 8.0}, "higher", (7, 8)),
    ],
)
def test_bounds(keys: dict[str, Any], better: Better, expected: Any) -> None:
    low, high = bounds(a_reference(**keys), better)
    assert (low, high) == pytest.approx(expected) or (low, high) == expected


@pytest.mark.parametrize(
    ("value", "keys", "text"),
    [
        (
            5694.0,
            {"value": 6500.0, "lower": -0.05},
            "triad 5694 MB/s is 12.4 % below its reference 6500 MB/s (at most 5 % below)",
        ),
        (
            7200.0,
            {"value": 6500.0, "lower": -0.05, "upper": 0.1},
            "triad 7200 MB/s is 10.8 % above its reference 6500 MB/s (at most 10 % above)",
        ),
        (5694.0, {"min": 6000.0}, "triad 5694 MB/s is below its minimum 6000 MB/s"),
        (5694.0, {"max": 5000.0}, "triad 5694 MB/s is above its maximum 5000 MB/s"),
    ],
)
def test_a_miss_is_a_sentence(value: float, keys: dict[str, Any], text: str) -> None:
    finding = judge(MetricValue("triad", value, "MB/s", "higher"), a_reference(**keys))
    assert finding is not None
    assert finding == (PERFORMANCE, text)


def test_a_bound_is_not_missed_by_rounding() -> None:
    reference = a_reference(value=1.1, lower=-0.05)
    low, _ = bounds(reference, "higher")
    assert low is not None
    assert low > 1.045  # in binary; 5 % below 1.1 is 1.045
    assert judge(MetricValue("triad", 1.045, "MB/s", "higher"), reference) is None
    _, high = bounds(a_reference(value=6.1), "lower")
    assert high is not None
    assert high < 6.405
    assert judge(MetricValue("triad", 6.405, "MB/s", "lower"), a_reference(value=6.1)) is None


def test_units_are_never_compared_in_silence() -> None:
    for unit in ("GB", "us", "GFLOP/s", "1", "GB/s/node"):
        finding = judge(MetricValue("triad", 100.0, unit, "higher"), a_reference())
        assert finding is not None
        assert finding.code is CHECK_ERROR
        assert finding.text.startswith(f"triad is in {unit}, but its reference in MB/s")


@given(st.floats(1e-3, 1e9), st.sampled_from(["B/s", "KiB/s", "MiB/s", "GiB/s", "kB/s", "TB/s"]))
def test_a_reference_in_another_unit_of_the_dimension_judges_alike(value: float, unit: str) -> None:
    reference = a_reference(value=value, lower=-0.05, upper=0.1)
    alike = in_unit(reference, unit)
    assert alike is not None
    assert alike.value is not None
    assert alike.unit == unit
    for off, word in ((0.949, "below"), (0.951, ""), (1.099, ""), (1.101, "above")):
        figure = MetricValue("triad", alike.value * off, unit, "higher")
        for each in (reference, alike):
            finding = judge(figure, each)
            assert (finding is not None) == bool(word)
            assert finding is None or f"% {word} its reference" in finding.text


@given(st.floats(1e-6, 1e12), st.floats(-0.99, 0), st.floats(0, 1), st.floats(-0.98, 1.98))
def test_a_figure_meets_its_reference_just_within_its_bounds(
    value: float, lower: float, upper: float, off: float
) -> None:
    reference = a_reference(value=value, lower=lower, upper=upper)
    low, high = bounds(reference, "higher")
    assert low is not None
    assert high is not None
    for edge in (low, high):
        assert judge(MetricValue("triad", edge, "MB/s", "higher"), reference) is None
    figure = value * (1 + off)
    missed = judge(MetricValue("triad", figure, "MB/s", "higher"), reference) is not None
    if abs(off - lower) > 1e-9 and abs(off - upper) > 1e-9:
        assert missed == (off < lower or off > upper)
