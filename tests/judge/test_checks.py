from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from seatrial.judge.check_values import faults_of_check
from seatrial.judge.checks import find_fault, find_faults
from seatrial.model.codes import CHECK_ERROR, FAILED, TOO_LARGE, WRONG_ANSWER, Code

from .helpers import a_check, a_test, sparse

SUM = hashlib.sha256(b"4.99\n").hexdigest()


@pytest.fixture
def run(tmp_path: Path) -> Path:
    (tmp_path / "stdout").write_bytes(b"Solution Validates\r\nresidual = 4.99D-01\r\nend\r\n")
    (tmp_path / "stderr").write_text("")
    (tmp_path / "result").write_bytes(b"4.99\n")
    return tmp_path


HOLD: list[dict[str, Any]] = [
    {"exit_code": 3},
    {"exit_code": "any"},
    {"contains": "Validates\nresidual"},
    {"absent": "ERROR"},
    {"matches": "^end$"},
    {"file": "result"},
    {"value": r"residual = (\S+)", "equals": 0.499},
    {"value": r"residual = (\S+)", "equals": 0.5, "tolerance": 0.001},
    {"value": r"residual = (\S+)", "equals": 0.5, "relative": 0.002},
    {"value": r"(\S+)", "equals": 5.0, "tolerance": 0.0, "relative": 0.002, "in": "result"},
    {"value": r"residual = (\S+)", "at_least": 0.499, "at_most": 0.499},
    {"value": r"residual = (\S+)", "at_most": 0.5},
    {"identical": "result", "sha256": SUM.upper()},
    {"file": "stderr"},  # which is empty
]

FAIL: list[tuple[dict[str, Any], Code, str]] = [
    ({"exit_code": 0}, FAILED, "exit code 3, not 0"),
    ({"contains": "All good"}, WRONG_ANSWER, "stdout does not contain 'All good'"),
    ({"absent": "residual"}, WRONG_ANSWER, "stdout contains 'residual' in line 2"),
    ({"matches": "^Validates"}, WRONG_ANSWER, "stdout does not match '^Validates'"),
    ({"file": "no"}, WRONG_ANSWER, "no is missing"),
    ({"file": "."}, WRONG_ANSWER, ". cannot be read: it is a folder"),
    ({"contains": "x", "in": "no"}, WRONG_ANSWER, "no is missing"),
    ({"absent": "x", "in": "no"}, WRONG_ANSWER, "no is missing"),
    (
        {"value": r"residual = (\S+)", "equals": 0.5, "tolerance": 0.0005},
        WRONG_ANSWER,
        "stdout:2: the value is 4.99D-01, not 0.5 within 5.000e-04",
    ),
    (
        {"value": r"residual = (\S+)", "at_least": 0.5, "name": "residual"},
        WRONG_ANSWER,
        "residual: stdout:2: the value is 4.99D-01, at least 0.5 asked",
    ),
    (
        {"value": r"residual = (\S+)", "at_most": 0.25},
        WRONG_ANSWER,
        "stdout:2: the value is 4.99D-01, at most 0.25 asked",
    ),
    ({"exit_code": 0, "name": "end"}, FAILED, "end: exit code 3, not 0"),
    ({"value": r"x(\d)", "equals": 1.0}, WRONG_ANSWER, r"stdout has no value for 'x(\d)'"),
    (
        {"value": r"(end)", "equals": 1.0},
        WRONG_ANSWER,
        "stdout:3: 'end' is not a number, found by '(end)'",
    ),
    ({"identical": "stderr", "sha256": SUM}, WRONG_ANSWER, "stderr has sha256 e3b0c44298fc"),
    (
        {"contains": "x", "in": "."},
        CHECK_ERROR,
        ". cannot be read: it is a folder",
    ),
    ({"contains": "x", "size_limit": 9}, TOO_LARGE, "stdout has 46 B; the limit is"),
    ({"contains": "x", "matches": "x"}, CHECK_ERROR, "a check is not valid: a check has exactly"),
    ({}, CHECK_ERROR, "a check is not valid: a check has exactly one of exit_code, contains"),
    ({"matches": "("}, CHECK_ERROR, "the check of stdout is not valid: missing )"),
]


@pytest.mark.parametrize("check", HOLD)
def test_checks_that_hold(run: Path, check: dict[str, Any]) -> None:
    assert find_fault(a_check(**check), run, 3) is None
    if "exit_code" not in check:
        assert not faults_of_check(a_check(**check))


@pytest.mark.parametrize(("check", "code", "text"), FAIL)
def test_checks_that_fail(run: Path, check: dict[str, Any], code: Code, text: str) -> None:
    finding = find_fault(a_check(**check), run, 3)
    assert finding is not None
    assert finding.code is code
    assert finding.text.startswith(text)


def test_a_tolerance_is_not_missed_by_rounding(tmp_path: Path) -> None:
    (tmp_path / "stdout").write_text("1.1")
    near = a_check(value="(.+)", equals=1.0, tolerance=0.1)
    assert find_fault(near, tmp_path, 0) is None
    (tmp_path / "stdout").write_text("1.1000001")
    assert find_fault(near, tmp_path, 0) is not None


@pytest.mark.parametrize("text", ["nan", "inf", "-Infinity"])
def test_what_is_not_finite_equals_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "stdout").write_text(f"residual {text}\n")
    check = a_check(value=r"residual (\S+)", equals=0.0, tolerance=1e300)
    finding = find_fault(check, tmp_path, 0)
    assert finding is not None
    assert finding.text.startswith(f"stdout:1: '{text}' is not a finite number")


def test_a_script_says_why_it_ends(tmp_path: Path) -> None:
    lines = ["seatrial: no", "seatrial: worker on n003 never came", "srun: error"]
    (tmp_path / "stderr").write_text("\n".join(lines))
    finding = find_fault(a_check(exit_code=0), tmp_path, 1)
    assert finding is not None
    assert finding.text == "exit code 1, not 0: worker on n003 never came"
    finding = find_fault(a_check(exit_code=2), tmp_path, 0)
    assert finding is not None and finding.text == "exit code 0, not 2"


def test_a_right_value_does_not_hide_a_wrong_one(tmp_path: Path) -> None:
    (tmp_path / "stdout").write_text("error 0\nerror 7\n")
    finding = find_fault(a_check(value=r"error (\d)", equals=0.0), tmp_path, 0)
    assert finding is not None
    assert finding.text == "stdout:2: the value is 7, not 0"


def test_labels_of_a_launcher_are_told_where_nothing_matches(tmp_path: Path) -> None:
    (tmp_path / "stdout").write_text("0: \n0: speed 5\n")
    for check in ({"value": r"^speed (\S+)", "equals": 5.0}, {"matches": "^speed"}):
        finding = find_fault(a_check(**check), tmp_path, 0)
        assert finding is not None and finding.text.endswith(
            "; its lines seem to have a launcher's labels: begin the pattern behind them, or print "
            "none"
        )


def test_exit_code_0_is_required_where_no_check_speaks_of_it(run: Path) -> None:
    good, bad = a_check(contains="end"), a_check(contains="never")
    assert find_faults(a_test(verify=[good]), run, 0) == []
    assert [f.text for f in find_faults(a_test(verify=[bad, good]), run, 137)] == [
        "exit code 137 (ended by signal 9), not 0",
        "stdout does not contain 'never'",
    ]
    assert [f.text for f in find_faults(a_test(verify=[]), run, 129)] == [
        "exit code 129 (ended by signal 1), not 0"
    ]
    assert [f.text for f in find_faults(a_test(verify=[]), run, 128)] == ["exit code 128, not 0"]
    assert find_faults(a_test(verify=[a_check(exit_code=137)]), run, 137) == []
    assert [f.code for f in find_faults(a_test(verify=[a_check(exit_code="any")]), run, None)] == [
        FAILED
    ]


def test_a_fifo_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "stdout")
    finding = find_fault(a_check(contains="x"), tmp_path, 0)
    assert finding is not None
    assert (finding.code, "it is a FIFO" in finding.text) == (CHECK_ERROR, True)


def test_gigabytes_are_too_large_to_search_but_not_to_hold_and_compare(tmp_path: Path) -> None:
    sparse(tmp_path / "stdout", 4 << 30)
    finding = find_fault(a_check(contains="x"), tmp_path, 0)
    assert finding is not None
    assert finding.code is TOO_LARGE
    assert find_fault(a_check(file="stdout"), tmp_path, 0) is None


def test_a_line_of_a_million_characters(tmp_path: Path) -> None:
    (tmp_path / "stdout").write_text("7" * 1_000_000 + " end")
    assert find_fault(a_check(matches=" end$"), tmp_path, 0) is None
    finding = find_fault(a_check(value=r"^(\d+)", equals=7.0), tmp_path, 0)
    assert finding is not None
    assert finding.code is WRONG_ANSWER
    assert len(finding.text) < 300


KINDS = [check for check in HOLD if "exit_code" not in check and "identical" not in check]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.binary(), st.sampled_from(KINDS))
def test_no_bytes_of_a_job_raise(tmp_path: Path, data: bytes, check: dict[str, Any]) -> None:
    for name in ("stdout", "result"):
        (tmp_path / name).write_bytes(data)
    finding = find_fault(a_check(**check), tmp_path, 0)
    assert finding is None or finding.code is WRONG_ANSWER
    assert finding is None or finding.text.isprintable()


@pytest.mark.parametrize(
    ("check", "said"),
    [
        ({}, "none is given"),
        ({"contains": "a", "file": "b"}, "contains and file are given"),
        ({"contains": ""}, "contains: is empty"),
        ({"matches": "("}, "matches: '(' is not a regular expression: missing )"),
        ({"value": "a", "equals": 1.0}, "has 0 groups and must have 1"),
        ({"value": "(a)(b)", "equals": 1.0}, "has 2 groups and must have 1"),
        ({"value": "(a)"}, "value: needs equals:"),
        ({"contains": "a", "equals": 1.0}, "equals: belongs to value:"),
        ({"contains": "a", "tolerance": 1.0}, "tolerance: belongs to value:"),
        ({"file": "a", "sha256": SUM}, "sha256: belongs to identical:"),
        ({"value": "(a)", "equals": 1.0, "at_least": 1.0}, "at_least: give equals with its"),
        ({"value": "(a)", "at_most": 1.0, "relative": 1.0}, "relative: belongs to equals:"),
        ({"contains": "a", "at_most": "b"}, "at_most: belongs to value:"),
        ({"contains": "a", "name": "a\nb"}, "name: must be one line of at most 100"),
        ({"contains": "a", "name": "a" * 101}, "name: must be one line of at most 100"),
        ({"python": "a.py:b", "contains": "a"}, "contains and python are given"),
        ({"identical": "a", "sha256": "abc"}, "sha256: must be 64 hexadecimal digits"),
    ],
)
def test_faults_of_written_checks(check: dict[str, Any], said: str) -> None:
    (fault,) = faults_of_check(a_check(**check))
    assert said in ": ".join(filter(None, fault))


def test_each_fault_of_a_check_is_told() -> None:
    check = a_check(name="x" * 101, value="no group", tolerance=0.1, sha256=SUM)
    assert [key for key, _ in faults_of_check(check)] == ["name", "value", "sha256", "value"]


def test_the_line_of_what_must_be_absent_counts_empty_lines(tmp_path: Path) -> None:
    (tmp_path / "stdout").write_text("\nbad\n")
    found = find_fault(a_check(absent="bad"), tmp_path, 0)
    assert found is not None
    assert found.text.endswith("in line 2")
