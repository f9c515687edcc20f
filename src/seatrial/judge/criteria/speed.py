"""Criteria on how fast runs were: how alike, how fast beside others, how fast by references."""

from __future__ import annotations

import math
import random
import zlib
from collections.abc import Sequence
from statistics import fmean, median

from seatrial.judge.accounts import Figure as Measured
from seatrial.judge.accounts import Run
from seatrial.judge.criteria.result import (
    Result,
    bounds_of,
    decided,
    undecided,
    with_worst,
)
from seatrial.judge.criteria.view import Group, View
from seatrial.plan.model import Criterion
from seatrial.suite.model import Better
from seatrial.units import count, show_number
from seatrial.verify import references as refs
from seatrial.verify.figures import Figure

LEAST = 2  # runs without which there is no spread
RESAMPLES = 1000
CONFIDENCE = 0.95
ROBUST = 1.4826  # makes a median absolute deviation a standard deviation, where it is normal


# ---- variability --------------------------------------------------------------------------


def variability(view: View, criterion: Criterion) -> list[Result]:
    """The coefficient of variation of the elapsed time of each test's script: s / mean.

    Over the runs whose answer was right, slow ones among them (verdict pass or performance). Cases
    of a test that differ in more than their node are each compared with their own mean m:
    sqrt(sum((x / m - 1)^2) / (n - cases)), which is s / mean for one case. ``numbers`` give the
    robust one beside it, 1.4826 MAD / median. Needs two runs of a case.
    """
    bounds = bounds_of(criterion)
    by_test: dict[str, list[list[float]]] = {test: [] for test in view.tests(criterion)}
    for group in view.groups(criterion):
        times = [run.elapsed for run in group.runs if run.right]
        by_test[group.case.test].append(sorted(t for t in times if t is not None and t > 0))
    results = []
    for test, series in by_test.items():
        enough = [times for times in series if len(times) >= LEAST]
        n = sum(map(len, enough))
        numbers = _spread(enough) if enough else {}
        value = float(numbers["cv"]) if numbers else None
        why = f"needs {LEAST} runs with a right answer, has {sum(map(len, series))}"
        if value is not None:
            why = f"{100 * value:.3g} % over {n} runs; the robust value is "
            why += f"{100 * float(numbers['robust']):.3g} %"
        results.append(
            decided(
                criterion,
                bounds,
                value,
                over=view.over,
                n=n,
                why=why,
                goes_on=view.goes_on,
                subject=test,
                numbers=numbers,
            )
        )
    return with_worst(criterion, results, lambda one: one.value or 0.0)


def _spread(series: Sequence[Sequence[float]]) -> dict[str, float | int | str]:
    n = sum(map(len, series))
    off: list[float] = []
    far: list[float] = []
    for times in series:
        middle, typical = fmean(times), median(times)
        off += [x / middle - 1 for x in times]
        far += [abs(x / typical - 1) for x in times]
    mean = math.fsum(x for times in series for x in times) / n
    return {
        "cv": math.sqrt(math.fsum(x * x for x in off) / (n - len(series))),
        "robust": ROBUST * median(far),
        "mean": mean,
        "least": min(times[0] for times in series),
        "largest": max(times[-1] for times in series),
        "cases": len(series),
    }


# ---- slowdown -----------------------------------------------------------------------------


def slowdown(view: View, criterion: Criterion) -> list[Result]:
    """Each case at full machine against the same case alone, in per cent; positive is better.

    100 (alone - full) / alone of the medians of the elapsed times, or of the ``metric`` (the other
    way round where higher is better), over runs whose answer was right. The interval, in
    ``numbers``, is that of 95 % of 1,000 bootstrap samples of both, drawn with a fixed seed.
    """
    bounds = bounds_of(criterion)
    results = []
    for group in view.groups(criterion):
        alone, better = _values(group, criterion.metric, "alone")
        full, _ = _values(group, criterion.metric, "full")
        numbers: dict[str, float | int | str] = {"alone n": len(alone), "full n": len(full)}
        value = None
        why = f"needs runs alone and at full machine, has {len(alone)} and {len(full)}"
        if alone and full and median(alone):
            value = _per_cent(median(alone), median(full), better)
            numbers |= {"alone": median(alone), "full": median(full)}
            why = f"median {show_number(median(alone))} alone (n {len(alone)}), "
            why += f"{show_number(median(full))} at full machine (n {len(full)})"
            if len(alone) >= LEAST and len(full) >= LEAST:
                low, high = _interval(alone, full, better, group.name)
                numbers |= {"low": low, "high": high}
                why += f"; 95 % interval {low:+.3g} to {high:+.3g} %"
        elif alone and full:
            why = "the median alone is 0: there is nothing to compare with"
        results.append(
            decided(
                criterion,
                bounds,
                value,
                over=view.over,
                n=len(alone) + len(full),
                why=why,
                goes_on=view.goes_on,
                subject=group.name,
                numbers=numbers,
            )
        )
    return with_worst(criterion, results, lambda one: -(one.value or 0.0))


def _values(group: Group, metric: str, stage: str) -> tuple[list[float], Better]:
    """What is compared, in order, and in which direction it improves."""
    runs = [run for run in group.runs if run.right and run.stage == stage]
    if not metric:
        return sorted(t for run in runs if (t := run.elapsed) is not None), "lower"
    figures = [figure for run in runs if (figure := _figure(run, metric)) is not None]
    lower = any(figure.better == "lower" for figure in figures)
    return sorted(figure.value for figure in figures), "lower" if lower else "higher"


def _figure(run: Run, metric: str) -> Measured | None:
    return (run.figures or {}).get(metric)


def _per_cent(alone: float, full: float, better: Better) -> float:
    change = alone - full if better == "lower" else full - alone
    return 100 * change / abs(alone)


def _interval(
    alone: list[float], full: list[float], better: Better, seed: str
) -> tuple[float, float]:
    draw = random.Random(zlib.crc32(seed.encode()))
    found = sorted(
        _per_cent(one, two, better)
        for one, two in (
            (median(draw.choices(alone, k=len(alone))), median(draw.choices(full, k=len(full))))
            for _ in range(RESAMPLES)
        )
        if one
    )
    if not found:
        return 0.0, 0.0
    tail = (1 - CONFIDENCE) / 2
    return found[int(tail * len(found))], found[min(len(found) - 1, int((1 - tail) * len(found)))]


# ---- figures ------------------------------------------------------------------------------


def figure_of_merit(view: View, criterion: Criterion) -> list[Result]:
    """The median of a metric over the runs of each case whose answer was right, against the bounds
    of the criterion (in the metric's unit, or per cent of the machine's reference for the case) or,
    where it gives none, against the reference's own tolerance."""
    results = [
        found
        for group in view.groups(criterion)
        if (found := _against(view, criterion, group)) is not None
    ]
    if not results:
        return [undecided(criterion, f"no run has given {criterion.metric or 'a metric'}")]
    return with_worst(criterion, results, _furthest)


def _furthest(one: Result) -> float:
    """How far a figure is on either side of its reference, of two that are alike otherwise."""
    off = one.numbers.get("per cent off", 0.0)
    return abs(off) if isinstance(off, int | float) else 0.0


def _against(view: View, criterion: Criterion, group: Group) -> Result | None:
    metric = criterion.metric
    figures = [f for run in group.runs if run.right and (f := _figure(run, metric)) is not None]
    try:
        reference = _reference(view, criterion, group)
        if criterion.at_least is None and criterion.at_most is None:
            return _against_reference(view, criterion, group, reference, figures)
        alike = reference is not None and all(f.unit == reference.unit for f in figures)
        bounds = bounds_of(criterion, reference.value if reference and alike else None)
    except (refs.AmbiguousReference, ValueError) as error:
        return undecided(criterion, str(error), subject=group.name)
    values = sorted(figure.value for figure in figures)
    value = median(values) if values else None
    why = f"no run with a right answer has given {metric}"
    if value is not None:
        why = f"median {_shown(value, figures)} of {count(len(values), 'run')}"
    return decided(
        criterion,
        bounds,
        value,
        over=view.over,
        n=len(values),
        why=why,
        goes_on=view.goes_on,
        subject=group.name,
        numbers=_numbers(figures),
    )


def _reference(view: View, criterion: Criterion, group: Group) -> refs.Reference | None:
    case = group.case
    return refs.matching(
        view.references, case.test, criterion.metric, case.parameters, case.toolchain
    )


def _numbers(figures: Sequence[Measured]) -> dict[str, float | int | str]:
    if not figures:
        return {}
    values = [figure.value for figure in figures]
    return {"unit": figures[0].unit, "least": min(values), "largest": max(values)}


def _against_reference(
    view: View,
    criterion: Criterion,
    group: Group,
    reference: refs.Reference | None,
    figures: Sequence[Measured],
) -> Result:
    if reference is None:
        return undecided(
            criterion, f"there is no reference for {criterion.metric}", subject=group.name
        )
    if not figures:
        why = f"no run with a right answer has given {criterion.metric}"
        return undecided(criterion, why, subject=group.name)
    better: Better = "lower" if figures[0].better == "lower" else "higher"
    value = median(sorted(figure.value for figure in figures))
    unit = "" if reference.unit == "1" else f" {reference.unit}"
    low, high = refs.bounds(reference, better)
    sides = (("at least", low), ("at most", high))
    words = " and ".join(
        f"{word} {show_number(side)}{unit}" for word, side in sides if side is not None
    )
    if figures[0].unit != reference.unit:
        why = f"{criterion.metric} is in {figures[0].unit}, but its reference in {reference.unit}"
        return undecided(criterion, why, words, group.name)
    finding = refs.judge(Figure(criterion.metric, value, figures[0].unit, better), reference)
    off = refs.percent_off(value, reference)
    numbers = _numbers(figures)
    if off is not None:
        numbers["per cent off"] = off
    met = f"median {_shown(value, figures)} of {count(len(figures), 'run')}"
    return Result(
        criterion=criterion.criterion,
        subject=group.name,
        state="undecided" if not view.over else "met" if finding is None else "not met",
        value=value,
        bound=words,
        n=len(figures),
        numbers=numbers,
        why=view.goes_on if not view.over else met if finding is None else finding.text,
    )


def _shown(value: float, figures: Sequence[Measured]) -> str:
    unit = figures[0].unit
    return show_number(value) + (f" {unit}" if unit not in ("", "1") else "")
