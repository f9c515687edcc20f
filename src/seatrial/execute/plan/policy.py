"""Turn a component as it is written into the policy by which the conductor decides: plain numbers.

    policy = policy_of(plan, component, machine, tests, cases)

The plan has been checked (``seatrial.execute.plan.check``). What cannot be a policy
raises ValueError here.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from seatrial.decide.nodes import placing_of
from seatrial.execute.plan.component import fits, part_of
from seatrial.model import policy as resolved
from seatrial.model.machine import FileSystem, Machine, MetadataTarget
from seatrial.model.moments import TimeSpan
from seatrial.model.nodes import node_names
from seatrial.model.plan import (
    Component,
    ComponentTest,
    Deck,
    Exclude,
    Plan,
    Stagger,
    Throttle,
    Watch,
    kept,
)
from seatrial.model.policy import Answer, Entry, Policy, Window
from seatrial.model.requirements import lacking
from seatrial.model.run_settings import sharing_groups
from seatrial.model.test import Case, RunSettings, Test

# The default reactions to a failure. A sustained component starts further runs of a test in any
# case, so it does not retry a run; it only avoids suspect nodes for the next run of the case.
ANSWERS: dict[str, Answer] = {
    "node failure": "elsewhere",
    "boot failure": "elsewhere",
    "hung": "elsewhere",
    "lost": "again",
    "timeout": "again",
    "cancelled": "again",
    "wrong answer": "never",
    "misplaced": "never",
    "performance": "never",
    "failed": "never",
    "out of memory": "never",
}
MAX_WRONG = 3  # wrong answers in a row that stop a test, where the plan does not say
USUALLY = {cause: answer for cause, answer in ANSWERS.items() if answer == "elsewhere"}


def policy_of(
    plan: Plan,
    component: Component,
    machine: Machine,
    tests: Mapping[str, Test],
    cases: Sequence[Case],
) -> Policy:
    """Return the policy of a component on the machine of a phase, for its cases."""
    names = list(dict.fromkeys(case.test for case in cases))
    positions = {name: i for i, name in enumerate(names)}
    parts = {name: part_of(component, name) or ComponentTest() for name in names}
    weights = weights_of(component, parts, widths_of(cases, machine), width_of_machine(machine))
    entries = [_entry(component, tests[name], parts[name], weights[name]) for name in names]
    entries = _with_space(entries, machine, cases)
    decks = [(parts[name].deck, tests[name].folder) for name in names]
    unfit, unfit_of = _unfit(machine, tests, cases)
    return Policy(
        kind=component.kind,
        entries=entries,
        entry_of=[positions[case.test] for case in cases],
        unfit=unfit,
        unfit_of=unfit_of,
        bundle_of=_bundles(component, tests, cases, entries),
        duration=component.duration.seconds if component.duration else 0.0,
        nodes=len(node_names(machine)),
        placing=placing_of(machine, tests, cases),
        reserve=_reserve(component, entries),
        caps=_caps(component, machine, entries, decks),
        targets=_targets(component, machine, entries),
        placement=component.placement,
        stagger=_stagger(component.stagger),
        throttles=[_throttle(each) for each in component.throttles],
        sampled=sampled_of(component, machine),
        blackouts=windows_of(component.blackouts, names, machine),
        outages=windows_of(plan.outages, names, machine),
        exclusion=_exclusion(component.exclude),
        watch=_watch(component.watch),
    )


def _bundles(
    component: Component,
    tests: Mapping[str, Test],
    cases: Sequence[Case],
    entries: Sequence[Entry],
) -> list[int]:
    """Return the bundle of each case; none where each run is placed on a file system, or held back
    by a throttle with a target, by itself."""
    by_itself = any(entry.file_system for entry in entries)
    by_itself |= any(throttle.target is not None for throttle in component.throttles)
    if component.kind != "once" or by_itself:
        return []
    return sharing_groups(tests, cases)


def _reserve(component: Component, entries: Sequence[Entry]) -> int:
    if component.kind != "sustained":
        return 0
    return len(entries) if component.reserve is None else component.reserve


def _stagger(stagger: Stagger | None) -> resolved.RateLimit | None:
    if stagger is None:
        return None
    return resolved.RateLimit(starts=stagger.starts, per=stagger.per.seconds)


def _throttle(throttle: Throttle) -> resolved.ThrottleRule:
    return resolved.ThrottleRule(
        gauge=throttle.gauge,
        high=throttle.high,
        low=throttle.low,
        target=throttle.target,
        settle=throttle.settle.seconds if throttle.target is not None else 0.0,
        on_failure=throttle.on_failure,
        stale_after=throttle.stale_after.seconds,
    )


def sampled_of(component: Component | None, machine: Machine) -> list[str]:
    """Return the gauges that are read whether or not a throttle goes by them: of which the machine
    says so, those that a component names, and those that its criteria are about."""
    names = [name for name, gauge in machine.gauges.items() if gauge.sample]
    if component is not None:
        names += component.gauges
        names += [each.gauge for each in component.criteria if each.gauge]
    return list(dict.fromkeys(names))


def _exclusion(exclude: Exclude) -> resolved.Exclusion:
    return resolved.Exclusion(
        after=exclude.after,
        within=exclude.within.seconds,
        most=exclude.max_share.fraction,
        causes=tuple(exclude.causes) or resolved.Exclusion().causes,
    )


def _watch(watch: Watch) -> resolved.WatchLimits:
    return resolved.WatchLimits(
        short_for=watch.short_for.seconds,
        silent_for=watch.silent_for.seconds,
        wait_factor=watch.wait_factor,
        again=watch.again.seconds,
        failing=None if watch.failing else False,
    )


def _unfit(
    machine: Machine, tests: Mapping[str, Test], cases: Sequence[Case]
) -> tuple[list[str], list[int]]:
    """Return sets of nodes that some cases cannot run on, and for each case the number of its set,
    from 1 on (0: it has none); none if all cases can run anywhere."""
    lacks = [lacking(machine, tests[case.test].requires.features, case) for case in cases]
    unfit = list(dict.fromkeys(filter(None, lacks)))
    return unfit, [unfit.index(each) + 1 if each else 0 for each in lacks] if unfit else []


def width_of_machine(machine: Machine) -> int:
    """Return the number of nodes, or of cores on a host without a scheduler: the unit that runs
    share."""
    return machine.nodes[0].cores if shares_cores(machine) else len(node_names(machine))


def widths_of(cases: Iterable[Case], machine: Machine) -> dict[str, int]:
    """Return how many of these units the widest case of each test takes."""
    widths: dict[str, int] = {}
    for case in cases:
        width = case.nodes
        if shares_cores(machine):
            cores, whole = case.tasks_per_node * case.threads, machine.nodes[0].cores
            width = whole if case.exclusive else min(cores, whole)
        widths[case.test] = max(width, widths.get(case.test, 0))
    return widths


def shares_cores(machine: Machine) -> bool:
    """Return True if runs share a node, as on a host without a scheduler."""
    return machine.scheduler == "local" and len(node_names(machine)) == 1


def shared_node(machine: Machine) -> tuple[int, int]:
    """Return the cores and the GPUs of the node that runs share, (0, 0) where they share none."""
    if not shares_cores(machine):
        return 0, 0
    return machine.nodes[0].cores, machine.nodes[0].gpus


# ---- the mix ------------------------------------------------------------------------------


def weights_of(
    component: Component, parts: Mapping[str, ComponentTest], widths: Mapping[str, int], whole: int
) -> dict[str, float]:
    """Return the part of the node-hours of each test, as a share of the machine. A share counts as
    it is; copies count by their width as a share of ``whole`` (nodes, or the cores of a shared
    node); weights split the rest; a test that only fills gaps gets 0."""
    if component.kind != "sustained":
        return dict.fromkeys(parts, 0.0)
    claims = {name: claim_of(part, widths.get(name, 1), whole) for name, part in parts.items()}
    relative = {name: relative_weight(part) for name, part in parts.items()}
    total = sum(relative.values()) or 1.0
    left = max(0.0, 1 - sum(claims.values()))
    return {name: claims[name] + left * relative[name] / total for name in parts}


def claim_of(part: ComponentTest, width: int, whole: int) -> float:
    """Return the share of the machine that a test claims before weights split the rest."""
    return part.share.fraction or part.copies * width / max(whole, 1)


def relative_weight(part: ComponentTest) -> float:
    """Return the weight of a test relative to the others; 1 if none is given."""
    if part.weight or part.fill or part.copies or part.share.fraction:
        return part.weight
    return 1.0


def _entry(component: Component, test: Test, part: ComponentTest, weight: float) -> Entry:
    retry = part.retry or component.retry
    answers = dict(USUALLY if component.kind == "sustained" else ANSWERS)
    answers.update(retry.answers.items())
    return Entry(
        name=test.name,
        copies=part.copies,
        weight=weight,
        most=part.max_runs or 0,
        io=part.io,
        file_system=part.file_system or component.file_system,
        opens=part.opens,
        loads=part.loads,
        answers=answers,
        attempts=retry.attempts,
        stop_after=MAX_WRONG if retry.stop_after is None else retry.stop_after,
        stop_failures=retry.stop_after or 0,
        quiet_after=(part.quiet_for or test.run.quiet_for).seconds,
        end_quiet=(part.quiet_answer or test.run.quiet_answer) == "end",
        alone=part.alone,
        full=part.full,
        bytes=bytes_of_deck(part.deck, test.folder),
    )


def _with_space(entries: Iterable[Entry], machine: Machine, cases: Iterable[Case]) -> list[Entry]:
    """Return entries whose runs take the space that their tests require, too, as far as it is on
    the file system of the entry: the most of its cases."""
    paths = {
        entry.name: machine.file_systems[entry.file_system].path
        for entry in entries
        if entry.file_system
    }
    required: dict[str, int] = {}
    for case in cases:
        if case.settings.space and _is_on(paths.get(case.test, ""), case.settings):
            required[case.test] = max(case.settings.space, required.get(case.test, 0))
    return [replace(entry, bytes=entry.bytes + required.get(entry.name, 0)) for entry in entries]


def _is_on(path: str, settings: RunSettings) -> bool:
    """Return whether the space of a run is asked for on the file system at a path, on which its
    directory is."""
    asked = os.path.normpath(Path(settings.directory or path) / settings.space_path)
    return path != "" and Path(asked).is_relative_to(path)


def bytes_of_deck(deck: Deck | None, folder: str) -> int:
    """Return the bytes that each run takes for its own copy of a deck; 0 if it has none."""
    return size_of(Path(folder) / deck.source) if deck and deck.how == "per_run" else 0


def bytes_on_targets(decks: Iterable[tuple[Deck | None, str]], targets: int) -> int:
    """Return the bytes of the copies of decks (each with its test's folder) on each of so many
    metadata targets. They stay as long as the trial runs. Tests with the same deck share its
    copies."""
    sources = {
        os.path.normpath(Path(folder) / deck.source)
        for deck, folder in decks
        if deck is not None and deck.how == "per_target"
    }
    return targets * sum(size_of(Path(each)) for each in sources if os.path.exists(each))  # noqa: PTH110


def size_of(path: Path) -> int:
    """Return the bytes of a file, or of the files in a folder and its subfolders."""
    if not path.is_dir():
        return path.stat().st_size
    files = (Path(above) / name for above, _, names in os.walk(path) for name in names)
    return sum(file.lstat().st_size for file in files)


# ---- file systems -------------------------------------------------------------------------


def targets_of(component: Component, system: FileSystem) -> list[MetadataTarget]:
    """Return the metadata targets of a file system that hold runs of a component."""
    wanted = component.targets
    return [each for each in system.metadata_targets if not wanted or each.name in wanted]


def safe_load_of(component: Component, system: FileSystem) -> float:
    """Return the maximum load of each metadata target; 0 for no limit."""
    return system.safe_load if component.caps.safe_load else 0.0


def _caps(
    component: Component,
    machine: Machine,
    entries: Sequence[Entry],
    decks: Sequence[tuple[Deck | None, str]],
) -> resolved.Caps:
    """Return the caps. The space of copies on targets is subtracted from the space for the decks of
    runs."""
    by_system: dict[str, list[tuple[Deck | None, str]]] = {}
    for entry, deck in zip(entries, decks, strict=True):
        if entry.file_system:
            by_system.setdefault(entry.file_system, []).append(deck)
    space, runs = {}, {}
    for name in sorted(by_system):
        system = machine.file_systems[name]
        if system.runs:
            runs[name] = system.runs
        if whole := system.space.bytes:
            taken = bytes_on_targets(by_system[name], len(targets_of(component, system)))
            largest = max(entry.bytes for entry in entries if entry.file_system == name)
            space[name] = max(1, whole - taken, largest)  # one run may start, and its job asks
    caps = component.caps
    return resolved.Caps(
        machine=caps.machine, per_target=caps.per_target, file_systems=runs, bytes=space
    )


def _targets(
    component: Component, machine: Machine, entries: Iterable[Entry]
) -> list[resolved.PolicyTarget]:
    """Return the metadata targets that hold runs of these entries."""
    file_systems = dict.fromkeys(entry.file_system for entry in entries if entry.file_system)
    return [
        resolved.PolicyTarget(
            name=f"{name}/{target.name}",
            file_system=name,
            weight=target.weight,
            safe=safe_load_of(component, machine.file_systems[name]),
            gauge=target.gauge if component.placement == "least_loaded" else "",
        )
        for name in file_systems
        for target in targets_of(component, machine.file_systems[name])
    ]


# ---- time and people ----------------------------------------------------------------------


def windows_of(spans: Iterable[TimeSpan], names: Sequence[str], machine: Machine) -> list[Window]:
    """Return the spans that concern these tests and nodes. A span about other tests or missing
    nodes is left out, because an empty list means all of them to the conductor."""
    known = frozenset(node_names(machine))
    windows = []
    for span in spans:
        entries = [i for i, name in enumerate(names) if fits(span.tests, name)]
        nodes = kept(span.nodes, known) if span.nodes else ""
        if (span.tests and not entries) or (span.nodes and not nodes):
            continue
        windows.append(
            Window(
                start=span.start.seconds,
                end=span.end.seconds,
                reason=span.reason,
                nodes=nodes,
                entries=entries if span.tests else [],
                absolute=span.start.absolute,
            )
        )
    return windows
