from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from seatrial.judge import verdict
from seatrial.judge.reading import DEFAULT_LIMIT
from seatrial.judge.references import Reference, References
from seatrial.judge.verdict import judge
from seatrial.model.codes import (
    CHECK_ERROR,
    FAILED,
    NO_FIGURE,
    PASS,
    PERFORMANCE,
    TOO_LARGE,
    WRONG_ANSWER,
)
from seatrial.model.figures import MetricValue

from .helpers import DATA, TRIAD, a_case, a_check, a_test, sparse

VALID = a_check(contains="Solution Validates")
TEST = a_test(verify=[VALID], metrics={"triad": TRIAD})
TRIAD_IS = MetricValue("triad", 5693.6, "MB/s", "higher")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    (tmp_path / "stdout").write_bytes((DATA / "stream.out").read_bytes())
    return tmp_path


def expect(**keys: Any) -> References:
    return References.of([Reference(test="stream", metric="triad", unit="MB/s", **keys)])


def test_a_pass_has_no_why(run: Path) -> None:
    found = judge(TEST, a_case(), run, 0, References())
    assert (found.code, found.why, found.figures) == (PASS, "", [TRIAD_IS])


def test_a_figure_stands_beside_its_reference(run: Path) -> None:
    found = judge(TEST, a_case(), run, 0, expect(value=6000.0, lower=-0.1))
    assert found.code is PASS
    (figure,) = found.figures
    assert (figure.reference, figure.low, figure.high) == (6000.0, 5400.0, None)
    assert figure.percent == pytest.approx(-5.1067, abs=1e-4)
    (figure,) = judge(TEST, a_case(), run, 0, expect(max=6000.0)).figures
    assert (figure.reference, figure.high, figure.percent) == (None, 6000.0, None)


@pytest.mark.parametrize(
    ("better", "low", "high"), [("higher", 5700.0, None), ("lower", None, 6300.0)]
)
def test_the_worse_side_alone_is_bounded_where_a_reference_gives_a_value(
    run: Path, better: Any, low: float | None, high: float | None
) -> None:
    test = a_test(metrics={"triad": replace(TRIAD, better=better)})
    (figure,) = judge(test, a_case(), run, 0, expect(value=6000.0)).figures
    assert (figure.low, figure.high) == (low, high)


def test_a_learned_sum_is_that_of_the_case_and_its_toolchain(run: Path) -> None:
    """The sum of the file is known with gcc, that of another file with oneapi, none with clang."""
    known = hashlib.sha256((run / "stdout").read_bytes()).hexdigest()
    sums = (("gcc", known), ("oneapi", "0" * 64), ("g*", "1" * 64))
    *both, twice = [
        Reference(test="stream", file="stdout", sha256=each, toolchain=chain)
        for chain, each in sums
    ]
    test = a_test(verify=[VALID, a_check(identical="stdout")])

    def judged(toolchain: str, *entries: Reference) -> verdict.Verdict:
        return judge(test, a_case(toolchain), run, 0, References.of([*entries]))

    right = judged("gcc", *both)
    assert (right.code, right.why) == (PASS, "")
    wrong = judged("oneapi", *both)
    assert (wrong.code, wrong.why[:17]) == (WRONG_ANSWER, "stdout has sha256")
    unknown = judged("clang", *both)
    assert (unknown.code, unknown.why) == (PASS, "no sum of stdout has been learned")
    assert judged("gcc", *both, twice).code is CHECK_ERROR, "neither is more specific"
    missing = a_test(verify=[a_check(identical="result")])
    found = judge(missing, a_case(), run, 0, References())
    assert found.code is WRONG_ANSWER and "result" in found.why


def test_a_figure_of_two_references_is_not_compared(run: Path) -> None:
    of = {"test": "stream", "metric": "triad", "unit": "MB/s", "value": 1.0}
    chains = [Reference(**of, toolchain=chain) for chain in ("g*", "gc*")]  # type: ignore[arg-type]
    found = judge(TEST, a_case(), run, 0, References.of(chains))
    assert found.code is CHECK_ERROR
    assert "neither is more specific" in found.why


def test_a_figure_that_was_recorded_keeps_its_value_and_unit(run: Path) -> None:
    recorded = {"triad": (5.5, "GB/s")}
    (figure,) = judge(TEST, a_case(), run, 0, References(), recorded=recorded).figures
    assert (figure.name, figure.value, figure.unit, figure.better) == (
        "triad", 5.5, "GB/s", "higher"
    )  # fmt: skip


def test_the_time_of_the_script_is_compared_where_the_test_gives_none(run: Path) -> None:
    most = References.of([Reference(test="stream", metric="elapsed", unit="s", max=5.0)])
    ran = verdict.RunConditions(elapsed=6.0)
    assert judge(TEST, a_case(), run, 0, most, ran=ran).code is PERFORMANCE
    own = verdict.RunConditions(elapsed=6.0, figures=[MetricValue("elapsed", 4.0, "s", "lower")])
    assert judge(TEST, a_case(), run, 0, most, ran=own).code is PASS


def test_a_missed_reference(run: Path) -> None:
    found = judge(TEST, a_case(), run, 0, expect(value=6500.0))
    assert found.code is PERFORMANCE
    assert found.why == (
        "triad 5694 MB/s is 12.4 % below its reference 6500 MB/s (at most 5 % below)"
    )


def test_the_first_cause_is_named_and_the_others_counted(run: Path) -> None:
    test = a_test(
        verify=[a_check(contains="never"), VALID], metrics={"triad": TRIAD, "from": "strem"}
    )
    high = expect(value=6500.0)
    found = judge(test, a_case(), run, 1, high)
    assert (found.code, found.why) == (FAILED, "exit code 1, not 0")
    found = judge(test, a_case(), run, 0, high)
    assert (found.code, found.why) == (
        WRONG_ANSWER,
        "stdout does not contain 'never'; and 2 more",
    )
    found = judge(a_test(metrics=test.metrics), a_case(), run, 0, high)
    assert (found.code, found.why[-12:]) == (CHECK_ERROR, "; and 1 more")
    assert [figure.value for figure in found.figures] == [5693.6]


def test_no_exit_code_is_no_pass(run: Path) -> None:
    assert judge(TEST, a_case(), run, None, References()).code is FAILED


def test_only_references_for_the_case_count(run: Path) -> None:
    references = expect(value=6500.0, where={"threads": 2}, toolchain="gcc*")
    assert judge(TEST, a_case(threads=2), run, 0, references).code is PERFORMANCE
    assert judge(TEST, a_case(threads=4), run, 0, references).code is PASS
    assert judge(TEST, a_case("clang", threads=2), run, 0, references).code is PASS


def test_a_tie_and_another_unit_are_check_errors(run: Path) -> None:
    one = Reference(test="stream", metric="triad", unit="MB/s", min=1.0, where={"a": 1})
    two = Reference(test="stream", metric="triad", unit="MB/s", min=2.0, where={"b": 1})
    found = judge(TEST, a_case(a=1, b=1), run, 0, References.of([one, two]))
    assert (found.code, found.figures) == (CHECK_ERROR, [TRIAD_IS])
    other = Reference(test="stream", metric="triad", unit="GB", min=1.0)
    found = judge(TEST, a_case(), run, 0, References.of([other]))
    assert (found.code, found.figures) == (CHECK_ERROR, [TRIAD_IS])


def test_a_figure_has_its_reference_in_its_own_unit(run: Path) -> None:
    held = Reference(test="stream", metric="triad", unit="GB/s", value=5.0, lower=-0.1)
    found = judge(TEST, a_case(), run, 0, References.of([held]))
    (figure,) = found.figures
    assert (found.code, figure.unit) == (PASS, "MB/s")
    assert figure.reference == pytest.approx(5000)
    assert figure.low == pytest.approx(4500)
    assert figure.percent == pytest.approx(100 * (TRIAD_IS.value / 5000 - 1))


def test_a_reference_for_a_figure_that_there_is_not(run: Path) -> None:
    traid = Reference(test="stream", metric="traid", unit="MB/s", min=1.0, where={"n": 1})
    references = References.of([traid])
    found = judge(TEST, a_case(n=1), run, 0, references)
    assert found.code is NO_FIGURE
    assert found.why == "there is a reference for traid and no such figure; the figures are triad"
    assert judge(TEST, a_case(n=2), run, 0, references).code is PASS


def test_a_metric_that_is_missing_is_counted_once(run: Path) -> None:
    (run / "stdout").write_text("Solution Validates")
    found = judge(TEST, a_case(), run, 0, expect(value=6500.0))
    assert found.code is NO_FIGURE
    assert "more" not in found.why


def test_a_mistake_of_ours_costs_one_verdict(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("\x1b[2J")

    monkeypatch.setattr(verdict, "measure", broken)
    found = judge(TEST, a_case(), run, 0, References())
    assert found.code is CHECK_ERROR
    assert found.why == r"judging the run failed: ZeroDivisionError: \x1b[2J"


ALL = a_test(
    verify=[
        VALID,
        a_check(absent="ERROR"),
        a_check(matches=r"^Triad:\s+\d"),
        a_check(value=r"Threads counted = (\d+)", equals=2.0),
        a_check(file="stdout"),
        a_check(identical="stdout", sha256="0" * 64),
    ],
    metrics={"from": "stream", "best": TRIAD},
)


@pytest.mark.parametrize("kind", ["missing", "directory", "fifo", "loop", "too large", "long line"])
def test_whatever_the_job_left(tmp_path: Path, kind: str) -> None:
    stdout = tmp_path / "stdout"
    if kind == "directory":
        stdout.mkdir()
    elif kind == "fifo":
        os.mkfifo(stdout)
    elif kind == "loop":
        stdout.symlink_to(stdout)
    elif kind == "too large":
        sparse(stdout, 2 * DEFAULT_LIMIT)
    elif kind == "long line":
        stdout.write_bytes(b"Triad: " + b"1" * 1_000_000)
    found = judge(ALL, a_case(), tmp_path, 0, expect(value=1.0))
    code = {"missing": WRONG_ANSWER, "long line": WRONG_ANSWER, "too large": TOO_LARGE}
    assert found.code is code.get(kind, CHECK_ERROR)
    assert "stdout" in found.why
    assert "judging the run failed" not in found.why
    assert found.figures == []
    assert len(found.why) < 600


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.binary(), st.none() | st.integers())
def test_garbage_never_passes(tmp_path: Path, data: bytes, exit_code: int | None) -> None:
    (tmp_path / "stdout").write_bytes(data)
    found = judge(ALL, a_case(), tmp_path, exit_code, expect(value=1.0))
    assert found.code is (WRONG_ANSWER if exit_code == 0 else FAILED)
    assert found.why.isprintable()
    assert "judging the run failed" not in found.why
