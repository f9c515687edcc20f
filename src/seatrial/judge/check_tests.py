"""Check the ``verify`` and ``metrics`` keys of tests before anything runs."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from seatrial.errors import suggest
from seatrial.judge.check_values import (
    bounds_of,
    depends,
    faults_of_check,
    faults_of_names,
    names_of,
)
from seatrial.judge.derived import OTHER, SHARE_UNITS, ratios_of, unlike
from seatrial.judge.metrics import faults_of_consistency, faults_of_metrics, figure_names
from seatrial.judge.promises import fault_of_unit, promises_of
from seatrial.judge.python_function import fault_of_source
from seatrial.judge.script_check import faults_of_script
from seatrial.model.documents import Faults, Faulty
from seatrial.model.expressions import ExpressionError
from seatrial.model.figures import ELAPSED
from seatrial.model.machine import Machine
from seatrial.model.suite import Suite, names_written
from seatrial.model.test import Case, Check, Metric, Test
from seatrial.units import converted


def check_judging(suite: Suite) -> None:
    """Add the faults of every test's ``verify`` and ``metrics`` to those of the suite."""
    for name, test in suite.tests.items():
        first: dict[str, int] = {}  # the checks by name
        written = names_written(suite.nodes[name], suite.faulty.get(name, Faulty()))
        for i, check in enumerate(test.verify):
            faults_found = [*faults_of_check(check), *_faults_of_function(check, test)]
            faults_found += faults_of_script(check, Path(test.folder))
            faults_found += faults_of_consistency(check, test)
            if written is not None:
                faults_found += faults_of_names(check, [*test.parameter_names, *sorted(written)])
            for key, message in faults_found:
                suite.fault(name, ["verify", i, *filter(None, key.split("."))], message)
            if check.name and first.setdefault(check.name, i) != i:
                message = f"{check.name!r} is the name of verify[{first[check.name]}] too"
                suite.fault(name, ["verify", i, "name"], message)
        for key, message in (*faults_of_metrics(test), *faults_of_ratios(test)):
            suite.fault(name, key.split("."), message)
        for whole, places, message in faults_of_parts(test):
            suite.fault(name, ["parts", whole, *places], message)


def check_promises(
    suite: Suite,
    cases: Iterable[Case],
    machine: Machine,
    faults: Faults,
    folder_of: Callable[[str], str],
) -> None:
    """Add the faults of metrics whose unit is of another dimension than what was promised of them,
    to those of the suite, too. ``folder_of`` returns where the cases of a test work that ask for no
    directory; "" if that is not known."""
    places = dict.fromkeys(
        (case.test, case.settings.directory or folder_of(case.test)) for case in cases
    )
    for name, place in places:
        test = suite.tests[name]
        promises = promises_of(machine, test, place)
        units = {key: one.unit for key, one in test.metrics.items() if isinstance(one, Metric)}
        for metric in promises.keys() & units.keys():
            promise = promises[metric]
            if not promise.reason and (fault := fault_of_unit(promise, units[metric])):
                remedy = f"write `advertised: {{{metric}: none}}`, or another name, into the test"
                by = f"which {promise.by} advertises for {promise.name}"
                suite.fault(name, ["metrics", metric, "unit"], f"{fault}, {by}; {remedy}")
                faults.add_all(suite.faults[name])


def _faults_of_function(check: Check, test: Test) -> Iterator[tuple[str, str]]:
    if check.python is not None and (fault := fault_of_source(check.python, Path(test.folder))):
        yield "python", fault


def check_bounds(suite: Suite, cases: Iterable[Case], machine: Machine, faults: Faults) -> None:
    """Add the faults of bounds that depend on the case, to those of the suite, too: the first of
    each check that has no value in one of these cases."""
    checks = {
        name: dependent
        for name, test in suite.tests.items()
        if (dependent := {i: check for i, check in enumerate(test.verify) if depends(check)})
    }
    for case in cases if checks else ():
        if case.test not in checks:
            continue
        names = names_of(suite.tests[case.test], case, machine)
        for i, check in list(checks[case.test].items()):
            try:
                bounds_of(check, names)
            except ExpressionError as error:
                message = f"{error}, in the case {case.name}"
                suite.fault(case.test, ["verify", i, *error.key], message)
                faults.add_all(suite.faults[case.test])
                del checks[case.test][i]


# ---- derived figures -----------------------------------------------------------------------------
#
# Ratios of metrics, and parts of a whole.


def faults_of_ratios(test: Test) -> Iterator[tuple[str, str]]:
    """Yield the faults of the ratios of a test as a person wrote them: a key, and a message. What
    only a run tells, such as the units of an output format, is judged then."""
    units = _units(test)
    for name, metric in test.metrics.items():
        if isinstance(metric, Metric) and (metric.of or metric.over):
            for key, message in _faults_of_ratio(test, metric, units):
                yield f"metrics.{name}.{key}", message


def _faults_of_ratio(
    test: Test, metric: Metric, units: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """Yield the faults of one ratio: a key of the metric, and a message."""
    if metric.find:
        yield "find", "a metric is found, or is a ratio: give `find`, or `of` and `over`"
    others = {"in": metric.in_file != "stdout", "reduce": metric.reduce is not None}
    others["size_limit"] = metric.size_limit is not None
    for key in [key for key, given in others.items() if given]:
        yield key, "is of metrics that are found; a ratio has `of` and `over`"
    if metric.unit not in SHARE_UNITS:
        yield "unit", f"{metric.unit} is no unit of a ratio; write 1 or %"
    for key, asked in (("of", metric.of), ("over", metric.over)):
        if fault := _fault_of_name(test, asked):
            yield key, fault
    first, second = units.get(metric.of), units.get(metric.over)
    if first and second and converted(1, first, second) is None:
        yield "over", unlike(metric.of, first, metric.over, second)


def _units(test: Test) -> dict[str, str]:
    """Return the units of the metrics of a test that are known before a run, by name."""
    metrics = test.metrics.items()
    known = {name: each.unit for name, each in metrics if isinstance(each, Metric) and each.find}
    return {ELAPSED: "s", **known}


def _fault_of_name(test: Test, asked: str) -> str:
    """Return why a metric cannot be a part of another one; "" if it can. Labels are not looked at:
    outputs differ."""
    if not asked:
        return "is missing; `of` and `over` are given together"
    if asked in ratios_of(test):
        return f"{asked} is a ratio itself; name metrics that are found"
    known = figure_names([test])
    if known is None or {asked, asked.partition("{")[0]} & {ELAPSED, *known}:
        return ""
    remedy = suggest(asked, known) or f"there are {', '.join(sorted(known))}"
    return f"the test has no metric {asked}; {remedy}"


def faults_of_parts(test: Test) -> Iterator[tuple[str, list[int], str]]:
    """Yield the faults of the ``parts`` of a test as a person wrote them: the whole, the place of a
    part in it, and a message."""
    units = _units(test)
    for whole, names in test.parts.items():
        if fault := _fault_of_name(test, whole):
            yield whole, [], fault
        if not names:
            yield whole, [], "has no parts; name metrics of the test"
        for i, name in enumerate(names):
            if fault := _fault_of_part(test, whole, names[:i], name, units):
                yield whole, [i], fault


def _fault_of_part(
    test: Test, whole: str, before: Sequence[str], name: str, units: Mapping[str, str]
) -> str:
    if name == whole:
        return f"{name} is the whole itself"
    if name in before:
        return f"{name} is there twice"
    if name == OTHER:
        return f"`{OTHER}` is what the parts leave; name the metric else"
    if fault := _fault_of_name(test, name):
        return fault
    if whole in units and name in units and converted(1, units[name], units[whole]) is None:
        return unlike(name, units[name], whole, units[whole])
    return ""
