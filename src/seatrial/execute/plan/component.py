"""What a component asks: the tests that it runs and how each takes part, items of a checklist."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Literal, TypeVar

from msgspec import Struct

from seatrial.journal.events import Event, ItemTicked
from seatrial.model.documents import Location
from seatrial.model.machine import Machine
from seatrial.model.node_set import fold, unfold
from seatrial.model.nodes import node_names
from seatrial.model.plan import ChecklistItem, Component, ComponentTest, Phase, Plan, phases_of
from seatrial.units import show_figure, show_number


def pattern_of(component: Component, test: str) -> str | None:
    """Return the entry of the component's ``tests`` that matches a test: its own name, else the
    first pattern that matches; "" if the component names no tests; None if the test takes no
    part."""
    if component.kind == "checklist":
        return None
    if not component.tests:
        return None if only_evidence(component) else ""
    if test in component.tests:
        return test
    return next((each for each in component.tests if fnmatchcase(test, each)), None)


def part_of(component: Component, test: str) -> ComponentTest | None:
    """Return how a test takes part in a component; None if it does not."""
    pattern = pattern_of(component, test)
    return None if pattern is None else component.parts.get(pattern, ComponentTest())


def file_system_of(component: Component, test: str) -> str:
    """Return the file system on which a component has the runs of a test; "" if it names none."""
    part = part_of(component, test)
    return (part.file_system if part else "") or component.file_system


def chosen_tests(component: Component, names: Iterable[str]) -> list[str]:
    """Return the tests that a component runs, in their order."""
    return [name for name in names if pattern_of(component, name) is not None]


def only_evidence(component: Component) -> bool:
    """Return True if a component has evidence and names nothing to run."""
    return bool(component.evidence) and not (
        component.tests or component.suites or component.select
    )


def fits(patterns: Iterable[str], test: str) -> bool:
    """Return True if a name or pattern matches a test, or there are no patterns."""
    wanted = list(patterns)
    return not wanted or any(test == each or fnmatchcase(test, each) for each in wanted)


def written_shares(component: Component) -> dict[str, float]:
    """Return the share that each entry of the component's ``tests`` asks for, if it asks for
    one."""
    return {name: part.share.fraction for name, part in component.parts.items()}


def written_copies(component: Component) -> int:
    """Return the copies that each entry of the component's ``tests`` asks for, a pattern's for one
    test."""
    return sum(part.copies for part in component.parts.values())


# ---- alongside -----------------------------------------------------------------------------------
#
# Components that run beside each other in a phase, each on nodes of its own.
#
# for group in together(plan, prepared.parts): ... # those of a group run at once


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


class Place(Struct, frozen=True):
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
    group_of = _groups({each.component: each.alongside for each in places})
    groups: dict[tuple[str, int], list[T]] = {}
    for item, each in zip(items, places, strict=True):
        groups.setdefault((each.phase, group_of[each.component]), []).append(item)
    yield from groups.values()


def check_alongside(plan: Plan, machine: Machine | None, location: Location) -> None:
    """Add a fault for each component that cannot run beside those that it names."""
    known = {component.component: component for component in plan.components}
    for i, component in enumerate(plan.components):
        at = location.inside("components", i)
        for name in named_beside(component):
            if fault := _fault_of_beside(plan, component, name, known):
                at.fault(fault, "alongside")
    if machine is not None:
        _check_nodes(plan, machine, known, location)


def _fault_of_beside(
    plan: Plan, component: Component, name: str, known: Mapping[str, Component]
) -> str:
    """Return why a component cannot run beside the one of that name; "" if it can."""
    if name == component.component:
        return "a component does not run beside itself"
    if name not in known:
        listed = ", ".join(each for each in known if each != component.component)
        return f"no component {name!r}; there are {listed or 'no others'}"
    if only_evidence(known[name]):
        return f"{name} runs nothing; remove it"
    return "" if _shared(plan, component, known[name]) else f"{name} is in none of its phases"


def _shared(plan: Plan, one: Component, other: Component) -> list[Phase]:
    names = {phase.phase for phase in phases_of(plan, other)}
    return [phase for phase in phases_of(plan, one) if phase.phase in names]


def _check_nodes(
    plan: Plan, machine: Machine, known: Mapping[str, Component], location: Location
) -> None:
    """Check that components of a group have nodes of their own in each phase that they share."""
    groups = _groups({name: named_beside(each) for name, each in known.items()})
    for i, (name, component) in enumerate(known.items()):
        at = location.inside("components", i)
        beside = [other for other in known if other != name and groups[other] == groups[name]]
        if not component.nodes:
            if beside:
                at.fault(f"runs beside {', '.join(beside)}, and needs nodes of its own", "nodes")
            continue
        _check_there(plan, machine, component, at)
        for other in filter(beside.__contains__, list(known)[:i]):
            if both := _in_common(plan, machine, component, known[other]):
                text = f"{fold(sorted(both))} is of {other}, too, which runs beside it; give each "
                at.fault(f"{text}nodes of its own", "nodes")


def _check_there(plan: Plan, machine: Machine, component: Component, at: Location) -> None:
    """Check that some nodes of a component are there in each of its phases."""
    for phase in phases_of(plan, component):
        nodes = _nodes_of(machine, phase, component)
        if nodes is not None and not nodes:
            where = f"phase {phase.phase}" if phase.phase else machine.machine
            at.fault(f"{component.nodes}: none of these is a node of {where}", "nodes")


def _in_common(plan: Plan, machine: Machine, one: Component, other: Component) -> set[str]:
    """Return the nodes that two components have both in the first phase in which they do."""
    if not other.nodes:
        return set()
    for phase in _shared(plan, one, other):
        own, others = (_nodes_of(machine, phase, each) for each in (one, other))
        if both := (own or set()) & (others or set()):
            return both
    return set()


def _nodes_of(machine: Machine, phase: Phase, component: Component) -> set[str] | None:
    """Return the nodes of a component in a phase; None for a malformed node set, which is reported
    where it is read."""
    try:
        nodes = set(unfold(phase.nodes)) if phase.nodes else set(node_names(machine))
        return nodes & set(unfold(component.nodes)) if component.nodes else nodes
    except ValueError:
        return None


# ---- checklist -----------------------------------------------------------------------------------
#
# The items of a checklist, and the results that people gave them.
#
#     ticks = Ticks()
#     for event in journal: ticks.apply(event)
#     found = items_of(component.items, ticks)
#     found[0].state                     # "awaited", "pass", "fail" or "waived"
#
# The first result of an item stands. A later one counts only if it says why: it then replaces the
# result before, which is kept.


ItemState = Literal["awaited", "pass", "fail", "waived"]
RESULTS: tuple[ItemState, ...] = ("pass", "fail", "waived")


class ItemResult(Struct, frozen=True, kw_only=True, rename={"reason": "why"}):
    """A result that a person gave an item. ``reason``: why it replaces an earlier one.
    ``now`` is the state of its document, "" if that was not looked at."""

    result: ItemState
    time: int
    figure: float | None
    shown: str
    comment: str
    document: str
    sha256: str
    by: list[str]
    user: str
    reason: str
    now: str = ""


class ItemStatus(Struct, frozen=True, kw_only=True):
    """An item, its bounds in words, and its result. ``earlier`` are results that a later one
    replaced; ``uncounted`` came after a result and did not say why."""

    id: str
    text: str
    clause: str
    about: str
    bound: str
    state: ItemState
    tick: ItemResult | None
    earlier: list[ItemResult]
    uncounted: list[ItemResult]


class Ticks:
    """The fold of a trial's events: the results of each item, in their order."""

    def __init__(self) -> None:
        self.of: dict[str, list[ItemTicked]] = {}

    def apply(self, event: Event) -> None:
        if isinstance(event, ItemTicked):
            self.of.setdefault(event.item, []).append(event)


def id_of(item: ChecklistItem, place: int) -> str:
    """Return the id of the item at a place of its list, from 0."""
    return item.id or str(place + 1)


def items_of(items: Sequence[ChecklistItem], ticks: Ticks) -> list[ItemStatus]:
    """Return the state of each item, in the order of the plan."""
    return [_status(item, id_of(item, i), ticks) for i, item in enumerate(items)]


def _status(item: ChecklistItem, name: str, ticks: Ticks) -> ItemStatus:
    counted: list[ItemResult] = []
    uncounted: list[ItemResult] = []
    for event in ticks.of.get(name, ()):
        tick = _tick(item, event)
        (counted if not counted or tick.reason else uncounted).append(tick)
    last = counted[-1] if counted else None
    return ItemStatus(
        id=name,
        text=item.text,
        clause=item.clause,
        about=item.about,
        bound=bound_words(item),
        state=last.result if last else "awaited",
        tick=last,
        earlier=counted[:-1],
        uncounted=uncounted,
    )


def _tick(item: ChecklistItem, event: ItemTicked) -> ItemResult:
    """Return a result as the item's bounds have it, whatever the event says of its number."""
    result: ItemState = next((each for each in RESULTS if each == event.result), "fail")
    if item.has_number and result == "pass":
        result = "fail" if event.figure is None else result_of(item, event.figure)
    shown = "" if event.figure is None else show_figure(event.figure, event.unit)
    return ItemResult(
        result=result,
        time=event.time,
        figure=event.figure,
        shown=shown,
        comment=event.comment,
        document=event.document,
        sha256=event.sha256,
        by=event.names,
        user=event.by,
        reason=event.why,
    )


def bound_words(item: ChecklistItem) -> str:
    """Return the bounds of an item in words; "" if it has none."""
    unit = f" {item.unit}" if item.unit else ""
    words = [
        f"{word} {show_number(bound)}{unit}"
        for word, bound in (("at least", item.at_least), ("at most", item.at_most))
        if bound is not None
    ]
    return " and ".join(words)


def result_of(item: ChecklistItem, figure: float) -> ItemState:
    """Return whether a number is inside the bounds of an item."""
    low = item.at_least is None or figure >= item.at_least
    high = item.at_most is None or figure <= item.at_most
    return "pass" if low and high else "fail"
