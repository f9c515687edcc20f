"""The loads of links against the paths of the topology, link by link."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from seatrial.model.machine import NetworkModel
from seatrial.model.machine_topology import made
from seatrial.model.topology import NetworkLink
from seatrial.plugins.orders.network_loads import PlacedNetwork
from seatrial.plugins.orders.patterns import pattern_of

NETWORKS = {
    "tree": NetworkModel(kind="tree", levels=[{"switch": 4}, {"group": 12}]),
    "torus": NetworkModel(kind="torus", axes={"x": 5, "y": 4, "z": 3}),
    "ring": NetworkModel(kind="torus", axes={"x": 60}),
}


@pytest.mark.parametrize("kind", NETWORKS)
@pytest.mark.parametrize("nodes", [60, 17])
def test_loads_and_strains_are_those_of_paths(kind: str, nodes: int) -> None:
    random = np.random.default_rng(nodes)
    topology = made(NETWORKS[kind], [f"n{number:03}" for number in range(60)])
    chosen = random.permutation(60)[:nodes].tolist()
    network = PlacedNetwork(topology, chosen)
    rows = random.integers(0, 2 * nodes, (200, 2)).tolist()
    pattern = pattern_of(2 * nodes, [(a, b, 1, 10 + i) for i, (a, b) in enumerate(rows)])
    node_of = random.permutation(np.repeat(np.arange(nodes), 2))

    def path(a: int, b: int) -> list[NetworkLink]:
        return topology.path(chosen[a], chosen[b])

    loads: Counter[NetworkLink] = Counter()
    for a, b, volume in zip(pattern.senders, pattern.receivers, pattern.volumes, strict=True):
        for link in path(int(node_of[a]), int(node_of[b])):
            loads[link] += int(volume)
    largest = max(loads.values())
    assert network.score(pattern, node_of).link_load == largest
    strains = network.strains(pattern, node_of)
    for a, b in random.integers(0, nodes, (50, 2)).tolist():
        both = [*path(a, b), *path(b, a)]
        expected = sum((loads[link] / largest) ** 8 for link in both)
        assert strains[a, b] == pytest.approx(expected, abs=1e-9)
