"""The network of a machine: which nodes share a router, a chassis, a group; hops between two nodes.

    topology = Topology("dragonfly", names, levels)
    topology.level(a, b)           # "chassis": the smallest level that holds both nodes
    topology.hops(a, b)            # 2
    topology.path(a, b)            # the links of a minimal path, one for each hop

Nodes are numbered from 0. Hops are counted by the usual simple models. Tree: the links up to the
smallest common switch and down again (2, 4, 6, ...). Dragonfly: the routers passed, which are 1 on
a router, 2 in a group and 4 else. Torus: the distance of the routers, around the ends.
"""

import math
import random
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import combinations, pairwise, zip_longest
from typing import Literal, NamedTuple

from msgspec import Struct

from seatrial.grouping import grouped
from seatrial.units import count

TopologyKind = Literal["tree", "dragonfly", "torus"]
SYSTEM = "system"  # the level that holds all nodes
NODE = "node"  # the level of a node and itself

Coordinates = tuple[int, ...]


class NetworkLevel(NamedTuple):
    """A level: its name, the names of its units, and the number of the unit of each node."""

    name: str
    units: tuple[str, ...]
    unit_of: tuple[int, ...]


#: A link of a path, in the direction of the message.
NetworkLink = tuple[str, str]


class Bisection(NamedTuple):
    """The smallest cut of a network into two equal halves: its links, the level or the axis that
    they join, and the bandwidth of all of them in one direction (bytes/s; None if unknown)."""

    links: int
    level: str
    bandwidth: float | None


class Topology(Struct, frozen=True, dict=True):
    """A network."""

    kind: TopologyKind
    #: Their names.
    nodes: tuple[str, ...]
    #: From the smallest to the largest.
    levels: tuple[NetworkLevel, ...]
    #: Of a torus, with the length (``shape``) of each, and the ``coordinates`` of each node.
    axes: tuple[str, ...] = ()
    shape: Coordinates = ()
    coordinates: tuple[Coordinates, ...] = ()
    #: The links that leave each unit of the largest level; 0 if unknown.
    ports: int = 0
    #: Bytes/s of a link, by level or axis.
    bandwidths: dict[str, float] = {}
    #: The nodes with a role, by its name.
    roles: dict[str, tuple[int, ...]] = {}
    #: Nodes that have a place and run no jobs, such as routers. Their numbers follow.
    service: tuple[str, ...] = ()

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of all nodes by number, those of service nodes last."""
        return self.nodes + self.service

    @cached_property
    def number_of(self) -> dict[str, int]:
        """The number of each node, by its name."""
        return {name: number for number, name in enumerate(self.names)}

    def place(self, node: int) -> list[tuple[str, str]]:
        """Return the level and the unit of a node, the largest first; its coordinates come last."""
        units = [(level.name, level.units[level.unit_of[node]]) for level in reversed(self.levels)]
        if self.coordinates:
            units += zip(self.axes, map(str, self.coordinates[node]), strict=True)
        return units

    def members(self, level: NetworkLevel) -> list[list[str]]:
        """Return the nodes of each unit of a level, without service nodes."""
        units: list[list[str]] = [[] for _ in level.units]
        for node, unit in zip(self.nodes, level.unit_of, strict=False):
            units[unit].append(node)
        return units

    # ---- two nodes ------------------------------------------------------------------------

    def level(self, a: int, b: int) -> str:
        """Return the name of the smallest level that holds both nodes."""
        if a == b:
            return NODE
        height = self._height(a, b)
        return self.levels[height].name if height < len(self.levels) else SYSTEM

    def _height(self, a: int, b: int) -> int:
        """Return the number of the smallest level that holds both; that of levels for none."""
        for height, level in enumerate(self.levels):
            if level.unit_of[a] == level.unit_of[b]:
                return height
        return len(self.levels)

    def hops(self, a: int, b: int) -> int:
        """Return the hops from one node to the other."""
        if a == b:
            return 0
        if self.kind == "torus":
            pairs = zip(self.coordinates[a], self.coordinates[b], self.shape, strict=True)
            return sum(abs(_step(x, y, length)) for x, y, length in pairs)
        return self.hops_at(self._height(a, b))

    def hops_at(self, height: int) -> int:
        """Return the hops between two nodes whose smallest common level has this number. Not for a
        torus, in which they differ."""
        if self.kind == "tree":
            return 2 * (height + 1)
        return 1 if height == 0 else 2 if height < len(self.levels) else 4

    @property
    def longest(self) -> int:
        """The hops of the longest way between two nodes, if all places have some."""
        if self.kind == "torus":
            return sum(length // 2 for length in self.shape)
        return self.hops_at(len(self.levels))

    def path(self, a: int, b: int) -> list[NetworkLink]:
        """Return the links of a minimal path: as many as hops.

        Tree: up and down. Torus: along the first axis, then the second, ... Dragonfly: the link by
        which the message enters each router; the router at either end of the link between groups is
        not known, and called a gateway.
        """
        if a == b:
            return []
        if self.kind == "torus":
            return self._torus_path(a, b)
        height = self._height(a, b)
        stops = self._tree_stops(a, b, height)
        if self.kind == "dragonfly":
            stops = self._dragonfly_stops(a, b, height)
        return list(pairwise(stops))

    def _unit(self, node: int, height: int) -> str:
        if height == len(self.levels):
            return SYSTEM
        level = self.levels[height]
        return f"{level.name} {level.units[level.unit_of[node]]}"

    def _tree_stops(self, a: int, b: int, height: int) -> list[str]:
        up = [self.names[a], *(self._unit(a, each) for each in range(height + 1))]
        down = [self.names[b], *(self._unit(b, each) for each in range(height))]
        return [*up, *reversed(down)]

    def _dragonfly_stops(self, a: int, b: int, height: int) -> list[str]:
        stops = [self.names[a], self._unit(a, 0)]
        if height == 0:
            return stops
        if height == len(self.levels):
            gates = (self._unit(a, height - 1), self._unit(b, height - 1))
            stops += [f"gateway of {gate}" for gate in gates]
        return [*stops, self._unit(b, 0)]

    def _torus_path(self, a: int, b: int) -> list[NetworkLink]:
        at, links = list(self.coordinates[a]), []
        for axis, length in enumerate(self.shape):
            step = _step(at[axis], self.coordinates[b][axis], length)
            for _ in range(abs(step)):
                start = ",".join(map(str, at))
                at[axis] = (at[axis] + (1 if step > 0 else -1)) % length
                links.append((start, ",".join(map(str, at))))
        return links

    # ---- the whole network ----------------------------------------------------------------

    def pairs(self, nodes: Sequence[int] | None = None) -> list[int]:
        """Return the pairs of two of these nodes (default: all) whose smallest common level is each
        level, and then those that have none but the system."""
        chosen = range(len(self.nodes)) if nodes is None else nodes
        sizes = [Counter(level.unit_of[node] for node in chosen).values() for level in self.levels]
        within = [_pairs_of(each) for each in sizes]
        ends = [*within, _pairs_of([len(chosen)])]
        return [end - start for start, end in zip([0, *within], ends, strict=True)]

    def mean_hops(self, nodes: Sequence[int]) -> float:
        """Return the mean of the hops between any two of these nodes; 0 for one node."""
        total = _pairs_of([len(nodes)])
        if self.kind == "torus":
            hops = sum(
                _ring_hops([self.coordinates[node][axis] for node in nodes], length)
                for axis, length in enumerate(self.shape)
            )
        else:
            hops = sum(self.hops_at(h) * n for h, n in enumerate(self.pairs(nodes)))
        return hops / total if total else 0.0

    def bisection(self) -> Bisection | None:
        """Return the bisection; None where nothing says how many links there are.

        Units of the largest level are taken as alike. Dragonfly: the links of a group go to the
        other groups evenly, so halves of g groups are joined by floor(g/2) ceil(g/2) p / (g - 1) of
        them (Kim et al. 2008). Tree: all links up from the smaller half. Torus: twice the nodes of
        the plane across an axis, and once where the axis has two.
        """
        if self.kind == "torus":
            return min(self._cuts(), key=lambda cut: (cut.bandwidth or math.inf, cut.links))
        units = sum(map(bool, self.members(self.levels[-1])))
        if not self.ports or units < 2:
            return None
        links = units // 2 * self.ports
        if self.kind == "dragonfly":
            links = units // 2 * (units - units // 2) * self.ports // (units - 1)
        bandwidth = self.bandwidths.get(SYSTEM)
        return Bisection(links, SYSTEM, links * bandwidth if bandwidth else None)

    def _cuts(self) -> list[Bisection]:
        """Return the cut across each axis of a torus."""
        routers, cuts = math.prod(self.shape), []
        for axis, length in zip(self.axes, self.shape, strict=True):
            if length < 2:
                continue
            links = routers // length * (1 if length == 2 else 2)
            bandwidth = self.bandwidths.get(axis)
            cuts.append(Bisection(links, axis, links * bandwidth if bandwidth else None))
        return cuts or [Bisection(0, self.axes[0], None)]


def _step(start: int, end: int, length: int) -> int:
    """Return the shorter way around a ring: below 0 for the way down."""
    up = (end - start) % length
    return up if up <= length - up else up - length


def _pairs_of(sizes: Iterable[int]) -> int:
    return sum(size * (size - 1) // 2 for size in sizes)


def _ring_hops(places: Iterable[int], length: int) -> int:
    """Return the sum of the shorter ways around a ring between any two of these places."""
    counts = Counter(places)
    return sum(
        n * m * abs(_step(a, b, length)) for (a, n), (b, m) in combinations(counts.items(), 2)
    )


# ---- in words -----------------------------------------------------------------------------


def bisection_text(cut: Bisection | None) -> str:
    """Return a bisection for people: its links, and their bandwidth or how to have it told."""
    if cut is None:
        return "not known; `ports` gives the links that leave each unit"
    if cut.bandwidth is None:
        return f"{cut.links} links ({cut.level}); `links` gives their bandwidth"
    total = f"{cut.bandwidth / 1e9:,.1f} GB/s"
    return f"{cut.links} links ({cut.level}), {total} in each direction"


def summary(topology: Topology) -> str:
    """Return a network in a line: its kind, the units of each level, the bisection."""
    shape = " of " + " x ".join(map(str, topology.shape)) if topology.shape else ""
    numbers = [(level.name, topology.members(level)) for level in reversed(topology.levels)]
    levels = ", ".join(f"{name} {sum(map(bool, units)):,}" for name, units in numbers)
    kind = f"{topology.kind}{shape}, {len(topology.nodes):,} nodes"
    return f"{kind}; units by level: {levels}; bisection: {bisection_text(topology.bisection())}"


# ---- made of numbers, or of lists ---------------------------------------------------------


def level_by_size(name: str, size: int, positions: Sequence[int]) -> NetworkLevel:
    """Return a level whose units are ``size`` consecutive positions each. Units are named by their
    number; those without a node are left out."""
    numbers = [position // size for position in positions]
    used = sorted(set(numbers))
    index = {number: place for place, number in enumerate(used)}
    return NetworkLevel(name, tuple(map(str, used)), tuple(index[number] for number in numbers))


def fault_of_nesting(levels: Sequence[NetworkLevel], nodes: Sequence[str]) -> str:
    """Return where a unit of a level is in two units of a larger one; "" if all nest."""
    for smaller, larger in pairwise(levels):
        outer: dict[int, int] = {}
        for node, unit in enumerate(smaller.unit_of):
            first = outer.setdefault(unit, node)
            a, b = larger.unit_of[first], larger.unit_of[node]
            if a != b:
                return (
                    f"{smaller.name} {smaller.units[unit]} is in two {larger.name} units: "
                    f"{nodes[first]} is in {larger.units[a]}, {nodes[node]} in {larger.units[b]}; "
                    f"levels must nest, so give each {smaller.name} one name"
                )
    return ""


# ---- node names ----------------------------------------------------------------------------------
#
# Where nodes are, by their names: ``c{cabinet}-{row}c{chassis}s{router}n{node}``.
#
#     pattern = NamePattern("c{cabinet}-{row}c{chassis}s{router}n{node}")
#     pattern.numbers("c1-0c2s15n3")                # (1, 0, 2, 15, 3)
#     positions(rows)                               # a number of each node
#
# A field is a number; fields go from the largest to the smallest unit. The position of a node
# counts the nodes before it, as if every unit had as many as the fullest.


_FIELD = r"\{([A-Za-z_]\w*)\}"
EXAMPLE = "write e.g. c{cabinet}-{row}c{chassis}s{router}n{node}"


class NamePattern(Struct, frozen=True, dict=True):
    """A pattern of names, and its fields in their order."""

    text: str
    fields: tuple[str, ...]

    def numbers(self, name: str) -> tuple[int, ...] | None:
        """Return the number of each field of a name; None if it does not fit."""
        match = self._expression.fullmatch(name)
        return tuple(map(int, match.groups())) if match else None

    @cached_property
    def _expression(self) -> re.Pattern[str]:
        parts = re.split(_FIELD, self.text)  # texts and fields in turn
        return re.compile(
            "".join(r"([0-9]{1,9})" if i % 2 else re.escape(part) for i, part in enumerate(parts))
        )


def name_pattern(text: str) -> NamePattern:
    """Return a pattern. Raises ValueError if it has no field, or one twice."""
    fields = tuple(re.findall(_FIELD, text))
    if not fields:
        raise ValueError(f"{text!r} has no field; {EXAMPLE}")
    if twice := [field for field in fields if fields.count(field) > 1]:
        raise ValueError(f"{text!r} has {{{twice[0]}}} twice; {EXAMPLE}")
    if rest := re.search(r"[{}]", re.sub(_FIELD, "", text)):
        raise ValueError(f"{text!r}: {rest[0]!r} is no part of a field; {EXAMPLE}")
    return NamePattern(text, fields)


def positions(rows: Sequence[Sequence[int]]) -> list[int]:
    """Return the position of each node: ``rows`` are its numbers, that of the largest unit first.
    Each field counts from 0 to the greatest number that is there."""
    lengths = [max(column) + 1 for column in zip(*rows, strict=True)]
    numbers = []
    for row in rows:
        position = 0
        for number, length in zip(row, lengths, strict=True):
            position = position * length + number
        numbers.append(position)
    return numbers


# ---- node order ----------------------------------------------------------------------------------
#
# Nodes in the order of an axis of their network: X, Y, Z.
#
#     in_order(topology, nodes, "Y")       # Y goes up first, then X, then Z
#
# The axes of a torus are its own. Elsewhere X is the place of the smallest unit (a router, a
# switch) in the next larger one, Y the place of that one in the next, ...: on a Cray XC the router
# in its chassis, the chassis in its group, the group. Nodes of a smallest unit stay together.


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
        numbered: dict[int, dict[int, int]] = {}  # unit of the next level -> its units, numbered
        column = []
        for node, unit in enumerate(level.unit_of):
            units = numbered.setdefault(outer[node] if outer else 0, {})
            column.append(units.setdefault(unit, len(units)))
        columns.append(column)
    return list(zip(*columns, strict=True))


def in_order(topology: Topology, nodes: Iterable[int], order: str, seed: str = "") -> list[int]:
    """Return nodes by number, along an axis, or shuffled (``random``); without an order as the
    machine has them. Raises ValueError for an axis that there is not."""
    ordered = sorted(nodes)
    if not order:
        return ordered
    if order == RANDOM:
        random.Random(seed).shuffle(ordered)
        return ordered
    axes = [axis.upper() for axis in axes_of(topology)]
    if order.upper() not in axes:
        known = ", ".join(axes_of(topology))
        raise ValueError(f"order {order!r} is no axis of the network; there are {known}, {RANDOM}")
    first = axes.index(order.upper())
    slower = [axis for axis in reversed(range(len(axes))) if axis != first]
    at = all_coordinates(topology)
    return sorted(ordered, key=lambda node: (*(at[node][axis] for axis in slower), at[node][first]))


# ---- node choice ---------------------------------------------------------------------------------
#
# Which nodes a run gets that is placed in the network: usable nodes, a wish, and a seed.
#
#     choose_nodes(topology, usable, NodeWish(within="chassis"), 8, seed)
#  # NodeChoice(nodes=(3, 4, ...)), or short="no chassis has 8 nodes: the most are 6, of chassis 2"
#
# ``within``: all in one unit of a level, the smallest that has enough. ``across``: dealt out to
# the units of a level, as many of these as there can be, evenly. ``near``: those with the fewest
# hops to a node of the role. ``order`` is that of the ranks; alone or with ``within``, nodes are
# the first ones in this order. Ties are drawn by the seed.


class NodeWish(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where the nodes of a run are to be in the network; "": not asked for."""

    within: str = ""
    across: str = ""
    order: str = ""
    near: str = ""

    @property
    def words(self) -> str:
        """The wish as people write it: ``within chassis, order Y``."""
        given = {key: getattr(self, key) for key in ("within", "across", "near", "order")}
        return ", ".join(f"{key} {value}" for key, value in given.items() if value)


class NodeChoice(NamedTuple):
    """Nodes by number, in the order of ranks; or none, and why: the level that is short."""

    nodes: tuple[int, ...] = ()
    short: str = ""


def choose_nodes(
    topology: Topology,
    usable: Collection[int],
    wish: NodeWish,
    number: int,
    seed: str,
    among: Collection[int] = (),
) -> NodeChoice:
    """Return so many of the usable nodes that hold a wish. ``among``: the nodes that would be
    usable if all were free and up, which say how many units there are; default: the usable ones."""
    chance = random.Random(seed)
    pools = _pools(topology, wish, usable, chance)
    wide = [pool for pool in pools if len(pool[1]) >= number]
    if not wide:
        return NodeChoice(short=_too_small(wish, pools, number))
    chosen: list[list[int]] = []
    reasons = []
    for name, pool in wide:
        try:
            chosen.append(_taken(topology, pool, among or usable, wish, number, chance, seed))
        except _Short as short:
            reasons.append(f"{short} of {name}" if name else str(short))
        if chosen and not wish.near:
            break
    if not chosen:
        return NodeChoice(short=reasons[-1])
    distance = _distances(topology, wish.near, usable)
    nearest = min(chosen, key=lambda nodes: sum(distance.get(node, 0) for node in nodes))
    return NodeChoice(tuple(in_order(topology, nearest, wish.order, seed)))


class _Short(Exception):
    """A pool of nodes has none that hold a wish; the text says what is short."""


def _pools(
    topology: Topology, wish: NodeWish, usable: Collection[int], chance: random.Random
) -> list[tuple[str, list[int]]]:
    """Return the units within which all nodes must be, the smallest first, those of one size by
    chance; without such a level all nodes."""
    pools = [
        (f"{wish.within} {unit}" if wish.within else "", nodes)
        for unit, nodes in _units(topology, wish.within, usable)
    ]
    chance.shuffle(pools)
    return sorted(pools, key=lambda pool: len(pool[1]))


def _units(topology: Topology, level: str, nodes: Iterable[int]) -> list[tuple[str, list[int]]]:
    """Return the nodes of each unit of a level; without one all in one."""
    if not level:
        return [("", sorted(nodes))]
    network_level = _level(topology, level)
    members = grouped(sorted(nodes), network_level.unit_of.__getitem__)
    return [(network_level.units[unit], members[unit]) for unit in sorted(members)]


def _level(topology: Topology, name: str) -> NetworkLevel:
    return next(level for level in topology.levels if level.name == name)


def _too_small(wish: NodeWish, pools: Sequence[tuple[str, list[int]]], number: int) -> str:
    name, largest = pools[-1] if pools else ("", [])
    if not wish.within:
        return f"{count(number, 'node')} needed, {len(largest)} there"
    largest_text = f"the most are {len(largest)}, of {name}" if largest else "none has any"
    return f"no {wish.within} has {count(number, 'node')}: {largest_text}"


def _taken(
    topology: Topology,
    pool: list[int],
    among: Collection[int],
    wish: NodeWish,
    number: int,
    chance: random.Random,
    seed: str,
) -> list[int]:
    """Return nodes of a pool, the nearest first. Raises _Short if it has none that hold the
    wish."""
    if wish.order and not (wish.across or wish.near):
        return in_order(topology, pool, wish.order, seed)[:number]
    distance = _distances(topology, wish.near, pool)
    pool = sorted(pool, key=lambda node: (distance.get(node, 0), node))
    if not wish.across:
        return pool[:number]
    rows = [nodes for _, nodes in _units(topology, wish.across, pool)]
    _check_units(topology, pool[0], among, wish, number, len(rows))
    rows = [sorted(nodes, key=lambda node: (distance.get(node, 0), node)) for nodes in rows]
    chance.shuffle(rows)
    if wish.near:
        rows.sort(key=lambda nodes: distance.get(nodes[0], 0))
    else:
        rows.sort(key=len, reverse=True)
    dealt = [node for turn in zip_longest(*rows) for node in turn if node is not None]
    return dealt[:number]


def _check_units(
    topology: Topology,
    node: int,
    among: Collection[int],
    wish: NodeWish,
    number: int,
    usable: int,
) -> None:
    """Check that so many ``usable`` units are enough for nodes across them, in the unit that has a
    node. Raises _Short."""
    where = _level(topology, wish.across)
    outer = _level(topology, wish.within).unit_of if wish.within else None
    present = {where.unit_of[each] for each in among if not outer or outer[each] == outer[node]}
    if len(present) < 2 or number < 2:
        units = f"{len(present)} {wish.across} {'unit' if len(present) == 1 else 'units'}"
        raise _Short(f"nothing to be across: {units}, {count(number, 'node')}")
    wanted = min(number, len(present))
    if usable < wanted:
        raise _Short(f"nodes in {usable} of the {wanted} {wish.across} units that it takes")


def _distances(topology: Topology, role: str, nodes: Iterable[int]) -> Mapping[int, int]:
    """Return the hops from each node to the nearest one of a role."""
    ends = topology.roles.get(role, ())
    return {node: min(topology.hops(node, one) for one in ends) for node in nodes} if ends else {}
