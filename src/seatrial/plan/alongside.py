"""Components that run beside each other in a phase, each on nodes of its own.

for group in together(plan, prepared.parts): ...      # those of a group run at once
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

from seatrial.documents import Spot
from seatrial.machine.facts import node_names
from seatrial.machine.model import Machine
from seatrial.machine.node_sets import fold, unfold
from seatrial.plan.component_tests import only_evidence
from seatrial.plan.model import Component, Phase, Plan
from seatrial.plan.phases import phases_of

T = TypeVar("T")


def named_beside(component: Component) -> list[str]:
    """Return the components that one is to run beside, as it names them."""
    written = component.alongside
    return [written] if isinstance(written, str) and written else list(written or [])


def _groups(beside: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """Return the number of the group of each component, by those that it names. Components are in
    one group if one names the other, or if others lead from one to the other."""
    group = {name: i for i, name in enumerate(beside)}
    for name, others in beside.items():
        for other in others:
            if other in group:
                old, new = sorted((group[name], group[other]), reverse=True)
                group = {each: new if own == old else own for each, own in group.items()}
    return group


class Place(NamedTuple):
    """The phase and the name of a component, and the components that it runs beside."""

    phase: str
    component: str
    alongside: Sequence[str]


def place_of(component: Component, phase: str) -> Place:
    """Return the place of a component in a phase."""
    return Place(phase, component.component, named_beside(component))


def together(items: Sequence[T], place: Callable[[T], Place]) -> Iterator[list[T]]:
    """Yield the items of components that run at once, in the order of the first of each group."""
    places = [place(item) for item in items]
    of = _groups({each.component: each.alongside for each in places})
    found: dict[tuple[str, int], list[T]] = {}
    for item, each in zip(items, places, strict=True):
        found.setdefault((each.phase, of[each.component]), []).append(item)
    yield from found.values()


def check_alongside(plan: Plan, machine: Machine | None, spot: Spot) -> None:
    """Add a fault for each component that cannot run beside those that it names."""
    known = {component.component: component for component in plan.components}
    for i, component in enumerate(plan.components):
        at = spot.inside("components", i)
        for name in named_beside(component):
            if name == component.component:
                at.fault("a component does not run beside itself", "alongside")
            elif name not in known:
                listed = ", ".join(each for each in known if each != component.component)
                at.fault(f"no component {name!r}; there are {listed or 'no others'}", "alongside")
            elif only_evidence(known[name]):
                at.fault(f"{name} runs nothing; remove it", "alongside")
            elif not _shared(plan, component, known[name]):
                at.fault(f"{name} is in none of its phases", "alongside")
    if machine is not None:
        _check_nodes(plan, machine, known, spot)


def _shared(plan: Plan, one: Component, other: Component) -> list[Phase]:
    names = {phase.phase for phase in phases_of(plan, other)}
    return [phase for phase in phases_of(plan, one) if phase.phase in names]


def _check_nodes(plan: Plan, machine: Machine, known: Mapping[str, Component], spot: Spot) -> None:
    """Check that components of a group have nodes of their own in each phase that they share."""
    of = _groups({name: named_beside(each) for name, each in known.items()})
    names = list(known)
    for i, name in enumerate(names):
        at, component = spot.inside("components", i), known[name]
        beside = [other for other in names if other != name and of[other] == of[name]]
        if beside and not component.nodes:
            at.fault(f"runs beside {', '.join(beside)}, and needs nodes of its own", "nodes")
        for phase in phases_of(plan, component):
            nodes = _nodes_of(machine, phase, component)
            if component.nodes and nodes is not None and not nodes:
                where = f"phase {phase.phase}" if phase.phase else machine.machine
                at.fault(f"{component.nodes}: none of these is a node of {where}", "nodes")
        for other in beside:
            if names.index(other) > i or not known[other].nodes or not component.nodes:
                continue
            for phase in _shared(plan, component, known[other]):
                one, two = (_nodes_of(machine, phase, each) for each in (component, known[other]))
                if both := (one or set()) & (two or set()):
                    at.fault(f"{fold(sorted(both))} is of {other}, too, which runs beside it; "
                             "give each nodes of its own", "nodes")  # fmt: skip
                    break


def _nodes_of(machine: Machine, phase: Phase, component: Component) -> set[str] | None:
    """Return the nodes of a component in a phase; None for a malformed node set, which is reported
    where it is read."""
    try:
        there = set(unfold(phase.nodes)) if phase.nodes else set(node_names(machine))
        return there & set(unfold(component.nodes)) if component.nodes else there
    except ValueError:
        return None
