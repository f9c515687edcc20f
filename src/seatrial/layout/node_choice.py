"""Which nodes a run gets that is placed in the network: usable nodes, a wish, and a seed.

    choose_nodes(topology, usable, NodeWish(within="chassis"), 8, seed)
    # NodeChoice(nodes=(3, 4, ...)), or short="no chassis has 8 nodes: the most are 6, of chassis 2"

``within``: all in one unit of a level, the smallest that has enough. ``across``: dealt out to the
units of a level, as many of these as there can be, evenly. ``near``: those with the fewest hops to
a node of the role. ``order`` is that of the ranks; alone or with ``within``, nodes are the first
ones in this order. Ties are drawn by the seed.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import NamedTuple

from msgspec import Struct

from seatrial.layout.node_order import in_order
from seatrial.layout.topology import NetworkLevel, Topology
from seatrial.lazy import random
from seatrial.units import count


class NodeWish(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where the nodes of a run are to be in the network; "": not asked for."""

    within: str = ""
    across: str = ""
    order: str = ""
    near: str = ""

    @property
    def words(self) -> str:
        """The wish as people write it: ``within chassis, order Y``."""
        said = {key: getattr(self, key) for key in ("within", "across", "near", "order")}
        return ", ".join(f"{key} {value}" for key, value in said.items() if value)


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
        if wish.order and not (wish.across or wish.near):
            taken, short = in_order(topology, pool, wish.order, seed)[:number], ""
        else:
            taken, short = _taken(topology, pool, among or usable, wish, number, chance)
        if short:
            reasons.append(f"{short} of {name}" if name else short)
        else:
            chosen.append(taken)
            if not wish.near:
                break
    if not chosen:
        return NodeChoice(short=reasons[-1])
    distance = _distances(topology, wish.near, usable)
    nearest = min(chosen, key=lambda nodes: sum(distance.get(node, 0) for node in nodes))
    return NodeChoice(tuple(in_order(topology, nearest, wish.order, seed)))


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
    of = _level(topology, level)
    members: dict[int, list[int]] = {}
    for node in sorted(nodes):
        members.setdefault(of.unit_of[node], []).append(node)
    return [(of.units[unit], members[unit]) for unit in sorted(members)]


def _level(topology: Topology, name: str) -> NetworkLevel:
    return next(level for level in topology.levels if level.name == name)


def _too_small(wish: NodeWish, pools: Sequence[tuple[str, list[int]]], number: int) -> str:
    name, largest = pools[-1] if pools else ("", [])
    if not wish.within:
        return f"{count(number, 'node')} needed, {len(largest)} there"
    most = f"the most are {len(largest)}, of {name}" if largest else "none has any"
    return f"no {wish.within} has {count(number, 'node')}: {most}"


def _taken(
    topology: Topology,
    pool: list[int],
    among: Collection[int],
    wish: NodeWish,
    number: int,
    chance: "random.Random",
) -> tuple[list[int], str]:
    """Return nodes of a pool, or why it has none that hold the wish."""
    distance = _distances(topology, wish.near, pool)
    pool = sorted(pool, key=lambda node: (distance.get(node, 0), node))
    if not wish.across:
        return pool[:number], ""
    units = dict(_units(topology, wish.across, pool))
    where = _level(topology, wish.across)
    outer = _level(topology, wish.within).unit_of if wish.within else None
    there = {where.unit_of[node] for node in among if not outer or outer[node] == outer[pool[0]]}
    wanted = min(number, len(there))
    if len(there) < 2 or number < 2:
        units_text = f"{len(there)} {wish.across} {'unit' if len(there) == 1 else 'units'}"
        return [], f"nothing to be across: {units_text}, {count(number, 'node')}"
    if len(units) < wanted:
        return [], f"nodes in {len(units)} of the {wanted} {wish.across} units that it takes"
    rows = [
        sorted(nodes, key=lambda node: (distance.get(node, 0), node)) for nodes in units.values()
    ]
    chance.shuffle(rows)
    if wish.near:
        rows.sort(key=lambda nodes: distance.get(nodes[0], 0))
    else:
        rows.sort(key=len, reverse=True)
    dealt = [node for turn in zip_longest(*rows) for node in turn if node is not None]
    return dealt[:number], ""


def _distances(topology: Topology, role: str, nodes: Iterable[int]) -> Mapping[int, int]:
    """Return the hops from each node to the nearest one of a role."""
    there = topology.roles.get(role, ())
    return {node: min(topology.hops(node, one) for one in there) for node in nodes} if there else {}
