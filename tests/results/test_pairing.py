from __future__ import annotations

import pytest

from seatrial.errors import UsageError
from seatrial.results.case_figures import CaseRuns, excluded_of, figures_of
from seatrial.results.selection import Side, pair

RATE = ("rate", "MB/s", "higher")


def member(trial: str, size: int, toolchain: str = "gcc", node: str = "", n: int = 2) -> CaseRuns:
    return CaseRuns(
        *("stream", {"size": str(size)}, "frost", toolchain, "", node, trial),
        *(1, 4, 1, "b1", list(range(n)), {RATE: [1.0] * n}, {"failed": 1}),
    )


def side(trial: str, *members: CaseRuns) -> Side:
    return Side(trial, [], list(members))


def test_what_sides_were_chosen_by_is_left_out_of_a_case() -> None:
    paired = pair(side("a", member("a", 1)), side("b", member("b", 1, "clang")))
    assert paired.across == ["toolchain"]
    (one,) = paired.pairs
    assert (one.name, one.parameters) == ("stream{size=1}", {"size": "1"})
    assert one.first and one.second


def test_nodes_are_one_row_unless_each_is_asked_for() -> None:
    first = side("a", member("a", 1, node="n1"), member("a", 1, node="n2", n=3))
    (one,) = pair(first, first).pairs
    assert figures_of(one.first, [RATE]) == [1.0] * 5
    assert excluded_of(one.first) == {"failed": 2}
    assert [p.name for p in pair(first, first, each_node=True).pairs] == [
        "stream{size=1}%n1",
        "stream{size=1}%n2",
    ]


def test_what_one_side_has_stays_without_the_other() -> None:
    first, second = side("a", member("a", 1), member("a", 2)), side("b", member("b", 1))
    names = {p.name: (not p.first, not p.second) for p in pair(first, second).pairs}
    assert names == {"stream{size=1}": (False, False), "stream{size=2}": (False, True)}


def test_nothing_on_both_sides_is_said_with_its_reason() -> None:
    with pytest.raises(UsageError, match="no case is on both a and b: their parameters differ"):
        pair(side("a", member("a", 1)), side("b", member("b", 2)))
    two = side("b", member("b", 1, "clang"), member("b", 1, "icc"))
    with pytest.raises(UsageError, match="toolchain gcc and clang, icc; choose one of each"):
        pair(side("a", member("a", 1)), two)
