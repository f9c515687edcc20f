"""The figures of merit of one run: by pattern, by a parser, by a function.

figures, findings = measure(test, run_directory)
"""

from collections.abc import Callable
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, cast

from seatrial.journal.codes import CHECK_ERROR, NO_FIGURE
from seatrial.lazy import LazyModule
from seatrial.suite.check_spec import Metric, Reduce, SizeLimit
from seatrial.suite.model import Test
from seatrial.units import Direction
from seatrial.verify.check_faults import fault_of_pattern
from seatrial.verify.checks import unreadable
from seatrial.verify.figures import Finding, MetricValue, number, shown
from seatrial.verify.formats import LESS, find_format
from seatrial.verify.reading import DEFAULT_LIMIT, Unreadable, plain, read_text
from seatrial.verify.search import MAX_MATCHES, SearchFailed, find_all
from seatrial.verify.written_metrics import FROM, PYTHON

if TYPE_CHECKING:
    from seatrial.verify import python_function
else:  # for tests with such metrics
    python_function = LazyModule("seatrial.verify.python_function")

LONGEST_REASON = 400

Measured = tuple[list[MetricValue], list[Finding]]


def measure(test: Test, folder: Path) -> Measured:
    """Return the figures of the run in ``folder``, in the order of the test, and a finding for each
    that is missing. Raises nothing, whatever the job wrote."""
    named = {name: each for name, each in test.metrics.items() if isinstance(each, Metric)}
    parts: list[Measured] = []
    for name, metric in test.metrics.items():
        if name == FROM and isinstance(metric, str):
            parts.append(_parsed(metric, folder))
        elif name == PYTHON and isinstance(metric, str):
            parts.append(_custom(metric, test, folder))
        elif name not in named:
            fault = f"metric {name} is not valid: {metric!r}"
            parts.append(([], [Finding(CHECK_ERROR, fault)]))
    parts.append(_searched(named, folder))
    kept, doubted = _kept([figure for figures, _ in parts for figure in figures])
    return kept, [*(finding for _, missing in parts for finding in missing), *doubted]


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
    figures: dict[str, MetricValue] = {}
    findings: list[Finding] = []
    by_file: dict[tuple[str, SizeLimit | None], list[str]] = {}
    for name, metric in metrics.items():
        if fault := fault_of_pattern(metric.find, 1):
            findings.append(Finding(CHECK_ERROR, f"metric {name}: {fault}"))
        else:
            by_file.setdefault((metric.in_file, metric.size_limit), []).append(name)
    for (file, size_limit), names in by_file.items():
        try:
            limit = DEFAULT_LIMIT if size_limit is None else size_limit.bytes
            text = read_text(folder, file, limit)
            found = find_all([metrics[name].find for name in names], text)
        except Unreadable as error:
            findings.append(unreadable(error, NO_FIGURE))
            continue
        except (SearchFailed, ValueError) as error:
            text = f"{file}: the pattern of {' or '.join(names)} {error}"
            findings.append(Finding(CHECK_ERROR, text))
            continue
        for name, values in zip(names, found, strict=True):
            try:
                figures[name] = _figure(name, metrics[name], values)
            except ValueError as error:
                findings.append(Finding(NO_FIGURE, f"metric {name}: {error}"))
    return [figures[name] for name in metrics if name in figures], findings


def _figure(name: str, metric: Metric, found: list[str]) -> MetricValue:
    if not found:
        raise ValueError(f"nothing in {metric.in_file} matches {shown(metric.find)}")
    if len(found) >= MAX_MATCHES:
        raise ValueError(f"{metric.in_file} has {MAX_MATCHES} values or more, too many to judge")
    if len(found) > 1 and metric.reduce is None:
        raise ValueError(
            f"{metric.in_file} has {len(found)} values for {shown(metric.find)}; "
            "add `reduce:` (first, last, min, max, median, mean or sum) or a sharper pattern"
        )
    values = [number(text) for text in found]
    return MetricValue(name, reduced(values, metric.reduce or "first"), metric.unit, metric.better)


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
        figures = form.read(read_text(folder, form.file, form.limit, LESS))
    except Unreadable as error:
        return [], [unreadable(error, NO_FIGURE)]
    except ValueError as error:
        reason = plain(str(error)[:LONGEST_REASON])
        return [], [Finding(NO_FIGURE, f"{form.file} is not a whole {name} output: {reason}")]
    return [MetricValue(one.full_name, one.value, one.unit, one.better) for one in figures], []


def _custom(named: str, test: Test, folder: Path) -> Measured:
    try:
        returned = python_function.figures_by(named, Path(test.folder), folder)
    except python_function.FunctionFailed as error:
        return [], [Finding(CHECK_ERROR, plain(str(error)[:LONGEST_REASON]))]
    return [
        MetricValue(plain(name), value, plain(unit), cast(Direction, better))
        for name, value, unit, better in returned
    ], []
