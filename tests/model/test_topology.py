"""Levels, hops, paths and bisection of the three kinds of networks, on machines of the papers."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from seatrial.model.machine import Bandwidth, NetworkModel
from seatrial.model.machine_topology import TopologyFault, made
from seatrial.model.node_set import unfold
from seatrial.model.topology import (
    NodeWish,
    Topology,
    TopologyKind,
    choose_nodes,
    fault_of_nesting,
    level_by_size,
    summary,
)

# 12 routers for data and 2 for metadata, on blades without compute nodes (service blades).
ROUTERS = "c[0,2,4,6,8,10]-0c0s[0-1]n1,c[0,6]-0c0s0n2"


def daint(*, roles: bool = False) -> Topology:
    """Piz Daint: 12 cabinets in a row, 8 places of each group without a compute node."""
    names = [
        f"c{cabinet}-0c{chassis}s{router}n{node}"
        for cabinet, chassis, router, node in itertools.product(
            range(12), range(3), range(16), range(4)
        )
        if cabinet % 2 or chassis or router >= 2
    ]
    told = NetworkModel(
        kind="dragonfly",
        names="c{cabinet}-{row}c{chassis}s{router}n{node}",
        order=["row", "cabinet", "chassis", "router", "node"],
        levels=[{"router": 4}, {"chassis": 64}, {"group": 384}],
        ports=240,
        links={"system": Bandwidth("4.7GB/s")},
        roles={"lnet": ROUTERS, "login": "c3-0c0s4n0"} if roles else {},
    )
    return made(told, names, ["oss01", "c99-0c0s0n9"] if roles else [])


def hopper() -> Topology:
    """Hopper: 6,384 nodes on 3,192 of the 3,264 routers of its torus."""
    told = NetworkModel(kind="torus", axes={"x": 17, "y": 8, "z": 24}, levels=[{"gemini": 2}])
    return made(told, [f"nid{number:05}" for number in range(6384)])


def test_piz_daint_by_the_names_of_its_nodes() -> None:
    topology = daint()
    assert len(topology.nodes) == 2256
    sizes = [sorted({*map(len, topology.members(level))}) for level in topology.levels]
    assert sizes == [[4], [56, 64], [376]]
    assert [len(level.units) for level in topology.levels] == [564, 36, 6]
    of = topology.number_of
    first = of["c0-0c1s0n0"]
    for name, level, hops in (
        ("c0-0c1s0n0", "node", 0),
        ("c0-0c1s0n3", "router", 1),
        ("c0-0c1s15n0", "chassis", 2),
        ("c1-0c2s0n0", "group", 2),
        ("c2-0c1s0n0", "system", 4),
    ):
        assert (topology.level(first, of[name]), topology.hops(first, of[name])) == (level, hops)
    assert topology.place(of["c3-0c0s0n0"]) == [
        ("group", "1"),
        ("chassis", "9"),
        ("router", "144"),
    ]
    total = 2256 * 2255 // 2
    assert sum(topology.pairs()) == total
    assert topology.pairs()[-1] == total - 6 * (376 * 375 // 2)
    # 6 groups of equal links: 48 between two groups; the paper has 4,050 GB/s in both directions
    cut = topology.bisection()
    assert cut is not None
    assert cut.links == 9 * 48
    assert cut.bandwidth == pytest.approx(2030.4e9)


def test_routers_that_run_no_jobs_have_a_place_and_change_that_of_no_node() -> None:
    plain, topology = daint(), daint(roles=True)
    assert topology.nodes == plain.nodes and topology.pairs() == plain.pairs()
    assert topology.service == unfold(ROUTERS), "not a host whose name does not fit"
    assert topology.bisection() == plain.bisection() and summary(topology) == summary(plain)
    for a in range(0, 2256, 97):
        assert topology.place(a)[:2] == plain.place(a)[:2]
        assert [topology.hops(a, b) for b in range(0, 2256, 89)] == [
            plain.hops(a, b) for b in range(0, 2256, 89)
        ]
    of = topology.number_of
    router = of["c6-0c0s1n1"]
    assert topology.place(router)[0] == ("group", "3") and router in topology.roles["lnet"]
    assert topology.hops(of["c7-0c2s15n0"], router) == 2 and topology.level(0, router) == "system"
    assert topology.path(of["c6-0c0s2n0"], router)[0][0] == "c6-0c0s2n0"
    assert len(topology.roles["lnet"]) == 14 and topology.roles["login"] == (of["c3-0c0s4n0"],)
    wish = NodeWish(near="lnet", within="group")
    chosen = choose_nodes(topology, range(2256), wish, 376, "s").nodes
    assert len({topology.place(node)[0] for node in chosen}) == 1
    near = choose_nodes(topology, range(2256), NodeWish(near="login"), 3, "s").nodes
    assert {topology.names[node] for node in near} <= {*unfold("c3-0c0s4n[0-3]")}


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"levels": [{"s": 2}], "names": "n{n}"}, ""),
        ({"levels": [{"s": 2}]}, "n9 is not a node of this machine, and nothing tells its place"),
        ({"levels": [{"s": {"a": "n[1-4]", "b": "n9"}}]}, ""),
        ({"levels": [{"s": {"a": "n[1-4]"}}]}, "n9 is not a node of this machine"),
        ({"levels": [{"s": 2}], "names": "n{n}", "roles": {"io": "n0a"}}, "n0a is not a node"),
    ],
)
def test_the_place_of_a_node_that_runs_no_jobs_must_be_told(
    keys: dict[str, Any], told: str
) -> None:
    network = NetworkModel(**{"kind": "tree", "roles": {"io": "n9"}, **keys})
    names = ["n1", "n2", "n3", "n4"]
    if told:
        with pytest.raises(TopologyFault, match=told):
            made(network, names)
    else:
        assert made(network, names).names == (*names, "n9")
        assert made(replace(network, roles={}), names, ["n9", "x1"]).service == ("n9",)


def test_the_torus_of_hopper() -> None:
    topology = hopper()
    of = topology.number_of
    assert topology.coordinates[of["nid00002"]] == (0, 0, 1)  # the last axis goes up first
    assert topology.coordinates[of["nid00048"]] == (0, 1, 0)
    assert topology.level(0, 1) == "gemini"
    assert topology.hops(0, 1) == 0  # two nodes of a router
    far = of["nid06383"]
    assert topology.coordinates[far] == (16, 4, 23)
    assert topology.hops(0, far) == 1 + 4 + 1  # around the ends of x and z
    assert max(topology.hops(0, node) for node in range(6384)) == 8 + 4 + 12
    cut = topology.bisection()
    assert cut is not None
    assert (cut.links, cut.level, cut.bandwidth) == (2 * 17 * 8, "z", None)


def test_a_torus_by_names_and_a_ring_of_two() -> None:
    told = NetworkModel(
        kind="torus",
        axes={"x": 2, "y": 3},
        names="t{y}.{x}n{n}",
        links={"x": Bandwidth("1GB/s"), "y": Bandwidth(1)},
    )
    names = ["t0.0n0", "t0.0n1", "t2.1n0", "t1.0n0"]
    topology = made(told, names)
    assert topology.coordinates == ((0, 0), (0, 0), (1, 2), (0, 1))
    assert [topology.hops(0, node) for node in range(4)] == [0, 0, 2, 1]
    cut = topology.bisection()  # y is cut twice of 2 routers, x once of 3; y has 1 B/s
    assert cut is not None
    assert (cut.links, cut.level, cut.bandwidth) == (4, "y", 4.0)


def test_a_ring_of_two_routers_is_cut_at_one_link() -> None:
    cut = made(NetworkModel(kind="torus", axes={"x": 2}), ["a", "b"]).bisection()
    assert cut is not None and cut.links == 1


def test_the_order_of_fields_says_which_nodes_are_near() -> None:
    names = ["c0-0", "c1-0", "c0-1", "c1-1"]
    told = {"names": "c{column}-{row}", "levels": [{"pair": 2}]}
    by_row = made(NetworkModel(kind="tree", order=["row", "column"], **told), names)  # type: ignore[arg-type]
    assert by_row.members(by_row.levels[0]) == [["c0-0", "c1-0"], ["c0-1", "c1-1"]]
    by_column = made(NetworkModel(kind="tree", **told), names)  # type: ignore[arg-type]
    assert by_column.members(by_column.levels[0]) == [["c0-0", "c0-1"], ["c1-0", "c1-1"]]


def test_hops_of_a_tree_and_its_bisection() -> None:
    told = NetworkModel(kind="tree", levels=[{"switch": 2}, {"island": 4}], ports=3)
    topology = made(told, [f"n{number}" for number in range(12)])
    assert [topology.hops(0, node) for node in (0, 1, 2, 4)] == [0, 2, 4, 6]
    assert [*topology.path(0, 2)] == [
        ("n0", "switch 0"),
        ("switch 0", "island 0"),
        ("island 0", "switch 1"),
        ("switch 1", "n2"),
    ]
    cut = topology.bisection()
    assert cut is not None
    assert (cut.links, cut.bandwidth) == (3, None)  # one island of three is the smaller half
    assert made(NetworkModel(kind="tree", levels=[{"switch": 2}]), ["a", "b"]).bisection() is None


@st.composite
def networks(draw: st.DrawFn) -> Topology:
    kinds: list[TopologyKind] = ["tree", "dragonfly", "torus"]
    kind = draw(st.sampled_from(kinds))
    nodes = draw(st.integers(2, 60))
    keys: dict[str, Any] = {}
    if kind == "torus":
        shape = draw(st.lists(st.integers(1, 5), min_size=1, max_size=3))
        per = draw(st.integers(1, 3))
        room = per
        for length in shape:
            room *= length
        nodes = max(1, min(nodes, room))
        keys = {"axes": dict(zip("xyz", shape, strict=False)), "levels": [{"router": per}]}
    else:
        router, chassis = draw(st.integers(1, 4)), draw(st.integers(1, 4))
        levels = [{"router": router}, {"chassis": router * chassis}]
        if draw(st.booleans()):
            levels.append({"group": router * chassis * draw(st.integers(1, 3))})
        keys = {"levels": levels}
    return made(NetworkModel(kind=kind, **keys), [f"n{number}" for number in range(nodes)])


@settings(max_examples=80)
@given(networks(), st.data())
def test_hops_are_a_distance_and_as_many_as_the_links_of_a_path(
    topology: Topology, data: st.DataObject
) -> None:
    node = st.integers(0, len(topology.nodes) - 1)
    a, b, c = (data.draw(node) for _ in range(3))
    assert topology.hops(a, b) == topology.hops(b, a)
    assert topology.hops(a, c) <= topology.hops(a, b) + topology.hops(b, c)
    assert (topology.level(a, b) == "node") == (a == b)
    path = topology.path(a, b)
    assert len(path) == topology.hops(a, b)
    assert all(one[1] == other[0] for one, other in itertools.pairwise(path))
    assert sum(topology.pairs()) == len(topology.nodes) * (len(topology.nodes) - 1) // 2


def test_levels_that_do_not_nest_are_told() -> None:
    nodes = ["a", "b", "c", "d", "e", "f"]
    levels = [level_by_size("router", 4, range(6)), level_by_size("group", 3, range(6))]
    told = fault_of_nesting(levels, nodes)
    assert told.startswith("router 0 is in two group units: a is in 0, d in 1; levels must nest")
    assert fault_of_nesting([levels[1], level_by_size("half", 6, range(6))], nodes) == ""


@pytest.mark.parametrize("network", [daint, hopper])
def test_mean_hops_is_that_of_all_pairs(network: Any) -> None:
    topology = network()
    for nodes in (range(0, len(topology.nodes), 117), [5], [7, 8, 900], range(40)):
        pairs = [topology.hops(a, b) for a, b in itertools.combinations(nodes, 2)]
        expected = sum(pairs) / len(pairs) if pairs else 0
        assert topology.mean_hops(nodes) == pytest.approx(expected)
        assert sum(topology.pairs(nodes)) == len(pairs)
