"""Nodes in the order of an axis of their network: X, Y, Z.

    in_order(topology, nodes, "Y")       # Y goes up first, then X, then Z

The axes of a torus are its own. Elsewhere X is the place of the smallest unit (a router, a switch)
in the next larger one, Y the place of that one in the next, ...: on a Cray XC the router in its
chassis, the chassis in its group, the group. Nodes of a smallest unit stay together.
"""

from collections.abc import Iterable

from seatrial.layout.topology import Coordinates, Topology
from seatrial.lazy import random

RANDOM = "random"  # in place of an axis
_LETTERS = "XYZUVW"


def axes_of(topology: Topology) -> tuple[str, ...]:
    """Return the names of the axes, the one along which numbers of nodes go up first as first."""
    if topology.kind == "torus":
        return topology.axes
    return tuple(_LETTERS[: len(topology.levels)])


def all_coordinates(topology: Topology) -> list[Coordinates]:
    """Return the place of each node on each axis."""
    if topology.kind == "torus":
        return list(topology.coordinates)
    columns = []
    for i, level in enumerate(topology.levels[: len(_LETTERS)]):
        outer = topology.levels[i + 1].unit_of if i + 1 < len(topology.levels) else None
        there: dict[int, dict[int, int]] = {}  # unit of the next level -> its units, numbered
        column = []
        for node, unit in enumerate(level.unit_of):
            units = there.setdefault(outer[node] if outer else 0, {})
            column.append(units.setdefault(unit, len(units)))
        columns.append(column)
    return list(zip(*columns, strict=True))


def in_order(topology: Topology, nodes: Iterable[int], order: str, seed: str = "") -> list[int]:
    """Return nodes by number, along an axis, or shuffled (``random``); without an order as the
    machine has them. Raises ValueError for an axis that there is not."""
    found = sorted(nodes)
    if not order:
        return found
    if order == RANDOM:
        random.Random(seed).shuffle(found)
        return found
    axes = [axis.upper() for axis in axes_of(topology)]
    if order.upper() not in axes:
        known = ", ".join(axes_of(topology))
        raise ValueError(f"order {order!r} is no axis of the network; there are {known}, {RANDOM}")
    first = axes.index(order.upper())
    slower = [axis for axis in reversed(range(len(axes))) if axis != first]
    at = all_coordinates(topology)
    return sorted(found, key=lambda node: (*(at[node][axis] for axis in slower), at[node][first]))
