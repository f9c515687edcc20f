"""Which nodes hold a wish: on Piz Daint, on a small tree, and wherever some are not usable."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial.model.machine import NetworkModel
from seatrial.model.machine_topology import made
from seatrial.model.topology import NodeWish, Topology, choose_nodes
from tests.model.test_topology import daint


def tree(nodes: int = 24, roles: str = "n[1,20]") -> Topology:
    told = NetworkModel(
        kind="tree", levels=[{"switch": 2}, {"chassis": 6}, {"row": 12}], roles={"io": roles}
    )
    return made(told, [f"n{number}" for number in range(1, nodes + 1)])


def units(topology: Topology, level: str, nodes: tuple[int, ...]) -> list[int]:
    of = next(each for each in topology.levels if each.name == level)
    return [of.unit_of[node] for node in nodes]


def test_the_unit_that_is_filled_best_is_taken() -> None:
    topology = tree()
    usable = [0, 1, 2, 3, 6, 7, 8, 9, 10, 12, 13, 14]
    wish = NodeWish(within="chassis")
    assert choose_nodes(topology, usable, wish, 3, "s").nodes == (12, 13, 14)
    assert choose_nodes(topology, usable, wish, 4, "s").nodes == (0, 1, 2, 3)
    assert choose_nodes(topology, usable, wish, 5, "s").nodes == (6, 7, 8, 9, 10)
    short = "no chassis has 6 nodes: the most are 5, of chassis 1"
    assert choose_nodes(topology, usable, wish, 6, "s") == ((), short)
    assert choose_nodes(topology, [], wish, 6, "s").short == "no chassis has 6 nodes: none has any"
    some = {choose_nodes(topology, range(24), wish, 6, str(seed)).nodes for seed in range(20)}
    assert len(some) == 4, "equal units are drawn by the seed"


def test_units_are_touched_evenly() -> None:
    topology = tree()
    for number, each in ((2, [1, 1]), (4, [1] * 4), (10, [3, 3, 2, 2])):
        nodes = choose_nodes(topology, range(24), NodeWish(across="chassis"), number, "s").nodes
        touched = units(topology, "chassis", nodes)
        assert sorted((touched.count(u) for u in set(touched)), reverse=True) == each
    wish = NodeWish(within="row", across="chassis")
    nodes = choose_nodes(topology, range(24), wish, 4, "s").nodes
    assert len(set(units(topology, "row", nodes))) == 1
    assert len(set(units(topology, "chassis", nodes))) == 2
    fewer = choose_nodes(topology, range(12), NodeWish(across="chassis"), 4, "s", range(24))
    assert fewer.short == "nodes in 2 of the 4 chassis units that it takes"
    inside = choose_nodes(topology, range(6), wish, 4, "s", range(24))
    assert inside.short == "nodes in 1 of the 2 chassis units that it takes of row 0"
    alone = choose_nodes(topology, range(6), NodeWish(across="chassis"), 2, "s")
    assert alone.short == "nothing to be across: 1 chassis unit, 2 nodes"


def test_the_nearest_to_a_role() -> None:
    topology = tree()
    near = NodeWish(near="io")
    assert set(choose_nodes(topology, range(24), near, 4, "s").nodes) == {0, 1, 18, 19}
    within = NodeWish(near="io", within="chassis")
    assert choose_nodes(topology, range(24), within, 2, "s").nodes in ((0, 1), (18, 19))
    assert choose_nodes(topology, range(2, 18), within, 2, "s").nodes == (2, 3)


def test_y_order_of_the_first_24_routers_of_piz_daint() -> None:
    """Routers of chassis c0-0c1 and its neighbour stand in turn."""
    topology = daint()
    first = topology.number_of["c0-0c1s0n0"]
    usable = range(first, first + 24 * 4)
    wish = NodeWish(order="Y")
    nodes = choose_nodes(topology, usable, wish, 96, "s").nodes
    routers = [topology.nodes[node][:-2] for node in nodes[::4]]
    in_turn = [f"c0-0c{chassis}s{router}" for router in range(8) for chassis in (1, 2)]
    assert routers == in_turn + [f"c0-0c1s{router}" for router in range(8, 16)]
    x_order = choose_nodes(topology, usable, NodeWish(order="X"), 96, "s").nodes
    assert x_order == tuple(usable)


@pytest.mark.parametrize(
    ("order", "level", "hops"), [("X", "chassis", 2), ("Y", "group", 2), ("Z", "system", 4)]
)
def test_an_axis_alone_lays_nodes_along_it(order: str, level: str, hops: int) -> None:
    """Eight nodes of Piz Daint are on routers of one chassis, of chassis of a group, of groups: the
    three are other nodes, not the same ones in another order."""
    topology = daint()
    free = range(100, len(topology.nodes))
    nodes = choose_nodes(topology, free, NodeWish(order=order), 8, "s").nodes
    assert [topology.level(a, b) for a, b in zip(nodes[:4], nodes[4:], strict=True)] == [level] * 4
    assert topology.hops(nodes[0], nodes[4]) == hops
    inside = choose_nodes(topology, free, NodeWish(within="group", order=order), 8, "s").nodes
    assert len(set(units(topology, "group", inside))) == 1
    assert len(set(units(topology, "chassis", inside))) == (2 if order == "Y" else 1)


WISHES = st.sampled_from(
    [
        NodeWish(within="chassis"),
        NodeWish(across="switch"),
        NodeWish(order="Z"),
        NodeWish(order="random"),
        NodeWish(near="io", order="Y"),
        NodeWish(within="row", across="switch", near="io", order="X"),
    ]
)


@settings(max_examples=80, deadline=None)
@given(WISHES, st.sets(st.integers(0, 23)), st.integers(1, 14), st.text("ab", max_size=3))
def test_what_is_chosen_holds_the_wish(
    wish: NodeWish, usable: set[int], number: int, seed: str
) -> None:
    topology = tree()
    chosen = choose_nodes(topology, usable, wish, number, seed)
    assert chosen == choose_nodes(topology, sorted(usable), wish, number, seed)
    assert bool(chosen.nodes) != bool(chosen.short)
    if not chosen.nodes:
        if not (wish.within or wish.across):
            assert len(usable) < number
        return
    assert set(chosen.nodes) <= usable
    assert len(chosen.nodes) == len(set(chosen.nodes)) == number
    if wish.within:
        assert len(set(units(topology, wish.within, chosen.nodes))) == 1
    if wish.across:
        of_row = set(units(topology, "row", chosen.nodes)) if wish.within else {0, 1}
        there = {
            unit
            for unit, row in zip(
                units(topology, wish.across, tuple(sorted(usable))),
                units(topology, "row", tuple(sorted(usable))),
                strict=True,
            )
            if row in of_row
        }
        assert len(set(units(topology, wish.across, chosen.nodes))) == min(number, len(there))


@pytest.mark.parametrize("number", [1, 7])
def test_a_random_order_follows_the_seed(number: int) -> None:
    topology, wish = tree(), NodeWish(order="random")
    one, other = (choose_nodes(topology, range(24), wish, number, seed).nodes for seed in "ab")
    assert one != other and len({*one}) == len({*other}) == number
