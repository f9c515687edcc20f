"""Findings of a matrix by level: planted faults of units, and none."""

from __future__ import annotations

import numpy as np
import pytest

from seatrial.lazy import Floats
from seatrial.model.machine import Machine, NetworkModel, NodeGroup
from seatrial.model.topology import Topology, level_by_size
from seatrial.plugins.network.matrices import (
    Matrix,
    judged_by_level,
    level_findings,
    network_groups,
    texts,
)

NODES = 48
NAMES = tuple(f"n{i:02}" for i in range(NODES))
SIZES = (("router", 2), ("chassis", 8), ("group", 16))
RATES = (11_000.0, 10_000.0, 9_000.0, 8_000.0)


def topology(*sizes: tuple[str, int]) -> Topology:
    levels = tuple(level_by_size(name, size, range(NODES)) for name, size in sizes or SIZES)
    return Topology("dragonfly", NAMES, levels)


def rates(seed: int = 1) -> Floats:
    """Three groups of two chassis of four routers of two nodes."""
    rng = np.random.default_rng(seed)
    at = np.arange(NODES)
    found = np.full((NODES, NODES), RATES[-1])
    for (_, size), rate in zip(reversed(SIZES), reversed(RATES[:-1]), strict=True):
        found[(at // size)[:, None] == (at // size)[None, :]] = rate
    found *= rng.normal(1, 0.01, found.shape)
    np.fill_diagonal(found, 0)
    return found


def findings(found: Floats, *sizes: tuple[str, int]) -> list[tuple[str, str, list[str]]]:
    matrix = Matrix([f"{name}:{i}" for i, name in enumerate(NAMES)], found, "made")
    return [(one.level, one.kind, one.units) for one in level_findings(matrix, topology(*sizes))]


def unit(size: int, number: int) -> slice:
    return slice(number * size, (number + 1) * size)


def test_a_sound_network_has_no_finding() -> None:
    assert sum(bool(findings(rates(seed))) for seed in range(20)) <= 1


def test_each_fault_is_named_by_its_level_and_no_other() -> None:
    for seed in range(5):
        group = rates(seed)
        for outside in (unit(16, 0), unit(16, 2)):
            group[unit(16, 1), outside] = group[outside, unit(16, 1)] = 0
        assert findings(group) == [("group", "cut off", ["1"])]
        one_way = rates(seed)
        one_way[unit(8, 1), unit(8, 4)] = 0
        assert findings(one_way) == [("chassis", "no link", ["1", "4"])]
        slow = rates(seed)
        slow[unit(16, 0), unit(16, 2)] *= 0.8
        assert findings(slow) == [("group", "slow link", ["0", "2"])]
        small = rates(seed)
        small[unit(2, 3), unit(2, 9)] *= 0.7
        assert findings(small) == [("router", "slow link", ["3", "9"])]
        sender = rates(seed)
        sender[unit(8, 2), :] *= np.where(np.arange(NODES) // 8 == 2, 1, 0.85)
        assert findings(sender) == [("chassis", "slow sender", ["2"])]
        receiver = rates(seed)
        receiver[:, unit(8, 2)] *= np.where(np.arange(NODES) // 8 == 2, 1, 0.85)[:, None]
        assert findings(receiver) == [("chassis", "slow receiver", ["2"])]
        merged = rates(seed)
        merged[unit(16, 1), unit(16, 2)] *= 9.3 / 8
        merged[unit(16, 2), unit(16, 1)] *= 9.3 / 8
        merged[35, 20] *= 0.8
        assert findings(merged) == [("group", "merged", ["1", "2"])]


def test_a_slow_or_silent_node_is_no_matter_of_its_unit() -> None:
    for seed in range(5):
        slow = rates(seed)
        slow[5] *= 0.7
        slow[:, 5] *= 0.7
        slow[:, 20] = slow[20] = 0
        slow[7, 30] = 0
        assert findings(slow) == []


def test_too_little_to_judge() -> None:
    matrix = Matrix(["n00", "n01", "x"], rates()[:3, :3], "made")
    assert level_findings(matrix, topology()) == []
    assert level_findings(matrix, None) == []
    every = np.arange(0, NODES, 2)  # a node of each router
    of_router = Matrix([NAMES[i] for i in every], rates()[np.ix_(every, every)], "made")
    assert {one.level for one in level_findings(of_router, topology())} == set()


def test_the_words() -> None:
    slow = rates()
    slow[unit(16, 0), unit(16, 2)] *= 0.8
    for other in (unit(16, 0), unit(16, 2)):
        slow[unit(16, 1), other] = 0
    matrix = Matrix([f"{name}.site:{i}" for i, name in enumerate(NAMES)], slow, "made")
    found = level_findings(matrix, topology())
    said = texts(found)
    assert "no link from group 1 to group 0 works" in said
    assert found[0].nodes == [f"{name}.site" for name in (*NAMES[16:32], *NAMES[:16])]


def test_the_groups_of_a_network() -> None:
    kind = NodeGroup(names="n[1-4]", cores=4)
    network = NetworkModel(kind="tree", levels=[{"leaf": 2}])
    told = Machine(machine="m", nodes=[kind], topology=network)
    assert network_groups(told) == {"n1": "leaf 0", "n2": "leaf 0", "n3": "leaf 1", "n4": "leaf 1"}
    both = Machine(machine="m", nodes=[kind], topology=network, groups={"a": "n[1-2]"})
    assert network_groups(both) == {"n1": "a", "n2": "a"}
    assert network_groups(Machine(machine="m", nodes=[kind])) == {}


def test_what_units_explain_is_told_of_no_node_or_pair() -> None:
    """A pair that is slower than what its groups have between them in this direction is told, with
    its measured rate."""
    for seed in range(5):
        slow = rates(seed)
        slow[unit(16, 0), unit(16, 2)] *= 0.8
        slow[3, 40] *= 0.5
        slow[41, 4] *= 0.7
        merged = rates(seed)
        merged[unit(16, 1), unit(16, 2)] *= 9.3 / 8
        merged[unit(16, 2), unit(16, 1)] *= 9.3 / 8
        merged[35, 20] *= 0.8
        groups = {name: f"g{i // 16}" for i, name in enumerate(NAMES)}
        names = [f"{name}:{i}" for i, name in enumerate(NAMES)]
        for found, pairs in ((slow, [(3, 40), (41, 4)]), (merged, [(35, 20)])):
            links = [(NAMES[one], NAMES[other]) for one, other in pairs]
            matrix = Matrix(names, found, "made")
            judgement, levels = judged_by_level(matrix, groups, topology())
            network = judgement.network
            assert len(levels) == 1 and not network.senders and not network.receivers
            assert [(one.sender, one.receiver) for one in network.links] == links
            values = [found[pair] for pair in pairs]
            assert [one.value for one in network.links] == pytest.approx(values)
            assert network.slow_links == len(links)
            assert min(one.effect or 0 for one in network.groups) < -0.15 or found is merged


def test_a_host_without_a_place_is_judged_by_its_rates_as_they_are() -> None:
    """What groups 0 and 2 have between them is no matter of it. Other hosts are named in full."""
    found = np.full((NODES + 1, NODES + 1), RATES[-1])
    found[:NODES, :NODES] = rates()
    found *= np.random.default_rng(2).normal(1, 0.01, found.shape)
    for one, other in ((0, 2), (2, 0)):
        found[unit(16, one), unit(16, other)] *= 9.3 / 8
    np.fill_diagonal(found, 0)
    hosts = [*(f"{name}.site" for name in NAMES), "login"]
    matrix = Matrix([f"{host}:{i}" for i, host in enumerate(hosts)], found, "made")
    judgement, levels = judged_by_level(matrix, {}, topology())
    assert [(one.kind, one.units) for one in levels] == [("merged", ["0", "2"])]
    network = judgement.network
    assert not network.senders and not network.receivers and not network.links
