"""The metrics of a test as a person wrote them: their faults and names, before anything runs."""

from collections.abc import Iterable
from pathlib import Path

from seatrial.suite.check_spec import Metric
from seatrial.suite.model import Test
from seatrial.verify.check_faults import fault_of_pattern
from seatrial.verify.figures import shown
from seatrial.verify.formats import find_format, formats
from seatrial.verify.python_source import fault_of_source

FROM, PYTHON = "from", "python"


def figure_names(tests: Iterable[Test]) -> set[str] | None:
    """Return the names of the figures of tests; None if some are known only after a run: those of a
    function, and of a parser that does not name them."""
    names: set[str] = set()
    for test in tests:
        names |= {name for name in test.metrics if name not in (FROM, PYTHON)}
        if PYTHON in test.metrics:
            return None
        if isinstance(form := test.metrics.get(FROM), str):
            told = find_format(form).figures if form in formats() else None
            if told is None:
                return None
            names |= set(told)
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
    if fault := fault_of_pattern(metric.find, 1):
        faults.append((".find", fault))
    if not metric.unit.strip():
        faults.append((".unit", "is empty; write 1 for a number without a unit"))
    return faults
