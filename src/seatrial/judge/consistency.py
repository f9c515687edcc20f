"""The check ``consistent`` of ``verify:``: a time and a rate tell of the same bytes.

finding = fault_of(Consistency(time="took", rate="rate", size=Size("2MB")), figures)
finding.text    # took 127.72 us is not consistent with rate 1,572.7 MB/s: for ...
"""

from collections.abc import Iterator, Mapping, Sequence

from seatrial.errors import suggest
from seatrial.judge.metrics import figure_names
from seatrial.model.codes import CHECK_ERROR, NO_FIGURE, WRONG_ANSWER
from seatrial.model.figures import ELAPSED, Finding, MetricValue
from seatrial.model.test import Check, Consistency, Metric, Test
from seatrial.units import BYTES_PER_SECOND_OF, SECONDS_OF, show_share, show_unit

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
        if check.consistent is not None and (finding := fault_of(check.consistent, figures)):
            label = f"{check.name}: " if check.name else ""
            yield Finding(finding.code, label + finding.text)


def fault_of(asked: Consistency, figures: Sequence[MetricValue]) -> Finding | None:
    """Return what speaks against a time and a rate among the figures of a run; None if their
    product is the size. A figure that is missing, is not above 0, or has another unit does."""
    by_name = {figure.name: figure for figure in figures}
    try:
        time, time_scale = _figure("time", asked.time, by_name)
        rate, rate_scale = _figure("rate", asked.rate, by_name)
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


def _figure(key: str, name: str, figures: Mapping[str, MetricValue]) -> tuple[MetricValue, float]:
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


# ---- as it is written ----------------------------------------------------------------------------


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
