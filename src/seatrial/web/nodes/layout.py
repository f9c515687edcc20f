"""The layout of a machine's nodes: groups of its description, cabinets by the nodes' names.

    for block in blocks_of(machine, names, described):
        block.titles, block.columns, block.places      # places in ``names``, row by row

Names of HPE Cray EX (x1000c0s3b1n0), Cray XC (c0-0c1s3n2) and SGI ICE (r1i0n3) say where a node
stands. Groups of the machine's file come before names, and the levels of its network before both.
Without any there is a plain grid.
"""

import math
import re
from collections.abc import Sequence

from msgspec import Struct

from seatrial.layout.topology import Topology
from seatrial.lazy import regex
from seatrial.machine.facts import groups_of
from seatrial.machine.model import Machine
from seatrial.machine.topologies import topology_of

# Patterns of names, and the words for their first two numbers.
_PLACES = (
    (regex(r"(x\d+)c(\d+)s(\d+)b(\d+)n(\d+)"), "cabinet", "chassis"),
    (regex(r"(c\d+-\d+)c(\d+)s(\d+)n(\d+)"), "cabinet", "chassis"),
    (regex(r"(r\d+)i(\d+)n(\d+)"), "rack", "IRU"),
)
_SHARE = 0.9  # of the names that must match a pattern


class NodeBlock(Struct, frozen=True):
    """Nodes that stand together; ``titles`` are the names of their place, the largest first."""

    titles: list[str]
    columns: int
    places: list[int]


def blocks_of(machine: Machine, names: Sequence[str], described: int) -> list[NodeBlock]:
    """Return the blocks of nodes. Nodes from ``described`` on are in no description; they are
    last."""
    groups = groups_of(machine)
    found: dict[tuple[str, ...], list[int]] = {}
    pattern = _pattern(names[:described])
    topology = topology_of(machine) if machine.topology is not None else None
    for place in range(described):
        name = names[place]
        if topology is not None and name in topology.number_of:
            titles = _in_network(topology, topology.number_of[name])
        else:
            titles = _titles(name, groups, pattern)
        found.setdefault(titles, []).append(place)
    if len(names) > described:
        found["in no description",] = list(range(described, len(names)))
    if groups and pattern is None and ("in no group",) in found:
        found["in no group",] = found.pop(("in no group",))
    return [NodeBlock(list(titles), _columns(len(own)), own) for titles, own in found.items()]


def _in_network(topology: Topology, node: int) -> tuple[str, ...]:
    """Return the units of the two largest levels that a node is in, the largest first. Routers of a
    dragonfly or a torus are too small to be drawn apart."""
    levels = topology.levels[0 if topology.kind == "tree" else 1 :][-2:]
    return tuple(f"{one.name} {one.units[one.unit_of[node]]}" for one in reversed(levels))


def _pattern(names: Sequence[str]) -> tuple[re.Pattern[str], str, str] | None:
    for one in _PLACES:
        fitting = sum(one[0].fullmatch(name) is not None for name in names)
        if names and fitting >= _SHARE * len(names):
            return one
    return None


def _titles(
    name: str, groups: dict[str, str], pattern: tuple[re.Pattern[str], str, str] | None
) -> tuple[str, ...]:
    titles: list[str] = []
    if groups:
        titles.append(groups.get(name, "in no group"))
    if pattern is not None:
        place = pattern[0].fullmatch(name)
        titles += [f"{pattern[1]} {place[1]}", f"{pattern[2]} {place[2]}"] if place else ["other"]
    return tuple(titles)


def _columns(count: int) -> int:
    """Return the columns of a grid that is about twice as wide as high."""
    wide = math.sqrt(2 * count)
    if count <= 8:
        return max(1, count)
    step = 4 if count <= 64 else 8 if count <= 512 else 20
    return max(step, round(wide / step) * step)
