"""Nodes along the axes of a network."""

from __future__ import annotations

import pytest

from seatrial.model.machine import NetworkModel
from seatrial.model.machine_topology import made
from seatrial.model.topology import all_coordinates, axes_of, in_order
from tests.model.test_topology import daint, hopper


def test_a_torus_has_its_own_axes() -> None:
    told = NetworkModel(kind="torus", axes={"x": 2, "y": 2, "z": 3}, levels=[{"router": 1}])
    torus = made(told, [f"n{i}" for i in range(12)])  # the last axis goes up first
    assert axes_of(torus) == ("x", "y", "z")
    assert all_coordinates(torus)[5] == (0, 1, 2)
    assert in_order(torus, range(12), "") == in_order(torus, range(12), "Q"[:0]) == [*range(12)]
    assert in_order(torus, range(12), "z") == [0, 1, 2, 6, 7, 8, 3, 4, 5, 9, 10, 11]
    assert in_order(torus, range(12), "X") == [0, 6, 3, 9, 1, 7, 4, 10, 2, 8, 5, 11]
    assert in_order(torus, [11, 3, 9], "Y") == [3, 9, 11]
    with pytest.raises(ValueError, match="no axis of the network; there are x, y, z, random"):
        in_order(torus, range(12), "w")


def test_routers_chassis_and_groups_are_axes_elsewhere() -> None:
    topology = daint()
    at, of = all_coordinates(topology), topology.number_of
    assert axes_of(topology) == ("X", "Y", "Z")
    assert at[of["c3-0c2s5n1"]] == (5, 5, 1)
    assert sorted({y for _, y, _ in at}) == [*range(6)]
    assert at[of["c0-0c0s2n0"]] == (0, 0, 0), "the first that is there"
    hops = [topology.hops(a, b) for a, b in ((0, 1), (0, 4))]
    by_x = in_order(topology, range(200), "X")
    assert by_x == [*range(200)] and hops == [1, 2]
    assert len(all_coordinates(hopper())) == 6384
