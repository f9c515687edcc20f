"""The search of ``seatrial order best``: what it reads, and the table that it shows."""

from collections.abc import Sequence
from typing import get_args

from msgspec import Struct

from seatrial.cli.recorded_pattern import GivenPattern
from seatrial.cli.tables import TextTable, folded
from seatrial.errors import UsageError
from seatrial.layout import orders
from seatrial.layout.best_order import ScoredOrder
from seatrial.layout.network_loads import PlacedNetwork, ScoreKind
from seatrial.layout.topology import Topology
from seatrial.machine import draining
from seatrial.machine.detect import find_machine
from seatrial.machine.model import Machine
from seatrial.machine.node_sets import fold, unfold
from seatrial.machine.topologies import topology_of
from seatrial.studies.order_search import best_orders, missing_programs
from seatrial.units import count

_MAX_NAME = 38


class BestOrders(Struct, frozen=True):
    """The candidates, the best first, the slots of each node, and nodes that get no jobs now."""

    candidates: list[ScoredOrder]
    sizes: list[int]
    away: list[str] = []


def search(
    given: GivenPattern,
    machine: str | None,
    nodes: str,
    per_node: int | None,
    by: str,
    seconds: float,
) -> BestOrders:
    """Return the orders found for a pattern. Raises UsageError where the pattern does not fit the
    nodes, a node has too few CPUs, or it is not in the machine's network."""
    pattern = given.pattern
    names = unfold(nodes)
    per_node = per_node or -(-pattern.ranks // max(1, len(names)))
    sizes = orders.node_sizes(pattern.ranks, per_node)
    if len(sizes) > len(names):
        raise UsageError(
            f"{given.name}: {count(pattern.ranks, 'rank')} of {per_node} a node need "
            f"{count(len(sizes), 'node')}; --nodes has {len(names)}; "
            "give more --nodes, or a larger -N"
        )
    model = find_machine(machine).machine
    if machine is not None:
        _check_nodes(model, names)
    names = names[: len(sizes)]
    _check_slots(model, dict(zip(names, sizes, strict=True)))
    network = _network(model, names)
    kind: ScoreKind = next(k for k in get_args(ScoreKind) if k == by.replace("-", "_"))
    found = best_orders(pattern, network, sizes, kind, seconds)
    return BestOrders(found, sizes, _away(model, names))


def _check_nodes(machine: Machine, nodes: Sequence[str]) -> None:
    known = {node for kind in machine.nodes for node in unfold(kind.names)}
    if unknown := [node for node in nodes if node not in known]:
        raise UsageError(
            f"{fold(unknown)}: not among the nodes of {machine.machine}, {fold(known)}; "
            "correct --nodes, or name another machine with -m"
        )


def _check_slots(machine: Machine, ranks_of: dict[str, int]) -> None:
    for kind in machine.nodes:
        cpus = kind.cores * kind.threads_per_core
        for node in unfold(kind.names):
            if ranks_of.get(node, 0) > cpus:
                raise UsageError(
                    f"{node} would get {count(ranks_of[node], 'rank')} and has "
                    f"{count(cpus, 'CPU')}; give more --nodes, or fewer --tasks-per-node"
                )


def _away(machine: Machine, nodes: Sequence[str]) -> list[str]:
    """Return the nodes that Slurm gives no jobs now; none where no Slurm answers, as an order can
    be sought on any host."""
    if machine.scheduler != "slurm":
        return []
    try:
        told = draining.states()
    except UsageError:
        return []
    return [node for node in nodes if node in told and told[node].away]


def _network(machine: Machine, nodes: tuple[str, ...]) -> PlacedNetwork:
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
    if found.away:
        told = f"{fold(found.away)}: down or drained, so Slurm gives no jobs there now; give other "
        lines.append(folded(f"{told}--nodes, or use the order when Slurm does"))
    lines += missing_programs()
    return "\n".join([str(rows).rstrip("\n"), *lines])
