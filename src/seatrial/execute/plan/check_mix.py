"""Check that a component can run as it asks, with the cases that it has on the machine of a phase.

``check_mix`` checks the tests of one component in one phase together: sizes, copies, shares, caps,
walltimes, decks and the loads of metadata targets. ``check_sizes`` checks all its phases.
"""

import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from seatrial.execute.plan import policy
from seatrial.execute.plan.check import ROUNDING, listed, too_large_sum
from seatrial.execute.plan.component import (
    part_of,
    pattern_of,
    written_copies,
    written_shares,
)
from seatrial.model.check_test import fault_of_file_name
from seatrial.model.documents import Location
from seatrial.model.expand import Expansion
from seatrial.model.machine import FileSystem, Machine
from seatrial.model.node_set import unfold
from seatrial.model.nodes import node_names
from seatrial.model.plan import Component, ComponentTest, Deck
from seatrial.model.requirements import unfit_groups
from seatrial.model.test import Test
from seatrial.units import count, show_bytes, show_seconds

MAX_UNIONS = 1000  # of kinds of nodes, which are few

_TOO_LARGE = r"needs \d+ (nodes?( with .*| in .*)?; there are|CPUs? of a node)"


class ComponentInPhase(Struct, frozen=True):
    """A component in a phase, with what its tests take of the machine."""

    component: Component
    machine: Machine
    #: Those that have cases, and no fault of their own.
    tests: dict[str, Test]
    #: How each test that has cases takes part.
    parts: dict[str, ComponentTest]
    #: The width of the widest case of each test, in nodes, or in cores of a host without a
    #: scheduler.
    widths: dict[str, int]
    #: The width of the machine, in the same unit.
    whole: int
    #: The tests with nodes for themselves.
    exclusive: frozenset[str]
    #: The nodes that each test can run on.
    pools: dict[str, frozenset[str]]
    #: The phase in words, "" for a plan without phases.
    where: str
    #: The place of the component in the plan.
    at: Location

    def location(self, test: str) -> Location:
        """Return the place in the plan that says how a test takes part."""
        pattern = pattern_of(self.component, test)
        if isinstance(self.component.tests, dict) and pattern:
            return self.at.inside("tests", pattern)
        if pattern:
            return self.at.inside("tests", list(self.component.tests).index(pattern))
        return self.at.inside("component")

    def file_system(self, test: str) -> str:
        return self.parts[test].file_system or self.component.file_system

    def fault_of(self, tests: Sequence[str], text: str, key: str) -> None:
        """Add a fault of tests: at the ``key`` of one, or at all of them together."""
        if len(tests) == 1:
            self.location(tests[0]).fault(text, key)
        else:
            self.at.fault(text, "tests")


def check_mix(
    component: Component,
    machine: Machine,
    phase: str,
    tests: Mapping[str, Test],
    expansion: Expansion,
    at: Location,
) -> None:
    """Add the faults of a component in a phase. ``tests``: those that it runs and that have no
    fault of their own."""
    where = f" in phase {phase}" if phase else ""
    running = _in_phase(component, machine, where, tests, expansion, at)
    _without_case(running, tests, expansion)
    _walltimes(running, expansion)
    if component.kind == "sustained":
        _runs(running)
        _copies(running)
        _shares(running)
        _caps(running)
    for name in running.tests:
        _deck(running, name)
        _opens(running, name)
        _loads(running, name)
    for name in sorted({running.file_system(test) for test in running.widths}):
        if name in machine.file_systems:
            _on_file_system(running, name, machine.file_systems[name])


def _in_phase(
    component: Component,
    machine: Machine,
    where: str,
    tests: Mapping[str, Test],
    expansion: Expansion,
    at: Location,
) -> ComponentInPhase:
    widths = policy.widths_of(expansion.cases, machine)
    return ComponentInPhase(
        component,
        machine,
        {name: tests[name] for name in widths if name in tests},
        {name: part_of(component, name) or ComponentTest() for name in widths},
        widths,
        policy.width_of_machine(machine),
        frozenset(case.test for case in expansion.cases if case.exclusive),
        _pools_of(machine, tests, expansion),
        where,
        at,
    )


def _pools_of(
    machine: Machine, tests: Mapping[str, Test], expansion: Expansion
) -> dict[str, frozenset[str]]:
    """Return the nodes that some case of each test can run on."""
    pools: dict[str, set[str]] = {}
    for case in expansion.cases:
        features = tests[case.test].requires.features if case.test in tests else []
        unfit = unfit_groups(machine, features, case)
        fitting = (kind.names for kind in machine.nodes if kind not in unfit)
        pools.setdefault(case.test, set()).update(fitting)
    return {test: frozenset(names) for test, names in pools.items()}


def _without_case(
    running: ComponentInPhase, tests: Mapping[str, Test], expansion: Expansion
) -> None:
    """Report the tests that are named and have no case. Without names, the tests that can run
    do."""
    skipped = {_test_of(what): reason for what, reason in expansion.skipped}
    left = {name: skipped.get(name, "") for name in tests if name not in running.parts}
    if running.component.tests:
        for name, reason in left.items():
            if reason:
                running.location(name).fault(f"{name} {reason}{running.where}")
        _not_selected(running, left)
    elif tests and not running.parts:
        reasons = "; ".join(f"{name} {reason}" for name, reason in left.items() if reason)
        text = f"no case is left{running.where}: {reasons or 'select leaves none'}"
        running.at.fault(text, "component")


def _not_selected(running: ComponentInPhase, left: Mapping[str, str]) -> None:
    """Report the entries of which ``select`` leaves no test. ``left``: the tests without a case,
    with the reason for which they cannot run, if it is that."""
    patterns = {pattern_of(running.component, name) for name in running.parts}
    for name, reason in left.items():
        if not reason and pattern_of(running.component, name) not in patterns:
            text = f"select leaves no case of {name}; remove it here, or change select"
            running.location(name).fault(text)


def _runs(running: ComponentInPhase) -> None:
    """Report tests that only build."""
    for name, test in running.tests.items():
        if test.only_builds:
            text = f"{name} has no `run`, so nothing of it can be kept in flight"
            running.location(name).fault(f"{text}; put it into a component of `kind: once`")


def check_sizes(component: Component, expansions: Sequence[Expansion], at: Location) -> None:
    """Check that each case of a named test fits the nodes of some phase. ``expansions`` are those
    of the component's phases. With ``select`` the author has chosen the cases, and nothing is
    checked."""
    if component.select or not expansions:
        return
    runs = {case.test for expansion in expansions for case in expansion.cases}
    too_large = _too_large(expansions)
    for i, name in enumerate(component.tests):
        if name not in runs or name not in too_large:
            continue
        first, *rest = too_large[name]
        more = f" (and {count(len(rest), 'more case')})" if rest else ""
        text = (
            f"{first}{more}; leave it out by settings or select, or have a phase of as many nodes"
        )
        at.fault(text, "tests", name if isinstance(component.tests, dict) else i)


def _too_large(expansions: Sequence[Expansion]) -> dict[str, list[str]]:
    """Return the cases of each test that are too large for the nodes of each phase."""
    latest, *others = [dict(expansion.skipped) for expansion in reversed(expansions)]
    too_large: dict[str, list[str]] = {}
    for what, reason in latest.items():
        if re.match(_TOO_LARGE, reason) and all(what in skipped for skipped in others):
            too_large.setdefault(_test_of(what), []).append(f"{what} {reason}")
    return too_large


def _test_of(skipped: str) -> str:
    """Return the test of a skipped case."""
    return re.split(r"[{@%]", skipped)[0]


def _walltimes(running: ComponentInPhase, expansion: Expansion) -> None:
    duration = running.component.duration
    if duration is None:
        return
    too_long: dict[str, float] = {}
    for case in expansion.cases:
        if duration.seconds < case.walltime:
            too_long[case.test] = max(case.walltime, too_long.get(case.test, 0))
    if too_long:
        each = listed(f"{name} {show_seconds(time)}" for name, time in too_long.items())
        text = f"{duration} is shorter than a run may take: {each}; give more, or leave them out"
        running.at.fault(text, "duration")


# ---- copies and shares --------------------------------------------------------------------


def _copies(running: ComponentInPhase) -> None:
    held = {name: part.copies * running.widths[name] for name, part in running.parts.items()}
    unit = "nodes" if running.whole == len(node_names(running.machine)) else "cores"
    limit = f"there are {running.whole}{running.where}"
    too_many = False
    for name, width in held.items():
        if width > running.whole:
            too_many = True
            alone = ", as each has them to itself (exclusive)" if name in running.exclusive else ""
            text = f"{running.parts[name].copies} of {name} take {width} {unit}{alone}; {limit}"
            running.location(name).fault(text, "copies")
    total = sum(held.values())
    if total > running.whole and not too_many:
        running.at.fault(f"all copies together take {total} {unit}; {limit}", "tests")
    elif not too_many:
        _copies_on_fitting_nodes(running, held)


def _copies_on_fitting_nodes(running: ComponentInPhase, held: Mapping[str, int]) -> None:
    """Check that the copies fit on the nodes that their tests can run on: for each set of nodes,
    the copies of all tests that can use no others."""
    if running.whole != len(node_names(running.machine)):  # one node, whose cores are shared
        return
    for nodes, confined in _confined(running, held):
        taken = sum(held[test] for test in confined)
        if taken > nodes:
            each = listed(f"{running.parts[test].copies} of {test}" for test in confined)
            text = f"{each} take {taken} nodes, and {nodes} have what they require{running.where}; "
            running.fault_of(confined, f"{text}give fewer copies, or require less", "copies")
            return


def _confined(
    running: ComponentInPhase, taken: Mapping[str, float]
) -> Iterator[tuple[int, list[str]]]:
    """Yield for each set of nodes how many these are, and the tests that take some of the machine
    and can use no others."""
    for pool in _unions(set(running.pools.values())):
        nodes = sum(len(unfold(names)) for names in pool)
        yield nodes, [test for test, own in running.pools.items() if own <= pool and taken[test]]


def _unions(pools: Collection[frozenset[str]]) -> list[frozenset[str]]:
    """Return the unions of some sets of kinds of nodes, the smallest first."""
    unions: set[frozenset[str]] = set()
    for pool in pools:
        if len(unions) < MAX_UNIONS:
            unions |= {pool, *(pool | other for other in unions)}
    return sorted(unions, key=lambda pool: (len(pool), sorted(pool)))


def _shares(running: ComponentInPhase) -> None:
    shares = {name: part.share.fraction for name, part in running.parts.items()}
    if too_large_sum(written_shares(running.component)):  # reported there too
        return
    if text := too_large_sum(shares):
        running.at.fault(text, "tests")
        return
    if _shares_on_fitting_nodes(running, shares):
        return
    claimed = sum(
        policy.claim_of(part, running.widths[name], running.whole)
        for name, part in running.parts.items()
    )
    copies = {name: part.copies * running.widths[name] for name, part in running.parts.items()}
    if claimed > 1 + ROUNDING and sum(copies.values()) <= running.whole:  # else it was reported
        running.at.fault(f"{_claims(running)}{running.where}; the machine has 100 %", "tests")
        return
    _copies_in_shares(running, shares, copies)
    if claimed > 1 - ROUNDING:
        for name in filter(lambda name: policy.relative_weight(running.parts[name]), shares):
            text = f"shares and copies take the whole machine{running.where}; nothing is left for "
            text += f"{name}: give it fill: true, or a share"
            running.location(name).fault(text)


def _copies_in_shares(
    running: ComponentInPhase, shares: Mapping[str, float], copies: Mapping[str, int]
) -> None:
    """Check that the copies of each test, in units of the machine, fit in its share."""
    for name, width in copies.items():
        held = width / max(running.whole, 1)
        if shares[name] and shares[name] + ROUNDING < held <= 1:
            part = running.parts[name]
            text = f"{part.copies} of {name} are {100 * held:.4g} %{running.where}, "
            text += f"more than its share, {part.share}; give fewer, or a larger share"
            running.location(name).fault(text, "copies")


def _shares_on_fitting_nodes(running: ComponentInPhase, shares: Mapping[str, float]) -> bool:
    """Check the shares as the copies. Returns whether there is a fault."""
    for nodes, confined in _confined(running, shares):
        part = nodes / len(node_names(running.machine))
        taken = sum(shares[test] for test in confined)
        if taken > part + ROUNDING and part < 1:
            each = listed(f"{test} {running.parts[test].share}" for test in confined)
            text = f"{each}: {100 * part:.4g} % of the nodes have what they require"
            text += f"{running.where}; give smaller shares, or require less"
            running.fault_of(confined, text, "share")
            return True
    return False


def _claims(running: ComponentInPhase) -> str:
    """Return the claim of each test, and their sum."""
    claims = {
        name: policy.claim_of(part, running.widths[name], running.whole)
        for name, part in running.parts.items()
    }
    each = " + ".join(
        f"{name} {100 * claim:.4g} %{'' if running.parts[name].share.fraction else ' (copies)'}"
        for name, claim in claims.items()
        if claim
    )
    return f"shares and copies add up to {100 * sum(claims.values()):.4g} %: {each}"


def _caps(running: ComponentInPhase) -> None:
    cap = running.component.caps.machine
    copies = sum(part.copies for part in running.parts.values())
    if cap and copies > cap >= written_copies(running.component):  # otherwise it has been reported
        running.at.fault(f"{cap} is less than all copies together, {copies}", "caps", "machine")


# ---- file systems -------------------------------------------------------------------------


def _opens(running: ComponentInPhase, name: str) -> None:
    part, system = running.parts[name], running.machine.file_systems.get(running.file_system(name))
    safe = policy.safe_load_of(running.component, system) if system and system.targets else 0.0
    if safe and part.opens > safe:
        text = f"{part.opens:g} open files of one run are more than a target of "
        text += f"{running.file_system(name)} bears: its safe_load is {safe:g}"
        running.location(name).fault(text, "opens")


def _loads(running: ComponentInPhase, name: str) -> None:
    """Check what a test declares for throttles with a target: without that a start is held back by
    nothing, and one that is too large is held back for ever."""
    part, location = running.parts[name], running.location(name)
    for throttle in running.component.throttles:
        gauge, target = throttle.gauge, throttle.target
        if target is None or part.io == "light":
            continue
        load = part.loads.get(gauge, part.opens)
        if not load and gauge not in part.loads:
            text = f"declares nothing for the target of gauge {gauge}; give {name} opens, "
            location.fault(f"{text}loads: {{{gauge}: NUMBER}}, or io: light")
        elif load > target >= 0:  # a gauge that reads below 0 may leave room for it
            text = f"one run adds {load:g} to gauge {gauge}, whose target is {target:g}: none "
            key = ("loads", gauge) if gauge in part.loads else ("opens",)
            location.fault(f"{text}would ever start", *key)


def _on_file_system(running: ComponentInPhase, name: str, system: FileSystem) -> None:
    """Check the copies on a file system together."""
    tests = [test for test in running.parts if running.file_system(test) == name]
    copies = sum(running.parts[test].copies for test in tests)
    if system.runs and copies > system.runs:
        text = f"{copies} copies work on {name}, on which the machine's file allows {system.runs}"
        running.at.fault(text, "tests")
    targets = policy.targets_of(running.component, system)
    if system.targets and not targets:
        text = f"none of them is of {name}, where {tests[0]} runs; add one, or leave targets out"
        running.at.fault(text, "targets")
    else:
        _on_targets(running, name, system, tests, len(targets))


def _on_targets(
    running: ComponentInPhase, name: str, system: FileSystem, there: Sequence[str], targets: int
) -> None:
    """Check the copies of some tests together on the metadata targets of a file system."""
    space, taken = system.space.bytes, _bytes_on_targets(running, name, system)
    if space and taken > space:
        text = f"decks with a copy on each of {count(targets, 'target')} of {name} take "
        text += f"{show_bytes(taken)}; its space for decks is {show_bytes(space)}; "
        text += "give fewer targets, or how: shared"
        running.at.fault(text, "tests")
    copies = sum(running.parts[test].copies for test in there)
    cap = running.component.caps.per_target * targets
    if cap and copies > cap:
        text = f"{running.component.caps.per_target} on each of {targets} targets is less "
        running.at.fault(f"{text}than the {copies} copies on {name}", "caps", "per_target")
    load = sum(running.parts[test].copies * running.parts[test].opens for test in there)
    bears = policy.safe_load_of(running.component, system) * targets
    if bears and load > bears:
        text = f"all copies on {name} hold {load:g} files open; its targets bear {bears:g}"
        running.at.fault(text, "tests")


def _bytes_on_targets(running: ComponentInPhase, name: str, system: FileSystem) -> int:
    """Return the bytes of the copies on the targets of a file system, as far as the sources
    exist."""
    decks = [
        (running.parts[test].deck, each.folder)
        for test, each in running.tests.items()
        if running.file_system(test) == name
    ]
    return policy.bytes_on_targets(decks, len(policy.targets_of(running.component, system)))


def _deck(running: ComponentInPhase, name: str) -> None:
    test = running.tests[name]
    deck, location = running.parts[name].deck, running.location(name).inside("deck")
    if deck is None:
        return
    source = Path(test.folder) / deck.source
    if not os.path.exists(source):  # noqa: PTH110 - Path's raises where it may not look
        location.fault(f"{source} does not exist", "source")
        return
    if fault := fault_of_file_name(deck.name or Path(deck.source).name, test):
        location.fault(fault, "name" if deck.name else "source")
    system = running.machine.file_systems.get(running.file_system(name))
    if deck.how == "per_target" and (system is None or not system.targets):
        location.fault("needs a file_system with metadata targets; give one, or how: shared", "how")
    if system is not None and system.space.bytes:
        _deck_fits(running, name, deck, system, location)


def _deck_fits(
    running: ComponentInPhase, name: str, deck: Deck, system: FileSystem, location: Location
) -> None:
    """Check that there is space for the copy of a deck that each run of a test has."""
    left = system.space.bytes - _bytes_on_targets(running, running.file_system(name), system)
    space, runs = max(left, 0), max(1, running.parts[name].copies)
    size = policy.bytes_of_deck(deck, running.tests[name].folder)
    if size and size * runs > space:
        text = f"{show_bytes(size)} for each of {count(runs, 'run')} is more than "
        text += f"the space for decks on {running.file_system(name)}, {show_bytes(space)}"
        location.fault(text, "how")
