"""Facts of a machine's nodes for expressions."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from seatrial.lazy import LazyModule
from seatrial.machine.layouts import layout_of
from seatrial.machine.node_sets import unfold

if TYPE_CHECKING:
    from seatrial.machine import model
else:  # few make one
    model = LazyModule("seatrial.machine.model")


class NodeFacts(NamedTuple):
    """The nodes that a test can use: the facts of their first kind, their number, their kinds."""

    names: dict[str, Any]
    available: int
    kinds: "tuple[model.NodeGroup, ...]"

    def node_names(self) -> list[str]:
        return [name for kind in self.kinds for name in unfold(kind.names)]


def groups_with(machine: "model.Machine", features: Iterable[str]) -> "list[model.NodeGroup]":
    """Return the groups of nodes that have all of these features."""
    needed = set(features)
    return [kind for kind in machine.nodes if needed <= {*kind.features}]


def facts_of(machine: "model.Machine", usable: "Sequence[model.NodeGroup]") -> NodeFacts:
    """Return the facts of the nodes of these kinds. ``node.*`` describe the first kind; a test for
    mixed nodes names a feature."""
    kind = usable[0] if usable else model.NodeGroup(names="", cores=1)
    layout = layout_of(kind)
    keys = ("cores", "sockets", "numa_domains", "threads_per_core", "gpus")
    names: dict[str, Any] = {
        **{f"node.{key}": getattr(kind, key) for key in keys},
        "node.cores_per_numa": layout.cores_per_numa,
        "node.cores_per_socket": layout.cores_per_socket,
        "node.memory_gib": kind.memory.bytes / 2**30,
        "machine.name": machine.machine,
        "machine.nodes": sum(len(unfold(each.names)) for each in machine.nodes),
    }
    available = sum(len(unfold(each.names)) for each in usable)
    return NodeFacts(names, available, tuple(usable))


def node_names(machine: "model.Machine") -> list[str]:
    """Return the names of all nodes, in the order of the machine file."""
    return list(dict.fromkeys(name for kind in machine.nodes for name in unfold(kind.names)))


def nodes_besides(machine: "model.Machine", asked: Collection[str]) -> list[str]:
    """Return the nodes of a machine that are not among those that were asked; none where those are
    no nodes of its own, but servers or login nodes."""
    names = node_names(machine)
    known = set(asked)
    left = [name for name in names if name not in known]
    return left if len(left) < len(names) else []


def groups_of(machine: "model.Machine") -> dict[str, str]:
    """Return the group of each node that is in a group."""
    return {node: name for name, folded in machine.groups.items() for node in unfold(folded)}


COMPUTE = "compute"
"""The role of the nodes of a machine that have no other."""


def roles_of(machine: "model.Machine") -> dict[str, str]:
    """Return the role of each node and host: the first that names it, else ``COMPUTE``."""
    found: dict[str, str] = {}
    for role, folded in machine.roles.items():
        for node in unfold(folded):
            found.setdefault(node, role)
    return {**dict.fromkeys(node_names(machine), COMPUTE), **found}


def unknown_features(
    machine: "model.Machine", there: Mapping[str, Collection[str]]
) -> dict[str, str]:
    """Return the features that the machine's file gives to nodes and Slurm does not, each with the
    first node that shows it. ``there`` are the features that Slurm has, by node; nothing is said
    about nodes that it does not have."""
    unknown: dict[str, str] = {}
    for kind in machine.nodes:
        for feature in kind.features:
            nodes = (
                name for name in unfold(kind.names) if feature not in there.get(name, (feature,))
            )
            if feature not in unknown and (node := next(nodes, "")):
                unknown[feature] = node
    return unknown
