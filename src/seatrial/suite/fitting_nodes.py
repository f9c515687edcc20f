"""The nodes that a case can run on, by what it asks for, and the partition that they are in.

Where the kinds of a machine's nodes name partitions, a case that names none goes to the partition
of the first kind that fits: kinds of the machine's own partition come first, then those without
GPUs for which nobody asks.
"""

from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from seatrial.machine.facts import node_names
from seatrial.machine.model import Machine, NodeGroup
from seatrial.machine.node_sets import unfold, unfold_or_empty
from seatrial.suite.model import Case, JobOptions
from seatrial.units import count, show_bytes


class Fit(NamedTuple):
    """How many nodes a case can have, the demand in words (`` with 4 GPUs``), and its options with
    its partition."""

    available: int
    such: str
    options: JobOptions


def fit(machine: Machine, kinds: Sequence[NodeGroup], options: JobOptions, gpus: int) -> Fit:
    """Return the fit of a case that needs so many GPUs of each node, among these kinds of nodes. A
    node whose memory is not described (0) has enough."""
    words = [count(gpus, "GPU")] if gpus else []
    words += [show_bytes(options.memory)] if options.memory else []
    such = f" with {' and '.join(words)}" if words else ""
    fitting = [kind for kind in kinds if _has(kind, gpus, options.memory)]
    if fitting and has_partitions(machine):
        wanted = options.partition
        if wanted is None:
            first = min(fitting, key=lambda kind: (kind.partition != "", kind.gpus > gpus == 0))
            wanted = first.partition or machine.slurm.partition
            if first.partition:
                options = replace(options, partition=wanted)
        fitting = [kind for kind in fitting if in_partition(machine, kind, wanted)]
        such += f" in the partition {wanted}" if wanted else ""
    return Fit(sum(len(unfold(kind.names)) for kind in fitting), such, options)


def lacking(machine: Machine, features: Sequence[str], case: Case) -> str:
    """Return the nodes, folded, that a case cannot run on."""
    return ",".join(kind.names for kind in unfit_groups(machine, features, case))


def unfit_groups(machine: Machine, features: Sequence[str], case: Case) -> list[NodeGroup]:
    """Return the groups of nodes that a case cannot run on; ``features`` are those that its test
    requires."""
    asked = case.job.partition
    partition = machine.slurm.partition if asked is None else asked
    return [
        kind
        for kind in machine.nodes
        if set(features) - set(kind.features)
        or not _has(kind, case.gpus, case.job.memory)
        or (has_partitions(machine) and not in_partition(machine, kind, partition))
    ]


def usable_nodes(machine: Machine, features: Sequence[str], case: Case) -> list[str]:
    """Return the nodes that a case can run on, of those that jobs get at all."""
    lost = {name for kind in unfit_groups(machine, features, case) for name in unfold(kind.names)}
    lost.update(unfold_or_empty(machine.slurm.exclude))
    kept = set(unfold_or_empty(machine.slurm.nodelist))
    return [name for name in node_names(machine) if name not in lost and (not kept or name in kept)]


def has_partitions(machine: Machine) -> bool:
    """Return True if kinds of nodes name their partitions."""
    return any(kind.partition for kind in machine.nodes)


def in_partition(machine: Machine, kind: NodeGroup, wanted: str) -> bool:
    """Return False if the nodes of a kind are in none of these partitions, as sbatch lists them. Of
    a partition that the machine's file does not name, such as one for debugging, every node may be
    a part."""
    names = wanted.split(",")
    known = {_partition(machine, each) for each in machine.nodes}
    return _partition(machine, kind) in names or not known.issuperset(names)


def _partition(machine: Machine, kind: NodeGroup) -> str:
    return kind.partition or machine.slurm.partition


def _has(kind: NodeGroup, gpus: int, memory: int) -> bool:
    return kind.gpus >= gpus and (not memory or (kind.memory.bytes or memory) >= memory)
