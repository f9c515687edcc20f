"""Facts of a machine's nodes for expressions."""

import functools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from seatrial.files import read_regular
from seatrial.model import machine, node_layout
from seatrial.model import machine as model
from seatrial.model.documents import Location
from seatrial.model.node_layout import (
    NodeLayout,
    from_sockets,
    plain,
    written,
    written_domains,
)
from seatrial.model.node_set import unfold, unfold_or_empty


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


def nodes_besides(machine: "model.Machine", known_nodes: Collection[str]) -> list[str]:
    """Return the nodes of a machine that are not among those that were asked; none where those are
    no nodes of its own, but servers or login nodes."""
    names = node_names(machine)
    known = set(known_nodes)
    left = [name for name in names if name not in known]
    return left if len(left) < len(names) else []


def groups_of(machine: "model.Machine") -> dict[str, str]:
    """Return the group of each node that is in a group."""
    return {node: name for name, folded in machine.groups.items() for node in unfold(folded)}


COMPUTE = "compute"
"""The role of the nodes of a machine that have no other."""


def hosts_by_role(machine: "model.Machine") -> dict[str, list[str]]:
    """Return the nodes and hosts of each role: of `roles`, and of `topology.roles` those that run
    no jobs."""
    members = {role: list(unfold_or_empty(folded)) for role, folded in machine.roles.items()}
    of_jobs = {node for kind in machine.nodes for node in unfold_or_empty(kind.names)}
    for role, folded in machine.topology.roles.items() if machine.topology else ():
        known = members.setdefault(role, [])
        besides = {*known, *of_jobs}
        known += [node for node in unfold_or_empty(folded) if node not in besides]
    return {role: hosts for role, hosts in members.items() if hosts}


def roles_of(machine: "model.Machine") -> dict[str, str]:
    """Return the role of each node and host: the first that names it, else ``COMPUTE``."""
    roles: dict[str, str] = {}
    for role, hosts in hosts_by_role(machine).items():
        for node in hosts:
            roles.setdefault(node, role)
    return {**dict.fromkeys(node_names(machine), COMPUTE), **roles}


def unknown_features(
    machine: "model.Machine", slurm_features: Mapping[str, Collection[str]]
) -> dict[str, str]:
    """Return the features that the machine's file gives to nodes and Slurm does not, each with the
    first node that shows it. Nothing is said about nodes that ``slurm_features`` has not."""
    unknown: dict[str, str] = {}
    for kind in machine.nodes:
        for feature in kind.features:
            nodes = (
                name
                for name in unfold(kind.names)
                if feature not in slurm_features.get(name, (feature,))
            )
            if feature not in unknown and (node := next(nodes, "")):
                unknown[feature] = node
    return unknown


# ---- layouts -------------------------------------------------------------------------------------
#
# The layout of a kind of nodes, as the machine's file says it: ``nodes: [{layout: ...}]``.
#
# A file of hwloc's is read when the machine is loaded and becomes texts in the description, which
# trials keep. Where the file says no layout, one is made of the numbers of cores, sockets and NUMA
# domains; the numbers of its CPUs are then not known.


MAX_LAYOUT_BYTES = 16 << 20
_COUNTS: dict[str, Callable[[NodeLayout], int]] = {
    "cores": lambda layout: len(layout.cores),
    "sockets": lambda layout: len(layout.sockets),
    "numa_domains": lambda layout: len(layout.domains),
    "threads_per_core": lambda layout: layout.threads_per_core,
}


def layout_of(kind: "machine.NodeGroup") -> NodeLayout:
    """Return the layout of nodes of a kind that was loaded."""
    if isinstance(kind.layout, str):
        return _of_notation(kind.layout)
    if kind.layout is not None:
        return _of_texts(tuple(map(tuple, kind.layout.sockets)), tuple(kind.layout.domains))
    return plain(kind.cores, kind.sockets, kind.numa_domains, kind.threads_per_core)


_of_notation = functools.lru_cache(maxsize=64)(node_layout.parse_synthetic)
_of_texts = functools.lru_cache(maxsize=64)(from_sockets)


def as_texts(layout: NodeLayout) -> "machine.WrittenLayout":
    """Return a layout as a machine's file can have it."""
    return machine.WrittenLayout(sockets=written(layout), domains=written_domains(layout))


def check_layout(kind: "machine.NodeGroup", at: Location) -> None:
    """Add the faults of the layout of a kind of nodes, which is at ``at``."""
    layout = _read(kind.layout, at)
    if layout is None:
        return
    for key, number_in in _COUNTS.items():
        given, number = getattr(kind, key), number_in(layout)
        if given != number and at.given(key):
            text = f"is {given}, but `layout` has {number}; correct one of them"
            at.fault(text, key)


def with_layout(kind: "machine.NodeGroup", at: Location) -> "machine.NodeGroup":
    """Return a kind of nodes that was checked with the numbers that its layout has, and with the
    texts of a layout that is in a file."""
    layout = _read(kind.layout, at) if kind.layout is not None else None
    if layout is None:
        return kind
    if isinstance(kind.layout, machine.WrittenLayout) and kind.layout.file:
        kind = replace(kind, layout=as_texts(layout))
    return replace(kind, **{key: number_in(layout) for key, number_in in _COUNTS.items()})


def _read(given: "str | machine.WrittenLayout | None", at: Location) -> NodeLayout | None:
    """Return what ``layout`` of the nodes at ``at`` says; None, with a fault added, if it cannot be
    read."""
    if isinstance(given, str):
        return at.parsed(_of_notation, given, "layout")
    if given is None or bool(given.file) == bool(given.sockets):
        at.fault("give file or sockets, one of them", "layout")
        return None
    if given.sockets:
        sockets = tuple(map(tuple, given.sockets))
        layout = at.parsed(_of_texts, sockets, "layout", "sockets")
        if layout is None or not given.domains:
            return layout
        spanning = functools.partial(_of_texts, sockets)
        return at.parsed(spanning, tuple(given.domains), "layout", "domains")
    path = at.node.place_of(*at.key, "layout", "file").path.parent / given.file
    try:
        return node_layout.parse_hwloc_xml(
            read_regular(path, MAX_LAYOUT_BYTES).decode(errors="replace")
        )
    except OSError as error:
        at.fault(f"{path}: {error.strerror}", "layout", "file")
    except ValueError as error:
        at.fault(f"{path}: {error}", "layout", "file")
    return None
