"""Check the criteria, evidence, waivers and items of a component."""

import hashlib
import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from seatrial.execute.plan.component import chosen_tests, fits, id_of, only_evidence
from seatrial.files import open_regular
from seatrial.judge.file_use import UNITS
from seatrial.judge.metrics import figure_names
from seatrial.model.documents import Location, unread
from seatrial.model.figures import ELAPSED
from seatrial.model.kinds import criterion_kinds, kind_of, named
from seatrial.model.machine import Machine
from seatrial.model.moments import day_of
from seatrial.model.plan import (
    WHOLE_MACHINE,
    ChecklistItem,
    Component,
    Criterion,
    Plan,
    bound_of,
    has_unit,
    is_relative,
)
from seatrial.model.suite import Suite
from seatrial.model.test import Metric, Test

_OF_ITEMS = "items_passed"

_ABOUT = ("criterion", "tests", "metric", "stage")  # what two criteria must differ in


def check_conditions(
    component: Component, suite: Suite | None, machine: Machine | None, at: Location
) -> None:
    """Add the faults of a component's criteria, waivers and items. ``suite`` is None if not all of
    its tests are known."""
    _criteria(component, suite, machine, at)
    _waivers(component, suite, machine, at)
    if component.kind == "checklist":
        _checklist(component, at)


def _criteria(
    component: Component, suite: Suite | None, machine: Machine | None, at: Location
) -> None:
    runs = any(unread(at, key) for key in ("tests", "suites", "select"))
    if component.criteria and only_evidence(component) and not runs:
        at.fault("nothing runs here that could meet them; remove them", "criteria")
        return
    first: dict[object, int] = {}
    for i, criterion in enumerate(component.criteria):
        location = at.inside("criteria", i)
        is_read = not any(unread(location, key) for key in _ABOUT)
        if is_read and (j := first.setdefault(_about(criterion), i)) != i:
            location.fault(f"is about the same as criteria[{j}]; make one of them")
        if not unread(location, "criterion"):  # the valid bounds and metrics depend on it
            _criterion(component, criterion, suite, machine, at, location)


def _criterion(
    component: Component,
    criterion: Criterion,
    suite: Suite | None,
    machine: Machine | None,
    at: Location,
    location: Location,
) -> None:
    """Check one criterion; ``at`` is the place of its component, ``location`` its own."""
    _bounds(criterion, location)
    if component.kind == "checklist" or criterion.criterion == _OF_ITEMS:
        _of_items(component, criterion, location)
        return
    _keys(component, criterion, at, location)
    _tests(component, criterion, suite, machine, location)
    _gauge(criterion, machine, location)


def _about(criterion: Criterion) -> tuple[object, ...]:
    """Return what a criterion is about, whatever its bounds."""
    expected = (criterion.of, criterion.within, criterion.two_sided, criterion.pooled)
    tests = frozenset(criterion.tests)
    if criterion.gauge:  # one may have several bounds, each for a share of the time
        return criterion.criterion, criterion.gauge, criterion.at_least, criterion.at_most
    return criterion.criterion, tests, criterion.metric, criterion.of_stage, *expected


def _keys(component: Component, criterion: Criterion, at: Location, location: Location) -> None:
    """Check that a criterion fits its component, and has the keys of its kind."""
    about = kind_of(criterion.criterion)
    kind = about.component or component.kind
    if kind != component.kind and not unread(at, "kind"):
        text = f"{criterion.criterion} is of kind {kind} alone; this is {component.kind}"
        location.fault(text, "criterion")
    _expected(criterion, location)
    if criterion.pooled and not about.pooled:
        location.fault(f"is of {' and '.join(named(pooled=True))} alone; remove it", "pooled")
    if criterion.stage is not None:
        _stage(component, criterion, at, location)
    if criterion.metric and not about.metric:
        location.fault(f"{criterion.criterion} is about no metric; remove it", "metric")
    elif criterion.criterion == "figure_of_merit" and not criterion.metric:
        location.fault("figure_of_merit needs it; name the metric", "metric")


def _of_items(component: Component, criterion: Criterion, location: Location) -> None:
    """Check that the criterion on items, and no other, is in a checklist."""
    if criterion.criterion != _OF_ITEMS:
        location.fault(
            f"{criterion.criterion} is about runs; a checklist has {_OF_ITEMS}", "criterion"
        )
    elif component.kind != "checklist":
        text = f"{_OF_ITEMS} is of kind checklist alone; this is {component.kind}"
        location.fault(text, "criterion")
    for key in ("tests", "metric"):
        if location.given(key):
            location.fault(f"{_OF_ITEMS} is about all items; remove it", key)


def _stage(component: Component, criterion: Criterion, at: Location, location: Location) -> None:
    if reason := kind_of(criterion.criterion).stageless:
        location.fault(f"{criterion.criterion} {reason}; remove it", "stage")
    elif component.kind != "isolated_then_full" and not unread(at, "kind"):
        text = f"runs of kind {component.kind} have none; isolated_then_full has"
        location.fault(f"{text}; remove it", "stage")


def _expected(criterion: Criterion, location: Location) -> None:
    """Check what ``within_expected`` alone has."""
    if criterion.criterion == "within_expected":
        if criterion.within is None:
            location.fault("within_expected needs it; say how far off a run may be: 5%", "within")
        return
    for key in ("within", "of", "two_sided"):
        if location.given(key):
            location.fault("is of within_expected alone; remove it", key)


def _gauge(criterion: Criterion, machine: Machine | None, location: Location) -> None:
    """Check what ``gauge`` alone has, and that the machine has the gauge."""
    if criterion.criterion != "gauge":
        for key in filter(location.given, ("gauge", "share")):
            location.fault("is of the criterion gauge alone; remove it", key)
        return
    known = machine.all_gauges if machine is not None else {}
    if not criterion.gauge:
        location.fault("the criterion gauge needs it; name a gauge of the machine", "gauge")
    elif machine is not None and criterion.gauge not in known:
        has = f"{machine.machine} has no gauge {criterion.gauge!r}; it has "
        location.fault(has + (", ".join(known) or "none"), "gauge")
    if criterion.tests:
        location.fault("the criterion gauge is about all the time of the trial; remove it", "tests")
    if not criterion.share.fraction and location.given("share"):
        location.fault("0 % would always be met; give a share, e.g. 95%", "share")


def _bounds(criterion: Criterion, location: Location) -> None:
    bounds = _parsed_bounds(criterion, location)
    if criterion.criterion == "every_test":
        for key in bounds:
            location.fault("every_test has no bound; remove it", key)
        return
    # figure_of_merit has the bounds of its reference
    if not bounds and criterion.criterion != "figure_of_merit":
        location.fault(f"{criterion.criterion} has no bound; give at_least, at_most, or both")
    if criterion.criterion == "mix" and criterion.at_least is not None:
        location.fault("a mix has no lower bound; give at_most, e.g. 5 points", "at_least")
    lower, upper = bounds.get("at_least"), bounds.get("at_most")
    if lower is not None and upper is not None and lower > upper and _comparable(criterion):
        text = f"{criterion.at_least} is more than at_most, {criterion.at_most}"
        location.fault(text, "at_least")


def _parsed_bounds(criterion: Criterion, location: Location) -> dict[str, float | None]:
    """Return the bounds that are given, by their keys; None for one that has a fault."""
    bound = partial(bound_of, criterion.criterion, metric=criterion.metric)
    bounds = {}
    for key in ("at_least", "at_most"):
        written = getattr(criterion, key)
        if written is not None:
            bounds[key] = location.parsed(bound, written, key)
    return bounds


def _comparable(criterion: Criterion) -> bool:
    """Return True if the two bounds of a criterion have the same unit. Those of a slowdown are a
    gain and a loss; those of a figure may be a number and a share of a reference."""
    if criterion.criterion == "figure_of_merit":
        sides = (criterion.at_least, criterion.at_most)
        plain = criterion.metric == ELAPSED or not any(map(has_unit, sides))
        return plain and len({is_relative(side) for side in sides}) == 1
    return criterion.criterion != "slowdown"


def _tests(
    component: Component,
    criterion: Criterion,
    suite: Suite | None,
    machine: Machine | None,
    location: Location,
) -> None:
    """Check the tests and the metric of a criterion, where all tests are known."""
    if suite is None:
        return
    chosen = chosen_tests(component, suite.names)
    _match(criterion.tests, chosen, "a test of this component", location, "tests")
    if not criterion.metric or not kind_of(criterion.criterion).metric:
        return
    wanted = [name for name in chosen if fits(criterion.tests, name)]
    tests = {name: suite.tests[name] for name in wanted if name in suite.tests}
    if chosen and len(tests) == len(wanted):
        _metric(criterion, tests, machine, location)
    _directions(criterion, tests, location)
    _units(criterion, tests, location)


def _metric(
    criterion: Criterion, tests: Mapping[str, Test], machine: Machine | None, location: Location
) -> None:
    """Check that one of the tests that a criterion is about has its metric."""
    known = figure_names(tests.values())
    if known is None:
        return
    counts_files = machine is None or machine.file_use is not None
    known = {*known, ELAPSED, *(UNITS if counts_files else ())}
    if criterion.metric not in known:
        listed = ", ".join(sorted(known))
        text = f"no test here has the metric {criterion.metric!r}; there are {listed}"
        location.fault(text, "metric")


def _directions(criterion: Criterion, tests: Mapping[str, Test], location: Location) -> None:
    """Check that the bounds of a criterion mean something for the directions of its metric."""
    metric, bounded = criterion.metric, (criterion.at_least, criterion.at_most) != (None, None)
    lower = [name for name, test in tests.items() if _direction(test, metric) == "lower"]
    alone = is_relative(criterion.at_least) and criterion.at_most is None
    if criterion.criterion == "figure_of_merit" and alone and lower:
        text = f"{metric} of {lower[0]} is better where it is lower: at_least alone"
        location.fault(f"{text} lets slow runs pass; write at_most, e.g. 105%", "at_least")
    if criterion.criterion == "slowdown" or not bounded:
        for name, test in tests.items():
            if _direction(test, metric) == "none":
                text = f"{metric} of {name} has no direction (better: none)"
                location.fault(f"{text}; name another metric", "metric")


def _units(criterion: Criterion, tests: Mapping[str, Test], location: Location) -> None:
    """Check that bounds with a unit can be converted into that of the metric, where it is known."""
    if criterion.criterion != "figure_of_merit" or criterion.metric == ELAPSED:
        return
    metrics = [test.metrics.get(criterion.metric) for test in tests.values()]
    units = dict.fromkeys(metric.unit for metric in metrics if isinstance(metric, Metric))
    for unit in units:
        bound = partial(bound_of, criterion.criterion, metric=criterion.metric, unit=unit)
        for key in ("at_least", "at_most"):
            if has_unit(written := getattr(criterion, key)):
                location.parsed(bound, written, key)


def _match(patterns: list[str], known: list[str], noun: str, location: Location, key: str) -> None:
    """Check that each pattern matches a name, if any names are known."""
    for i, pattern in enumerate(patterns):
        if known and not any(fits([pattern], name) for name in known):
            location.fault(f"{pattern!r} is not {noun}; it has {', '.join(known)}", key, i)


def _direction(test: Test, name: str) -> str:
    """Return where a metric of a test is better; "" if that is not known before it runs."""
    metric = test.metrics.get(name)
    if metric is None:
        return "lower" if name == ELAPSED else ""
    return metric.direction if isinstance(metric, Metric) else ""


def check_evidence(
    component: Component, folder: Path, at: Location, documents: bool = True
) -> None:
    """Check that each document that does not come later is signed; with ``documents`` also that it
    exists and has the checksum that was signed."""
    first: dict[str, int] = {}
    for i, evidence in enumerate(component.evidence):
        location = at.inside("evidence", i)
        if first.setdefault(evidence.document, i) != i:
            j = first[evidence.document]
            location.fault(f"{evidence.document!r} is that of evidence[{j}], too", "document")
        later = evidence.comes_later and not unread(location, "sha256")
        if evidence.signed_on or not later:
            location.parsed(day_of, evidence.signed_on, "signed_on")
        if later:
            continue
        if not evidence.signed_by.strip():
            location.fault("is empty; name who signed", "signed_by")
        if documents:
            _document(folder / evidence.document, evidence.sha256, location)


def _document(path: Path, sha256: str, location: Location) -> None:
    """Check that a document can be read, and has a checksum, if that is known."""
    try:
        with open_regular(path) as document:
            checksum = hashlib.file_digest(document, "sha256").hexdigest()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        text = f"{path}: cannot be read: {reason}; if it comes later, write pending: true"
        location.fault(text, "document")
        return
    if sha256 and checksum != sha256.lower():
        text = f"{path} has the checksum {checksum}: it is not the document that was signed"
        location.fault(text, "sha256")


def _waivers(
    component: Component, suite: Suite | None, machine: Machine | None, at: Location
) -> None:
    """Check that each waiver has a reason and names criteria, tests and toolchains that exist."""
    by_id = {each.id: str(each.criterion) for each in component.criteria if each.id}
    known = [*(each.criterion for each in component.criteria), "every_test", *by_id]
    unsure = _has_unread_criteria(component, at)
    chosen = chosen_tests(component, suite.names) if suite is not None else []
    chains = list(machine.toolchains) if machine is not None else []
    for i, waiver in enumerate(component.waivers):
        location = at.inside("waivers", i)
        for j, name in enumerate(waiver.criteria):
            text = ""
            if name not in known and not unsure:
                listed = ", ".join(dict.fromkeys(known))
                text = f"this component has no criterion {name}; it has {listed}"
            elif waiver.in_part and by_id.get(name, name) in WHOLE_MACHINE:
                text = f"{name} is about the whole machine; waive it without tests and toolchains"
            if text:
                location.fault(text, "criteria", j)
        _match(waiver.tests, chosen, "a test of this component", location, "tests")
        _match(waiver.toolchains, chains, "a toolchain of the machine", location, "toolchains")


def _has_unread_criteria(component: Component, at: Location) -> bool:
    if not component.criteria:
        return unread(at, "criteria")
    return any(unread(at, "criteria", i, "criterion") for i in range(len(component.criteria)))


def check_ids(plan: Plan, at: Location) -> None:
    """Check that each id of a criterion, a waiver or a document names one thing in the plan."""
    names = criterion_kinds()
    first: dict[str, str] = {}
    for i, component in enumerate(plan.components):
        for key in ("criteria", "waivers", "evidence"):
            for j, each in enumerate(getattr(component, key)):
                if not each.id:
                    continue
                location, place = at.inside("components", i, key, j), f"components[{i}].{key}[{j}]"
                if each.id in names:
                    location.fault(f"{each.id!r} is the name of a criterion; choose another", "id")
                elif first.setdefault(each.id, place) != place:
                    location.fault(f"{each.id!r} is the id of {first[each.id]}, too", "id")


# ---- checklists ----------------------------------------------------------------------------

_ID = r"[A-Za-z0-9][A-Za-z0-9._+-]*"
_KEYS = frozenset(
    ("component", "kind", "about", "phases", "items", "criteria", "evidence", "waivers")
)
_TOLD = frozenset(("duration", "reserve", "repeat"))  # they are of another kind


def _checklist(component: Component, at: Location) -> None:
    """Add the faults of a checklist: it runs nothing, and its items have names of their own."""
    for key in Component.__struct_fields__:
        if key not in _KEYS | _TOLD and at.given(key):
            at.fault("is about runs, and a checklist has none; remove it", key)
    if not component.items and not unread(at, "items"):
        at.fault("is missing; a checklist needs items, each with a text", "items")
    first: dict[str, int] = {}
    for i, item in enumerate(component.items):
        location, name = at.inside("items", i), id_of(item, i)
        if not re.fullmatch(_ID, name):
            location.fault(f"{name!r}: an id must be letters, digits, ._+-", "id")
        if first.setdefault(name, i) != i:
            location.fault(f"{name!r} is the id of items[{first[name]}], too; rename one", "id")
        _number(item, location)


def _number(item: ChecklistItem, location: Location) -> None:
    """Check the number that a person is to read, and its bounds."""
    if item.unit and not item.has_number:
        location.fault("there is no number; give at_least or at_most, or remove unit", "unit")
    if item.at_least is not None and item.at_most is not None and item.at_least > item.at_most:
        location.fault(f"{item.at_least:g} is more than at_most, {item.at_most:g}", "at_least")
