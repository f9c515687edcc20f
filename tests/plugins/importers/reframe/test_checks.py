"""A check that was translated says of an output what ReFrame would say."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from seatrial.judge.checks import find_fault
from seatrial.model.test import Check
from seatrial.plugins.importers.reframe.classes import NotProvable
from seatrial.plugins.importers.reframe.evaluate import Deferred, Function, Stream
from seatrial.plugins.importers.reframe.texts import checks_of, metric_of

OUT = Stream("stdout")
FLOAT = Function("float")


def sn(function: str, *arguments: Any, **named: Any) -> Deferred:
    return Deferred(function, arguments, named)


def found(pattern: str, text: str) -> list[float]:
    """The numbers that ReFrame's extractall finds, by the definition of its manual."""
    return [float(match[1]) for match in re.finditer(pattern, text, re.MULTILINE)]


X = r"^x (\d+)"
ONE = (X, OUT, 1, FLOAT)
SAME: list[tuple[Deferred, Callable[[str], bool]]] = [
    (sn("assert_found", r"^(x|y) 1$", OUT), lambda t: bool(re.search(r"^(x|y) 1$", t, re.M))),
    (sn("assert_not_found", "y 2", OUT), lambda t: "y 2" not in t),
    (sn("assert_not_found", r"(?i)^Y \d$", OUT), lambda t: not re.search(r"(?im)^Y \d$", t)),
    (sn("assert_found", "1$y|x", OUT), lambda t: "x" in t),
    (sn("assert_eq", sn("extractsingle", *ONE), 1), lambda t: found(X, t)[:1] == [1]),
    (
        sn("assert_lt", sn("extractsingle", *ONE, item=-1), 2.0),
        lambda t: bool(found(X, t)) and found(X, t)[-1] < 2,
    ),
    (
        sn(">=", 1, sn("extractsingle", *ONE, item=1)),
        lambda t: len(found(X, t)) > 1 and found(X, t)[1] <= 1,
    ),
    (
        sn("assert_bounded", sn("extractsingle", *ONE), 1, None),
        lambda t: bool(found(X, t)) and found(X, t)[0] >= 1,
    ),
    (
        sn("assert_reference", sn("extractsingle", *ONE), 2, -0.5, 0.5),
        lambda t: bool(found(X, t)) and 1 <= found(X, t)[0] <= 3,
    ),
    (
        sn("assert_lt", sn("abs", sn("-", sn("extractsingle", *ONE), 2)), 1),
        lambda t: bool(found(X, t)) and abs(found(X, t)[0] - 2) < 1,
    ),
    *(
        (sn(name, sn("count", sn("findall", X, OUT)), 2), holds)
        for name, holds in (
            ("assert_eq", lambda t: len(found(X, t)) == 2),
            ("assert_ge", lambda t: len(found(X, t)) >= 2),
            ("assert_gt", lambda t: len(found(X, t)) > 2),
            ("assert_lt", lambda t: len(found(X, t)) < 2),
            ("assert_le", lambda t: len(found(X, t)) <= 2),
        )
    ),
    (sn("assert_eq", sn("len", sn("extractall", X, OUT)), 0), lambda t: not found(X, t)),
    (
        sn("all", [sn("assert_found", "x", OUT), sn("chain", [sn("assert_found", "y", OUT)])]),
        lambda t: "x" in t and "y" in t,
    ),
]
LINES = st.lists(
    st.builds("{} {}".format, st.sampled_from(["x", "y", " x", "Y"]), st.integers(0, 4)), max_size=5
)


@pytest.mark.parametrize("at", range(len(SAME)))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=LINES)
def test_a_check_says_what_reframe_would_say(tmp_path: Path, at: int, lines: list[str]) -> None:
    sanity, holds = SAME[at]
    text = "\n".join(lines)
    (tmp_path / "stdout").write_text(text)
    checks = [msgspec.convert(keys, Check) for keys in checks_of(sanity)]
    faults = [find_fault(check, tmp_path, 0) for check in checks]
    assert (not any(faults)) == holds(text), (checks, faults)


@pytest.mark.parametrize(
    ("figure", "keys"),
    [
        (sn("extractsingle", *ONE), {"find": X, "reduce": "first"}),
        (sn("extractsingle", *ONE, item=-1), {"find": X, "reduce": "last"}),
        (sn("avg", sn("extractall", *ONE)), {"find": X, "reduce": "mean"}),
        (sn("min", sn("extractall", r"(a) (?P<n>\d)", OUT, "n", FLOAT)), {"reduce": "min"}),
        (sn("round", sn("max", sn("extractall", *ONE)), 2), {"find": X, "reduce": "max"}),
    ],
)
def test_figures(figure: Deferred, keys: dict[str, str]) -> None:
    assert metric_of(figure).items() >= {**keys, "in": "stdout"}.items()


@pytest.mark.parametrize(
    "sanity",
    [
        False,
        sn("assert_found", "(", OUT),
        sn("assert_found", "x", Stream("build_stdout")),
        sn("assert_found", "x", "../other"),
        sn("assert_eq", sn("extractsingle", X, OUT, 1, Function("str")), "a"),
        sn("assert_eq", sn("extractsingle", X, OUT, 7, FLOAT), 1),
        sn("assert_eq", sn("extractsingle", r"(a)\1", OUT, 1, FLOAT), 1),
        sn("assert_eq", sn("extractsingle", *ONE), True),
        sn("any", [sn("assert_found", "x", OUT)]),
        *(0, "", [], False, None),
    ],
)
def test_what_is_no_check_is_refused(sanity: Any) -> None:
    with pytest.raises(NotProvable):
        checks_of(sanity)


def test_a_figure_by_more_than_one_number_is_refused() -> None:
    with pytest.raises(NotProvable, match="no figure of a known form"):
        metric_of(sn("/", sn("extractsingle", *ONE), 2))
