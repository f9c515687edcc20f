"""Who differs is named: from most of its kind, from before, from another machine."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial.plugins.facts import drift
from seatrial.plugins.facts.drift import DriftLimits
from seatrial.plugins.facts.node_facts import FactTable, of_nodes


def table(**nodes: dict[str, str]) -> FactTable:
    return of_nodes(nodes)


def test_nodes_that_differ_from_most_are_named() -> None:
    found = drift.from_majority(
        table(a={"x.y": "1"}, b={"x.y": "1"}, c={"x.y": "2"}, d={"x.y": "1", "x.z": "3"}), {}
    )
    assert [(row.key, row.usual, row.others) for row in found] == [
        ("x.y", "1", {"2": ["c"]}),
        ("x.z", None, {"3": ["d"]}),
    ]


def test_without_a_majority_nobody_is_accused() -> None:
    (row,) = drift.from_majority(table(a={"x.y": "1"}, b={"x.y": "2"}), {})
    assert not row.agreed and row.usual is None
    assert row.others == {"1": ["a"], "2": ["b"]}


def test_roles_are_compared_each_for_itself() -> None:
    nodes = table(a={"x.y": "1"}, b={"x.y": "1"}, r={"x.y": "2"}, s={"x.y": "2"})
    assert drift.from_majority(nodes, {"r": "router", "s": "router"}) == []


def test_numbers_may_differ_by_a_share_and_readings_do_not_count() -> None:
    nodes = {f"n{i}": {"memory.total_kib": str(1000 + i), "now.load": str(i)} for i in range(5)}
    nodes["bad"] = {"memory.total_kib": "500", "now.load": "9"}
    (row,) = drift.from_majority(of_nodes(nodes), {}, DriftLimits({"memory.*": 0.01}))
    assert row.others == {"500": ["bad"]}
    assert not drift.from_majority(of_nodes(nodes), {}, DriftLimits(waived=["memory.*"]))
    (load,) = drift.from_majority(of_nodes(nodes), {}, DriftLimits({"now.load": 0.5}, ["memory.*"]))
    assert load.key == "now.load" and not load.agreed


def test_changes_between_two_trials_name_only_nodes_of_both() -> None:
    before = table(a={"x.y": "1"}, b={"x.y": "1"}, gone={"x.y": "1"})
    after = table(b={"x.y": "2"}, a={"x.y": "1"}, new={"x.y": "7"})
    assert drift.between(before, after) == [drift.Change("x.y", "1", "2", ["b"])]


def test_machines_are_compared_by_their_usual_values() -> None:
    here = table(a={"x.y": "1"}, b={"x.y": "1"}, c={"x.y": "9"})
    there = table(k={"x.y": "2", "x.w": "3"})
    found = [(r.key, next(iter(r.here)), next(iter(r.there))) for r in drift.against(here, there)]
    assert found == [("x.w", None, "3"), ("x.y", "1", "2")]


@settings(max_examples=50)
@given(st.sets(st.integers(0, 40), max_size=19))
def test_the_planted_nodes_are_found_and_no_other(planted: set[int]) -> None:
    nodes = {f"n{i}": {"x.y": "bad" if i in planted else "good", "x.z": "1"} for i in range(41)}
    found = drift.from_majority(of_nodes(nodes), {})
    named = {node for row in found for names in row.others.values() for node in names}
    assert named == {f"n{i}" for i in planted}
