"""The search of ``seatrial order best``: what it reads, and the table that it shows."""

from __future__ import annotations

from typing import get_args

from msgspec import Struct

from seatrial.cli.recorded_pattern import GivenPattern
from seatrial.cli.tables import TextTable
from seatrial.errors import UsageError
from seatrial.layout import orders
from seatrial.layout.best_order import ScoredOrder
from seatrial.layout.network_loads import PlacedNetwork, ScoreKind
from seatrial.layout.topology import Topology
from seatrial.machine.facts import unfold
from seatrial.machine.load import find_machine
from seatrial.machine.topologies import topology_of
from seatrial.studies.order_search import best_orders, missing_programs
from seatrial.units import count

KINDS = tuple(kind.replace("_", "-") for kind in get_args(ScoreKind))
_MAX_NAME = 38


class BestOrders(Struct, frozen=True):
    """The candidates, the best first, and the slots of each node."""

    candidates: list[ScoredOrder]
    sizes: list[int]


def search(
    given: GivenPattern,
    machine: str | None,
    nodes: str,
    per_node: int | None,
    by: str,
    seconds: float,
) -> BestOrders:
    """Return the orders found for a pattern. Raises UsageError where the pattern does not fit the
    nodes, or a node is not in the machine's network."""
    pattern = given.pattern
    names = unfold(nodes)
    per_node = per_node or -(-pattern.ranks // max(1, len(names)))
    sizes = orders.node_sizes(pattern.ranks, per_node)
    if len(sizes) > len(names):
        raise UsageError(
            f"{given.name}: {count(pattern.ranks, 'rank')} of {per_node} a node need "
            f"{count(len(sizes), 'node')}; --nodes has {len(names)}"
        )
    network = _network(machine, names[: len(sizes)])
    kind: ScoreKind = next(k for k in get_args(ScoreKind) if k == by.replace("-", "_"))
    return BestOrders(best_orders(pattern, network, sizes, kind, seconds), sizes)


def _network(name: str | None, nodes: tuple[str, ...]) -> PlacedNetwork:
    machine = find_machine(name).machine
    topology = topology_of(machine)
    if topology is None:  # all nodes are as far from each other
        topology = Topology("tree", nodes, ())
    lost = next((node for node in nodes if node not in topology.number_of), None)
    if lost is not None:
        raise UsageError(
            f"{lost} has no place in the network of {machine.machine}; "
            f"`seatrial machine {machine.machine} --topology` shows which nodes have one"
        )
    return PlacedNetwork(topology, [topology.number_of[node] for node in nodes])


def table(found: BestOrders) -> str:
    """Return the candidates and what they cost, and why others were refused."""
    rows = TextTable("order | off-node bytes> | hop-bytes> | busiest link>")
    lines = []
    for one in found.candidates:
        if one.score is None:
            lines.append(f"{one.name}: refused, as it has {one.refused}")
            continue
        name = one.name if len(one.name) <= _MAX_NAME else f"{one.name[: _MAX_NAME - 3]}..."
        rows.add(name, *(f"{figure:,.0f}" for figure in one.score))
    lines += missing_programs()
    return "\n".join([str(rows).rstrip("\n"), *lines])
