"""Load a plan, and check it as far as its cases need not be known.

    faults = Faults()
    loaded = load_plan(Path("plan.yaml"), faults)     # None if the file is no plan at all
    check_plan(loaded, faults)                        # names, quantities, nodes, file systems
    faults.raise_any()

Paths of suites and of a machine file are relative to the plan's folder.
"""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from seatrial.errors import UsageError, suggest
from seatrial.execute.detect import find_machine
from seatrial.execute.plan.check_criteria import check_conditions, check_evidence, check_ids
from seatrial.execute.plan.component import (
    check_alongside,
    chosen_tests,
    fits,
    only_evidence,
    pattern_of,
    written_copies,
    written_shares,
)
from seatrial.hooks import check_keys
from seatrial.judge.check_tests import check_judging
from seatrial.model.documents import Faults, Faulty, Location, YamlNode, decode_partly, read, unread
from seatrial.model.expand import compile_keyword
from seatrial.model.failures import check_known_failures
from seatrial.model.file_model import FileModel, notes_of
from seatrial.model.identifiers import show
from seatrial.model.machine import Machine, SlurmOverride
from seatrial.model.machine_file import Site, is_path, machine_file, read_machine
from seatrial.model.moments import TimeSpan
from seatrial.model.node_set import unfold_or_empty
from seatrial.model.nodes import node_names
from seatrial.model.plan import Component, ComponentTest, Plan, Throttle, phases_of, tag_of
from seatrial.model.run_settings import faults_of_override
from seatrial.model.suite import Suite, load
from seatrial.units import show_seconds


class Loaded(NamedTuple):
    """A plan as it is written, with the places of its values. ``site`` is None if the machine is at
    fault. ``suites``: those of each component, as far as they exist; ``partly``: the positions of
    components that name missing suites, whose tests are unknown; ``faulty``: keys that could not be
    decoded."""

    path: Path
    plan: Plan
    node: YamlNode
    site: Site | None
    suites: list[Suite]
    partly: set[int]
    faulty: Faulty

    @property
    def known_suites(self) -> list[Suite]:
        """The suites; none where one is missing, which may have a test of any name."""
        return [] if self.partly else self.suites

    def location(self, faults: Faults) -> Location:
        """Return the whole plan, to be checked."""
        return Location(self.node, faults, self.faulty)


def load_plan(path: Path, faults: Faults) -> Loaded | None:
    """Read a plan, its machine and its suites; add the faults of all their files to ``faults``.
    Return None if the plan's own file is no plan. Raises UsageError if it is missing."""
    if not path.exists():
        raise UsageError(f"{path}: no such file; name a plan, such as plans/acceptance.yaml")
    if path.is_dir():
        raise UsageError(f"{path}: is a folder; name the plan's file, such as {path}/plan.yaml")
    own = Faults()
    node = read(path, own)
    if node is not None and isinstance(node.value, dict) and {"tune", "axes"} <= set(node.value):
        ways = f"`seatrial tune {path}` runs it, `seatrial tune {path} --rehearse` rehearses it"
        raise UsageError(f"{path}: is a tuning, and no plan; {ways}")
    plan = decode_partly(node, Plan, own) if node is not None else None
    faults.add_all(own)
    if node is None or plan is None:
        return None
    loaded = Loaded(path, plan, node, None, [], set(), own.faulty)
    loaded.suites.extend(_suites(loaded, faults))
    return loaded._replace(site=_site(loaded, faults))


def _site(loaded: Loaded, faults: Faults) -> Site | None:
    """Return the plan's machine; None if it is at fault."""
    if unread(loaded.location(faults), "machine"):
        return None
    name = loaded.plan.machine
    if is_path(name):
        name = os.path.normpath(loaded.path.parent / name)
        name = name if "/" in name else f"./{name}"
    try:
        file = machine_file(name or None)
        return find_machine(name or None) if file is None else read_machine(file, faults)
    except UsageError as error:
        loaded.location(faults).fault(str(error), "machine")
        return None


def _suites(loaded: Loaded, faults: Faults) -> list[Suite]:
    """Return the suites of each component. A suite that several components name is read once."""
    known: dict[tuple[str, ...], tuple[Suite, bool]] = {}
    suites = []
    for i, component in enumerate(loaded.plan.components):
        at = loaded.location(faults).inside("components", i, "suites")
        if not component.suites and not unread(at):
            at = loaded.location(faults).inside("suites")
        named = tuple(component.suites or loaded.plan.suites)
        if named not in known:
            known[named] = _load(loaded, named, at, faults)
        suite, whole = known[named]
        if unread(at) or not whole:
            loaded.partly.add(i)
        suites.append(suite)
    return suites


def _load(
    loaded: Loaded, named: tuple[str, ...], at: Location, faults: Faults
) -> tuple[Suite, bool]:
    """Return the suites that exist, as one, and True if none is missing."""
    paths = dict(enumerate(suite_paths(loaded.path, named)))
    suite = Suite({}, {}, {}, {}, Faults())
    while paths:
        try:
            suite = load(list(paths.values()))
            break
        except UsageError as error:
            faulty = (i for i, path in paths.items() if str(error).startswith(f"{path}:"))
            missing = next(faulty, next(iter(paths)))
            at.fault(str(error), missing)
            del paths[missing]
    check_judging(suite)
    faults.add_all(suite.of_folders)
    return suite, len(paths) == len(named)


def suite_paths(plan: Path, named: Sequence[str]) -> list[Path]:
    """Return the folders of suites that a plan names."""
    return [Path(os.path.normpath(plan.parent / name)) for name in named]


def component_of(plan: Plan, name: str) -> Component:
    """Return the component of that name. Raises UsageError."""
    for component in plan.components:
        if component.component == name:
            return component
    listed = ", ".join(each.component for each in plan.components)
    raise UsageError(f"{plan.plan} has no component {name!r}; it has {listed}")


# ---- check ---------------------------------------------------------------------------------------
#
# Check a plan as far as its cases need not be known: names, quantities, nodes and file systems.
#
# ``seatrial.execute.plan.check_mix`` checks what a component runs in a phase.


LONGEST_TAG = 100
ROUNDING = 1e-9  # tolerance of a sum of shares above 1

_NAME = r"[A-Za-z0-9][A-Za-z0-9._+-]*"


def check_plan(loaded: Loaded, faults: Faults, documents: bool = True) -> None:
    """Add every fault of a plan that does not depend on its cases. Without ``documents`` those of
    evidence are not looked at."""
    plan, location = loaded.plan, loaded.location(faults)
    machine = loaded.site.machine if loaded.site else None
    _names(plan, location)
    tests = [name for suite in loaded.known_suites for name in suite.names]
    for i, phase in enumerate(plan.phases):
        _nodes(phase.nodes, machine, location.inside("phases", i, "nodes"))
        _slurm(phase.slurm, location.inside("phases", i, "slurm"))
    for i, span in enumerate(plan.outages):
        check_span(span, machine, tests, location.inside("outages", i))
    if not plan.components:
        location.fault("has no component; give at least one", "components")
    for i in range(len(plan.components)):
        _check_component(loaded, i, location, documents)
    check_ids(plan, location)
    check_keys("plan", loaded, location)
    _known_failures(plan, machine, tests, location)
    check_alongside(plan, machine, location)


def _check_component(loaded: Loaded, i: int, location: Location, documents: bool) -> None:
    """Add the faults of one component by itself."""
    plan, machine = loaded.plan, loaded.site.machine if loaded.site else None
    component, suite, at = plan.components[i], loaded.suites[i], location.inside("components", i)
    partly = i in loaded.partly
    _component(plan, component, location, at)
    _quantities(component, at)
    if component.kind == "sustained" or unread(at, "kind"):
        _sums(component, at)
    _nodes(component.nodes, machine, at.inside("nodes"))
    if machine is not None:
        _on_machine(component, machine, at)
    _slurm(component.slurm, at.inside("slurm"))
    if component.kind != "checklist":
        _tests(component, suite, at, partly)
    chosen = [] if partly else chosen_tests(component, suite.names)
    for j, span in enumerate(component.blackouts):
        check_span(span, machine, chosen, at.inside("blackouts", j))
    check_conditions(component, None if partly else suite, machine, at)
    check_evidence(component, loaded.path.parent, at, documents)


def _known_failures(
    plan: Plan, machine: Machine | None, tests: Sequence[str], location: Location
) -> None:
    """Check known failures: their reasons and days, and that their tests and toolchains exist."""
    check_known_failures(plan.known_failures, location)
    chains = list(machine.toolchains) if machine is not None else []
    for i, each in enumerate(plan.known_failures):
        named = (("tests", each.tests, tests), ("toolchains", each.toolchains, chains))
        for key, patterns, known in named:
            for j, pattern in enumerate(patterns):
                if known and not any(fits([pattern], name) for name in known):
                    at = location.inside("known_failures", i)
                    at.fault(f"{pattern!r} matches none of {', '.join(known)}", key, j)


# ---- names --------------------------------------------------------------------------------


def _names(plan: Plan, location: Location) -> None:
    named: list[tuple[str, Location]] = [(plan.plan, location.inside("plan"))]
    for key, names in (
        ("phases", [phase.phase for phase in plan.phases]),
        ("components", [component.component for component in plan.components]),
    ):
        for i, name in enumerate(names):
            at = location.inside(key, i, key.removesuffix("s"))
            named.append((name, at))
            if name in names[:i]:
                at.fault(f"{name!r} is given twice; rename one")
    for name, at in named:
        if not re.fullmatch(_NAME, name):
            at.fault(f"{name!r}: a name must be letters, digits, ._+-")
    _tags(plan, location)


def _tags(plan: Plan, location: Location) -> None:
    """Check that each trial of the plan has a run tag of its own."""
    first: dict[str, str] = {}
    for i, component in enumerate(plan.components):
        for phase in phases_of(plan, component):
            tag, at = tag_of(plan, component, phase.phase), location.inside("components", i)
            if len(tag) > LONGEST_TAG:
                text = f"makes a run tag of {len(tag)} letters; the maximum is {LONGEST_TAG}"
                at.fault(text, "component")
            other = first.setdefault(tag, component.component)
            if other != component.component:
                at.fault(f"has the run tag of {other}, {tag}; rename one", "component")


def _component(plan: Plan, component: Component, location: Location, at: Location) -> None:
    known = [phase.phase for phase in plan.phases]
    named = bool(known) or not unread(location, "phases")
    named &= not any(unread(location, "phases", i, "phase") for i in range(len(known)))
    for i, name in enumerate(component.phases):
        if named and name not in known:
            at.fault(f"no phase {name!r}; there are {', '.join(known) or 'none'}", "phases", i)
    if not unread(at, "kind"):
        _of_kind(component, at)


def _of_kind(component: Component, at: Location) -> None:
    """Check that a component has no keys that mean something only in components of another kind."""
    locations: list[tuple[Location, type[FileModel]]] = [(at, Component)]
    locations += [(at.inside("tests", name), ComponentTest) for name in component.parts]
    for location, shape in locations:
        for key, kind in notes_of(shape, "of_kind").items():
            if component.kind != kind and location.given(key):
                location.fault(f"is of kind {kind} alone; this is {component.kind}", key)
    if component.kind == "sustained" and component.duration is None:
        at.fault("is missing; a sustained component needs it, e.g. 10d", "duration")


# ---- quantities ---------------------------------------------------------------------------


def _quantities(component: Component, at: Location) -> None:
    for i, throttle in enumerate(component.throttles):
        _throttle(throttle, at.inside("throttles", i))
    caps = component.caps
    for name, part in component.parts.items():
        _part(part, component.kind == "sustained", at.inside("tests", name))
    for key, cap in (("machine", caps.machine), ("per_target", caps.per_target)):
        if cap == 0 and at.given("caps", key):
            text = f"0 lets no run start; give 1 or more, or remove {key} for no cap"
            at.fault(text, "caps", key)


def _throttle(throttle: Throttle, at: Location) -> None:
    """Check that a throttle has one of its two forms."""
    high, low, target = throttle.high, throttle.low, throttle.target
    if any(unread(at, key) for key in ("high", "low", "target")):
        return
    if target is not None:
        for key in filter(at.given, ("high", "low")):
            at.fault("give a target, or high and low; not both", key)
        return
    if at.given("settle"):
        at.fault("is of a target alone; remove it", "settle")
    _limits(high, low, at)


def _limits(high: float | None, low: float | None, at: Location) -> None:
    """Check that a throttle without a target has both limits, in their order."""
    if high is None and low is None:
        at.fault("has no limit; give a target, or high and low", "gauge")
    elif high is None or low is None:
        key, other = ("high", "low") if high is None else ("low", "high")
        at.fault(f"is missing; {other} needs it: give both, or a target in place of them", key)
    elif low >= high:
        at.fault(f"{low:g} is not below high, {high:g}", "low")


def _sums(component: Component, at: Location) -> None:
    """Check the sums of copies and shares as they are written, counting one test for each pattern.
    On any machine and in any phase the component asks for no less."""
    # unreadable entries could only increase the sum
    sure = at._replace(faulty=Faulty())
    shares = written_shares(component)
    text = too_large_sum(shares)
    if text:
        sure.fault(text, "tests")
    cap, copies = component.caps.machine, written_copies(component)
    if cap and copies > cap:
        text = f"{cap} is less than all copies together, {copies}"
        sure.fault(text, "caps", "machine")


def too_large_sum(shares: Mapping[str, float]) -> str:
    """Return how far shares add up to more than the machine; "" if they do not."""
    total = sum(shares.values())
    each = " + ".join(f"{name} {100 * share:.4g} %" for name, share in shares.items() if share)
    return f"the shares add up to {100 * total:.4g} %: {each}" if total > 1 + ROUNDING else ""


def _part(part: ComponentTest, sustained: bool, at: Location) -> None:
    if part.max_runs == 0:
        at.fault("0 lets no run of it start; remove the test, or most for no cap", "most")
    elif part.max_runs is not None and part.copies > part.max_runs:
        at.fault(f"{part.copies} are kept on nodes, but most is {part.max_runs}", "copies")
    for key in filter(at.given, ("copies", "weight", "share")):
        if part.fill:
            at.fault("is a claim, and fill is for tests without one; remove one of them", key)
        elif sustained and _claims_nothing(part, at):
            text = "0 does not switch a test off; leave the test out of tests, or out by select"
            at.fault(text, key)
    if part.weight and part.share.fraction:
        at.fault("give a weight or a share, not both", "weight")


def _claims_nothing(part: ComponentTest, at: Location) -> bool:
    """Return whether a test claims none of the machine. Without other keys its 0 would count as
    weight 1, although the author meant none."""
    return not (part.share.fraction or part.copies or part.weight or unread(at, "share"))


def check_span(span: TimeSpan, machine: Machine | None, tests: Sequence[str], at: Location) -> None:
    """Check that a span ends after it starts, and names what there is."""
    if unread(at, "from") or unread(at, "to"):
        pass
    elif span.start.absolute != span.end.absolute:
        text = "one of from and to is a date, the other a time of the trial; give both alike"
        at.fault(text, "to")
    elif span.end.seconds <= span.start.seconds:
        at.fault(f"{span.end} is not after from, {span.start}", "to")
    _nodes(span.nodes, machine, at.inside("nodes"))
    for i, pattern in enumerate(span.tests):
        if tests and not any(fits([pattern], name) for name in tests):
            at.fault(f"{pattern!r} is not a test here; there are {listed(tests)}", "tests", i)


# ---- what there is ------------------------------------------------------------------------


def _slurm(slurm: SlurmOverride, at: Location) -> None:
    for key, fault in faults_of_override(slurm):
        at.fault(fault, *key)


def _nodes(names: str, machine: Machine | None, at: Location) -> None:
    """Check that a node set names nodes of the machine only."""
    other = sorted(set(unfold_or_empty(names)) - set(node_names(machine))) if machine else []
    if machine and other:
        at.fault(f"{other[0]} is not a node of {machine.machine}")


def _on_machine(component: Component, machine: Machine, at: Location) -> None:
    _file_systems(component, machine, at)
    _throttles(component, machine, at)
    _loads(component, machine, at)
    for i, pattern in enumerate(component.toolchains):
        if pattern != "default" and not any(fnmatchcase(n, pattern) for n in machine.toolchains):
            _check_exists("toolchain", pattern, machine.toolchains, machine, at, "toolchains", i)


def _file_systems(component: Component, machine: Machine, at: Location) -> None:
    """Check that file systems exist, and metadata targets on these."""
    named: dict[tuple[str, ...], str] = {("file_system",): component.file_system}
    named |= {
        ("tests", name, "file_system"): part.file_system for name, part in component.parts.items()
    }
    for key, name in named.items():
        if name:
            _check_exists("file system", name, machine.file_systems, machine, at, *key)
    used = [name for name in sorted(set(named.values())) if name in machine.file_systems]
    targets = [one.name for each in used for one in machine.file_systems[each].metadata_targets]
    _targets(component, targets, at)


def _check_exists(
    kind: str, name: str, known: Iterable[str], machine: Machine, at: Location, *key: str | int
) -> None:
    """Check that the machine has what is named."""
    if name not in known:
        at.fault(f"{machine.machine} has no {kind} {name!r}; it has {listed(known)}", *key)


def _throttles(component: Component, machine: Machine, at: Location) -> None:
    """Check that gauges exist, and that the next reading can arrive before the last is stale."""
    gauges = machine.all_gauges
    for i, throttle in enumerate(component.throttles):
        _check_exists("gauge", throttle.gauge, gauges, machine, at, "throttles", i, "gauge")
        if (gauge := gauges.get(throttle.gauge)) is None:
            continue
        longest = gauge.every.seconds + gauge.timeout.seconds
        if throttle.stale_after.seconds < longest:
            text = f"{throttle.stale_after} is shorter than {throttle.gauge} may take from a "
            text += f"reading to the next: its every and timeout are {show_seconds(longest)} "
            text += "together; give that or more, or read it more often"
            at.fault(text, "throttles", i, "stale_after")
    for i, name in enumerate(component.gauges):
        _check_exists("gauge", name, gauges, machine, at, "gauges", i)


def _loads(component: Component, machine: Machine, at: Location) -> None:
    """Check that declared loads are of gauges with a target."""
    gauges = machine.all_gauges
    targets = {each.gauge for each in component.throttles if each.target is not None}
    for test, part in component.parts.items():
        for name in part.loads:
            where = at.inside("tests", test, "loads")
            _check_exists("gauge", name, gauges, machine, where, name)
            if name in gauges and name not in targets:
                where.fault("no throttle here has a target for this gauge; remove it", name)


def _targets(component: Component, targets: list[str], at: Location) -> None:
    """Check that keys about metadata targets have targets to act on."""
    for i, name in enumerate(component.targets):
        if name not in targets:
            where = "the file systems here have" if targets else "give file_system; there are"
            at.fault(f"no metadata target {name!r}; {where} {listed(targets)}", "targets", i)
    if targets:
        return
    remedy = "give file_system, one whose targets the machine's file names"
    if at.given("placement"):
        at.fault(f"there are no metadata targets to place on; {remedy}", "placement")
    if component.caps.per_target:
        at.fault(f"there are no metadata targets; {remedy}", "caps", "per_target")


def _tests(component: Component, suite: Suite, at: Location, partly: bool) -> None:
    """Check the tests that are named. ``partly``: some suites are missing."""
    for i, pattern in enumerate(component.tests if suite.names else ()):
        key: str | int = pattern if isinstance(component.tests, dict) else i
        if not any(pattern_of(component, name) == pattern for name in suite.names):
            _unknown_test(pattern, suite, at.inside("tests", key), partly)
    _select(component, at)
    if suite.names:
        _settings(component, suite, at, partly)
    elif not partly and not only_evidence(component):
        at.fault("has no suites; give suites to it, or to the plan", "component")


def _select(component: Component, at: Location) -> None:
    if component.select.strip():
        try:
            compile_keyword(component.select)
        except UsageError as error:
            at.fault(str(error), "select")


def _unknown_test(pattern: str, suite: Suite, at: Location, partly: bool) -> None:
    """Report an entry that matches no test. If a suite is missing, the entry may name one of its
    tests; it is then reported only if it is nearly the name of a known test (a typing error)."""
    near = suggest(pattern, suite.names, cutoff=0.8)
    taken = any(fits([pattern], name) for name in suite.names)
    if not partly:
        reason = "about tests of entries above it only" if taken else "not a test here"
        at.fault(f"{pattern!r} is {reason}; there are {listed(suite.names)}")
    elif near and not taken:
        at.fault(f"{pattern!r} is not a test of the suites that exist; {near}")


def _settings(component: Component, suite: Suite, at: Location, partly: bool) -> None:
    chosen = chosen_tests(component, suite.tests)
    unsure = partly or bool(chosen_tests(component, suite.faults))
    parameters = {name for test in chosen for name in suite.tests[test].parameter_names}
    for name, value in component.settings.items():
        if name not in parameters and chosen and not unsure:
            text = f"no test here has this parameter; there are {listed(sorted(parameters))}"
            at.fault(text, "settings", name)
        for text in map(show, value if isinstance(value, list) else [value]):
            if "," in text or not text.strip():
                fault = f"{text!r} cannot be set: it is empty, or holds a comma"
                at.fault(fault, "settings", name)


def listed(names: Iterable[str]) -> str:
    """Return names for a message, the first of many."""
    listed_names = list(names)
    more = f" and {len(listed_names) - 8} more" if len(listed_names) > 9 else ""
    return ", ".join(listed_names[: 8 if more else 9]) + more or "none"
