"""Prepare the trials of a plan.

prepared = prepare_plan(Path("plan.yaml"))      # reads and checks everything; runs nothing
for part in prepared.parts:
    part.tag, part.machine, part.cases, part.policy
"""

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import NamedTuple

from seatrial.decide.in_flight import planned_for
from seatrial.errors import InvalidFiles, UsageError
from seatrial.execute.plan.check import (
    Loaded,
    check_plan,
    component_of,
    load_plan,
    suite_paths,
)
from seatrial.execute.plan.check_mix import check_mix, check_sizes
from seatrial.execute.plan.component import chosen_tests, file_system_of, place_of, together
from seatrial.execute.plan.policy import policy_of, shared_node, shares_cores
from seatrial.execute.prepare import told_waits
from seatrial.judge.check_tests import check_bounds, check_promises
from seatrial.judge.references import Reference, load_for, units_of
from seatrial.model.build import BuildKeys
from seatrial.model.documents import Faults, Location, unread
from seatrial.model.expand import Expansion, expand
from seatrial.model.identifiers import show
from seatrial.model.machine import Machine, SlurmOverride
from seatrial.model.machine_file import Site
from seatrial.model.plan import WHOLE, Component, Phase, Plan, machine_of, phases_of, tag_of
from seatrial.model.policy import Policy
from seatrial.model.requirements import has_partitions, told_orders
from seatrial.model.test import Case, CaseSelection, Test
from seatrial.units import listed


class PreparedComponent(NamedTuple):
    """A component in one of its phases: the content of one trial."""

    tag: str
    component: Component
    phase: str
    #: With the nodes of the phase alone.
    machine: Machine
    #: The folders of the tests.
    suites: list[str]
    #: Those of the cases.
    tests: dict[str, Test]
    cases: list[Case]
    #: What cannot run there, and the reason.
    skipped: list[tuple[str, str]]
    policy: Policy
    #: What has faults and is not selected, and its first fault.
    broken: Sequence[tuple[str, str]] = ()


class PreparedPlan(NamedTuple):
    """A checked plan, and its trials in the order in which they run: phase by phase, and in each in
    the order of the components. A component that rests on evidence alone has none. ``checklists``
    are those that people tick, which run nothing. ``expected`` holds the machine's references,
    ``broken`` what has faults and is in no component, and the first fault of each."""

    path: Path
    plan: Plan
    site: Site
    parts: list[PreparedComponent]
    expected: list[Reference]
    checklists: Sequence[PreparedComponent] = ()
    broken: Sequence[tuple[str, str]] = ()

    @property
    def all_parts(self) -> list[PreparedComponent]:
        """The checklists, and what runs."""
        return [*self.checklists, *self.parts]

    def groups(self) -> Iterator[list[PreparedComponent]]:
        """Yield the parts that run at the same time, in the order of the parts."""
        yield from together(self.parts, lambda part: place_of(part.component, part.phase))


def prepare_plan(
    path: Path,
    components: Sequence[str] = (),
    phases: Sequence[str] = (),
    with_builds: bool = True,
    with_documents: bool = True,
) -> PreparedPlan:
    """Load a plan and all that it names, check everything, and prepare the chosen components and
    phases (none: all). Without ``with_builds`` no sources are read, and the cases carry no build;
    without ``with_documents`` those of evidence are not looked at. Raises InvalidFiles with every
    fault, and UsageError."""
    faults = Faults()
    loaded = load_plan(path, faults)
    expected: list[Reference] = []
    broken: list[tuple[str, str]] = []
    if loaded is not None:
        check_plan(loaded, faults, with_documents)
        drafts = _drafts(loaded, faults, BuildKeys() if with_builds else None)
        expected, broken = _expected(loaded, drafts, faults)
    faults.raise_any()
    assert loaded is not None
    assert loaded.site is not None
    _require_known(loaded.plan, components, phases)
    chosen = [draft for draft in drafts if _is_chosen(draft, components, phases)]
    checklists, parts = _with_policies(loaded.plan, chosen)
    broken += _broken(loaded, drafts)
    return PreparedPlan(
        path.absolute(), loaded.plan, loaded.site, parts, expected, checklists, broken
    )


def _with_policies(
    plan: Plan, drafts: Sequence[PreparedComponent]
) -> tuple[list[PreparedComponent], list[PreparedComponent]]:
    """Return the checklists, and what has cases to run, in the order of the phases."""
    parts: list[PreparedComponent] = []
    checklists: list[PreparedComponent] = []
    order = [phase.phase for phase in plan.phases or [WHOLE]]
    for draft in sorted(drafts, key=lambda draft: order.index(draft.phase)):
        component, is_checklist = draft.component, draft.component.kind == "checklist"
        if draft.cases or is_checklist:
            policy = policy_of(plan, component, draft.machine, draft.tests, draft.cases)
            (checklists if is_checklist else parts).append(draft._replace(policy=policy))
    return checklists, parts


def _broken(loaded: Loaded, drafts: Sequence[PreparedComponent]) -> list[tuple[str, str]]:
    """Return what has faults and is in no component, with its first fault."""
    of_suites = [told for suite in loaded.suites for told in suite.first_faults()]
    return [*dict([*of_suites, *(told for draft in drafts for told in draft.broken)]).items()]


def _is_chosen(draft: PreparedComponent, components: Sequence[str], phases: Sequence[str]) -> bool:
    named = not components or draft.component.component in components
    return named and (not phases or draft.phase in phases)


def _drafts(loaded: Loaded, faults: Faults, keys: BuildKeys | None) -> list[PreparedComponent]:
    """Return every component in each of its phases, checked, as far as the plan's own faults
    allow. They have no policy yet."""
    drafts: list[PreparedComponent] = []
    for i, component in enumerate(loaded.plan.components):
        at = loaded.location(faults).inside("components", i)
        stages = _stages(loaded, component, at)
        if not stages:  # nothing can be expanded, so the faults of all its tests are told
            for name in chosen_tests(component, loaded.suites[i].faults):
                faults.add_all(loaded.suites[i].faults[name])
        in_phases = [
            draft
            for phase, machine in stages
            if (draft := _draft(loaded, i, phase, machine, faults, keys)) is not None
        ]
        check_sizes(component, [Expansion(each.cases, each.skipped) for each in in_phases], at)
        drafts += in_phases
    return drafts


def _stages(loaded: Loaded, component: Component, at: Location) -> list[tuple[Phase, Machine]]:
    """Return the phases of a component, each with its machine. If a fault leaves no phase, the
    whole machine is taken: what does not fit on it fits in no phase."""
    tests_unread = unread(at, "tests") and not component.tests
    if loaded.site is None or tests_unread or unread(at, "select"):
        return []
    machine = loaded.site.machine
    try:
        stages = [
            (each, machine_of(machine, each, component.nodes))
            for each in phases_of(loaded.plan, component)
        ]
    except ValueError:  # reported where the nodes of phases are checked
        stages = []
    return stages if stages and not unread(at, "phases") else [(WHOLE, machine)]


def _draft(
    loaded: Loaded,
    i: int,
    phase: Phase,
    machine: Machine,
    faults: Faults,
    keys: BuildKeys | None,
) -> PreparedComponent | None:
    """Return a component in a phase, checked, without its policy; None if a fault leaves its cases
    unknown."""
    component, suite = loaded.plan.components[i], loaded.suites[i]
    at = loaded.location(faults).inside("components", i)
    suite = suite.only(chosen_tests(component, suite.names))
    tests = suite.tests
    selection = _selection(component, tests, machine, is_sound=not faults.found)
    try:
        cases, skipped, broken = expand(
            suite,
            machine,
            selection,
            faults,
            keys,
            component.slurm if component.slurm != SlurmOverride() else None,
            phase.slurm.partition if has_partitions(machine) else None,
        )
    except UsageError as error:
        if not _is_reported(faults, i):
            at.fault(str(error))
        return None
    check_bounds(suite, cases, machine, faults)
    check_promises(suite, cases, machine, faults, partial(_folder_of, component, machine))
    if cases or i not in loaded.partly:
        expansion = Expansion(cases, skipped)
        check_mix(component, machine, phase.phase, suite.sound.tests, expansion, at)
    named = component.suites or loaded.plan.suites
    return PreparedComponent(
        tag=tag_of(loaded.plan, component, phase.phase),
        component=component,
        phase=phase.phase,
        machine=machine,
        suites=[str(each.absolute()) for each in suite_paths(loaded.path, named)],
        tests={case.test: tests[case.test] for case in cases},
        cases=cases,
        skipped=skipped,
        policy=Policy(),
        broken=broken,
    )


def _folder_of(component: Component, machine: Machine, test: str) -> str:
    """Return the folder of the file system that a component names for a test; "" without one."""
    system = machine.file_systems.get(file_system_of(component, test))
    return system.path if system else ""


def _selection(
    component: Component, tests: Mapping[str, Test], machine: Machine, is_sound: bool
) -> CaseSelection:
    """Return the selection of a component, as the filters of ``seatrial run``, without settings and
    toolchains that do not exist here. Those have been reported, unless the plan ``is_sound`` so
    far; the others can still be checked."""
    known = {name for test in tests.values() for name in test.parameter_names}
    settings = {
        name: ",".join(map(show, value if isinstance(value, list) else [value]))
        for name, value in component.settings.items()
        if name in known or is_sound
    }
    return CaseSelection(
        keyword=component.select,
        toolchains=_toolchains(component, machine) or ["default"],
        settings=settings,
        repeat=component.repeat if component.kind == "once" else 0,
    )


def _toolchains(component: Component, machine: Machine) -> list[str]:
    return [
        pattern
        for pattern in component.toolchains
        if pattern == "default" or any(fnmatchcase(name, pattern) for name in machine.toolchains)
    ]


def _is_reported(faults: Faults, component: int) -> bool:
    """Return True if a reported fault makes it impossible to expand a component."""
    begin = tuple(f"components[{component}].{key}" for key in ("settings", "select"))
    return any(key.startswith(begin) for _, key in faults.found.values())


def _expected(
    loaded: Loaded, drafts: Sequence[PreparedComponent], faults: Faults
) -> tuple[list[Reference], list[tuple[str, str]]]:
    """Return the machine's references, by which the trials judge, and those of tests in no
    component that have faults."""
    if loaded.site is None:
        return [], []
    tests = {case.test for draft in drafts for case in draft.cases}
    try:
        units = units_of(test for draft in drafts for test in draft.tests.values())
        references, broken = load_for(loaded.site.references, tests, units)
        return references.entries, broken
    except InvalidFiles as error:
        raise InvalidFiles([*faults.texts, *error.faults]) from error


def _require_known(plan: Plan, components: Sequence[str], phases: Sequence[str]) -> None:
    for name in components:
        component_of(plan, name)
    for name in phases:
        if name not in [phase.phase for phase in plan.phases]:
            listed = ", ".join(phase.phase for phase in plan.phases) or "none"
            raise UsageError(f"{plan.plan} has no phase {name!r}; it has {listed}")


# ---- planned mix ---------------------------------------------------------------------------------
#
# What a sustained component of a plan gives to each test, in words for people.
#
#     sentence(part)       # climate 50 %, waves 33.3 %, filler 16.7 % (what is left)
#     warnings(part)       # what the mix may come to that its author may not expect


def sentence(part: PreparedComponent) -> str:
    """Return the planned share of each test, and what is left; "" if there is no mix."""
    if part.policy.kind != "sustained":
        return ""
    room, _ = shared_node(part.machine)
    shares, left, fills = planned_for(part.cases, part.policy, room)
    words = []
    for number, (entry, share) in enumerate(zip(part.policy.entries, shares, strict=True)):
        how = ""
        if number in fills:
            how = " (what is left)" if share else " (gaps only: all is claimed)"
        elif entry.copies:
            how = f" ({entry.copies} {'copy' if entry.copies == 1 else 'copies'})"
        words.append(f"{entry.name} {_percent(share)}{how}")
    if left:
        words.append(f"{_percent(left)} is left to no test and stays idle")
    return ", ".join(words)


def warnings(part: PreparedComponent) -> Iterator[str]:
    """Yield rank orders that the MPI may refuse, scripts that drop exit codes, and the tests of a
    mix whose runs may share nodes with others, where a scheduler gives parts of nodes: utilisation
    and times then mean less than they seem to."""
    doubts = told_orders(part.machine, part.tests, part.cases), told_waits(part.tests, part.cases)
    yield from filter(None, doubts)
    if part.policy.kind != "sustained" or shares_cores(part.machine):
        return
    cores = max(kind.cores for kind in part.machine.nodes)
    shared = {
        case.test: case.tasks_per_node * case.threads
        for case in part.cases
        if not case.exclusive and case.tasks_per_node * case.threads < cores
    }
    if shared:
        named = listed([f"{test} ({n} of {cores} cores)" for test, n in shared.items()], 5)
        yield (
            f"{named}: runs may share nodes, as they neither fill them nor are exclusive; "
            "`exclusive: true` in a test's `run` keeps a node for each"
        )


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"
