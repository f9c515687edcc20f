"""The cells of a matrix of tests by toolchains."""

from __future__ import annotations

from typing import Any

import pytest

from seatrial.errors import UsageError
from seatrial.results.case_figures import ELAPSED, CaseRuns, Kind
from seatrial.results.matrix import (
    MatrixCell,
    MatrixQuery,
    MatrixReasons,
    ResultMatrix,
    result_matrix,
)
from seatrial.results.selection import Side

TRIAD: Kind = ("triad", "MB/s", "higher")
COPY: Kind = ("copy", "MB/s", "higher")


def a_case(test: str = "t", toolchain: str = "gcc", **keys: Any) -> CaseRuns:
    usual: dict[str, Any] = {
        "parameters": {},
        "machine": "m",
        "stage": "",
        "node": "",
        "trial": "x",
        "nodes": 1,
        "tasks": 1,
        "threads": 1,
        "build": "",
        "runs": [],
        "values": {},
        "excluded": {},
    }
    return CaseRuns(test=test, toolchain=toolchain, **{**usual, **keys})


def passed(*values: float, kind: Kind = TRIAD, **keys: Any) -> CaseRuns:
    return a_case(runs=list(range(len(values))), values={kind: list(values)}, **keys)


def made(*cases: CaseRuns, reasons: MatrixReasons | None = None, **asked: Any) -> ResultMatrix:
    side = Side("x", [], list(cases))
    return result_matrix([side], MatrixQuery(**asked), reasons or MatrixReasons())


def cell(*cases: CaseRuns, **asked: Any) -> MatrixCell:
    return made(*cases, **asked).rows[0].cells[0]


@pytest.mark.parametrize(
    ("cases", "state"),
    [
        ([passed(1)], "passed"),
        ([a_case(excluded={"failed": 1})], "failed"),
        ([a_case(excluded={"build failed": 1})], "build failed"),
        ([a_case(excluded={"build failed": 1, "timeout": 1})], "failed"),
        ([passed(1), a_case(excluded={"build failed": 1})], "build failed"),
        ([passed(1), a_case(parameters={"n": "2"})], "not run"),
        ([a_case()], "not run"),
        ([a_case(), a_case(excluded={"failed": 1})], "failed"),
    ],
)
def test_a_cell_shows_the_worst(cases: list[CaseRuns], state: str) -> None:
    found = made(*cases)
    assert found.rows[0].cells[0].state == state
    assert found.counts == [{state: 1}]


def test_the_figure_is_the_median_of_one_case() -> None:
    assert cell(passed(3, 1, 2)).figure == 2
    assert cell(passed(1), passed(3)).figure == 2  # of two trials
    assert cell(passed(1, parameters={"n": "1"}), passed(3, parameters={"n": "2"})).figure is None
    assert cell(passed(1), passed(3, nodes=2)).figure is None
    one = cell(passed(1, parameters={"n": "1"}), passed(3, parameters={"n": "2"}), each_case=True)
    assert one.figure == 1


def test_runs_at_full_machine_do_not_count_beside_runs_alone() -> None:
    assert cell(passed(100, stage="alone"), passed(80, 80, stage="full")).figure == 100
    assert cell(passed(80, stage="full")).figure == 80


def test_which_figure() -> None:
    both = a_case(runs=[1, 2], values={COPY: [1.0], TRIAD: [2.0, 2.0], ELAPSED: [9.0] * 3})
    assert made(both).rows[0].metric == "triad"
    assert made(both, metric="copy").rows[0].metric == "copy"
    assert made(both, metric="elapsed").rows[0].cells[0].figure == 9
    timed = made(a_case(runs=[1], values={ELAPSED: [9.0]})).rows[0]
    assert (timed.metric, timed.cells[0].figure, timed.cells[0].state) == ("", None, "passed")


def test_columns_are_in_the_order_of_the_cases_and_gaps_are_empty() -> None:
    found = made(passed(1, toolchain="z"), passed(1, toolchain="a"), passed(1, test="u"))
    assert found.columns == ["z", "a", "gcc"]
    assert [one.state for one in found.rows[0].cells] == ["passed", "passed", ""]
    assert [one.state for one in found.rows[1].cells] == ["", "", "passed"]
    assert found.counts == [{"passed": 1}] * 3
    assert found.total == {"passed": 3}


def test_by_a_parameter_toolchains_are_not_mixed() -> None:
    one, two = passed(1, parameters={"n": "1"}), passed(3, parameters={"n": "1"}, toolchain="icx")
    assert made(one, by="n").rows[0].cells[0].figure == 1
    assert made(one, two, by="n").rows[0].cells[0].figure is None
    found = made(one, passed(1, test="u"), by="n")
    assert found.without == ["u"]
    with pytest.raises(UsageError, match="there are toolchain"):
        made(passed(1), by="n")
    with pytest.raises(UsageError, match="there are triad"):
        made(passed(1), metric="copy")


def test_reasons_and_what_was_left_out() -> None:
    reasons = MatrixReasons(
        {("t", "nvhpc"): "no types", ("v", "gcc"): "none"}, {("t", "icx"): "ICE"}
    )
    bad = a_case(toolchain="icx", excluded={"build failed": 1})
    found = made(passed(1), bad, reasons=reasons)
    assert found.columns == ["gcc", "icx", "nvhpc"]
    cells = found.rows[0].cells
    assert [(one.state, one.reason) for one in cells] == [
        ("passed", ""),
        ("build failed", "ICE"),
        ("left out", "no types"),
    ]
    assert [(row.test, row.cells[0].state) for row in found.rows] == [
        ("t", "passed"),
        ("v", "left out"),
    ]
