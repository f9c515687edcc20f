"""Prepares a tuning: from tune.yaml, its test and a machine to settings and the rules of a race.

    prepared = prepare_tuning(Path("tune.yaml"), "frost")     # reads and checks all; runs nothing
    folder = create(trials, prepared.record(tag), prepared.cases)

Settings are cases of the test, in the order of the grid. All faults of all files are told at once.
"""

import math
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from seatrial.decide.sweep import first_block
from seatrial.errors import UsageError, suggest
from seatrial.execute.creation import suite_record
from seatrial.execute.detect import find_machine
from seatrial.execute.launchers import launch_of
from seatrial.execute.prepare import Prepared
from seatrial.execute.script import run_variables
from seatrial.execute.trial_folder import Record
from seatrial.judge.check_tests import check_bounds, check_judging
from seatrial.judge.check_values import names_of
from seatrial.judge.metrics import figure_names
from seatrial.judge.reading import Unreadable, read_text
from seatrial.judge.references import load_for, units_of
from seatrial.model.build import BuildKeys
from seatrial.model.documents import Faults, Location
from seatrial.model.expand import Expansion, expand
from seatrial.model.expressions import ExpressionError, compile_expression
from seatrial.model.figures import ELAPSED
from seatrial.model.file_model import Scalar, encode, plain
from seatrial.model.identifiers import bindings_text, show
from seatrial.model.machine import Machine
from seatrial.model.machine_file import Site
from seatrial.model.policy import RaceRules, ThrottleRule
from seatrial.model.requirements import unlike_nodes
from seatrial.model.suite import Suite, load
from seatrial.model.test import Case, CaseSelection, Metric, RunSpec, Test, TrialOptions
from seatrial.model.tune_file import (
    LEAST_SWEPT,
    MAX_SETTINGS,
    MAX_SWEPT,
    TOOLCHAIN,
    LoadedTuning,
    TuneFile,
    axis_value,
    is_ordered,
    load_tune,
)
from seatrial.units import Better, count, listed, show_bytes, show_share

TUNE_SEED = 1  # of the order of runs: the same file asks for the same tuning


class PreparedTuning(NamedTuple):
    """A tuning that can run: its file, the rules of its race, its settings as cases of a trial."""

    tune: TuneFile
    text: str
    rules: RaceRules
    prepared: Prepared
    throttles: list[ThrottleRule] = []

    @property
    def cases(self) -> list[Case]:
        return self.prepared.cases

    @property
    def longest_block(self) -> float:
        """The time that the runs of an allocation take at most, in seconds."""
        rules, walltimes = self.rules, [case.walltime for case in self.cases]
        runs = min(rules.runs, len(walltimes) * rules.rounds)
        if rules.search == "sweep":  # the runs of a block that share an allocation have one shape
            shapes = Counter(rules.sizes)
            runs = min(first_block(rules), max(shapes.values(), default=0))
        return runs * max(walltimes, default=0.0)

    def record(self, tag: str, consent: Sequence[str] = ()) -> Record:
        """Return the record of its trial; ``consent``: who consented to its test, if harmful."""
        asked = replace(self.prepared.asked, consent=list(consent))
        record = suite_record(self.prepared._replace(asked=asked), tag)
        policy = replace(record.policy, kind="race", race=self.rules, throttles=self.throttles)
        return replace(record, policy=policy, tuning=self.tune, tuning_text=self.text)


def prepare_tuning(path: Path, machine: str | None, with_builds: bool = True) -> PreparedTuning:
    """Read a tuning, its suite and the machine; check everything. Raises InvalidFiles with every
    fault, and UsageError."""
    site = find_machine(machine)
    faults = Faults()
    loaded = load_tune(path, faults)
    if loaded is None:
        faults.raise_any()
        raise UsageError(f"{path}: is no tuning")
    at = loaded.location(faults)
    suite, test = _load_test(loaded, faults)
    better = _check_names(loaded.tune, test, at) if test.name else "lower"
    faults.raise_any()
    cases, skipped = _settings(loaded, suite, test, site, faults, with_builds)
    check_bounds(suite, cases, site.machine, faults)
    faults.raise_any()
    rules = _rules(loaded.tune, test, cases, better, at)
    throttles = _throttles(loaded.tune, site.machine, at)
    faults.raise_any()
    options = TrialOptions(suites=[str(suite_folder(loaded))], together=True)
    references, broken = load_for(site.references, [test.name], units_of([test]))
    prepared = Prepared(
        options, site, {test.name: test}, cases, skipped, references.entries, broken
    )
    text = loaded.path.read_text(errors="replace")  # plain: the user's own tuning
    return PreparedTuning(loaded.tune, text, rules, prepared, throttles)


def suite_folder(loaded: LoadedTuning) -> Path:
    """Return the folder of a tuning's suite."""
    return Path(os.path.normpath(loaded.path.parent / loaded.tune.suite))


# ---- the test -----------------------------------------------------------------------------


def _load_test(loaded: LoadedTuning, faults: Faults) -> tuple[Suite, Test]:
    """Return the suite with this test alone. Raises UsageError for a suite that is not there."""
    try:
        whole = load([suite_folder(loaded)])
    except UsageError as error:
        loaded.location(faults).fault(str(error), "suite")
        return Suite({}, {}, {}, {}, Faults()), Test(name="", folder="", app="")
    name = loaded.tune.test
    suite = whole.only([name])
    check_judging(suite)
    for own in (suite.of_folders, *suite.faults.values()):
        faults.add_all(own)
    if name not in whole.names:
        known = ", ".join(whole.names)
        remedy = suggest(name, whole.names) or f"there are {known}"
        loaded.location(faults).fault(
            f"no test {name!r} in {suite_folder(loaded)}; {remedy}", "test"
        )
    return suite, suite.tests.get(name) or Test(name="", folder="", app="")


def _check_names(tune: TuneFile, test: Test, at: Location) -> Better:
    """Check axes, parameters and the metric against the test. Return the metric's direction."""
    for name in tune.axes:
        if name != TOOLCHAIN:
            _check_parameter(name, test, at, "axes")
        for group in test.zip:
            if name in group:
                at.fault(f"advances together with others ({', '.join(group)}: zip)", "axes", name)
    for name in tune.parameters:
        _check_parameter(name, test, at, "parameters")
    if test.only_builds:
        at.fault(f"{test.name} has no run; name a test that has one", "test")
    _others(tune, test, at)
    return tune.better or _direction(tune.metric, test, at, "metric")


def _check_parameter(name: str, test: Test, at: Location, key: str) -> None:
    if name not in test.parameter_names:
        known = ", ".join(test.parameter_names) or "none"
        remedy = suggest(name, test.parameter_names) or f"its parameters are {known}"
        at.fault(f"is no parameter of the test {test.name}; {remedy}", key, name)


def _others(tune: TuneFile, test: Test, at: Location) -> dict[str, Better]:
    """Return the further figures of a sweep with their directions: where the test does not say it,
    the one that the file gives."""
    found: dict[str, Better] = {}
    for i, name in enumerate(tune.also):
        own = test.metrics.get(name)
        is_told = isinstance(own, Metric) and own.better != "none"
        is_known = isinstance(own, Metric) or figure_names([test]) is None
        if tune.better and is_known and not is_told:
            found[name] = tune.better
        else:
            found[name] = _direction(name, test, at, "also", i)
    return found


def _direction(name: str, test: Test, at: Location, *key: str | int) -> Better:
    """Return which direction of a figure is better, by the test."""
    if name in ("", ELAPSED):
        return "lower"
    metric = test.metrics.get(name)
    if isinstance(metric, Metric):
        if metric.direction != "none":
            return metric.direction
        at.fault("the test does not say which direction is better; say so by `better:`", *key)
        return "lower"
    known = figure_names([test])
    if known is not None and name not in known:
        among = ", ".join(sorted({*known, ELAPSED}))
        remedy = suggest(name, known) or f"it has {among}"
        at.fault(f"the test {test.name} has no figure {name!r}; {remedy}", *key)
    else:
        at.fault("add `better: lower` or `better: higher`: the test does not say it", *key)
    return "lower"


# ---- the settings ---------------------------------------------------------------------------


def _settings(
    loaded: LoadedTuning, suite: Suite, test: Test, site: Site, faults: Faults, with_builds: bool
) -> tuple[list[Case], list[tuple[str, str]]]:
    """Return the settings as cases, in the order of the grid, and those that cannot run on the
    machine, with the reasons."""
    tune, at = loaded.tune, loaded.location(faults)
    bound, chains = _bound(tune, test)
    if TOOLCHAIN in tune.axes and not _has_toolchains(chains, site.machine, at):
        return [], []
    own = suite._replace(tests={test.name: bound})
    selection = CaseSelection(toolchains=chains)
    keys = BuildKeys() if with_builds else None
    expansion = expand(own, site.machine, selection, faults, keys)
    if faults.found:
        return [], []
    _check_free(expansion.cases, tune, test, at)
    cases = sorted(_where(expansion.cases, tune, bound, site, at), key=_in_grid(tune))
    cases, too_large = _within_space(cases, tune, at)
    expansion.skipped.extend(too_large)
    if not cases and not faults.found:
        _check_left(expansion, too_large, site.machine, at)
    if tune.search != "largest" and not faults.found:
        default = {axis: _used_today(axis, tune, test) for axis in tune.axes}
        cases, same = merged(cases, bound, site.machine, [*tune.axes], default)
        expansion.skipped.extend((case.name, reason) for case, reason in same)
    _check_cases(cases, tune, test, site.machine, at)
    return cases, expansion.skipped


def _check_left(
    expansion: Expansion, too_large: Sequence[tuple[str, str]], machine: Machine, at: Location
) -> None:
    """Say why no setting is left, unless all that the conditions left take too much space."""
    if not expansion.cases:
        reasons = dict.fromkeys(reason for _, reason in expansion.skipped)
        at.fault(f"no setting can run on {machine.machine}: {listed([*reasons], 3)}", "axes")
    elif not too_large:
        at.fault(f"leaves none of the {count(len(expansion.cases), 'setting')}", "where")


def _within_space(
    cases: list[Case], tune: TuneFile, at: Location
) -> tuple[list[Case], list[tuple[str, str]]]:
    """Return the cases whose runs take no more space than the tuning may use, and the others with
    the reason."""
    limit = tune.space.bytes
    if not limit or not cases:
        return cases, []
    if not any(case.settings.space for case in cases):
        text = f"the test {tune.test} does not say what its runs take; give it requires.space"
        at.fault(text, "space")
    kept = [case for case in cases if case.settings.space <= limit]
    if not kept:
        least = show_bytes(min(case.settings.space for case in cases))
        at.fault(f"each setting takes more; the smallest takes {least}", "space")
    return kept, [
        (case.name, f"takes {show_bytes(case.settings.space)}, more than {show_bytes(limit)}")
        for case in cases
        if case.settings.space > limit
    ]


def _bound(tune: TuneFile, test: Test) -> tuple[Test, list[str]]:
    """Return the test with the values of the file, and the toolchains."""
    chosen: dict[str, list[Scalar]] = {name: list(each) for name, each in tune.axes.items()}
    chosen |= {name: [value] for name, value in tune.parameters.items()}
    chains = [str(each) for each in chosen.pop(TOOLCHAIN, ["default"])]
    usual = {name: value for name, value in test.defaults.items() if name not in chosen}
    parameters = {**test.parameters, **chosen}
    return replace(test, parameters=parameters, defaults=usual, repeat=1), chains


def _check_cases(
    cases: Sequence[Case], tune: TuneFile, test: Test, machine: Machine, at: Location
) -> None:
    """Check the nodes and the number of the settings."""
    if differing := unlike_nodes(machine, test.requires.features, cases):
        at.fault(
            f"its runs may get nodes that differ ({differing}), and the advice for one kind is not "
            "that for another: choose one kind by run.partition or requires.features of the test, "
            "or by slurm.nodelist of the machine",
            "test",
        )
    max_nodes = max((case.nodes for case in cases), default=0)
    if tune.blocks.nodes not in (0, max_nodes) and cases:
        at.fault(f"is {tune.blocks.nodes}, and the runs need {max_nodes}", "blocks", "nodes")
    most = MAX_SWEPT if tune.search == "sweep" else MAX_SETTINGS
    if len(cases) > most:
        at.fault(f"gives {len(cases)} settings; the most are {most}", "axes")


def _has_toolchains(names: Sequence[str], machine: Machine, at: Location) -> bool:
    """Add a fault for each name of the axis ``toolchain`` that the machine does not have."""
    known = machine.toolchains
    missing = [place for place, name in enumerate(names) if name not in known]
    for place in missing:
        remedy = suggest(names[place], known) or f"it has {', '.join(known) or 'none'}"
        text = f"{machine.machine} has no toolchain {names[place]!r}; {remedy}"
        at.fault(text, "axes", TOOLCHAIN, place)
    return not missing


def _in_grid(tune: TuneFile) -> Callable[[Case], list[int]]:
    """Return the key by which settings are sorted: the places of their values on the axes."""
    places = {
        axis: {show(value): place for place, value in enumerate(values)}
        for axis, values in tune.axes.items()
    }
    return lambda case: [
        known.get(show(axis_value(case, axis)), len(known)) for axis, known in places.items()
    ]


def _check_free(cases: list[Case], tune: TuneFile, test: Test, at: Location) -> None:
    """Add a fault for each parameter that is no axis and has several values."""
    for name in test.parameters:
        values = dict.fromkeys(show(case.parameters[name]) for case in cases)
        if name not in tune.axes and len(values) > 1 and not _follows(name, cases, tune):
            text = f"{name} of the test has {len(values)} values ({listed([*values], 4)}) and is "
            at.fault(f"{text}no axis; give one of them here", "parameters", name)


def _follows(name: str, cases: list[Case], tune: TuneFile) -> bool:
    """Return whether a parameter has one value for each setting, as it follows from the axes."""
    values: dict[tuple[str, ...], str] = {}
    for case in cases:
        setting = tuple(show(axis_value(case, axis)) for axis in tune.axes)
        if values.setdefault(setting, show(case.parameters[name])) != show(case.parameters[name]):
            return False
    return True


def _where(cases: list[Case], tune: TuneFile, test: Test, site: Site, at: Location) -> list[Case]:
    """Return the cases that meet all conditions."""
    conditions = list(enumerate(map(compile_expression, tune.where)))
    faulty: set[int] = set()
    left = []
    for case in cases if conditions else []:
        names = names_of(test, case, site.machine)
        met = True
        for i, condition in conditions:
            try:
                met = bool(condition.evaluate(names)) and met
            except ExpressionError as error:
                if i not in faulty:
                    at.fault(str(error), "where", i)
                faulty.add(i)
        if met:
            left.append(case)
    return left if conditions else cases


# ---- the rules ------------------------------------------------------------------------------


def _used_today(axis: str, tune: TuneFile, test: Test) -> Scalar:
    """Return the value of the setting that is used today: as the file says, else the test's own
    where it is among those that are tried, else the first."""
    values, own = tune.axes[axis], test.defaults.get(axis)
    is_tried = own is not None and show(own) in map(show, values)
    return tune.default.get(axis, own if own is not None and is_tried else values[0])


def _default(tune: TuneFile, test: Test, settings: Sequence[list[str]], at: Location) -> int:
    """Return the number of the setting that is used today."""
    default = [show(_used_today(name, tune, test)) for name in tune.axes]
    if default in settings:
        return settings.index(default)
    if tune.search != "largest":
        bound = ", ".join(f"{n}={v}" for n, v in zip(tune.axes, default, strict=True))
        at.fault(
            f"{bound} is not in the grid, as a condition or the machine leaves it out; "
            "name another setting as default",
            "default",
        )
    return 0


def _rules(
    tune: TuneFile, test: Test, cases: list[Case], better: Better, at: Location
) -> RaceRules:
    axes = {name: list(map(show, values)) for name, values in tune.axes.items()}
    settings = [[show(axis_value(case, axis)) for axis in axes] for case in cases]
    places = [list(dict.fromkeys(row[i] for row in settings)) for i in range(len(axes))]
    levels = [[places[i].index(word) for i, word in enumerate(row)] for row in settings]
    rules = RaceRules(
        levels=levels,
        default=_default(tune, test, settings, at),
        metric=tune.metric,
        better=better,
        search=tune.search,
        rounds=tune.blocks.rounds,
        allocations=tune.blocks.allocations,
        min_effect=tune.min_effect.fraction,
        seed=TUNE_SEED,
    )
    if tune.search == "largest":
        return replace(rules, runs=max(1, len(cases).bit_length()))
    if tune.search == "sweep":
        return _rules_of_sweep(rules, tune, test, cases, at)
    if tune.search == "grid":
        return replace(rules, runs=rules.grid)
    return replace(rules, runs=_runs_of_race(rules, tune, cases, at))


def _runs_of_race(rules: RaceRules, tune: TuneFile, cases: Sequence[Case], at: Location) -> int:
    """Return how many runs a race may cost, which are one of each setting at least."""
    share = tune.cost.fraction
    runs = int(share * rules.grid + 1e-9)
    if runs < len(cases):
        need = show_share(len(cases) / rules.grid)
        at.fault(
            f"{show_share(share)} of {rules.grid} runs are {runs}, and one round of "
            f"{count(len(cases), 'setting')} takes {len(cases)}: write at least {need}, or more "
            "rounds or allocations",
            "cost",
        )
    return runs


def _rules_of_sweep(
    rules: RaceRules, tune: TuneFile, test: Test, cases: list[Case], at: Location
) -> RaceRules:
    """Return the rules of a sweep. Each setting of its grid counts as one run."""
    runs = tune.runs or int(tune.cost.fraction * len(cases) + 1e-9)
    if runs < LEAST_SWEPT and not tune.runs:
        share = f"{show_share(tune.cost.fraction)} of {count(len(cases), 'setting')}"
        at.fault(
            f"{share} are {count(runs, 'run')}, and a sweep takes {LEAST_SWEPT} or more: write "
            f"runs: {max(LEAST_SWEPT, len(cases))}, or more values of the axes",
            "cost",
        )
    return replace(
        rules,
        rounds=1,
        allocations=1,
        runs=runs,
        ordered=[is_ordered(values) for values in tune.axes.values()],
        sizes=[(case.nodes, case.tasks) for case in cases],
        others=_others(tune, test, at),
        seconds=tune.time.seconds,
    )


def _throttles(tune: TuneFile, machine: Machine, at: Location) -> list[ThrottleRule]:
    """Return the throttle by the load of production, if the tuning has one."""
    if tune.load is None:
        return []
    gauge = machine.all_gauges.get(tune.load.gauge)
    if gauge is None:
        known = listed([*machine.all_gauges], 6) or "none"
        text = f"{machine.machine} has no gauge {tune.load.gauge!r}; it has {known}"
        at.fault(text, "load", "gauge")
        return []
    if not math.isfinite(tune.load.below):
        at.fault(f"{tune.load.below:g} is no limit; give a number", "load", "below")
    stale = max(300.0, 2 * (gauge.every.seconds + gauge.timeout.seconds))
    below = tune.load.below
    return [ThrottleRule(gauge=tune.load.gauge, high=below, low=below, stale_after=stale)]


# ---- settings that run alike ---------------------------------------------------------------------
#
# Settings of a tuning that run in the same way: on a full node all spreads give one launch line.
#
#     kept, left_out = merged(cases, test, machine, axes, default)
#     left_out        # [(case of spread=pack, "it runs as spread=numa does: ...")]
#
# Only an axis that the test names in keys of ``run`` alone, such as ``spread: spread``, can have
# such values: a script that names it, or a file of the test that does, may do something else with
# each.


MAX_SEARCHED_BYTES = 1 << 20  # of a file of the test that is searched for the name of an axis
SAME = "the same launch, environment and script"
_OWN_FILES = ("test.yaml", "tune.yaml")


def merged(
    cases: Sequence[Case],
    test: Test,
    machine: Machine,
    axes: Sequence[str],
    default: Mapping[str, Scalar],
) -> tuple[list[Case], list[tuple[Case, str]]]:
    """Return the cases, of those that run in the same way one: the default, else the first; and
    the others with the reason."""
    idle = [axis for axis in axes if axis != TOOLCHAIN and _is_of_run_alone(axis, test)]
    if not idle:
        return list(cases), []
    groups: dict[bytes, list[Case]] = {}  # by the way in which they run
    for case in cases:
        groups.setdefault(_way(case, test, machine, idle), []).append(case)
    usual = {axis: show(value) for axis, value in default.items()}
    dropped = [each for group in groups.values() for each in _dropped(group, axes, usual)]
    gone = {case.id for case, _ in dropped}
    return [case for case in cases if case.id not in gone], dropped


def _dropped(
    group: Sequence[Case], axes: Sequence[str], usual: Mapping[str, str]
) -> Iterator[tuple[Case, str]]:
    """Yield all but one of cases that run in the same way, each with the reason."""
    kept = next((case for case in group if _setting(case, axes) == usual), group[0])
    reason = f"it runs as {bindings_text(_setting(kept, axes))} does: {SAME}"
    yield from ((case, reason) for case in group if case is not kept)


def _setting(case: Case, axes: Sequence[str]) -> dict[str, str]:
    return {
        axis: show(case.toolchain if axis == TOOLCHAIN else case.parameters[axis]) for axis in axes
    }


def _way(case: Case, test: Test, machine: Machine, idle: Sequence[str]) -> bytes:
    """Return how a case runs; cases for which it is equal run in the same way."""
    launch = launch_of(machine, test, case)
    others = {name: show(value) for name, value in case.parameters.items() if name not in idle}
    like = replace(case, id="", parameters=others, placement=type(case.placement)())
    return msgspec.json.encode(
        [like, launch.line, launch.before, run_variables(machine, test, case)]
    )


def _is_of_run_alone(axis: str, test: Test) -> bool:
    """Return whether a test names an axis in keys of ``run``, and nowhere where it may do anything
    with it. One that it names nowhere is a variable that its programs may read."""
    word = re.compile(rf"\b{re.escape(axis)}\b")
    keys = plain(replace(test.run, script=""))
    if not any(isinstance(value, str) and word.search(value) for value in keys.values()):
        return False
    rest = replace(test, run=RunSpec(script=test.run.script), parameters={}, defaults={}, name="")
    if word.search(encode(replace(rest, folder="")).decode()):
        return False
    for path in Path(test.folder).rglob("*"):
        if path.is_file() and path.name not in _OWN_FILES:
            try:
                if word.search(read_text(path.parent, path.name, MAX_SEARCHED_BYTES, "")):
                    return False
            except Unreadable:
                return False
    return True
