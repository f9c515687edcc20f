"""Detect the cluster of this login node as a machine, by asking Slurm.

The nodes are those of the default partition, if there is one, because jobs without a partition go
there and could not ask for others. The other partitions are named in ``about``.
"""

import re
from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from seatrial.decoding import encode, plain
from seatrial.errors import UsageError
from seatrial.lazy import regex
from seatrial.machine.facts import node_names
from seatrial.machine.model import Launcher, Machine, Memory, NetworkModel, NodeGroup
from seatrial.machine.places import groups_by_xname, groups_of_topology, of_machine
from seatrial.machine.scheduler_command import ask_scheduler, by_kind
from seatrial.machine.schedulers import Slurm
from seatrial.machine.toolchains import detect_toolchains
from seatrial.machine.topologies import levels_of_switches, made

_FIELD = regex(r"(?:^|\s)([A-Za-z]+)=(\S*)")


def detect_cluster(name: str | None) -> tuple[Machine, str]:
    """Describe the cluster that sinfo shows, under that name or its own; return also comments for
    the file: the nodes of other partitions, as lines to be added to it. Slurm does not know NUMA
    domains: one for each socket is assumed. Raises UsageError if Slurm does not answer."""
    partitions = ask_slurm("sinfo", "--noheader", "--format=%P").split()
    default = next((p[:-1] for p in partitions if p.endswith("*")), "")
    seen = nodes_seen()
    kinds = _groups(replace(node, partitions=()) for node in seen if default in node.partitions)
    if not default:
        kinds = _groups(replace(node, partitions=()) for node in seen)
    if not kinds:
        raise UsageError("scontrol show node: Slurm has no node here; describe the machine by hand")
    others = sorted({p.rstrip("*") for p in partitions} - {default})
    about = "As Slurm describes it" + (f"; other partitions: {', '.join(others)}" if others else "")
    toolchains = detect_toolchains()
    # Whether srun can start an MPI's tasks depends on how both were built. The MPI's own launcher
    # works inside an allocation in any case. Users may choose launcher: {kind: srun}.
    own = any(toolchain.launcher for toolchain in toolchains.values())
    machine = Machine(
        machine=name or cluster_name() or "cluster",
        about=about,
        nodes=kinds,
        scheduler="slurm",
        slurm=Slurm(partition=default),
        launcher=Launcher(kind="none" if own else "srun"),
        toolchains=toolchains,
    )
    machine = _with_network(machine)
    return machine, _hint([node for node in seen if default and default not in node.partitions])


def _with_network(machine: Machine) -> Machine:
    """Return a machine with the groups that Slurm's topology tells, else the chassis of xnames;
    none if neither tells more than one. It has the levels of switches where there are several."""
    try:
        text = shown_topology()
        groups = of_machine(machine, groups_of_topology(text))
    except (UsageError, ValueError):  # Slurm has no topology
        text, groups = "", {}
    if len(groups) < 2:
        groups = groups_by_xname(node_names(machine), "chassis")
    machine = replace(machine, groups=groups if len(groups) > 1 else {})
    return replace(machine, topology=_tree(machine, text))


def _tree(machine: Machine, text: str) -> NetworkModel | None:
    """Return the tree of Slurm's topology; None without several levels that have all nodes."""
    try:
        levels = levels_of_switches(text, (), node_names(machine))
        tree = NetworkModel(kind="tree", levels=[{**level} for level in levels])
        made(tree, node_names(machine))
    except ValueError:
        return None
    return tree if len(levels) > 1 else None


def shown_topology() -> str:
    """Return what ``scontrol show topology`` prints. Raises UsageError if Slurm has none."""
    return ask_slurm("scontrol", "show", "topology")


def _hint(others: "Sequence[NodeSeen]") -> str:
    """Return comments about the nodes of other partitions; "" if there are none."""
    lines = [encode(plain(kind)).decode() for kind in _groups(others)]
    if not lines:
        return ""
    about = (
        "# Nodes of other partitions are not described above. To use them, add such\n"
        "# lines to `nodes`; a test finds its partition by the GPUs and features that\n"
        "# it asks for.\n"
    )
    return about + "".join(f"# - {line}\n" for line in lines)


class NodeSeen(Struct, frozen=True):
    """A node as Slurm shows it: its name, its kind (without names) and its partitions."""

    name: str
    kind: NodeGroup
    partitions: tuple[str, ...]


def nodes_seen() -> list[NodeSeen]:
    """Return the nodes that Slurm shows. Raises UsageError if it does not answer."""
    lines = ask_slurm("scontrol", "show", "node", "--oneliner").splitlines()
    return [
        NodeSeen(fields["NodeName"], _kind(fields), tuple(_words(fields, "Partitions")))
        for fields in map(fields_of, lines)
        if "NodeName" in fields
    ]


def _groups(nodes: Iterable[NodeSeen]) -> list[NodeGroup]:
    """Return the nodes by kind, each with the first of its partitions."""
    return by_kind(
        (node.name, replace(node.kind, partition=node.partitions[0] if node.partitions else ""))
        for node in nodes
    )


def cluster_name() -> str:
    """Return the name of the cluster whose Slurm answers on this host; "" where none does."""
    try:
        settings = ask_slurm("scontrol", "show", "config")
    except UsageError:
        return ""
    found = re.search(r"^ClusterName\s*=\s*(\S+)", settings, re.MULTILINE)
    return found[1] if found else ""


def ask_slurm(*command: str) -> str:
    """Return the output of a Slurm command. Raises UsageError if it fails."""
    return ask_scheduler("Slurm", "slurmctld", *command)


def fields_of(line: str) -> dict[str, str]:
    """Return KEY=VALUE of a node's line. The first of equal keys counts: a Reason at the end may
    hold more."""
    found = reversed(_FIELD.findall(line))
    return {key: "" if value == "(null)" else value for key, value in found}


def _words(fields: dict[str, str], key: str) -> list[str]:
    return [word for word in fields.get(key, "").split(",") if word]


def _number(fields: dict[str, str], key: str, least: int = 1) -> int:
    text = fields.get(key, "")
    return max(least, int(text)) if text.isascii() and text.isdigit() else least


def _kind(fields: dict[str, str]) -> NodeGroup:
    """Return the node without its name."""
    sockets = _number(fields, "Sockets")
    return NodeGroup(
        names="",
        cores=_cores(fields),
        sockets=sockets,
        numa_domains=sockets,
        threads_per_core=_number(fields, "ThreadsPerCore"),
        memory=Memory(f"{_number(fields, 'RealMemory', 0)}MiB"),
        gpus=_gpus(fields.get("Gres", "")),
        features=_words(fields, "AvailableFeatures"),
    )


def _cores(fields: dict[str, str]) -> int:
    """Return the cores that jobs can have, without those reserved for the system
    (CoreSpecCount)."""
    cores = _number(fields, "Sockets") * _number(fields, "CoresPerSocket")
    total = _number(fields, "CPUTot", cores)
    usable = _number(fields, "CPUEfctv") if "CPUEfctv" in fields else total
    return max(1, cores * usable // total)


def _gpus(gres: str) -> int:
    """Return the number of accelerators: 6 for ``gpu:a100:4(S:0-1),gpu:h100:2,nvme:1``."""
    text = re.sub(r"\([^)]*\)", "", gres)
    found = [word.split(":") for word in text.split(",") if word.split(":")[0] == "gpu"]
    return sum(int(parts[-1]) if parts[-1].isdigit() else 1 for parts in found)
