"""Compare a machine file with what Slurm knows of its nodes.

for line in differences(machine):      # asks scontrol once
    print(line)
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from seatrial.errors import UsageError
from seatrial.machine.detect_slurm import NodeSeen, nodes_seen, shown_topology
from seatrial.machine.model import Machine, NodeGroup
from seatrial.machine.node_sets import fold, unfold
from seatrial.machine.topologies import levels_of_switches, topology_of
from seatrial.units import show_bytes


def differences(machine: Machine) -> list[str]:
    """Return in what a machine file differs from what Slurm shows, with remedies. Raises UsageError
    if Slurm does not answer."""
    there = {node.name: node for node in nodes_seen()}
    found = [text for i, kind in enumerate(machine.nodes) for text in _of_kind(i, kind, there)]
    return [*_partitions(machine, there), *found, *_network(machine)]


def _network(machine: Machine) -> Iterator[str]:
    """Yield the switches of Slurm that are units of no level of the file. A network that Slurm does
    not know is not compared."""
    topology = topology_of(machine) if machine.topology is not None else None
    if topology is None:
        return
    try:
        told = levels_of_switches(shown_topology(), (), topology.nodes)
    except (UsageError, ValueError):
        return
    units = {fold(nodes) for level in topology.levels for nodes in topology.members(level)}
    for level in told:
        for name, switches in level.items():
            if missing := [unit for unit, nodes in switches.items() if nodes not in units]:
                yield (
                    f"topology.levels: in Slurm the {name} {missing[0]} has "
                    f"{switches[missing[0]]}, which is no unit of a level here; "
                    f"{len(missing)} of {len(switches)} differ; correct one of them"
                )


def _of_kind(i: int, kind: NodeGroup, there: Mapping[str, NodeSeen]) -> Iterator[str]:
    names = unfold(kind.names)
    if gone := [name for name in names if name not in there]:
        yield f"nodes[{i}].names: Slurm has no {fold(gone)}; remove them"
    seen = [there[name] for name in names if name in there]
    for feature in kind.features:
        if lack := [node.name for node in seen if feature not in node.kind.features]:
            yield (
                f"nodes[{i}].features: {feature} is no feature of {fold(lack)} in Slurm; "
                "tests that require it are kept from other nodes by --exclude, not by --constraint"
            )
    yield from _less(f"nodes[{i}].gpus", kind.gpus, seen, lambda node: node.kind.gpus, str)
    yield from _less(f"nodes[{i}].cores", kind.cores, seen, lambda node: node.kind.cores, str)
    size = kind.memory.bytes
    memory = lambda node: node.kind.memory.bytes  # noqa: E731
    yield from _less(f"nodes[{i}].memory", size, seen, memory, show_bytes)


def _less(
    key: str,
    described: int,
    seen: Iterable[NodeSeen],
    value: Callable[[NodeSeen], int],
    show: Callable[[int], str],
) -> Iterator[str]:
    """Yield that Slurm has less of something than the file says."""
    poorer = [node for node in seen if value(node) < described]
    if poorer:
        least = min(map(value, poorer))
        names = fold([node.name for node in poorer])
        yield f"{key}: {show(described)}, and Slurm has {show(least)} on {names}; write that"


def _partitions(machine: Machine, there: Mapping[str, NodeSeen]) -> Iterator[str]:
    known = sorted({name for node in there.values() for name in node.partitions})
    own = machine.slurm.partition
    if own and own not in known:
        yield f"slurm.partition: Slurm has no partition {own}; it has {', '.join(known) or 'none'}"
    for i, kind in enumerate(machine.nodes):
        wanted = kind.partition or own
        if kind.partition and kind.partition not in known:
            yield (
                f"nodes[{i}].partition: Slurm has no partition {kind.partition}; "
                f"it has {', '.join(known) or 'none'}"
            )
        elif wanted in known:
            yield from _outside(i, wanted, [there[n] for n in unfold(kind.names) if n in there])


def _outside(i: int, wanted: str, seen: Sequence[NodeSeen]) -> Iterator[str]:
    outside = [node for node in seen if wanted not in node.partitions]
    if outside:
        where = outside[0].partitions[0] if outside[0].partitions else "none"
        names = fold([node.name for node in outside])
        yield f"nodes[{i}].names: {names} not in the partition {wanted}; give `partition: {where}`"
