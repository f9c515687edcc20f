"""Check the ``verify`` and ``metrics`` keys of tests before anything runs."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from seatrial.judge.check_values import (
    bounds_of,
    depends,
    faults_of_check,
    faults_of_names,
    names_of,
)
from seatrial.judge.consistency import faults_of_consistency
from seatrial.judge.derived import faults_of_parts, faults_of_ratios
from seatrial.judge.metrics import faults_of_metrics
from seatrial.judge.promises import fault_of_unit, promises_of
from seatrial.judge.python_function import fault_of_source
from seatrial.judge.script_check import faults_of_script
from seatrial.model.documents import Faults, Faulty
from seatrial.model.expressions import ExpressionError
from seatrial.model.machine import Machine
from seatrial.model.suite import Suite, names_written
from seatrial.model.test import Case, Check, Metric, Test


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
