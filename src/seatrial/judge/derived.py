"""Figures that follow from others: ratios of two metrics, and parts of a whole.

figures, findings = ratios(test, measured)      # read_share: {of: read, over: write}
for whole in breakdowns(test, figures):         # parts: {total: [compute, io]}
    whole.parts[0].share, whole.other

A ratio is a figure of the run like any other: journalled, compared with its reference, asked for by
checks and criteria. Both of its figures are brought into one unit first.

Parts must not be more than their whole. What was printed is rounded, so each figure may be off by
half of its last digit: 10.0, 4.3 and 5.8 by 0.15 together.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Protocol

from msgspec import Struct

from seatrial.model.codes import CHECK_ERROR, NO_FIGURE
from seatrial.model.figures import Finding, Measured, MetricValue
from seatrial.model.test import Metric, Test
from seatrial.units import converted, show_unit, unfit

SHARE_UNITS = {"1": 1.0, "%": 100.0}
"""The units that a ratio can have, each with the number of them in a whole."""

OTHER = "other"
DIGITS = 4  # of a figure that are trusted


class Figure(Protocol):
    """A figure as a run, or the store, has it."""

    @property
    def name(self) -> str: ...

    @property
    def value(self) -> float: ...

    @property
    def unit(self) -> str: ...


# ---- ratios ------------------------------------------------------------------------------------


def ratios(test: Test, figures: Sequence[MetricValue]) -> Measured:
    """Return the ratios of a test by the figures of a run, among them the elapsed time, and a
    finding for each that is missing."""
    by_name = {figure.name: figure for figure in figures}
    found: list[MetricValue] = []
    findings: list[Finding] = []
    for name, metric in ratios_of(test).items():
        for labels in _labels(metric, by_name):
            result = _ratio(name, labels, metric, by_name)
            if isinstance(result, MetricValue):
                found.append(result)
            else:
                findings.append(Finding(result.code, f"metric {name}{labels}: {result.text}"))
    return found, findings


def ratios_of(test: Test) -> dict[str, Metric]:
    """Return the ratios of a test by name."""
    metrics = test.metrics.items()
    return {name: each for name, each in metrics if isinstance(each, Metric) and each.of}


def _labels(metric: Metric, by_name: Mapping[str, MetricValue]) -> list[str]:
    """Return the labels of the figures of which there are ratios, each as ``{bytes=8}``; "" alone
    unless both metrics have figures with labels and none without."""
    if metric.of in by_name or metric.over in by_name:
        return [""]
    found = dict.fromkeys(
        figure.removeprefix(name)
        for name in (metric.of, metric.over)
        for figure in by_name
        if figure.startswith(name + "{")
    )
    return list(found) or [""]


def _ratio(
    name: str, labels: str, metric: Metric, by_name: Mapping[str, MetricValue]
) -> MetricValue | Finding:
    """Return a ratio, or why there is none."""
    asked = metric.of + labels, metric.over + labels
    if lacking := [each for each in asked if each not in by_name]:
        has = ", ".join(by_name) or "none"
        return Finding(NO_FIGURE, f"there is no figure {lacking[0]}; the figures are {has}")
    if name + labels in by_name:
        return Finding(CHECK_ERROR, "is given twice; rename the one in the test")
    of, over = (by_name[each] for each in asked)
    value = converted(of.value, of.unit, over.unit)
    if value is None:
        return Finding(CHECK_ERROR, unlike(of.name, of.unit, over.name, over.unit))
    if not over.value:
        return Finding(NO_FIGURE, f"{_said(over)} has no part: nothing is divided by 0")
    ratio = SHARE_UNITS.get(metric.unit, 1.0) * value / over.value
    if fault := unfit(ratio):
        return Finding(NO_FIGURE, f"{_said(of)} over {_said(over)} is {fault}")
    return MetricValue(name + labels, ratio, metric.unit, metric.direction)


def unlike(first: str, unit: str, second: str, other: str) -> str:
    """Return that the units of two figures cannot be converted."""
    return f"{first} is in {unit}, which is of another dimension than {other}, the unit of {second}"


def _said(figure: Figure) -> str:
    return f"{figure.name} {figure.value:,.5g}{show_unit(figure.unit)}"


# ---- parts of a whole ----------------------------------------------------------------------------


class Part(Struct, frozen=True):
    """A part of a whole, in its unit, with its share."""

    name: str
    value: float
    share: float


class Whole(Struct, frozen=True, rename={"reason": "why"}):
    """A figure and its parts; the last one is ``other``, what they leave, if that is more than
    rounding. Without parts there is a ``reason``."""

    name: str
    value: float
    unit: str
    parts: list[Part] = []
    reason: str = ""


def breakdowns(parts: Mapping[str, Sequence[str]], figures: Iterable[Figure]) -> list[Whole]:
    """Return the wholes that are among the figures of a run, with their parts."""
    by_name = {figure.name: figure for figure in figures}
    found = []
    for name, names in parts.items():
        if (whole := by_name.get(name)) is None:
            continue
        if fault := _fault(whole, names, by_name):
            found.append(Whole(name, whole.value, whole.unit, reason=fault.text))
        elif whole.value <= 0:
            reason = f"{_said(whole)} has no parts: shares are of more than 0"
            found.append(Whole(name, whole.value, whole.unit, reason=reason))
        else:
            found.append(_broken_down(whole, [by_name[each] for each in names]))
    return found


def _broken_down(whole: Figure, figures: Sequence[Figure]) -> Whole:
    values = [converted(each.value, each.unit, whole.unit) or 0.0 for each in figures]
    parts = [
        Part(each.name, value, value / whole.value)
        for each, value in zip(figures, values, strict=True)
    ]
    left = whole.value - math.fsum(values)
    if left > _rounding(whole, figures):
        parts.append(Part(OTHER, left, left / whole.value))
    return Whole(whole.name, whole.value, whole.unit, parts)


def find_excess(test: Test, figures: Sequence[MetricValue]) -> Iterator[Finding]:
    """Yield what speaks against the parts that a test names, by the figures of a run, among them
    the elapsed time: one is missing or cannot be converted, or together they are more than the
    whole."""
    by_name = {figure.name: figure for figure in figures}
    for name, names in test.parts.items():
        if name not in by_name:
            text = f"there is no figure {name}; the figures are {', '.join(by_name) or 'none'}"
            yield Finding(NO_FIGURE, f"parts of {name}: {text}")
        elif fault := _fault(by_name[name], names, by_name):
            yield Finding(fault.code, f"parts of {name}: {fault.text}")


def _fault(whole: Figure, names: Sequence[str], by_name: Mapping[str, Figure]) -> Finding | None:
    """Return why figures are not the parts of a whole; None if they are."""
    for name in names:
        if name not in by_name:
            has = ", ".join(by_name)
            return Finding(NO_FIGURE, f"there is no figure {name}; the figures are {has}")
        part = by_name[name]
        if converted(1, part.unit, whole.unit) is None:
            return Finding(CHECK_ERROR, unlike(name, part.unit, whole.name, whole.unit))
        if part.value < 0:
            return Finding(CHECK_ERROR, f"{_said(part)} is below 0, so it is no part")
    figures = [by_name[name] for name in names]
    total = math.fsum(converted(each.value, each.unit, whole.unit) or 0.0 for each in figures)
    allowed = _rounding(whole, figures)
    if total <= whole.value + allowed:
        return None
    return Finding(
        CHECK_ERROR,
        f"{' + '.join(map(_said, figures))} = {total:,.6g}{show_unit(whole.unit)} is more than "
        f"{_said(whole)}, and rounding explains {allowed:.2g}; parts must not overlap",
    )


def _rounding(whole: Figure, parts: Sequence[Figure]) -> float:
    """Return by how much the sum of parts may be off the whole, in its unit, as each was rounded
    by half of its last digit. Numbers have no zeros at their end, so figures in one unit are taken
    to have as many decimals as any of them; digits behind the fourth are not trusted."""
    figures = (whole, *parts)
    decimals: dict[str, int] = {}
    for each in figures:
        decimals[each.unit] = max(decimals.get(each.unit, 0), _decimals(each.value))
    return math.fsum(
        converted(_half_digit(each.value, decimals[each.unit]), each.unit, whole.unit) or 0.0
        for each in figures
    )


def _decimals(value: float) -> int:
    exponent = Decimal(repr(value)).normalize().as_tuple().exponent
    assert isinstance(exponent, int)  # the number is finite
    return max(0, -exponent)


def _half_digit(value: float, decimals: int) -> float:
    """Return half of the last digit of a number with so many decimals, or of its fourth digit."""
    fourth = math.floor(math.log10(abs(value))) - DIGITS + 1 if value else -decimals
    return 0.5 * 10.0 ** max(-decimals, fourth)
