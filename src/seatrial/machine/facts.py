"""What expressions may know of a machine's nodes."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

from seatrial.machine.model import Machine, Nodes
from seatrial.units import bytes_of


class NodeFacts(NamedTuple):
    """The nodes that a test can use: facts of the first kind of them, their number, their names."""

    names: dict[str, Any]
    available: int
    sets: tuple[str, ...]

    def node_names(self) -> list[str]:
        return [name for folded in self.sets for name in unfold(folded)]


def facts_of(machine: Machine, features: Sequence[str] = ()) -> NodeFacts:
    """Facts of the nodes that have all the features. ``node.*`` describe the first such kind; a
    test for mixed nodes names a feature."""
    usable = [kind for kind in machine.nodes if set(features) <= set(kind.features)]
    kind = usable[0] if usable else Nodes(names="", cores=1)
    names: dict[str, Any] = {
        "node.cores": kind.cores,
        "node.sockets": kind.sockets,
        "node.numa_domains": kind.numa_domains,
        "node.threads_per_core": kind.threads_per_core,
        "node.memory_gib": bytes_of(kind.memory) / 2**30,
        "node.gpus": kind.gpus,
        "machine.name": machine.machine,
        "machine.nodes": sum(len(unfold(each.names)) for each in machine.nodes),
    }
    available = sum(len(unfold(each.names)) for each in usable)
    return NodeFacts(names, available, tuple(each.names for each in usable))


@functools.lru_cache(maxsize=256)
def unfold(names: str) -> tuple[str, ...]:
    """The names of a node set such as ``n[001-128],login1``. Raises ValueError."""
    if "[" not in names and "," not in names:
        return (names,)  # most machines of one node: no need to load the library
    from ClusterShell.NodeSet import NodeSet, NodeSetException

    try:
        return tuple(NodeSet(names, resolver=None))
    except NodeSetException as error:
        raise ValueError(f"{names!r} is not a node set: {error}; write e.g. n[001-128]") from error
