"""The figures of merit of one run: by pattern, by a parser, by a function.

figures, findings = measure(test, run_directory)
"""

from collections.abc import Callable, Iterable
from math import isfinite
from pathlib import Path
from typing import cast

from seatrial.escaping import plain
from seatrial.judge import python_function
from seatrial.judge.check_values import fault_of_pattern
from seatrial.judge.checks import unreadable
from seatrial.judge.formats import LESS, find_format, formats, told
from seatrial.judge.launcher_labels import remedy_for
from seatrial.judge.outputs import oth
from seatrial.judge.python_function import fault_of_source
from seatrial.judge.reading import DEFAULT_LIMIT, Unreadable, read_text
from seatrial.judge.search import MAX_MATCHES, SearchFailed, find_all
from seatrial.model.codes import CHECK_ERROR, NO_FIGURE, PASS
from seatrial.model.figures import Finding, Measured, MetricValue, number, shown
from seatrial.model.file_model import Size
from seatrial.model.test import Metric, Reduce, Test
from seatrial.units import Direction

LONGEST_REASON = 400


def measure(test: Test, folder: Path) -> Measured:
    """Return the figures of the run in ``folder``, in the order of the test, and a finding for each
    that is missing; one with the code PASS is a notice. Ratios are not among them: they follow.
    Raises nothing, whatever the job wrote."""
    named: dict[str, Metric] = {}
    parts: list[Measured] = []
    for name, each in test.metrics.items():
        if not isinstance(each, Metric):
            parts.append(_of_other(name, each, test, folder))
        elif not each.of:
            named[name] = each
    parts.append(_searched(named, folder))
    kept, doubted = _kept([figure for figures, _ in parts for figure in figures])
    return kept, [*(finding for _, missing in parts for finding in missing), *doubted]


def _of_other(name: str, metric: object, test: Test, folder: Path) -> Measured:
    """Return the figures of an output format, or of a function of the test."""
    if name == FROM and metric == OTH and any(check.codes == OTH for check in test.verify):
        return _as_harness(folder)
    if name == FROM and isinstance(metric, str):
        return _parsed(metric, folder)
    if name == PYTHON and isinstance(metric, str):
        return _custom(metric, test, folder)
    return [], [Finding(CHECK_ERROR, f"metric {name} is not valid: {metric!r}")]


def _kept(figures: list[MetricValue]) -> Measured:
    """Return the figures that are finite, each name once, and what speaks against the others."""
    findings: list[Finding] = []
    kept: dict[str, MetricValue] = {}
    for figure in figures:
        if not isfinite(figure.value):
            text = f"metric {figure.name}: {figure.value} is not a finite number"
            findings.append(Finding(NO_FIGURE, text))
        elif figure.name in kept:
            text = f"metric {figure.name} is given twice; rename the one in the test"
            findings.append(Finding(CHECK_ERROR, text))
        else:
            kept[figure.name] = figure
    return list(kept.values()), findings


# ---- by pattern ---------------------------------------------------------------------------


def _searched(metrics: dict[str, Metric], folder: Path) -> Measured:
    """Return the figures that patterns find. A file is read once for all of its patterns."""
    findings: list[Finding] = []
    by_file: dict[tuple[str, Size | None], dict[str, Metric]] = {}
    for name, metric in metrics.items():
        if fault := fault_of_pattern(metric.find, 1):
            findings.append(Finding(CHECK_ERROR, f"metric {name}: {fault}"))
        else:
            by_file.setdefault((metric.in_file, metric.size_limit), {})[name] = metric
    figures: dict[str, MetricValue] = {}
    for together in by_file.values():
        parts, missing = _searched_in_file(together, folder)
        figures |= {figure.name: figure for figure in parts}
        findings += missing
    return [figures[name] for name in metrics if name in figures], findings


def _searched_in_file(metrics: dict[str, Metric], folder: Path) -> Measured:
    """Return the figures that patterns find in one file, which all these metrics name."""
    first, *_ = metrics.values()
    file = first.in_file
    try:
        limit = DEFAULT_LIMIT if first.size_limit is None else first.size_limit.bytes
        text = read_text(folder, file, limit)
        matches = find_all([metric.find for metric in metrics.values()], text)
    except Unreadable as error:
        return [], [unreadable(error, NO_FIGURE)]
    except (SearchFailed, ValueError) as error:
        names = " or ".join(metrics)
        return [], [Finding(CHECK_ERROR, f"{file}: the pattern of {names} {error}")]
    figures: list[MetricValue] = []
    findings: list[Finding] = []
    for (name, metric), values in zip(metrics.items(), matches, strict=True):
        try:
            figures.append(_figure(name, metric, values))
        except ValueError as error:
            remedy = "" if values else remedy_for(text)
            findings.append(Finding(NO_FIGURE, f"metric {name}: {error}{remedy}"))
    return figures, findings


def _figure(name: str, metric: Metric, texts: list[str]) -> MetricValue:
    if not texts:
        raise ValueError(f"nothing in {metric.in_file} matches {shown(metric.find)}")
    if len(texts) >= MAX_MATCHES:
        raise ValueError(f"{metric.in_file} has {MAX_MATCHES} values or more, too many to judge")
    if len(texts) > 1 and metric.reduce is None:
        raise ValueError(
            f"{metric.in_file} has {len(texts)} values for {shown(metric.find)}; "
            "add `reduce:` (first, last, min, max, median, mean or sum) or a sharper pattern"
        )
    value = reduced([number(text) for text in texts], metric.reduce or "first")
    return MetricValue(name, value, metric.unit, metric.direction)


def reduced(values: list[float], how: Reduce) -> float:
    """Return one value for several; there must be at least one. A sum may overflow to infinity."""
    return _REDUCERS[how](values)


def _mean(values: list[float]) -> float:
    return sum(value / len(values) for value in values)  # a plain sum could overflow


def _median(values: list[float]) -> float:
    ordered, middle = sorted(values), len(values) // 2
    return ordered[middle] if len(values) % 2 else _mean(ordered[middle - 1 : middle + 1])


_REDUCERS: dict[Reduce, Callable[[list[float]], float]] = {
    "first": lambda values: values[0],
    "last": lambda values: values[-1],
    "min": min,
    "max": max,
    "median": _median,
    "mean": _mean,
    "sum": sum,
}


# ---- by a parser, by a function -----------------------------------------------------------


def _parsed(name: str, folder: Path) -> Measured:
    try:
        form = find_format(name)
    except ValueError as error:
        return [], [Finding(CHECK_ERROR, str(error))]
    try:
        text = read_text(folder, form.file, form.limit, LESS)
        figures = form.read(text)
    except Unreadable as error:
        return [], [unreadable(error, NO_FIGURE)]
    except ValueError as error:
        reason = plain(str(error)[:LONGEST_REASON])
        return [], [Finding(NO_FIGURE, f"{form.file} is not a whole {name} output: {reason}")]
    lines = form.passed_over(text)
    notices = [Finding(PASS, f"{form.file}: {told(lines)}")] if lines else []
    return [MetricValue(one.full_name, one.value, one.unit, one.better) for one in figures], notices


def _as_harness(folder: Path) -> Measured:
    """Return the figures of a run on which a script of the OLCF Test Harness has the verdict, and
    what is only noticed."""
    try:
        figures, faults = oth.read_as_harness(read_text(folder, oth.FILE, DEFAULT_LIMIT, LESS))
    except Unreadable as error:
        return [], [Finding(PASS, f"no figures: {error}")]
    return figures, [Finding(PASS, plain(f"{oth.FILE}: {fault}")) for fault in faults]


def _custom(named: str, test: Test, folder: Path) -> Measured:
    try:
        returned = python_function.figures_by(named, Path(test.folder), folder)
    except python_function.FunctionFailed as error:
        return [], [Finding(CHECK_ERROR, plain(str(error)[:LONGEST_REASON]))]
    return [
        MetricValue(plain(name), value, plain(unit), cast(Direction, better))
        for name, value, unit, better in returned
    ], []


# ---- written metrics -----------------------------------------------------------------------------
#
# The metrics of a test as a person wrote them: their faults and names, before anything runs.


FROM, PYTHON = "from", "python"
NOT_THERE = "is missing; it must be given"
OTH = "oth"  # an output format, and the codes of a check


def figure_names(tests: Iterable[Test]) -> set[str] | None:
    """Return the names of the figures of tests; None if some are known only after a run: those of a
    function, and of a parser that does not name them."""
    names: set[str] = set()
    for test in tests:
        names |= {name for name in test.metrics if name not in (FROM, PYTHON)}
        if PYTHON in test.metrics:
            return None
        if isinstance(form := test.metrics.get(FROM), str):
            named = find_format(form).figures if form in formats() else None
            if named is None:
                return None
            names |= set(named)
    return names


def faults_of_metrics(test: Test) -> list[tuple[str, str]]:
    """Return the faults of a test's metrics as a person wrote them, for the loader of suites: the
    key, such as ``metrics.triad.find``, and a message. No code of the test is imported."""
    faults: list[tuple[str, str]] = []
    for name, metric in test.metrics.items():
        key = f"metrics.{name}"
        if isinstance(metric, Metric):
            faults += [(f"{key}{inner}", text) for inner, text in _faults_of_metric(name, metric)]
        elif name == FROM:
            try:
                find_format(str(metric))
            except ValueError as error:
                faults.append((key, str(error)))
        elif name == PYTHON:
            if fault := fault_of_source(metric, Path(test.folder)):
                faults.append((key, fault))
        else:
            faults.append((key, f"{shown(metric)} is not a metric; give find, unit and better"))
    return faults


def _faults_of_metric(name: str, metric: Metric) -> list[tuple[str, str]]:
    faults = []
    if name in (FROM, PYTHON):
        faults.append(("", "is kept for an output format or a function; name the metric else"))
    if not (metric.of or metric.over):
        if fault := fault_of_pattern(metric.find, 1) if metric.find else NOT_THERE:
            faults.append((".find", fault))
        if metric.better is None:
            faults.append((".better", NOT_THERE))
    if not metric.unit.strip():
        faults.append((".unit", "is empty; write 1 for a number without a unit"))
    return faults
