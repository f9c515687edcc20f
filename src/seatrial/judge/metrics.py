"""The figures of merit of one run: by pattern, by a parser, by a function; and whether a time and a
rate tell of the same bytes.

figures, findings = measure(test, run_directory)
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import cast

from seatrial.errors import suggest
from seatrial.escaping import plain
from seatrial.judge import python_function
from seatrial.judge.check_values import LONGEST_REASON, fault_of_pattern
from seatrial.judge.formats import LESS, find_format, formats, remedy_for, told
from seatrial.judge.isolated import MAX_MATCHES, SearchFailed, find_all
from seatrial.judge.outputs import oth
from seatrial.judge.python_function import fault_of_source
from seatrial.judge.reading import DEFAULT_LIMIT, Unreadable, read_text, unreadable
from seatrial.model.codes import CHECK_ERROR, NO_FIGURE, PASS, WRONG_ANSWER
from seatrial.model.figures import ELAPSED, Finding, Measured, MetricValue, number, shown
from seatrial.model.file_model import Size
from seatrial.model.test import Check, Consistency, Metric, Reduce, Test
from seatrial.units import BYTES_PER_SECOND_OF, SECONDS_OF, Direction, show_share, show_unit


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


# ---- consistency ---------------------------------------------------------------------------------
#
# The check ``consistent`` of ``verify:``: a time and a rate tell of the same bytes.
#
#     finding = inconsistency_of(Consistency(time="took", rate="rate", size=Size("2MB")), figures)
#     finding.text    # took 127.72 us is not consistent with rate 1,572.7 MB/s: for ...


ROUNDING = 1e-12  # a product that is 5 % off is within 5 %

_UNITS: dict[str, Mapping[str, float]] = {"time": SECONDS_OF, "rate": BYTES_PER_SECOND_OF}


class _Unfit(Exception):
    """A figure cannot be judged; it has the finding."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.text)
        self.finding = finding


def find_inconsistent(test: Test, figures: Sequence[MetricValue]) -> Iterator[Finding]:
    """Yield the findings of a test's checks ``consistent`` on the figures of a run."""
    for check in test.verify:
        if check.consistent is not None and (
            finding := inconsistency_of(check.consistent, figures)
        ):
            label = f"{check.name}: " if check.name else ""
            yield Finding(finding.code, label + finding.text)


def inconsistency_of(asked: Consistency, figures: Sequence[MetricValue]) -> Finding | None:
    """Return what speaks against a time and a rate among the figures of a run; None if their
    product is the size. A figure that is missing, is not above 0, or has another unit does."""
    by_name = {figure.name: figure for figure in figures}
    try:
        time, time_scale = _figure_with_factor("time", asked.time, by_name)
        rate, rate_scale = _figure_with_factor("rate", asked.rate, by_name)
    except _Unfit as error:
        return error.finding
    size, share = asked.size.bytes, asked.within.fraction
    moved = time.value * time_scale * rate.value * rate_scale
    if abs(moved - size) <= (share + ROUNDING) * size:
        return None
    expected = size / (rate.value * rate_scale) / time_scale
    return Finding(
        WRONG_ANSWER,
        f"{_said(time)} is not consistent with {_said(rate)}: for {size:,} B "
        f"{_shown(expected, time.unit)} was expected, within {show_share(share)}",
    )


def _figure_with_factor(
    key: str, name: str, figures: Mapping[str, MetricValue]
) -> tuple[MetricValue, float]:
    """Return a figure, and the factor of its unit. Raises _Unfit."""
    if name not in figures:
        has = ", ".join(figures) or "none"
        text = f"consistent: there is no figure {name} for {key}; the figures are {has}"
        raise _Unfit(Finding(NO_FIGURE, text))
    figure = figures[name]
    if fault := fault_of_unit(key, figure.name, figure.unit):
        raise _Unfit(Finding(CHECK_ERROR, f"consistent: {fault}"))
    if not figure.value > 0:
        text = f"consistent: {_said(figure)} is no {key}; it must be more than 0"
        raise _Unfit(Finding(WRONG_ANSWER, text))
    return figure, _UNITS[key][figure.unit]


def _said(figure: MetricValue) -> str:
    return f"{figure.name} {_shown(figure.value, figure.unit)}"


def _shown(value: float, unit: str) -> str:
    return f"{value:,.5g}{show_unit(unit)}"


# ---- written consistency -------------------------------------------------------------------------


def fault_of_unit(key: str, name: str, unit: str) -> str:
    """Return why a metric is no time or no rate, by its unit; "" if it is one."""
    known = _UNITS[key]
    if unit in known:
        return ""
    return f"{name} is in {unit}, which is no unit of a {key}; those are {', '.join(known)}"


def faults_of_consistency(check: Check, test: Test) -> Iterator[tuple[str, str]]:
    """Yield the faults of a check ``consistent`` as a person wrote it: the key below the check, and
    a message. What only a run tells, such as the figures of a function, is judged then."""
    if check.consistent is None:
        return
    names = figure_names([test])
    units = {name: each.unit for name, each in test.metrics.items() if isinstance(each, Metric)}
    units.setdefault(ELAPSED, "s")
    for key in _UNITS:
        name = getattr(check.consistent, key)
        if name in units:
            fault = fault_of_unit(key, name, units[name])
        else:
            fault = "" if names is None else _fault_of_name(name, {ELAPSED, *names})
        if fault:
            yield f"consistent.{key}", fault


def _fault_of_name(name: str, known: set[str]) -> str:
    """Return why a metric is not known; "" if it is. Labels are not looked at: outputs differ."""
    if name in known or name.partition("{")[0] in known:
        return ""
    remedy = suggest(name, known) or f"there are {', '.join(sorted(known))}"
    return f"the test has no metric {name}; {remedy}"
