from __future__ import annotations

import pytest

from seatrial.plugins.importers.reframe.results import (
    ReframeEntry,
    ReframeFigure,
    case_of,
    references_of,
)


def figure(
    reference: float | None, lower: float | None, upper: float | None, value: float = 1.0
) -> ReframeFigure:
    return ReframeFigure("fom", value, "x", reference, lower, upper)


@pytest.mark.parametrize(
    ("name", "test", "parameters"),
    [
        ("Stream", "Stream", {}),
        ("Stream %n=1 %mode=a b", "Stream", {"n": "1", "mode": "a b"}),
        ("Build %cc=gcc ~daint:gpu+gnu", "Build", {"cc": "gcc"}),
    ],
)
def test_names(name: str, test: str, parameters: dict[str, str]) -> None:
    assert case_of(name) == (test, parameters)


@pytest.mark.parametrize(
    ("wanted", "low", "high"),
    [
        (figure(20, -0.1, None), 18, None),
        (figure(20, -0.1, 0.2), 18, 24),
        (figure(20, None, 3.0), None, 80),
        (figure(0, -1, 2), -1, 2),
        (figure(-10, -0.1, None), -11, None),
    ],
)
def test_limits(wanted: ReframeFigure, low: float | None, high: float | None) -> None:
    least, most = wanted.limits
    assert least == (pytest.approx(low) if low is not None else float("-inf"))
    assert most == (pytest.approx(high) if high is not None else float("inf"))
    entry = ReframeEntry(
        name="a", system="s", partition="p", environ="e", place="f:1", result="", figures=[wanted]
    )
    (reference,) = references_of(entry)
    relative = reference.value is not None
    assert relative == (wanted.reference == 20 and wanted.upper != 3.0)


def test_no_reference_where_nothing_is_bounded() -> None:
    entry = ReframeEntry(
        name="a",
        system="s",
        partition="p",
        environ="e",
        place="f:1",
        result="",
        figures=[figure(20, None, None), figure(None, None, None)],
    )
    assert list(references_of(entry)) == []


@pytest.mark.parametrize(
    ("unit", "lower", "upper", "better"),
    [
        ("x", -0.1, None, "higher"),
        ("x", None, 0.1, "lower"),
        ("x", -0.1, 0.1, "none"),
        ("GB/s", -0.1, 0.1, "higher"),
        ("Gflops", -0.1, 0.1, "higher"),
        ("s", -0.1, 0.1, "lower"),
        ("us", -0.1, 0.1, "lower"),
    ],
)
def test_which_is_better(unit: str, lower: float | None, upper: float | None, better: str) -> None:
    assert ReframeFigure("fom", 1.0, unit, 2.0, lower, upper).better == better
