"""The rank order that costs least for a pattern: never worse than the default, never too many
ranks on a node, and as good as orders that are known to be good."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial.model import orders
from seatrial.model.machine import NetworkModel
from seatrial.model.machine_topology import made
from seatrial.model.topology import Topology
from seatrial.plugins.orders import search
from seatrial.plugins.orders.acts import irregular
from seatrial.plugins.orders.network_loads import PlacedNetwork
from seatrial.plugins.orders.patterns import Pattern, graph_of, parsed, pattern_of, stencil, written
from seatrial.plugins.orders.search import DEFAULT, ScoredOrder, order_of_cells, ranked, scored

NETWORKS = {
    "tree": NetworkModel(kind="tree", levels=[{"switch": 4}, {"group": 8}]),
    "dragonfly": NetworkModel(kind="dragonfly", levels=[{"router": 2}, {"group": 8}]),
    "torus": NetworkModel(kind="torus", axes={"x": 4, "y": 2, "z": 2}),
}


def network_of(kind: str, nodes: int) -> PlacedNetwork:
    topology = made(NETWORKS[kind], [f"n{number:03}" for number in range(16)])
    return PlacedNetwork(topology, range(nodes))


def cost(found: list[ScoredOrder], name: str) -> float:
    (score,) = (one.score for one in found if one.name == name)
    assert score is not None
    return score.hop_bytes


@pytest.mark.parametrize("kind", NETWORKS)
def test_a_halo_exchange_is_cut_into_cells(kind: str) -> None:
    """Ranks in their order fill nodes with 1 x 4 x 8, which sends 80; cells of 2 x 2 x 8 and of
    2 x 4 x 4 send 64, and none sends less."""
    network = network_of(kind, 16)
    found = ranked(stencil((8, 8, 8)), network, [32] * 16, seconds=0.2)
    assert sorted(found[0].order or []) == list(range(512))
    assert found[0].score is not None
    assert found[0].score.off_node == 16 * 64
    assert found[0].score.hop_bytes <= 0.9 * cost(found, DEFAULT)


PAIRS = st.lists(
    st.tuples(st.integers(0, 11), st.integers(0, 11), st.integers(1, 9), st.integers(0, 999)),
    max_size=40,
)


@given(PAIRS, st.sampled_from(sorted(NETWORKS)), st.sampled_from([(3, 3, 3, 3), (5, 4, 2, 1)]))
@settings(max_examples=25)
def test_never_worse_than_the_default(
    rows: list[tuple[int, int, int, int]], kind: str, sizes: tuple[int, ...]
) -> None:
    pattern = pattern_of(12, rows)
    assert written(parsed(written(pattern))) == written(pattern)
    found = ranked(pattern, network_of(kind, 4), sizes, seconds=0.02)
    costs = [one.score.hop_bytes for one in found if one.score is not None]
    assert costs == sorted(costs)
    assert costs[0] <= cost(found, DEFAULT)
    for one in found:
        assert one.order is None or sorted(one.order) == list(range(12)), one.name


@pytest.mark.parametrize("kind", NETWORKS)
def test_scores_are_sums_over_the_topology(kind: str) -> None:
    random = np.random.default_rng(7)
    network = network_of(kind, 16)
    topology: Topology = network.topology
    rows = random.integers(0, 64, (200, 2)).tolist()
    pattern = pattern_of(64, [(a, b, 1, 10 + i) for i, (a, b) in enumerate(rows)])
    node_of = random.permutation(np.repeat(np.arange(16), 4))
    score = network.score(pattern, node_of)
    hops = off = 0
    for a, b, _, volume in zip(*columns(pattern), strict=True):
        if node_of[a] != node_of[b]:
            off += volume
            hops += volume * topology.hops(int(node_of[a]), int(node_of[b]))
    assert (score.off_node, score.hop_bytes) == (off, hops)


def columns(pattern: Pattern) -> list[list[int]]:
    arrays = (pattern.senders, pattern.receivers, pattern.messages, pattern.volumes)
    return [array.tolist() for array in arrays]


def test_an_order_that_overfills_a_node_is_refused() -> None:
    network = network_of("tree", 2)
    node_of = np.array([0, 0, 0, 1])
    one = scored("other", node_of, stencil((4,)), network, [2, 2])
    assert one.order is None
    assert "3 ranks on" in one.refused and "of 2 slots" in one.refused


@pytest.mark.needs("scotch_gmap")
@pytest.mark.parametrize("kind", NETWORKS)
def test_scotch_is_a_candidate(kind: str) -> None:
    network = network_of(kind, 16)
    pattern = stencil((16, 16))
    of = search.by_scotch(graph_of(pattern), network)
    assert of is not None
    found = ranked(pattern, network, [16] * 16, {"scotch": lambda: of}, seconds=0.2)
    (by_scotch,) = (one for one in found if one.name == "scotch")
    assert by_scotch.score is None or by_scotch.score.hop_bytes < cost(found, "round robin")


@pytest.mark.needs("scotch_gmap")
def test_scotch_gives_the_same_mapping_each_time() -> None:
    """With more threads than one, three runs gave three."""
    network, graph = network_of("torus", 16), graph_of(irregular(2048, 3))
    first, *others = (search.by_scotch(graph, network) for _ in range(3))
    assert first is not None
    assert all(other is not None and (other == first).all() for other in others)


@pytest.mark.parametrize("kind", NETWORKS)
def test_metis_is_a_candidate(kind: str) -> None:
    """It fills nodes exactly, also where they differ in slots."""
    pytest.importorskip("pymetis")
    network, sizes = network_of(kind, 16), [20, 12] * 8
    pattern = irregular(256, 3)
    of = search.by_metis(graph_of(pattern), network, sizes)
    assert of is not None and np.bincount(of).tolist() == sizes
    found = ranked(pattern, network, sizes, {"metis": lambda: of}, seconds=0.2)
    assert found[0].score is not None
    assert found[0].score.hop_bytes <= cost(found, "metis") < 0.5 * cost(found, DEFAULT)


@pytest.mark.parametrize("kind", NETWORKS)
def test_the_busiest_link_is_relieved(kind: str) -> None:
    network, sizes = network_of(kind, 16), [16] * 16
    pattern = irregular(256, 3)
    found = ranked(pattern, network, sizes, by="link_load", seconds=0.4)
    loads = [one.score.link_load for one in found if one.score is not None]
    assert loads == sorted(loads)
    relieved = next(one for one in found if one.name.startswith("links relieved from"))
    assert relieved.score is not None and sorted(relieved.order or []) == list(range(256))
    others = [one.score for one in found if one.score is not None and one is not relieved]
    assert relieved.score.link_load <= min(score.link_load for score in others)


def test_orders_of_a_stencil_on_a_tree() -> None:
    """16 x 16 x 16 ranks on 128 nodes of 32, 16 to a switch: hop-bytes as known for round robin,
    for ranks in their order, and for cells of 2 x 4 x 4 row after row; each pair sends twice."""
    model = NetworkModel(kind="tree", levels=[{"switch": 16}])
    network = PlacedNetwork(made(model, [f"n{number:03}" for number in range(128)]), range(128))
    pattern, sizes = stencil((16, 16, 16)), [32] * 128
    grid = order_of_cells((16, 16, 16), [(2, 4, 4)]).tolist()
    known = {24576: orders.round_robin(sizes), 16384: orders.smp(sizes), 12288: grid}
    for cost, order in known.items():
        node_of = np.array(orders.nodes_of_ranks(order, sizes))
        assert network.score(pattern, node_of).hop_bytes == 2 * cost
    best = ranked(pattern, network, sizes, seconds=0.3)[0]
    assert best.score is not None and best.score.hop_bytes <= 2 * 12288


def test_an_order_that_cannot_be_better_is_kept() -> None:
    """A stencil of 8 x 8 x 8 on a torus of as many routers: nobody is nearer than a neighbour."""
    model = NetworkModel(kind="torus", axes={"x": 8, "y": 8, "z": 8})
    network = PlacedNetwork(made(model, [f"n{number:03}" for number in range(512)]), range(512))
    found = ranked(stencil((8, 8, 8)), network, [1] * 512, seconds=0.2)
    assert found[0].name == DEFAULT
    assert found[0].score == (3072, 3072, 1)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "is no pattern file"),
        ("seatrial pattern 1\nranks x\n", "line 2"),
        ("seatrial pattern 1\nranks 2\npairs 2\ncalls 0\n0 1 1 8\nend\n", "was cut short"),
        ("seatrial pattern 1\nranks 2\npairs 1\ncalls 0\n0 2 1 8\nend\n", "ranks go from 0 to 1"),
        ("seatrial pattern 1\nranks 2\npairs 1\ncalls 0\n0 -1 1 8\nend\n", "are not 4 numbers"),
        ("seatrial pattern 1\nranks 0\npairs 0\ncalls 0\nend\n", "0 ranks: there can be 1 to"),
    ],
)
def test_files_that_are_no_patterns(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parsed(text)
