"""The machine in a phase: with the nodes that exist then."""

from collections.abc import Container

from msgspec.structs import replace

from seatrial.machine.facts import node_names
from seatrial.machine.model import Machine, NodeGroup, SlurmOverride
from seatrial.machine.node_sets import fold, unfold, unfold_or_empty
from seatrial.machine.schedulers import Slurm
from seatrial.plan.model import Component, Phase, Plan
from seatrial.suite.fitting_nodes import has_partitions
from seatrial.suite.job_options import overridden_settings

SLURMS_DEFAULT = "default"  # stands for the partition that sbatch takes where none is named
WHOLE = Phase(phase="")  # the phase of a plan without phases


def phases_of(plan: Plan, component: Component) -> list[Phase]:
    """Return the phases that a component is in, in the plan's order."""
    phases = plan.phases or [WHOLE]
    return [each for each in phases if not component.phases or each.phase in component.phases]


def tag_of(plan: Plan, component: Component, phase: str) -> str:
    """Return the run tag of a component's trial in a phase."""
    return "-".join(filter(None, (plan.plan, component.component, phase)))


def machine_of(machine: Machine, phase: Phase, nodes: str = "") -> Machine:
    """Return the machine as it is in a phase: with the nodes of that alone, and what the phase says
    to Slurm. Of a component with ``nodes`` of its own, it has these, and jobs get no others.
    Raises ValueError for a malformed node set."""
    if nodes:
        others = sorted(set(node_names(machine)) - set(unfold(nodes)))
        machine = machine_of(machine, phase)
        machine = _with_nodes(machine, nodes)
        excluded = fold([*unfold_or_empty(machine.slurm.exclude), *others])
        return replace(machine, slurm=replace(machine.slurm, exclude=excluded))
    if phase.slurm.partition is not None and has_partitions(machine):
        machine = replace(machine, nodes=_with_partitions(machine))
    if phase.slurm != SlurmOverride():
        machine = replace(machine, slurm=overridden_settings(machine.slurm, phase.slurm))
    return _with_nodes(machine, phase.nodes) if phase.nodes else machine


def _with_nodes(machine: Machine, names: str) -> Machine:
    """Return the machine with these of its nodes alone."""
    there = frozenset(unfold(names))
    kinds = [replace(kind, names=kept(kind.names, there)) for kind in machine.nodes]
    slurm: Slurm = machine.slurm
    if slurm.nodelist:
        slurm = replace(slurm, nodelist=kept(slurm.nodelist, there))
    nodes: list[NodeGroup] = [kind for kind in kinds if kind.names]
    return replace(machine, nodes=nodes, slurm=slurm)


def _with_partitions(machine: Machine) -> list[NodeGroup]:
    """Return the nodes, each kind with its partition: a phase moves jobs to another one, and no
    nodes."""
    own = machine.slurm.partition or SLURMS_DEFAULT
    return [replace(kind, partition=kind.partition or own) for kind in machine.nodes]


def kept(folded: str, names: Container[str]) -> str:
    """Return those nodes of a node set that are among the names, folded; "" if none is."""
    return fold([name for name in unfold(folded) if name in names])
