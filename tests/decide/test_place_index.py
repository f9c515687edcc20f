"""The nodes of placed runs: of those that fit a case, beside those that are taken."""

from __future__ import annotations

from msgspec.structs import replace

from seatrial.decide.nodes import NodePlacer, placing_of
from seatrial.model.machine import Machine, NetworkModel, NodeGroup
from seatrial.model.test import Requires, RunSpec, Test
from seatrial.model.topology import NodeWish

from .world import a_run

SWITCHES = NetworkModel(kind="tree", levels=[{"switch": 4}])
MACHINE = Machine(
    machine="m",
    nodes=[
        NodeGroup(names="n[1-4]", cores=4),
        NodeGroup(names="n[5-8]", cores=4, features=["big"]),
    ],
    topology=SWITCHES,
)
ANY = Test(name="any", folder="/t", app="a", run=RunSpec(script="a"))
TESTS = {"any": ANY, "big": replace(ANY, requires=Requires(features=["big"]))}
WISH = NodeWish(within="switch")
CASES = [
    a_run(0, "any", 2),
    replace(a_run(1, "big", 2), place=WISH),
    replace(a_run(2, "any", 3), place=WISH),
    replace(a_run(3, "big", 3), place=WISH),
    replace(a_run(4, "any", 2), place=NodeWish(across="switch")),
]


def test_cases_that_fit_the_same_nodes_have_one_set() -> None:
    placing = placing_of(MACHINE, TESTS, CASES)
    assert placing is not None
    assert (placing.sets, placing.set_of) == (["n[5-8]", "n[1-8]"], [0, 1, 2, 1, 2])
    assert placing_of(MACHINE, TESTS, CASES[:1]) is None


def chosen(case: int, *taken: str) -> set[str]:
    """The nodes that a run of a case gets, or why it gets none."""
    placing = placing_of(MACHINE, TESTS, CASES)
    assert placing is not None
    placer = NodePlacer(placing, CASES)
    assert placer.is_placed(case) and not placer.is_placed(0)
    choice = placer.choose(case, taken, "seed")
    return set(placer.names(choice).split(",")) if choice.nodes else {choice.short}


def test_a_run_gets_nodes_that_fit_it_and_are_free() -> None:
    assert chosen(1, "n5", "n8", "n1") == {"n6", "n7"}
    assert chosen(2, "n5", "n6", "n4") == {"n1", "n2", "n3"}
    assert chosen(3, "n5", "a node of another machine") == {"n6", "n7", "n8"}
    (short,) = chosen(3, "n5", "n6")
    assert short.startswith("no switch has 3 nodes")
    (short,) = chosen(4, "n1", "n2", "n3", "n4")
    assert "1 of the 2 switch units" in short, "it waits for the other one"


def test_nodes_without_a_place_in_the_network_get_no_such_run() -> None:
    machine = replace(MACHINE, topology=None, groups={"a": "n[1-2]", "b": "n[3-4]"})
    wish = replace(CASES[4], place=NodeWish(across="group"))
    placing = placing_of(machine, TESTS, [wish])
    assert placing is not None and placing.sets == ["n[1-8]"]
    placer = NodePlacer(placing, [wish])
    assert placer.names(placer.choose(0, {"n1", "n4", "n5"}, "seed")) == "n2,n3"
